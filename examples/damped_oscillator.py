"""A damped oscillator, left alone and driven, from its motion: `python examples/damped_oscillator.py`."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from scipy.linalg import expm

from eqlearn import FoundMotion, discover_dynamics

DT = 0.05
# Rates of change are these matrices times the states. A known periodic force is two more states: it and what
# is a quarter of a turn behind it, so that what comes next depends on the states alone.
FREE = {"x": [0, 1], "v": [-2, -0.3]}
DRIVEN = {"x": [0, 1, 0, 0], "v": [-2, -0.3, 0.8, 0], "force": [0, 0, 0, 1.5], "behind": [0, 0, -1.5, 0]}
STARTS = {"x": [1, 0], "v": [0, 1.5], "force": [1, 0], "behind": [0, -1]}


def observe(system: dict[str, list[float]], noise: float, end: float) -> list[np.ndarray]:
    """Two exact trajectories `(time, states)`, with noise relative to the spread of each state."""
    step = expm(DT * np.array(list(system.values())))
    series = []
    for state in np.array([STARTS[name] for name in system], dtype=float).T:
        states = [state]
        while len(states) <= round(end / DT):
            states.append(step @ states[-1])
        series.append(np.array(states))
    rng = np.random.default_rng(0)
    return [one + noise * one.std(axis=0) * rng.normal(size=one.shape) for one in series]


def find(system: dict[str, list[float]], series: list[np.ndarray], **budget: Any) -> FoundMotion:
    """The equations of motion, one for each state."""
    return discover_dynamics(series, dt=DT, names=list(system), **budget)


def main(quick: bool = False) -> FoundMotion:
    """Finds the equations, prints them, and follows them twice as long as was observed."""
    end, seconds = (6, 20.0) if quick else (12, 60)
    figure = Figure(figsize=(11, 8), layout="constrained")
    axes = figure.subplots(2, 2)
    for row, (title, system) in zip(axes, {"left alone": FREE, "driven": DRIVEN}.items(), strict=True):
        truth = observe(system, 0.0, 2 * end)[0]
        times = DT * np.arange(len(truth))
        for panel, noise in zip(row, (0.0, 0.01), strict=True):
            series = observe(system, noise, end)
            found = find(system, series, seconds=seconds)
            print(f"{title}, {noise:.0%} noise\n{found}\n")
            motion = found.simulate(truth[0], len(truth) - 1)
            panel.plot(times[: len(series[0])], series[0][:, 0], ".", ms=4, color="#2b6cb0", label="observed")
            panel.plot(times, truth[:, 0], "k:", lw=1, label="truth")
            panel.plot(times, motion[:, 0], color="#c2410c", lw=1, label="equations found")
            equations = [textwrap.shorten(line, 60) for line in str(found).splitlines()]
            panel.set(title="\n".join([f"{title}, {noise:.0%} noise", *equations]), xlabel="time", ylabel="x")
            panel.title.set(fontsize=8, family="monospace")
    axes[0, 1].legend(loc="upper right")
    figure.savefig("damped_oscillator.png", dpi=120)
    print(Path("damped_oscillator.png").resolve())
    return found


if __name__ == "__main__":
    main(quick="--quick" in sys.argv)
