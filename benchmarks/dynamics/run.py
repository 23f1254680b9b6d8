"""Equations of motion from trajectories, by `discover_dynamics` as it comes: every system counted, as JSON
and a table.

    python benchmarks/dynamics/run.py --seconds 30
    python benchmarks/dynamics/run.py --seconds 60 --noise 0.02
    python benchmarks/dynamics/run.py --noise 0.1 --additive --seed 1 --systems Lorenz,pendulum
    python benchmarks/dynamics/run.py --peers .venv-peers/bin/python      # PySINDy beside it

The systems are our own, or those of a file that the environment names (see `systems.py`). A system that is in
the file already is not run again with the same seed, so that a run can be taken up. Noise is in proportion to
each value, or, if `additive`, to the root mean square of each state. Right is what our judge calls so
(`eqlearn.judge`, tier `paper`: every constant within 5 % or three standard errors); a start that was not
shown is foretold if R² of the simulated motion is above 0.9.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import sympy as sp
from systems import ELSEWHERE, System, systems

import eqlearn
from eqlearn import EqlearnError, Equation, atomic_write, discover_dynamics, judge

WORKER = Path(__file__).parent.parent / "peers" / "pysindy_worker.py"
TIMES = 512
FORETOLD = 0.9


def observed(
    system: System, noise: float, seed: int, additive: bool = False
) -> tuple[float, list[np.ndarray], np.ndarray]:
    """The step of time, both motions with noise, and the second without."""
    rng = np.random.default_rng(seed)
    clock, shown = system.motion(0, TIMES)
    other = system.motion(1, TIMES)[1]
    sizes = [np.sqrt((one**2).mean(axis=0)) if additive else one for one in (shown, other)]
    both = zip((shown, other), sizes, strict=True)
    noisy = [one + noise * size * rng.standard_normal(one.shape) for one, size in both]
    return float(clock[1] - clock[0]), noisy, other


def trial(
    system: System, noise: float, seconds: float, seed: int, both: bool, additive: bool
) -> dict[str, Any]:
    """One system, by our search."""
    dt, series, other = observed(system, noise, seed, additive)
    began, busy = time.perf_counter(), time.process_time()
    found = discover_dynamics(
        series if both else series[:1], dt=dt, names=system.names, seconds=seconds, seed=seed
    )
    errors = [[c.standard_error for c in constants] or None for constants in found.found.best.constants]
    said = found.simulate(other[0], len(other) - 1)
    return {
        "system": system.name, "noise": noise, "additive": additive, "budget": seconds, "seed": seed,
        "both": both, "right": right(found.equations, system, errors), "r2": foretold(said, other),
        "largest_error": largest_error(found.equations, system),
        "seconds": round(time.perf_counter() - began, 2), "cpu": round(time.process_time() - busy, 2),
        "ended": found.found.ended, "equations": [str(e) for e in found.equations],
        "truth": list(system.equations),
    }  # fmt: skip


def peer(python: Path, system: System, noise: float, seed: int, additive: bool) -> dict[str, Any]:
    """The same data by PySINDy, in the environment of this interpreter."""
    dt, series, other = observed(system, noise, seed, additive)
    task = {
        "series": series[0].tolist(), "dt": dt, "names": system.names, "start": other[0].tolist(),
        "steps": len(other) - 1,
    }  # fmt: skip
    try:
        done = subprocess.run(
            [str(python), str(WORKER)], input=json.dumps(task), capture_output=True, text=True, timeout=300
        )
    except subprocess.TimeoutExpired:
        return {"right": False, "r2": -1.0, "failed": "300 s"}
    if done.returncode:
        return {"right": False, "r2": -1.0, "failed": done.stderr[-300:]}
    said = json.loads(done.stdout.splitlines()[-1])
    motion = said.pop("motion")
    try:
        equations = [Equation.parse(text, system.names) for text in said["equations"]]
        same = right(equations, system, [None] * len(equations))
    except EqlearnError:
        same = False
    return {"right": same, "r2": -1.0 if motion is None else foretold(np.array(motion), other), **said}


def right(equations: Sequence[Equation], system: System, errors: Sequence[Any]) -> bool:
    """Whether all equations are the system's."""
    shown = system.motion(0, TIMES)[1]
    box = {name: (float(x.min()), float(x.max())) for name, x in zip(system.names, shown.T, strict=True)}
    every = zip(equations, system.truths, errors, strict=True)
    return all(judge(mine, true, box, standard_errors=e).at_least("paper") for mine, true, e in every)


def largest_error(equations: Sequence[Equation], system: System) -> float | None:
    """The largest relative error of a coefficient; none where the terms are not the system's."""
    gaps = []
    for mine, true in zip(equations, system.truths, strict=True):
        ours, theirs = (sp.expand(e.expr).evalf().as_coefficients_dict() for e in (mine, true))
        if set(ours) != set(theirs):
            return None
        gaps += [abs(float(ours[term] / theirs[term]) - 1) for term in theirs]
    return max(gaps)


def foretold(said: np.ndarray, other: np.ndarray) -> float:
    """R² of a motion that was foretold; -1 where it diverges."""
    if not np.isfinite(said).all():
        return -1.0
    return float(max(-1.0, 1 - ((said - other) ** 2).sum() / ((other - other.mean(axis=0)) ** 2).sum()))


def table(trials: list[dict[str, Any]]) -> str:
    """The results as a page."""
    exact, told = sum(t["right"] for t in trials), sum(t["r2"] > FORETOLD for t in trials)
    late = sum(t["cpu"] > 1.1 * t["budget"] + 1 for t in trials)
    peers = [t["pysindy"] for t in trials if "pysindy" in t]
    beside = ""
    if peers:
        theirs = f"{sum(p['right'] for p in peers)} and {sum(p['r2'] > FORETOLD for p in peers)}"
        beside = f" PySINDy, of {len(peers)} of them: {theirs}."
    lines = [
        f"{exact} of {len(trials)} right, another start foretold in {told}; {late} of them took more "
        f"than their budget, 10 % and a second.{beside}", "",
        "| system | seed | right | largest error | R² of another start | s | found |",
        "|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    for t in trials:
        found = "; ".join(t["equations"]).replace("|", "\\|")
        error, right = t.get("largest_error"), "yes" if t["right"] else "no"
        off = "" if error is None else f"{100 * error:.2g} %"
        lines.append(
            f"| {t['system']} | {t['seed']} | {right} | {off} | {t['r2']:.4f} | {t['cpu']} | `{found}` |"
        )
    return "\n".join(lines) + "\n"


def draw(trials: list[dict[str, Any]]) -> plt.Figure:
    """R² of the other start, system by system; filled where all equations are right."""
    figure, axes = plt.subplots(figsize=(8, 0.2 * len(trials) + 1), layout="constrained")
    for who, colour in (("eqlearn", "tab:blue"), ("pysindy", "tab:orange")):
        mine = [(k, t if who == "eqlearn" else t.get(who)) for k, t in enumerate(trials)]
        for k, one in mine:
            if one is not None:
                fill = colour if one["right"] else "none"
                axes.scatter(one["r2"], k, color=colour, facecolors=fill, label=who if k == 0 else None)
    axes.axvline(FORETOLD, color="grey", linewidth=0.8)
    axes.set_yticks(range(len(trials)), [t["system"] for t in trials], fontsize=7)
    axes.set_xlabel("R² of another start; filled: all equations right")
    axes.legend()
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--noise", type=float, default=0.0)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--additive", action="store_true", help="noise of one size at all times")
    parser.add_argument("--both", action="store_true", help="show both starts")
    parser.add_argument("--systems", default="", help="some names, separated by commas")
    parser.add_argument("--peers", type=Path, default=None, help="the peers' interpreter, to run PySINDy")
    parser.add_argument("--out", type=Path, default=None)
    options = parser.parse_args()
    whose = Path(os.environ[ELSEWHERE]).stem if os.environ.get(ELSEWHERE) else "own"
    kind = f"{'additive' if options.additive else 'noise'}-{options.noise:g}" if options.noise else "clean"
    out = options.out or Path("results/dynamics") / f"{whose}-{kind}{'-both' if options.both else ''}.json"
    wanted = [name.strip() for name in options.systems.split(",") if name.strip()]
    held = json.loads(out.read_text(encoding="utf-8")) if out.exists() else {"trials": []}
    trials = held["trials"]
    for system in systems():
        known = any(t["system"] == system.name and t["seed"] == options.seed for t in trials)
        if known or (wanted and system.name not in wanted):
            continue
        task = (options.noise, options.seconds, options.seed, options.both, options.additive)
        trials.append(trial(system, *task))
        if options.peers:
            trials[-1]["pysindy"] = peer(
                options.peers, system, options.noise, options.seed, options.additive
            )  # fmt: skip
        print(json.dumps(trials[-1]), flush=True)
        about = {
            "command": f"python {' '.join(sys.argv)}",
            "clock": "processor" if time.perf_counter is time.process_time else "wall",
            "eqlearn": eqlearn.__version__, "python": platform.python_version(), "numpy": np.__version__,
            "trials": trials,
        }  # fmt: skip
        out.parent.mkdir(parents=True, exist_ok=True)
        atomic_write(out, f"{json.dumps(about, indent=1)}\n".encode())
        atomic_write(out.with_suffix(".md"), table(trials).encode())
    draw(trials).savefig(out.with_suffix(".png"), dpi=120)


if __name__ == "__main__":
    main()
