"""Pendulums of hidden lengths: one law for all of them, and each one's g/L: `python examples/pendulum.py`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from scipy.integrate import solve_ivp

from eqlearn import FoundMotion, discover_hidden

DT, G = 0.02, 9.81


def observe(lengths: np.ndarray, noise: float) -> list[np.ndarray]:
    """One series of angle and angular velocity for each length; noise relative to the spread of each."""
    rng, times = np.random.default_rng(0), np.arange(0, 5, DT)
    clean = [
        solve_ivp(
            lambda t, s, length=length: [s[1], -G / length * np.sin(s[0])],
            (0, times[-1]), [rng.uniform(1, 2.5), rng.uniform(-1, 1)], t_eval=times, rtol=1e-10, atol=1e-10,
        ).y.T
        for length in lengths
    ]  # fmt: skip
    spread = np.concatenate(clean).std(axis=0)
    return [one + noise * spread * rng.normal(size=one.shape) for one in clean]


def find(series: list[np.ndarray], **budget: Any) -> FoundMotion:
    """The law, and each pendulum's own parameter in it."""
    return discover_hidden(
        series,
        dt=DT,
        names=["theta", "omega"],
        primitives="id sin1 cos square mul",
        hidden_layers=2,
        **budget,
    )


def main(quick: bool = False) -> FoundMotion:
    """Finds the law and the hidden parameter, prints them, and draws one against the true g/L."""
    lengths = np.random.default_rng(1).uniform(0.5, 2, 6 if quick else 12)
    figure = Figure(figsize=(9, 4.5), layout="constrained")
    for column, noise in enumerate((0.0, 0.01)):
        found = find(observe(lengths, noise), seconds=15 if quick else 60)
        print(f"{noise:.0%} noise\n{found}\n")
        axes = figure.add_subplot(1, 2, column + 1)
        axes.plot([0, 20], [0, 20], color="0.7", lw=1)
        axes.plot(G / lengths, found.latents[:, 0], "o", color="#c2410c")
        axes.set(title=f"{noise:.0%} noise\n{found}", xlabel="true g/L", ylabel="hidden parameter found")
        axes.title.set(fontsize=9, family="monospace")
    figure.savefig("pendulum.png", dpi=120)
    print(Path("pendulum.png").resolve())
    return found


if __name__ == "__main__":
    main(quick="--quick" in sys.argv)
