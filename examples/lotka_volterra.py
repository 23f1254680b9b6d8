"""Predators and prey from two trajectories, clean and with 1 % noise: `python examples/lotka_volterra.py`."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from scipy.integrate import solve_ivp

from eqlearn.systems.flow import FoundMotion, discover_dynamics

DT = 0.05


def lotka_volterra(t: float, state: np.ndarray) -> list[float]:
    prey, predators = state
    return [1.1 * prey - 0.4 * prey * predators, 0.1 * prey * predators - 0.4 * predators]


def integrate(start: list[float], end: float) -> np.ndarray:
    times = np.arange(0, end + DT / 2, DT)
    return solve_ivp(lotka_volterra, (0, times[-1]), start, t_eval=times, rtol=1e-10, atol=1e-10).y.T


def observe(noise: float, end: float) -> list[np.ndarray]:
    """Two trajectories `(time, 2)`, with noise relative to the spread of each state."""
    clean = [integrate(start, end) for start in ([10, 5], [4, 8])]
    spread, rng = np.concatenate(clean).std(axis=0), np.random.default_rng(0)
    return [one + noise * spread * rng.normal(size=one.shape) for one in clean]


def main(quick: bool = False) -> FoundMotion:
    """Finds the equations, prints them, and follows them three times as long as was observed."""
    end, seconds = (10, 10.0) if quick else (20, 60)
    figure = Figure(figsize=(10, 6), layout="constrained")
    for row, noise in enumerate((0.0, 0.01)):
        series = observe(noise, end)
        found = discover_dynamics(series, dt=DT, names=["prey", "predators"], seconds=seconds)
        print(f"{noise:.0%} noise\n{found}\n")
        truth = integrate([10, 5], 3 * end)
        motion = found.simulate(truth[0], len(truth) - 1)
        axes = figure.add_subplot(2, 1, row + 1)
        for k, (name, colour) in enumerate((("prey", "#2b6cb0"), ("predators", "#c2410c"))):
            axes.plot(DT * np.arange(len(series[0])), series[0][:, k], ".", ms=4, color=colour)
            axes.plot(DT * np.arange(len(truth)), truth[:, k], "k:", lw=1)
            axes.plot(DT * np.arange(len(truth)), motion[:, k], color=colour, lw=1, label=name)
        axes.set(title=f"{noise:.0%} noise\n{found}", xlabel="time; dots observed, dotted the truth")
        axes.title.set(fontsize=9, family="monospace")
        axes.legend(loc="upper right")
    figure.savefig("lotka_volterra.png", dpi=120)
    print(Path("lotka_volterra.png").resolve())
    return found


if __name__ == "__main__":
    main(quick="--quick" in sys.argv)
