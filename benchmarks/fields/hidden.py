"""A diffusion constant that differs from experiment to experiment, found together with the equation.

    python benchmarks/fields/hidden.py --out results/fields/hidden.json

For each seed, 40 experiments of u_t = -u*u_x + D*u_xx from starts of their own, with D uniform from .2 to 1,
clean and with one per cent of noise. R² is that of the straight line between D and what was found; `error` is
the worst relative error of D itself. What is in the file already is not run again.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
from problems import Spectral, solved
from run import noisy

from eqlearn import discover_pde, environment

EXPERIMENTS, TRUTH = 40, {"-u*u_x + u_xx*z", "u_xx*z - u*u_x"}


def made(seed: int, level: float) -> tuple[list[dict[str, np.ndarray]], dict[str, np.ndarray], np.ndarray]:
    """All experiments of a seed, the axes, and the true constants."""
    grid, times = Spectral(64, 20.0), np.linspace(0, 4, 61)
    constants = np.random.default_rng(seed).uniform(0.2, 1.0, EXPERIMENTS)
    fields = []
    for k, constant in enumerate(constants):
        start = grid.smooth(1000 * seed + k, 4)

        def rate(time, u, constant=constant):
            return [-u * grid.d(u) + constant * grid.d(u, 0, 2)]

        u = solved(grid.shape, [start], rate, times)[0]
        fields.append(noisy({"u": u}, level, 1000 * seed + k))
    return fields, {"x": grid.x, "t": times}, constants


def measured(seed: int, level: float) -> dict:
    """One search, and how right it is."""
    fields, axes, constants = made(seed, level)
    began = time.process_time()
    found = discover_pde(fields, axes, latents=1)
    values = found.latents[:, 0] if found.latents.size else np.zeros(EXPERIMENTS)
    slope = np.corrcoef(values, constants)[0, 1] if np.ptp(values) else 0.0
    return {
        "seed": seed, "noise": level, "equation": str(found), "right": str(found.equations[0]) in TRUTH,
        "r_squared": float(slope**2), "error": float(np.abs(values / constants - 1).max()),
        "processor_seconds": time.process_time() - began,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, nargs="*", default=[100, 101, 102, 103, 104])
    parser.add_argument("--noise", type=float, nargs="*", default=[0.0, 0.01])
    options = parser.parse_args()
    rows = json.loads(options.out.read_text())["rows"] if options.out.exists() else []
    done = {(r["seed"], r["noise"]) for r in rows}
    for seed, level in ((s, n) for s in options.seeds for n in options.noise if (s, n) not in done):
        rows.append(measured(seed, level))
        print(rows[-1], flush=True)
        plain = {"command": __doc__.split("\n\n")[1].strip(), "environment": environment(), "rows": rows}
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(plain, indent=1) + "\n")
        options.out.with_suffix(".md").write_text(_table(rows))


def _table(rows: list[dict]) -> str:
    lines = [
        "| seed | noise | equation | right | R² | worst error of D | processor seconds |",
        "|---" * 7 + "|",
    ]
    lines += [
        f"| {r['seed']} | {r['noise']:.0%} | `{r['equation']}` | {'yes' if r['right'] else 'no'} | "
        f"{r['r_squared']:.6f} | {r['error']:.2%} | {r['processor_seconds']:.0f} |"
        for r in rows
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
