"""A formula of one's own, or one that was found, fitted to data: its constants with standard errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from eqlearn.errors import InvalidArgument, NotFinite, WrongType
from eqlearn.symbolic.equation import Equation
from eqlearn.symbolic.parametric import Constant, Formula
from eqlearn.validation.table import columns_of, read_table, target_of

# From values that someone wrote down it is further to the optimum than from those that a search found.
STEPS = 300


@dataclass(frozen=True)
class Refitted:
    """An equation with its constants fitted, in the order they are read, and its root mean square error.

    A constant that the data do not determine, or that another can make up for, has an infinite standard
    error.
    """

    equation: Equation
    constants: tuple[Constant, ...]
    error: float


def refit(equation: Equation, X: Any, y: Any, *, sample_weight: Any = None) -> Refitted:
    """Fits the constants of an equation to data by least squares, from the values they have; a new equation.

    Numbers with a point in them are fitted; whole numbers, fractions and pi stay: write `x**2.0` to have the
    exponent fitted. `X` and `y` are as for calling the equation. Standard errors are those of independent
    noise of equal size, or with `sample_weight` of a size that goes as one over the weight's root.
    """
    if not isinstance(equation, Equation):
        raise WrongType(f"`equation` must be an Equation, got {equation!r}; make one with `Equation.parse`")
    columns, rows = columns_of(X, equation.variables)
    target = target_of(y, rows)
    inputs = np.stack(columns, axis=1) if columns else np.zeros((rows, 1))
    table, _ = read_table(inputs, target, sample_weight, equation.variables or ("none",))
    if table.weight is not None:
        table = table.take(np.flatnonzero(table.weight))
    count = len(equation.constants)
    if table.rows <= count:
        raise InvalidArgument(
            f"`X` holds {table.rows} rows of any weight for {count} constants; "
            "give more rows than constants, or write some of them as exact numbers"
        )
    outside = int((~np.isfinite(equation(table.X if columns else table.X[:, :0]))).sum())
    if outside:
        raise NotFinite(
            f"the equation {equation} is not finite on {outside} of {table.rows} rows of `X`; "
            "remove them, or start from other constants"
        )
    formula = Formula.of(equation)
    fit = formula.fit(table.X, table.y[:, 0], table.weight, steps=STEPS)
    return Refitted(formula.with_constants(list(fit.values)), fit.constants, fit.error)
