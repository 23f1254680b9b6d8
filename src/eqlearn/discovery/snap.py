"""The constants of a fit moved to simple numbers, one after the other."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol, TypeVar, runtime_checkable

import numpy as np
import sympy as sp

from eqlearn.core.snapping import number_cost, snap_constant, trusted_bits
from eqlearn.discovery.least_squares import never
from eqlearn.discovery.select import constant_cost

# A constant may move by so many standard errors, and by rounding or an integrator's error in any case.
ERRORS, ROUNDING = 3.0, 1e-5


@runtime_checkable
class Constants(Protocol):
    """Values of constants and their standard errors, as a fit gives them."""

    @property
    def values(self) -> np.ndarray: ...

    @property
    def standard_errors(self) -> np.ndarray: ...


Fitted = TypeVar("Fitted", bound=Constants)


def snap_in_turn(
    fit: Fitted,
    rows: int,
    refit: Callable[[Fitted, np.ndarray, np.ndarray], Fitted],
    rise: Callable[[Fitted, Fitted], float],
    *,
    negligible: Callable[[Fitted, int], bool] = lambda fit, i: False,
    stop: Callable[[], bool] = never,
) -> tuple[list[sp.Expr | float], Fitted]:
    """Each constant, the surest first, moved to a simple number within its error and the others refitted; a
    move stays if the description gets no longer.

    `refit(fit, start, fixed)` gives the fit from these values with some of them fixed, `rise(before, after)`
    how many nats more it takes to tell the data; a constant that is `negligible` may be zero, whatever its
    error. Returns the numbers, and the fit that goes with them.
    """
    values: list[sp.Expr | float] = [float(v) for v in fit.values]
    fixed = np.zeros(len(values), dtype=bool)
    order = sorted(range(len(values)), key=lambda i: fit.standard_errors[i] / (abs(fit.values[i]) + 1e-300))
    for i in order:
        if stop():
            break
        value, error = float(fit.values[i]), float(fit.standard_errors[i])
        simple = sp.S.Zero if negligible(fit, i) else simple_number(value, error)
        if simple is None:
            continue
        start, hold = fit.values.copy(), fixed.copy()
        start[i], hold[i] = float(simple), True
        trial = refit(fit, start, hold)
        if rise(fit, trial) + number_cost(simple) * math.log(2) <= constant_cost(value, error, rows):
            values[i], fixed, fit = simple, hold, trial
    numbers = [v if f else float(x) for v, f, x in zip(values, fixed, fit.values, strict=True)]
    return numbers, fit


def simple_number(value: float, error: float) -> sp.Expr | None:
    """The simplest number within a constant's error, if chance is unlikely to have put it there."""
    if not math.isfinite(error):
        return None
    width = max(ERRORS * error, ROUNDING * abs(value))
    return snap_constant(value, width, max_cost=trusted_bits(value, width))
