"""Constants fitted to data under conditions: the law has given values at given places, whatever the data say.

The conditions are rows of so large a weight that nothing of their residuals is left. Degrees of freedom come
out right with them: each independent condition is one more row, and one constant less that is free.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy as sp
import torch

from eqlearn.numerics.budget import never
from eqlearn.numerics.criteria import NEGLIGIBLE
from eqlearn.symbolic.equation import Equation
from eqlearn.symbolic.parametric import Constant, ConstantFit, Formula
from eqlearn.symbolic.snap import snap_constant
from eqlearn.validation.table import Table


@dataclass(frozen=True)
class Imposing:
    """A condition is as `heavy` as so many rows.

    A constant that moves the law by less than the part `at_zero` of the target's spread was held at zero by
    one; one that is known to the part `held` of itself may be a simple number, of at most `bits`. Each fit
    takes at most so many `steps`.
    """

    heavy: float = 1e10
    at_zero: float = 1e3 * NEGLIGIBLE
    held: float = 1e-5
    bits: float = 12.0
    steps: int = 60


IMPOSING = Imposing()


def imposed(
    equation: Equation,
    table: Table,
    pins: tuple[np.ndarray, np.ndarray],
    spread: float,
    stop: Callable[[], bool] = never,
) -> tuple[Equation, tuple[Constant, ...]] | None:
    """The equation and its constants, fitted with its values at `pins` held; terms that these hold at zero
    leave it, and constants that they hold at simple numbers are those. None, if it has no values there."""
    where, values = pins
    weight = np.ones(table.rows) if table.weight is None else table.weight / table.weight.mean()
    X, y = np.vstack([table.X, where]), np.concatenate([table.y[:, 0], values])
    weight = np.concatenate([weight, np.full(len(values), IMPOSING.heavy)])
    given = weight if len(values) or table.weight is not None else None
    for _ in range(1 + len(equation.constants)):
        formula = Formula.of(equation)
        fit = formula.fit(X, y, given, steps=IMPOSING.steps, stop=stop)
        if not math.isfinite(fit.error):
            return None
        if not len(values):
            return formula.with_constants(list(fit.values)), fit.constants
        _, slopes = formula.linearise(torch.tensor(np.ascontiguousarray(X.T)), fit.values)
        held = _held(fit, slopes[: table.rows], spread)
        if not held:
            free = _freedom(slopes[table.rows :], table.rows, len(fit.values), len(values))
            constants = tuple(Constant(c.value, c.standard_error * free) for c in fit.constants)
            return formula.with_constants(list(fit.values)), constants
        numbers = [held.get(place, float(value)) for place, value in enumerate(fit.values)]
        equation = formula.with_constants(numbers).simplified()
    return None


def _held(fit: ConstantFit, slopes: np.ndarray, spread: float) -> dict[int, Any]:
    """The constants that conditions hold at zero, or else all that they hold at simple numbers, by place."""
    moved = np.abs(fit.values) * np.sqrt((slopes**2).mean(axis=0))
    idle = np.flatnonzero((moved < IMPOSING.at_zero * spread) & (fit.values != 0))
    if len(idle):
        return {int(idle[0]): sp.S.Zero}
    sure = [i for i, c in enumerate(fit.constants) if c.standard_error < IMPOSING.held * abs(c.value)]
    simple = {
        i: snap_constant(fit.values[i], IMPOSING.held * abs(fit.values[i]), max_cost=IMPOSING.bits)
        for i in sure
    }
    return {i: number for i, number in simple.items() if number is not None}


def _freedom(slopes: np.ndarray, rows: int, constants: int, pins: int) -> float:
    """What standard errors are multiplied by where some conditions say the same, or nothing."""
    scale = np.abs(slopes).max(axis=0, initial=0.0)
    rank = int(np.linalg.matrix_rank(slopes / np.where(scale > 0, scale, 1.0))) if slopes.size else 0
    return math.sqrt(max(1, rows + pins - constants) / max(1, rows + rank - constants))
