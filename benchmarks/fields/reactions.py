"""Diffusion with one reaction that holds constants inside a function, drawn by the seed.

Development used seeds 0 to 2: other seeds have other constants, starts and noise.
"""

from __future__ import annotations

import numpy as np
import sympy as sp
from problems import Problem, _one

REACTIONS = {
    "Monod": ("a*u/(b + u)", 1.7, 0.6),
    "Hill": ("a*u**2/(b + u**2)", 1.5, 0.8),
    "exponential": ("a*exp(-b*u)", 1.2, 0.9),
    "Ricker": ("a*u*exp(-b*u)", 2.0, 1.0),
    "sine": ("a*sin(b*u)", 1.0, 2.0),
    "Lorentzian": ("a/(1 + b*u**2)", 1.6, 1.0),
    "Arrhenius": ("a*exp(-b/u)", 2.0, 1.0),
    "saturation": ("a*tanh(b*u)", 1.3, 0.7),
    "Gompertz": ("-a*u*log(b*u)", 0.9, 0.6),
}


def _problem(name: str, seed: int, place: int) -> Problem:
    form, *middle = REACTIONS[name]
    factors = np.random.default_rng([seed, place]).uniform(0.8, 1.25, 3)
    a, b, spread = (float(f"{m * f:.3g}") for m, f in zip((*middle, 0.3), factors, strict=True))
    u, *symbols = sp.symbols("u a b")
    expr = sp.sympify(form).subs(dict(zip(symbols, (a, b), strict=True)))
    reaction = sp.lambdify(u, expr, "numpy")
    make = lambda: _one(  # noqa: E731
        seed, lambda g, t, v: spread * g.d(v, 0, 2) + reaction(v), shift=1.3, size=0.45, end=2
    )
    return Problem(make, {"u": {"u_xx": spread, str(expr): 1.0}})


def problems(seed: int = 0) -> dict[str, Problem]:
    """Every reaction with the constants and the start of this seed."""
    return {name: _problem(name, seed, place) for place, name in enumerate(REACTIONS)}
