"""Laws of varying constants, as functions of a parameter or of one another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from eqlearn.errors import NotFinite
from eqlearn.search.candidate import Candidate
from eqlearn.search.groups.draft import Draft, refitted, told, written
from eqlearn.search.groups.group_settings import GroupSettings
from eqlearn.search.groups.sharing import snapped
from eqlearn.symbolic.equation import Equation
from eqlearn.symbolic.expressions import fitted, real_symbol
from eqlearn.validation.table import Table

# Weights differ by no more than this factor from the middle one: an error may be small by chance.
_MOST_WEIGHT = 1e4


def with_laws(
    d: Draft,
    parameter: str,
    at: np.ndarray,
    group: str,
    search: Callable[[Table], tuple[Candidate, ...]],
    settings: GroupSettings,
    stop: Callable[[], bool],
) -> Draft:
    """The draft with every varying constant that has a law in the column `parameter` replaced by it, all
    refitted together, if that makes the whole shorter to tell; `at` is where each group is on it."""
    place = 0
    while place < len(d.names) and len(at) >= settings.min_points and not stop():
        count = len(d.equation.constants)
        values = d.fit.values[:, count + place].numpy()
        errors = d.fit.errors[:, count + place].numpy()
        table = Table(at[:, None], values[:, None], _weights(errors))
        found = [_replaced(d, place, c.equation, parameter, group, settings, stop) for c in search(table)]
        better = min((f for f in found if f is not None), key=lambda f: f.length, default=d)
        if better.length < d.length:
            d = better
        else:
            place += 1
    return d


def with_relations(d: Draft, group: str, settings: GroupSettings, stop: Callable[[], bool]) -> Draft:
    """The draft with every varying constant that is a linear function of another one replaced by that, all
    refitted together, if that makes the whole shorter to tell: T + p*(1 - exp(-k*t)) has no two constants
    that differ from group to group in T + p and p."""
    while len(d.names) > 1 and not stop():
        count, numbers = len(d.equation.constants), range(len(d.names))
        values, errors = (part[:, count:].numpy() for part in (d.fit.values, d.fit.errors))
        near = np.abs(np.corrcoef(values.T))
        found = []
        for i, j in [
            (i, j) for i in numbers for j in numbers if near[i, j] >= settings.min_correlation and i != j
        ]:
            roots = np.sqrt(_weights(errors[:, i]))
            slope, offset = np.polyfit(values[:, j], values[:, i], 1, w=roots)
            law = Equation(fitted(slope) * real_symbol(d.names[j]) + fitted(offset), [d.names[j]])
            found.append(_replaced(d, i, law, d.names[j], group, settings, stop))
        better = min((f for f in found if f is not None), key=lambda f: f.length, default=d)
        if not better.length < d.length:
            break
        # What is left may be shared now: q in q - q/(1 + k*p), where q and -q were two constants.
        d = min([better, *told(better.fit, group, settings, stop)], key=lambda f: f.length)
    return d


def _weights(errors: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        weights = np.where(np.isfinite(errors), 1 / np.maximum(errors, 1e-300) ** 2, 0.0)
    middle = float(np.median(weights[weights > 0])) if (weights > 0).any() else 1.0
    bounded: np.ndarray = np.clip(weights / middle, 1 / _MOST_WEIGHT, _MOST_WEIGHT)
    return bounded


def _replaced(
    d: Draft,
    place: int,
    law: Equation,
    parameter: str,
    group: str,
    settings: GroupSettings,
    stop: Callable[[], bool],
) -> Draft | None:
    """The draft with a law in the place of one varying constant, and its numbers plain where they may be."""
    symbol = real_symbol(parameter)
    if not law.expr.has(symbol):
        return None
    columns, count = d.fit.structure.variables, len(d.equation.constants)
    start: dict[str, Any] = {name: d.fit.values[:, count + k] for k, name in enumerate(d.names)}
    name = d.names[place]
    del start[name]
    expr = d.equation.expr.xreplace({real_symbol(name): law.expr})
    try:
        equation = Equation(expr, (*columns, *start)).simplified()
        rough = refitted(equation, columns, group, start, d.fit.rows, settings, stop)
        plain, numbers = snapped(rough.fit, settings.steps // 4, stop)
        fine = written(plain, numbers, group, settings, stop)
    except NotFinite:
        return None
    return fine if fine.length <= rough.length else rough
