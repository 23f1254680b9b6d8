"""A partial differential equation from a noisy field: `python examples/fields.py`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from scipy.integrate import solve_ivp

from eqlearn import FoundPDE, discover_pde

X, T = np.linspace(0, 20, 128, endpoint=False), np.linspace(0, 6, 121)


def observe(noise: float) -> tuple[np.ndarray, np.ndarray]:
    """A wave that steepens and spreads, u_t = -u*u_x + 0.3*u_xx: as it is and as it is seen."""
    wave = 2j * np.pi * np.fft.fftfreq(len(X), 20 / len(X))

    def rate(time: float, u: np.ndarray) -> np.ndarray:
        slope, bend = np.fft.ifft(np.array([wave, wave**2]) * np.fft.fft(u)).real
        return np.asarray(-u * slope + 0.3 * bend)

    start = np.sin(2 * np.pi * X / 20) + 0.5 * np.cos(6 * np.pi * X / 20)
    u = solve_ivp(rate, (0, T[-1]), start, t_eval=T, rtol=1e-8, atol=1e-9).y
    return u, u + noise * u.std() * np.random.default_rng(0).normal(size=u.shape)


def find(seen: np.ndarray, **budget: Any) -> FoundPDE:
    """The equation of the field."""
    return discover_pde({"u": seen}, {"x": X, "t": T}, **budget)


def main(quick: bool = False) -> FoundPDE:
    """Finds the equation, prints it, and draws what was seen, what it says, and what is between them."""
    u, seen = observe(0.2)
    found = find(seen, **({"seconds": 10} if quick else {}))
    print(found)
    simulated = found.simulate(u[:, 0], T)["u"]
    pictures = {"seen, 20 % noise": seen, "simulated": simulated, "simulated - truth": simulated - u}
    figure = Figure(figsize=(10, 3.2), layout="constrained")
    for axes, (title, values) in zip(figure.subplots(1, 3), pictures.items(), strict=True):
        image = axes.imshow(
            values, extent=(T[0], T[-1], X[-1], X[0]), aspect="auto", cmap="RdBu_r", vmin=-1.5, vmax=1.5
        )
        axes.set(title=title, xlabel="t", ylabel="x")
    figure.colorbar(image, ax=figure.axes)
    figure.savefig("fields.png", dpi=110)
    print(f"picture: {Path('fields.png').resolve()}")
    return found


if __name__ == "__main__":
    main(quick="--quick" in sys.argv)
