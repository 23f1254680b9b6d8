"""Fields whose equations are in no other benchmark, with coefficients drawn by the seed: made from the
equations as they are written, on periodic grids by spectra.

Development used seeds 0 and 1: other seeds have other coefficients, starts and noise.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import sympy as sp
from problems import Problem, Spectral, solved


@dataclass(frozen=True)
class Recipe:
    """Equations by field, their terms' coefficients, and what is shown of them: `window` is the part of each
    axis of space, of which nothing but 1 is periodic."""

    truth: dict[str, dict[str, float]]
    end: float = 4.0
    length: float = 20.0
    modes: int = 5
    size: float = 1.0
    shift: dict[str, float] = field(default_factory=dict)
    dimensions: int = 1
    order: int = 1
    window: float = 1.0
    centred: bool = False  # coordinates from the middle of the axis
    method: str = "LSODA"  # of scipy's integrators; explicit ones where nothing is damped


SWIRL = {"y*u_x": 1.0, "u_y*x": -1.0, "u_xx": 0.1, "u_yy": 0.1}
RECIPES = {
    "KS with drift": Recipe({"u": {"u*u_x": -1, "u_xx": -1, "u_xxxx": -1, "u_x": -0.8}}, 20, 40, 8),
    "Swift-Hohenberg": Recipe({"u": {"u": -0.7, "u_xx": -2, "u_xxxx": -1, "u**3": -1}}, 8, 40, 8),
    "thin film": Recipe({"u": {"u*u_xxxx + u_x*u_xxx": -0.2}}, 2, 20, 5, 0.3, {"u": 1.5}),
    "telegraph": Recipe({"u": {"u_xx": 1.5, "u_t": -0.5, "u": -0.8}}, 8, order=2, method="RK45"),
    "Boussinesq": Recipe(
        {"u": {"u_xx": 1, "u*u_xx + u_x**2": 0.6, "u_xxxx": -0.5}}, 8, size=0.3, order=2, method="RK45"
    ),
    "Fisher with wind": Recipe(
        {"u": {"u_xx": 0.4, "u_x": -1.2, "u": 1, "u**2": -1}}, size=0.2, shift={"u": 0.5}
    ),
    "modified KdV": Recipe({"u": {"u**2*u_x": -1.5, "u_xxx": -0.4}}, 3, modes=4, method="RK45"),
    "Gardner": Recipe({"u": {"u*u_x": -1, "u**2*u_x": 0.5, "u_xxx": -0.3}}, 3, modes=4, method="RK45"),
    "Kawahara": Recipe({"u": {"u*u_x": -1, "u_xxx": -0.4, "u_xxxxx": 0.3}}, 4, 40, 8, method="RK45"),
    "Hill growth": Recipe(
        {"u": {"u_xx": 0.3, "u**2/(1 + u**2)": 2, "u": -0.8}}, 3, size=0.5, shift={"u": 1.2}
    ),
    "ignition": Recipe({"u": {"u_xx": 0.4, "exp(u)": 0.5, "u": -1}}, 2, size=0.5),
    "damped sine-Gordon": Recipe({"u": {"u_xx": 1.2, "sin(u)": -1, "u_t": -0.3}}, 8, size=2.0, order=2),
    "source sin(x)": Recipe({"u": {"u_xx": 0.3, "u_x": -0.5, "cos(3*pi*x/10)": 0.7}}),
    "Newell-Whitehead with wind": Recipe({"u": {"u_xx": 0.2, "u_x": 0.6, "u": 0.9, "u**3": -1.3}}, size=0.5),
    "cubic diffusion": Recipe(
        {"u": {"u**2*u_xx + 2*u*u_x**2": 0.3, "u": 0.4}}, 2, size=0.4, shift={"u": 1.2}
    ),
    "Ornstein-Uhlenbeck": Recipe(
        {"u": {"x*u_x": 1, "u": 1, "u_xx": 0.6}}, 1.2, 16, 6, window=0.5, centred=True
    ),
    "coupled Burgers": Recipe(
        {
            "u": {"u_xx": 0.3, "u*u_x": -1, "u*v_x + u_x*v": -0.5},
            "v": {"v_xx": 0.4, "v*v_x": -1, "u*v_x + u_x*v": -0.7},
        },
        3, modes=4, size=0.7,
    ),
    "complex Ginzburg-Landau": Recipe(
        {
            "u": {"u": 1, "u_xx": 0.5, "v_xx": -0.3, "u**3": -1, "u*v**2": -1, "u**2*v": 0.6, "v**3": 0.6},
            "v": {"v": 1, "v_xx": 0.5, "u_xx": 0.3, "v**3": -1, "u**2*v": -1, "u*v**2": -0.6, "u**3": -0.6},
        },
        6, size=0.5,
    ),
    "Brusselator": Recipe(
        {
            "u": {"u_xx": 0.3, "1": 1, "u": -3.2, "u**2*v": 1},
            "v": {"v_xx": 0.5, "u": 2.2, "u**2*v": -1},
        },
        8, size=0.3, shift={"u": 1.0, "v": 2.2},
    ),
    "Keller-Segel": Recipe(
        {"u": {"u_xx": 0.5, "u*v_xx + u_x*v_x": -0.8}, "v": {"v_xx": 0.7, "v": -0.6, "u": 0.6}},
        3, size=0.3, shift={"u": 1.0, "v": 1.0},
    ),
    "shallow water": Recipe(
        {"h": {"h*u_x + h_x*u": -1, "h_xx": 0.05}, "u": {"u*u_x": -1, "h_x": -1.5, "u_xx": 0.05}},
        4, modes=4, size=0.2, shift={"h": 1.0, "u": 0.0},
    ),
    "anisotropic diffusion": Recipe({"u": {"u_xx": 0.1, "u_yy": 0.4, "u_xy": 0.15}}, dimensions=2),
    "wind across": Recipe(
        {"u": {"u_x": -0.8, "u_y": 0.5, "u_xx": 0.2, "u_yy": 0.2, "u": -0.3}}, dimensions=2
    ),
    "swirl": Recipe({"u": SWIRL}, 1.0, 10, 6, dimensions=2, window=0.5, centred=True),
    "Zeldovich 2-D": Recipe(
        {"u": {"u_xx": 0.3, "u_yy": 0.3, "u**2": 1, "u**3": -1}}, dimensions=2, size=0.2, shift={"u": 0.5}
    ),
}  # fmt: skip


def _drawn(recipe: Recipe, generator: np.random.Generator) -> dict[str, dict[str, float]]:
    """Each coefficient times a factor; those that physics ties together, of one size in one equation or in
    several, get the same one."""
    factors: dict[float, float] = {}
    for terms in recipe.truth.values():
        for value in terms.values():
            factors.setdefault(abs(value), float(generator.uniform(0.8, 1.25)))
    return {
        name: {t: float(f"{v * factors[abs(v)]:.3g}") for t, v in terms.items()}
        for name, terms in recipe.truth.items()
    }


def _made(recipe: Recipe, truth: dict[str, dict[str, float]], seed: int):
    points, count = (128, 101) if recipe.dimensions == 1 else (64, 61)
    points = round(points / recipe.window)
    grid, times = Spectral(points, recipe.length, recipe.dimensions), np.linspace(0, recipe.end, count)
    low = np.all([np.abs(w) < np.abs(grid.waves[0]).max() / 2 for w in grid.waves], axis=0)  # no aliases
    places = [p - recipe.length / 2 * recipe.centred for p in grid.places]
    names, axes = list(truth), ("x", "y")[: recipe.dimensions]
    known = dict(zip(axes, places, strict=True))
    formulas = {
        n: sp.sympify(" + ".join(f"({c})*({t})" for t, c in terms.items())) for n, terms in truth.items()
    }
    used = sorted({s.name for f in formulas.values() for s in f.free_symbols})
    functions = {n: sp.lambdify([sp.Symbol(v) for v in used], f, "numpy") for n, f in formulas.items()}

    def value(name, fields, rates):
        if name in known:
            return known[name]
        base, _, suffix = name.partition("_")
        u = (rates if suffix == "t" else fields)[names.index(base)]
        spectrum = np.fft.fftn(u)
        for letter in suffix.replace("t", ""):
            spectrum = spectrum * grid.waves[axes.index(letter)]
        return np.fft.ifftn(spectrum).real

    def rate(time, *state):
        fields, rates = state[: len(names)], state[len(names) :]
        columns = [value(v, fields, rates) for v in used]
        found = [functions[n](*columns) + 0 * fields[0] for n in names]
        found = [np.fft.ifftn(np.where(low, np.fft.fftn(f), 0)).real for f in found]
        return found if recipe.order == 1 else [*rates, *found]

    starts = [
        grid.smooth(100 * seed + k, recipe.modes, recipe.size) + recipe.shift.get(n, 0.0)
        for k, n in enumerate(names)
    ]
    if recipe.centred:  # nothing comes near the seam
        far = sum((p / (0.2 * recipe.length)) ** 2 for p in places)
        starts = [u * np.exp(-far) for u in starts]
    if recipe.order == 2:
        starts += [0 * u for u in starts]
    method = recipe.method if recipe.dimensions == 1 else "RK45"
    found = solved(grid.shape, starts, rate, times, method)[: len(names)]
    edge = (points - round(points * recipe.window)) // 2
    part = (slice(None), *(slice(edge, points - edge) for _ in axes))
    shown = dict.fromkeys(axes, (grid.x - recipe.length / 2 * recipe.centred)[part[1]])
    return dict(zip(names, found[part], strict=True)), {**shown, "t": times}


def problems(seed: int = 0) -> dict[str, Problem]:
    """Every recipe with the coefficients and the start of this seed."""
    found = {}
    for place, (name, recipe) in enumerate(RECIPES.items()):
        truth = _drawn(recipe, np.random.default_rng([seed, place]))
        found[name] = Problem(lambda r=recipe, t=truth: _made(r, t, seed), truth, recipe.order)
    return found
