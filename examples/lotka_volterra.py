"""Predators and prey from two trajectories, clean and with 1 % noise: `python examples/lotka_volterra.py`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from scipy.integrate import solve_ivp

from eqlearn import FoundMotion, discover_dynamics

DT = 0.05


def rates(t: float, state: np.ndarray) -> list[float]:
    prey, predators = state
    return [1.1 * prey - 0.4 * prey * predators, 0.1 * prey * predators - 0.4 * predators]


def observe(noise: float, end: float) -> list[np.ndarray]:
    """Two trajectories `(time, 2)`; counts are wrong by a share of themselves."""
    times, rng = np.arange(0, end, DT), np.random.default_rng(0)
    clean = [
        solve_ivp(rates, (0, end), start, t_eval=times, rtol=1e-10, atol=1e-10).y.T
        for start in ([10, 5], [4, 8])
    ]
    return [one * np.exp(noise * rng.normal(size=one.shape)) for one in clean]


def find(series: list[np.ndarray], **budget: Any) -> FoundMotion:
    """The equations of motion, one for each species."""
    return discover_dynamics(series, dt=DT, names=["prey", "predators"], **budget)


def main(quick: bool = False) -> FoundMotion:
    """Finds the equations, prints them, and draws the cycles they give from starts that were not observed."""
    end, seconds = (10, 10.0) if quick else (20, 60)
    figure = Figure(figsize=(11, 5), layout="constrained")
    for axes, noise in zip(figure.subplots(1, 2), (0.0, 0.01), strict=True):
        series = observe(noise, end)
        found = find(series, seconds=seconds)
        print(f"{noise:.0%} noise\n{found}\n")
        for prey in (5, 7, 14, 18):
            axes.plot(*found.simulate([prey, 2.75], 400).T, color="#c2410c", lw=1)
        for one in series:
            axes.plot(*one.T, ".", ms=3, color="#2b6cb0")
        axes.set(title=f"{noise:.0%} noise\n{found}", xlabel="prey", ylabel="predators; dots were observed")
        axes.title.set(fontsize=9, family="monospace")
    figure.savefig("lotka_volterra.png", dpi=120)
    print(Path("lotka_volterra.png").resolve())
    return found


if __name__ == "__main__":
    main(quick="--quick" in sys.argv)
