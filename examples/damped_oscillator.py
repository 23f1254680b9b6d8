"""A damped oscillator from its motion, clean and with 1 % noise: `python examples/damped_oscillator.py`."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from scipy.integrate import solve_ivp

from eqlearn.systems.flow import FoundMotion, discover_dynamics

DT = 0.05


def integrate(start: list[float], end: float) -> np.ndarray:
    times = np.arange(0, end + DT / 2, DT)

    def rate(t: float, state: np.ndarray) -> list[float]:
        x, v = state
        return [v, -2 * x - 0.3 * v]

    return solve_ivp(rate, (0, times[-1]), start, t_eval=times, rtol=1e-10, atol=1e-10).y.T


def observe(noise: float, end: float) -> list[np.ndarray]:
    """Two trajectories `(time, 2)`, with noise relative to the spread of each state."""
    clean = [integrate(start, end) for start in ([1, 0], [0, 1.5])]
    spread, rng = np.concatenate(clean).std(axis=0), np.random.default_rng(0)
    return [one + noise * spread * rng.normal(size=one.shape) for one in clean]


def main(quick: bool = False) -> FoundMotion:
    """Finds the equations, prints them, and follows them twice as long as was observed."""
    end, seconds = (6, 10.0) if quick else (10, 30)
    figure = Figure(figsize=(10, 6), layout="constrained")
    for row, noise in enumerate((0.0, 0.01)):
        series = observe(noise, end)
        found = discover_dynamics(series, dt=DT, names=["x", "v"], seconds=seconds)
        print(f"{noise:.0%} noise\n{found}\n")
        truth = integrate([1, 0], 2 * end)
        motion = found.simulate(truth[0], len(truth) - 1)
        axes = figure.add_subplot(2, 1, row + 1)
        axes.plot(
            DT * np.arange(len(series[0])), series[0][:, 0], ".", ms=4, color="#2b6cb0", label="observed"
        )
        axes.plot(DT * np.arange(len(truth)), truth[:, 0], "k:", lw=1, label="truth")
        axes.plot(DT * np.arange(len(truth)), motion[:, 0], color="#c2410c", lw=1, label="equations found")
        axes.set(title=f"{noise:.0%} noise\n{found}", xlabel="time", ylabel="x")
        axes.title.set(fontsize=9, family="monospace")
        axes.legend(loc="upper right")
    figure.savefig("damped_oscillator.png", dpi=120)
    print(Path("damped_oscillator.png").resolve())
    return found


if __name__ == "__main__":
    main(quick="--quick" in sys.argv)
