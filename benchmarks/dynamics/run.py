"""Equations of motion from trajectories, by `discover_dynamics` as it comes: every system counted, as JSON
and a table.

    python benchmarks/dynamics/run.py --seconds 30
    python benchmarks/dynamics/run.py --seconds 60 --noise 0.02

A system that is in the file already is not run again, so that a run can be taken up. Right is what our judge
calls so (`eqlearn.judge`, tier `paper`: every constant within 5 % or three standard errors); a start that was
not shown is foretold if R² of the simulated motion is above 0.9.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from pathlib import Path
from typing import Any

import numpy as np
from systems import System, systems

import eqlearn
from eqlearn import FoundMotion, atomic_write, discover_dynamics, judge

TIMES = 512
FORETOLD = 0.9


def trial(system: System, noise: float, seconds: float, seed: int, both: bool) -> dict[str, Any]:
    """One system, observed with noise in proportion to its states."""
    rng = np.random.default_rng(seed)
    clock, shown = system.motion(0, TIMES)
    other = system.motion(1, TIMES)[1]
    series = [one * (1 + noise * rng.standard_normal(one.shape)) for one in (shown, other)]
    began, busy = time.perf_counter(), time.process_time()
    found = discover_dynamics(
        series if both else series[:1], dt=float(clock[1] - clock[0]), names=system.names, seconds=seconds,
        seed=seed,
    )  # fmt: skip
    return {
        "system": system.name, "noise": noise, "budget": seconds, "seed": seed, "both": both,
        "right": all(_right(found, system, shown)), "r2": _foretold(found, other),
        "seconds": round(time.perf_counter() - began, 2), "cpu": round(time.process_time() - busy, 2),
        "ended": found.found.ended, "equations": [str(e) for e in found.equations],
        "truth": list(system.equations),
    }  # fmt: skip


def _right(found: FoundMotion, system: System, shown: np.ndarray) -> list[bool]:
    box = {name: (float(x.min()), float(x.max())) for name, x in zip(system.names, shown.T, strict=True)}
    every = zip(found.equations, system.truths, found.found.best.constants, strict=True)
    return [
        judge(mine, true, box, standard_errors=[c.standard_error for c in constants] or None).at_least(
            "paper"
        )
        for mine, true, constants in every
    ]


def _foretold(found: FoundMotion, other: np.ndarray) -> float:
    said = found.simulate(other[0], len(other) - 1)
    if not np.isfinite(said).all():
        return -1.0
    return float(max(-1.0, 1 - ((said - other) ** 2).sum() / ((other - other.mean(axis=0)) ** 2).sum()))


def table(trials: list[dict[str, Any]]) -> str:
    """The results as a page."""
    right, told = sum(t["right"] for t in trials), sum(t["r2"] > FORETOLD for t in trials)
    late = sum(t["cpu"] > 1.1 * t["budget"] + 1 for t in trials)
    lines = [
        f"{right} of {len(trials)} systems right, another start foretold in {told}; {late} of them took more "
        "than their budget, 10 % and a second.", "",
        "| system | right | R² of another start | s | found |", "|---|---|---|---|---|",
    ]  # fmt: skip
    for t in trials:
        found = "; ".join(t["equations"]).replace("|", "\\|")
        lines.append(
            f"| {t['system']} | {'yes' if t['right'] else 'no'} | {t['r2']:.4f} | {t['cpu']} | `{found}` |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--noise", type=float, default=0.0)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--both", action="store_true", help="show both starts")
    parser.add_argument("--systems", default="", help="some names, separated by commas")
    parser.add_argument("--out", type=Path, default=None)
    options = parser.parse_args()
    out = options.out or Path("results/dynamics") / ("noise.json" if options.noise else "clean.json")
    wanted = [name.strip() for name in options.systems.split(",") if name.strip()]
    held = json.loads(out.read_text(encoding="utf-8")) if out.exists() else {"trials": []}
    trials = held["trials"]
    for system in systems():
        known = any(t["system"] == system.name and t["seed"] == options.seed for t in trials)
        if known or (wanted and system.name not in wanted):
            continue
        trials.append(trial(system, options.noise, options.seconds, options.seed, options.both))
        print(json.dumps(trials[-1]), flush=True)
        about = {
            "command": "python benchmarks/dynamics/run.py "
            f"--seconds {options.seconds:g} --noise {options.noise:g} --seed {options.seed}",
            "eqlearn": eqlearn.__version__, "python": platform.python_version(), "numpy": np.__version__,
            "trials": trials,
        }  # fmt: skip
        out.parent.mkdir(parents=True, exist_ok=True)
        atomic_write(out, f"{json.dumps(about, indent=1)}\n".encode())
        atomic_write(out.with_suffix(".md"), table(trials).encode())


if __name__ == "__main__":
    main()
