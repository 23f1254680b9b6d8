"""Equations of motion whose coefficients are functions of an input, such as the time, in the weak form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy as sp

from eqlearn.dynamics.library import Term, columns, library
from eqlearn.dynamics.settings import MotionSettings
from eqlearn.dynamics.weak import WeakForm
from eqlearn.nn.primitives import PrimitivesLike
from eqlearn.numerics.budget import Deadline
from eqlearn.numerics.splines import Splines
from eqlearn.search.groups.coefficients import choose_terms
from eqlearn.search.groups.views import Axis, CoefficientSettings
from eqlearn.symbolic.equation import Equation
from eqlearn.symbolic.expressions import real_symbol


@dataclass(frozen=True, eq=False)
class VaryingMotion:
    """One state's `weak` form, whose terms have the values `columns` `(times, terms)` and functions of an
    input, which is `at` these values, for coefficients."""

    weak: WeakForm
    columns: np.ndarray
    at: np.ndarray

    @property
    def independent(self) -> float:
        return float(self.weak.independent)

    @property
    def target(self) -> np.ndarray:
        return self.weak.target

    def blocks(self, terms: Sequence[int], splines: Splines) -> np.ndarray:
        each = self.columns[:, list(terms), None] * splines.design(self.at)[:, None]
        return np.asarray(self.weak.tests @ each.reshape(len(each), -1))

    def noise(self, terms: Sequence[int]) -> np.ndarray | None:
        """None: the conditions of a trajectory are whitened."""
        return None


def varying_equation(
    weak: WeakForm,
    states: np.ndarray,
    variables: Sequence[str],
    place: int,
    allowed: frozenset[str],
    degree: int,
    settings: MotionSettings,
    *,
    primitives: PrimitivesLike,
    seed: int,
    end: Deadline,
) -> Equation | None:
    """The best equation with coefficients that are functions of the input at a `place`, if all that vary have
    a formula; `states` `(times, variables)` are the columns."""
    others = [k for k in range(len(variables)) if k != place]
    rest, at = states[:, others], states[:, place]
    every = library(rest, allowed, min(degree, settings.max_varying_degree), settings)
    terms: list[Term] = [t for t in every if not t.constants][: settings.max_varying_terms]
    view = VaryingMotion(weak, columns(terms, rest), at)
    axis, own = Axis(variables[place], at), CoefficientSettings()
    problem, fit = choose_terms([view], len(terms), axis, own, end)
    fit = problem.with_formulas(fit, primitives, seed, end)
    expressions = problem.snapped(fit)[1]
    if not expressions or any(e is None for e in expressions):
        return None
    symbols = [real_symbol(variables[k]) for k in others]
    parts: list[Any] = [
        e * terms[k].expression(symbols) for e, k in zip(expressions, problem.terms, strict=True)
    ]
    return Equation(sp.Add(*parts), tuple(variables))
