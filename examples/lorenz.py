"""The Lorenz system from two trajectories, clean and with 1 % noise: `python examples/lorenz.py`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from scipy.integrate import solve_ivp

from eqlearn import FoundMotion, discover_dynamics

DT = 0.01


def lorenz(t: float, state: np.ndarray) -> list[float]:
    x, y, z = state
    return [10 * (y - x), x * (28 - z) - y, x * y - 8 / 3 * z]


def observe(noise: float, end: float) -> list[np.ndarray]:
    """Two trajectories `(time, 3)`, with noise relative to the spread of each state."""
    times = np.arange(0, end + DT / 2, DT)
    clean = [
        solve_ivp(lorenz, (0, end), start, t_eval=times, rtol=1e-10, atol=1e-10).y.T
        for start in ([-8, 8, 27], [5, -5, 20])
    ]
    spread, rng = np.concatenate(clean).std(axis=0), np.random.default_rng(0)
    return [one + noise * spread * rng.normal(size=one.shape) for one in clean]


def find(series: list[np.ndarray], **budget: Any) -> FoundMotion:
    """The equations of motion, one for each state."""
    return discover_dynamics(series, dt=DT, names=["x", "y", "z"], **budget)


def main(quick: bool = False) -> FoundMotion:
    """Finds the equations, prints them, and draws what was observed and what they say."""
    end, seconds = (3, 10.0) if quick else (10, 90)
    figure = Figure(figsize=(10, 5), layout="constrained")
    for column, noise in enumerate((0.0, 0.01)):
        series = observe(noise, end)
        found = find(series, seconds=seconds)
        print(f"{noise:.0%} noise\n{found}\n")
        motion = found.simulate(series[0][0], len(series[0]) - 1)
        axes = figure.add_subplot(1, 2, column + 1)
        axes.plot(*series[0][:, [0, 2]].T, ".", ms=3, color="#2b6cb0", alpha=0.5, label="observed")
        axes.plot(*motion[:, [0, 2]].T, color="#c2410c", lw=1, label="simulated with the equations found")
        axes.set(title=f"{noise:.0%} noise\n{found}", xlabel="x", ylabel="z")
        axes.title.set(fontsize=9, family="monospace")
        axes.legend(loc="upper center", frameon=False)
    figure.savefig("lorenz.png", dpi=120)
    print(Path("lorenz.png").resolve())
    return found


if __name__ == "__main__":
    main(quick="--quick" in sys.argv)
