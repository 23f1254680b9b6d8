"""Systems of textbooks with constants of our own, and how their motions are made.

The environment variable EQLEARN_DYNAMICS_SYSTEMS may name a JSON file with others to be measured: a list of
`{"id", "variables", "equations", "init", "t_span"}`, with two initial values each.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import sympy as sp
from scipy.integrate import solve_ivp

from eqlearn import Equation

ELSEWHERE = "EQLEARN_DYNAMICS_SYSTEMS"


@dataclass(frozen=True)
class System:
    """Equations of motion, one for each of `names`; the first start is shown, the second to be foretold."""

    name: str
    names: tuple[str, ...]
    equations: tuple[str, ...]
    starts: tuple[tuple[float, ...], tuple[float, ...]]
    span: tuple[float, float] = (0.0, 10.0)

    @property
    def truths(self) -> list[Equation]:
        return [Equation.parse(text, self.names) for text in self.equations]

    def motion(self, start: int, times: int) -> tuple[np.ndarray, np.ndarray]:
        """Times, and the states `(times, states)` from one of the starts."""
        truths, clock = self.truths, np.linspace(*self.span, times)

        def rates(t: float, y: np.ndarray) -> list[float]:
            return [float(truth(y[None])[0]) for truth in truths]

        solved = solve_ivp(
            rates, self.span, self.starts[start], t_eval=clock, rtol=1e-9, atol=1e-11, method="LSODA"
        )
        return clock, solved.y.T


def _made(name: str, names: str, equations: str, first: str, second: str, end: float = 10.0) -> System:
    starts = tuple(tuple(float(v) for v in text.split()) for text in (first, second))
    return System(name, tuple(names.split()), tuple(equations.split("; ")), starts, (0.0, end))  # type: ignore[arg-type]


OWN = (
    _made("cooling", "x", "0.7 - 0.45*x", "6", "0.2"),
    _made("logistic growth", "x", "0.9*x*(1 - x/5)", "0.3", "8"),
    _made("Allee effect", "x", "0.5*x*(x - 0.6)*(2 - x)", "0.75", "3"),
    _made("enzyme", "x", "-1.3*x/(0.7 + x)", "5", "2"),
    _made("gene switch", "x", "0.15 + x**2/(1.2 + x**2) - 0.5*x", "2.6", "0.4", 20.0),
    _made("torque on a damped pendulum", "x", "1.4 - 0.9*sin(x)", "0.3", "-2"),
    _made("drag", "v", "9.8 - 0.12*v*abs(v)", "-5", "20", 4.0),
    _made("damped oscillator", "x v", "v; -3.1*x - 0.35*v", "1.2 0.4", "-0.5 2"),
    _made("pendulum", "x v", "v; -2.4*sin(x) - 0.2*v", "2.5 0", "1 -1.5"),
    _made("double well", "x v", "v; 1.5*x - 0.8*x**3 - 0.15*v", "0.1 0.6", "-1.8 1"),
    _made("Van der Pol", "x v", "v; 1.2*(1 - x**2)*v - x", "0.4 0.3", "2.5 -1"),
    _made("Rayleigh", "x v", "v; 0.8*v - 0.3*v**3 - 1.7*x", "0.3 0.2", "2 1"),
    _made("bead on a hoop", "x v", "v; (1.6*cos(x) - 1)*sin(x) - 0.1*v", "0.4 0.3", "-1.5 0.5", 20.0),
    _made("quadratic friction", "x v", "v; -1.8*sin(x) - 0.25*v*abs(v)", "2.4 0.3", "-1 1"),
    _made("phugoid", "v y", "-sin(y) - 0.1*v**2; v - cos(y)/v", "2.5 0.3", "1.5 -0.4"),
    _made("predator and prey", "u v", "1.3*u - 0.6*u*v; 0.35*u*v - 0.9*v", "4 1.5", "1 3"),
    _made("saturated predator", "u v", "u*(1 - u/6) - 1.1*u*v/(1 + u); 0.7*u*v/(1 + u) - 0.3*v",
          "3 1", "1 2", 30.0),
    _made("epidemic", "s i", "-0.9*s*i; 0.9*s*i - 0.25*i", "0.95 0.05", "0.6 0.2", 15.0),
    _made("Brusselator", "x y", "1 - 3.4*x + x**2*y; 2.4*x - x**2*y", "1.2 2", "0.5 3", 15.0),
    _made("FitzHugh-Nagumo", "v w", "v - v**3/3 - w + 0.5; 0.08*v + 0.056 - 0.064*w", "-1 1", "1 0.2", 60.0),
    _made("Selkov", "x y", "-x + 0.1*y + x**2*y; 0.6 - 0.1*y - x**2*y", "0.8 1.2", "1.5 0.5", 25.0),
    _made("two phases", "x y", "1.1 + 0.7*sin(y - x); 1.6 + 0.4*sin(x - y)", "0.2 1.5", "3 0.5"),
    _made("rigid body", "x y z", "-0.6*y*z; 1.1*x*z; -0.4*x*y", "1 0.2 0.8", "0.1 1.2 0.5"),
    _made("Lorenz", "x y z", "9*(y - x); x*(26 - z) - y; x*y - 2.5*z", "2 3 18", "-6 -5 24"),
    _made("Roessler", "x y z", "-y - z; x + 0.2*y; 0.3 + z*(x - 4.8)", "3 2 0.5", "-2 4 0.2", 30.0),
    _made("Thomas", "x y z", "sin(y) - 0.21*x; sin(z) - 0.21*y; sin(x) - 0.21*z", "1 0 2", "-1 2 0.5", 40.0),
    _made("Halvorsen", "x y z",
          "-1.4*x - 4*y - 4*z - y**2; -1.4*y - 4*z - 4*x - z**2; -1.4*z - 4*x - 4*y - x**2",
          "-5 0 1", "-2 -3 1"),
    _made("three species", "x y z", "x*(1.2 - x - 0.5*y); y*(0.3*x - 0.2 - 0.4*z); z*(0.5*y - 0.15)",
          "0.6 1 0.4", "1.1 0.4 0.8", 30.0),
    _made("decay chain", "a b c", "-0.8*a; 0.8*a - 0.35*b; 0.35*b - 0.1*c", "4 0.5 0.2", "1 3 1"),
    _made("latent infection", "s e i r", "-1.1*s*i; 1.1*s*i - 0.5*e; 0.5*e - 0.3*i; 0.3*i",
          "0.9 0.05 0.04 0.01", "0.5 0.2 0.2 0.1", 20.0),
)  # fmt: skip


def _in_our_functions(text: str) -> str:
    """The same formula without functions that our parser does not know."""
    return str(sp.sympify(text).replace(sp.cot, lambda u: sp.cos(u) / sp.sin(u))) if "cot(" in text else text


def systems() -> tuple[System, ...]:
    """Our own, or those of the file that the environment names."""
    path = os.environ.get(ELSEWHERE)
    if not path:
        return OWN
    return tuple(
        System(
            str(one["id"]), tuple(one["variables"]), tuple(map(_in_our_functions, one["equations"])),
            (tuple(one["init"][0]), tuple(one["init"][1])), tuple(one["t_span"]),
        )
        for one in json.loads(Path(path).read_text(encoding="utf-8"))
    )  # fmt: skip
