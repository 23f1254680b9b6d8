"""Fields made by our own solvers, each with the equations that made it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.integrate import solve_ivp


@dataclass(frozen=True)
class Problem:
    """Fields on axes (time last), and the terms of the truth: their coefficients by field."""

    make: Callable[[], tuple[dict[str, np.ndarray], dict[str, np.ndarray]]]
    truth: dict[str, dict[str, float]]
    order: int = 1


class Spectral:
    """A periodic grid with derivatives in Fourier space."""

    def __init__(self, points: int, length: float, dimensions: int = 1) -> None:
        self.shape = (points,) * dimensions
        self.x = np.linspace(0, length, points, endpoint=False)
        wave = 2j * np.pi * np.fft.fftfreq(points, length / points)
        self.waves = np.meshgrid(*[wave] * dimensions, indexing="ij")
        self.places = np.meshgrid(*[self.x] * dimensions, indexing="ij")

    def d(self, u: np.ndarray, axis: int = 0, order: int = 1) -> np.ndarray:
        return np.fft.ifftn(self.waves[axis] ** order * np.fft.fftn(u)).real

    def laplacian(self, u: np.ndarray) -> np.ndarray:
        return np.fft.ifftn(sum(w**2 for w in self.waves) * np.fft.fftn(u)).real

    def smooth(self, seed: int, modes: int, size: float = 1.0) -> np.ndarray:
        """A random field of the lowest modes, of this standard deviation."""
        generator = np.random.default_rng(seed)
        least = sorted(set(np.abs(self.waves[0]).ravel().tolist()))[1]
        wave = sum(np.abs(w) ** 2 for w in self.waves) / least**2
        u = np.fft.ifftn(np.fft.fftn(generator.normal(size=self.shape)) * np.exp(-wave / modes**2)).real
        return size * (u - u.mean()) / u.std()


def solved(grid_shape, fields, rate, times, method="LSODA"):
    """Fields over time, `(fields, *grid, times)`."""
    start = np.stack(fields).ravel()
    shape = (len(fields), *grid_shape)
    answer = solve_ivp(
        lambda t, y: np.stack(rate(t, *y.reshape(shape))).ravel(),
        (times[0], times[-1]),
        start,
        t_eval=times,
        method=method,
        rtol=1e-8,
        atol=1e-9,
    )
    return answer.y.reshape(*shape, len(times))


def _one(seed, rate, points=128, length=20.0, end=4.0, times=101, modes=5, size=1.0, shift=0.0, order=1):
    g = Spectral(points, length)
    t = np.linspace(0, end, times) if np.ndim(times) == 0 else times
    u0 = g.smooth(seed, modes, size) + shift
    if order == 1:
        u = solved(g.shape, [u0], lambda t, u: [rate(g, t, u)], t)[0]
    else:
        u = solved(g.shape, [u0, 0 * u0], lambda t, u, v: [v, rate(g, t, u, v)], t)[0]
    return {"u": u}, {"x": g.x, "t": t}


def _two(
    seed,
    rate,
    names="uv",
    dimensions=1,
    points=128,
    length=20.0,
    end=4.0,
    times=101,
    modes=5,
    size=1.0,
    shift=(0.0, 0.0),
):
    g = Spectral(points, length, dimensions)
    t = np.linspace(0, end, times)
    starts = [g.smooth(2 * seed + k, modes, size) + shift[k] for k in range(2)]
    u = solved(g.shape, starts, lambda t, u, v: rate(g, t, u, v), t, "RK45" if dimensions > 1 else "LSODA")
    axes = dict(zip(("x", "y"), [g.x] * dimensions, strict=False))
    return dict(zip(names, u, strict=True)), {**axes, "t": t}


def _plane(seed, rate, points=64, length=20.0, end=4.0, times=61, modes=5, size=1.0, shift=0.0):
    g = Spectral(points, length, 2)
    t = np.linspace(0, end, times)
    u = solved(g.shape, [g.smooth(seed, modes, size) + shift], lambda t, u: [rate(g, u)], t, "RK45")[0]
    return {"u": u}, {"x": g.x, "y": g.x, "t": t}


def _rod(seed):
    """Heat in a rod whose ends are held at different temperatures."""
    x, t = np.linspace(0, 1, 101), np.linspace(0, 0.5, 81)
    n = np.arange(1, 9)
    size = np.random.default_rng(seed).normal(size=8)
    u = (
        1
        + 2 * x[:, None]
        + np.einsum(
            "n,nx,nt->xt", size, np.sin(np.pi * n[:, None] * x), np.exp(-0.05 * (np.pi * n[:, None]) ** 2 * t)
        )
    )
    return {"u": u}, {"x": x, "t": t}


UNEVEN = np.sort(np.concatenate([[0.0, 4.0], 4 * np.random.default_rng(0).beta(1.5, 1.5, size=119)]))


def problems(seed: int = 0) -> dict[str, Problem]:
    """Every problem, from starts of this seed."""
    return {
        "heat": Problem(lambda: _one(seed, lambda g, t, u: 0.5 * g.d(u, 0, 2)), {"u": {"u_xx": 0.5}}),
        "heat in a rod": Problem(lambda: _rod(seed), {"u": {"u_xx": 0.05}}),
        "advection": Problem(lambda: _one(seed, lambda g, t, u: -1.5 * g.d(u)), {"u": {"u_x": -1.5}}),
        "advection-diffusion": Problem(
            lambda: _one(seed, lambda g, t, u: -0.7 * g.d(u) + 0.2 * g.d(u, 0, 2)),
            {"u": {"u_x": -0.7, "u_xx": 0.2}},
        ),
        "uneven times": Problem(
            lambda: _one(seed, lambda g, t, u: -u * g.d(u) + 0.3 * g.d(u, 0, 2), times=UNEVEN),
            {"u": {"u*u_x": -1.0, "u_xx": 0.3}},
        ),
        "wave": Problem(
            lambda: _one(seed, lambda g, t, u, v: 2.25 * g.d(u, 0, 2), end=8, order=2),
            {"u": {"u_xx": 2.25}},
            2,
        ),
        "damped wave": Problem(
            lambda: _one(seed, lambda g, t, u, v: g.d(u, 0, 2) - 0.4 * v, end=8, order=2),
            {"u": {"u_xx": 1.0, "u_t": -0.4}},
            2,
        ),
        "Klein-Gordon": Problem(
            lambda: _one(seed, lambda g, t, u, v: g.d(u, 0, 2) - u - 0.5 * u**3, end=8, order=2),
            {"u": {"u_xx": 1.0, "u": -1.0, "u**3": -0.5}},
            2,
        ),
        "sine-Gordon": Problem(
            lambda: _one(seed, lambda g, t, u, v: g.d(u, 0, 2) - np.sin(u), end=8, size=2.0, order=2),
            {"u": {"u_xx": 1.0, "sin(u)": -1.0}},
            2,
        ),
        "saturating growth": Problem(
            lambda: _one(
                seed, lambda g, t, u: 0.3 * g.d(u, 0, 2) + 2 * u / (1 + u), shift=1.5, size=0.4, end=2
            ),
            {"u": {"u_xx": 0.3, "u/(1 + u)": 2.0}},
        ),
        "sine reaction": Problem(
            lambda: _one(seed, lambda g, t, u: 0.3 * g.d(u, 0, 2) + np.sin(2 * u), size=1.0, end=2),
            {"u": {"u_xx": 0.3, "sin(2*u)": 1.0}},
        ),
        "exponential decay": Problem(
            lambda: _one(seed, lambda g, t, u: 0.3 * g.d(u, 0, 2) + np.exp(-u), size=0.5, end=2),
            {"u": {"u_xx": 0.3, "exp(-u)": 1.0}},
        ),
        "source in space": Problem(
            lambda: _one(
                seed, lambda g, t, u: 0.3 * g.d(u, 0, 2) + 0.5 * np.sin(2 * np.pi * g.x / 20) - 0.2 * u
            ),
            {"u": {"u_xx": 0.3, "sin(pi*x/10)": 0.5, "u": -0.2}},
        ),
        "predator and prey": Problem(
            lambda: _two(
                seed,
                lambda g, t, u, v: [
                    0.2 * g.d(u, 0, 2) + u * (1 - 0.3 * u) - 1.5 * u * v / (1 + u),
                    0.4 * g.d(v, 0, 2) + 1.5 * u * v / (1 + u) - 0.6 * v,
                ],
                end=6,
                size=0.3,
                shift=(1.2, 0.9),
            ),
            {
                "u": {"u_xx": 0.2, "u": 1.0, "u**2": -0.3, "u*v/(1 + u)": -1.5},
                "v": {"v_xx": 0.4, "v": -0.6, "u*v/(1 + u)": 1.5},
            },
        ),
        "Fisher-KPP": Problem(
            lambda: _one(seed, lambda g, t, u: 0.5 * g.d(u, 0, 2) + u * (1 - u), shift=0.5, size=0.2),
            {"u": {"u_xx": 0.5, "u": 1.0, "u**2": -1.0}},
        ),
        "Allen-Cahn": Problem(
            lambda: _one(seed, lambda g, t, u: 0.1 * g.d(u, 0, 2) + u - u**3, size=0.5),
            {"u": {"u_xx": 0.1, "u": 1.0, "u**3": -1.0}},
        ),
        "Cahn-Hilliard": Problem(
            lambda: _one(
                seed, lambda g, t, u: g.d(u**3 - u - 0.2 * g.d(u, 0, 2), 0, 2), size=0.5, end=2, modes=8
            ),
            {"u": {"u_xx": -1.0, "u**2*u_xx + 2*u*u_x**2": 3.0, "u_xxxx": -0.2}},
        ),
        "porous medium": Problem(
            lambda: _one(seed, lambda g, t, u: 0.5 * g.d(u**2, 0, 2), shift=2.0, size=0.5, end=2),
            {"u": {"u*u_xx + u_x**2": 1.0}},
        ),
        "KPZ": Problem(
            lambda: _one(seed, lambda g, t, u: 0.5 * g.d(u, 0, 2) + 0.7 * g.d(u) ** 2),
            {"u": {"u_xx": 0.5, "u_x**2": 0.7}},
        ),
        "Kawahara-like KdV": Problem(
            lambda: _one(seed, lambda g, t, u: -u * g.d(u) - 0.3 * g.d(u, 0, 3)),
            {"u": {"u*u_x": -1.0, "u_xxx": -0.3}},
        ),
        "FitzHugh-Nagumo": Problem(
            lambda: _two(
                seed, lambda g, t, u, v: [0.5 * g.d(u, 0, 2) + u - u**3 - v, 0.3 * u - 0.2 * v], end=10
            ),
            {"u": {"u_xx": 0.5, "u": 1.0, "u**3": -1.0, "v": -1.0}, "v": {"u": 0.3, "v": -0.2}},
        ),
        "Schroedinger": Problem(
            lambda: _two(seed, lambda g, t, u, v: [-0.5 * g.d(v, 0, 2), 0.5 * g.d(u, 0, 2)]),
            {"u": {"v_xx": -0.5}, "v": {"u_xx": 0.5}},
        ),
        "Burgers 2-D": Problem(
            lambda: _two(
                seed,
                lambda g, t, u, v: [
                    -u * g.d(u) - v * g.d(u, 1) + 0.3 * g.laplacian(u),
                    -u * g.d(v) - v * g.d(v, 1) + 0.3 * g.laplacian(v),
                ],
                dimensions=2,
                points=48,
                length=10.0,
                end=1.5,
                times=61,
                modes=2,
                size=0.7,
            ),
            {
                "u": {"u*u_x": -1.0, "u_y*v": -1.0, "u_xx": 0.3, "u_yy": 0.3},
                "v": {"u*v_x": -1.0, "v*v_y": -1.0, "v_xx": 0.3, "v_yy": 0.3},
            },
        ),
        "Gray-Scott": Problem(
            lambda: _two(
                seed,
                lambda g, t, u, v: [
                    0.2 * g.laplacian(u) - u * v**2 + 0.04 * (1 - u),
                    0.1 * g.laplacian(v) + u * v**2 - 0.1 * v,
                ],
                dimensions=2,
                points=48,
                end=20,
                times=81,
                size=0.15,
                shift=(0.6, 0.4),
            ),
            {
                "u": {"u_xx": 0.2, "u_yy": 0.2, "u*v**2": -1.0, "u": -0.04, "1": 0.04},
                "v": {"v_xx": 0.1, "v_yy": 0.1, "u*v**2": 1.0, "v": -0.1},
            },
        ),
        "heat 2-D": Problem(
            lambda: _plane(seed, lambda g, u: 0.3 * g.laplacian(u)), {"u": {"u_xx": 0.3, "u_yy": 0.3}}
        ),
        "Allen-Cahn 2-D": Problem(
            lambda: _plane(seed, lambda g, u: 0.1 * g.laplacian(u) + u - u**3, size=0.5),
            {"u": {"u_xx": 0.1, "u_yy": 0.1, "u": 1.0, "u**3": -1.0}},
        ),
    }
