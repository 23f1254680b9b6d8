"""The law of one field: a sum of terms with fitted coefficients, as an equation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy as sp

from eqlearn.fields.evidence import Evidence
from eqlearn.fields.terms import Names, Term, carried
from eqlearn.numerics.criteria import CHANCE_DEVIATIONS, SAME_CONSTANT
from eqlearn.numerics.subsets import Regression
from eqlearn.symbolic.equation import Equation
from eqlearn.symbolic.expressions import fitted
from eqlearn.symbolic.parametric import Constant
from eqlearn.symbolic.snap import simple_number


@dataclass(frozen=True)
class Law:
    """What a field's rate of change is: an expression in fields, derivatives and axes, its fitted constants
    with standard errors, and how well it does.

    `error` is the root mean square of what it misses, noise included, relative to the target; `noise` what
    noise explains of it; `score` is in nats, the smaller the better; `unexplained` says whether it misses
    more than noise and the grid explain.
    """

    expr: Any
    constants: tuple[Constant, ...]
    error: float
    noise: float
    score: float
    unexplained: bool

    def equation(self, variables: Sequence[str]) -> tuple[Equation, tuple[Constant, ...]]:
        """The equation, and its constants in the order they are read."""
        equation = Equation(self.expr, variables)
        known = {abs(c.value): c.standard_error for c in self.constants}
        values = equation.constants
        return equation, tuple(Constant(v, _nearest(known, abs(v))) for v in values)


def _nearest(known: dict[float, float], value: float) -> float:
    if not known:
        return math.inf
    near = min(known, key=lambda k: abs(k - value))
    return known[near] if abs(near - value) <= SAME_CONSTANT * max(near, value) else math.inf


def linear_law(
    evidence: Evidence, places: Sequence[int], names: Names, *, sourceless: float, snap: bool = True
) -> Law:
    """The law that is a sum of these terms, fitted at the width that determines its coefficients best; a flow
    whose sources hold less than the part `sourceless` of the squares of its slopes has none."""
    some = list(places)
    terms = [evidence.terms[p] for p in some]
    choices = [evidence.fitted(k, some) for k in range(len(evidence.forms))]
    _, best = min(((float(np.mean(e / np.abs(v))) if some else 0.0), k) for k, (v, e) in enumerate(choices))
    values, errors = choices[best]
    regression = evidence.regressions[best]
    spoken = _without_sources(evidence, best, terms, values, sourceless) if some else {}
    parts = [names.expression(spoken.get(t, t)) for t in terms]
    numbers, _, constants = snapped_sum(regression, some, values, errors, [c for c, _ in parts], snap)
    expr = sp.Add(*(n * rest for n, (_, rest) in zip(numbers, parts, strict=True)))
    fit = regression.fitted(some)
    return Law(
        expr, constants, math.sqrt(fit.loss), math.sqrt(fit.noise), evidence.score(some),
        evidence.unexplained(some),
    )  # fmt: skip


def _without_sources(
    evidence: Evidence, width: int, terms: Sequence[Term], values: np.ndarray, sourceless: float
) -> dict[Term, Term]:
    """Slopes of products, (u*w)_x + (v*w)_y, that say the same as u*w_x + v*w_y, since the flow that carries
    w has no sources: u_x + v_y is nothing but noise."""
    form = evidence.forms[width]
    found: dict[Term, Term] = {}
    for field in range(len(evidence.target.powers)):
        parts = [(t, carried(t, field), v) for t, v in zip(terms, values, strict=True)]
        some = [(t, both, v) for t, both, v in parts if both is not None]
        if len(some) < 2:
            continue
        slopes = [both[0] for _, both, _ in some]
        weights = np.array([v for *_, v in some])
        columns = form.columns(slopes) * weights
        noise = weights @ form.noise_products(slopes) @ weights
        left = float(np.square(columns.sum(axis=1)).sum()) - float(noise) * (
            1 + CHANCE_DEVIATIONS * math.sqrt(2 / form.independent)
        )
        if left < sourceless * float(np.square(columns).sum()):
            found |= {t: both[1] for t, both, _ in some}
    return found


def snapped_sum(
    regression: Regression,
    places: list[int],
    values: np.ndarray,
    errors: np.ndarray,
    contents: Sequence[int],
    snap: bool,
) -> tuple[list[Any], np.ndarray, tuple[Constant, ...]]:
    """Coefficients of the written terms, each a simple number if one is within its error and chance is
    unlikely to have put it there, the surest first; the others are fitted again, and are the constants."""
    numbers: list[Any] = [None] * len(places)
    held: dict[int, float] = {}
    values, errors = values.copy(), errors.copy()
    for k in sorted(range(len(places)), key=lambda k: errors[k] / max(abs(values[k]), 1e-300)):
        size = contents[k]
        simple = simple_number(float(values[k] * size), float(errors[k] * abs(size))) if snap else None
        # Roots and pi are no more likely here than by chance.
        if simple is not None and simple.is_Rational and simple != 0:
            numbers[k] = simple
            held[k] = float(simple) / size
            values = regression.refitted(places, values, held)
    final = [
        number if number is not None else fitted(float(v * c))
        for number, v, c in zip(numbers, values, contents, strict=True)
    ]
    constants = tuple(
        Constant(float(v * c), float(e * abs(c)))
        for v, e, n, c in zip(values, errors, final, contents, strict=True)
        if isinstance(n, sp.Float)
    )
    return final, values, constants
