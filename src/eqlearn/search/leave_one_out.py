"""Leave-one-out prediction (PRESS, Allen 1974), and what it costs to pick a formula among all others."""

from __future__ import annotations

import math

import numpy as np
import sympy as sp
import torch

from eqlearn.numerics.criteria import FREE, FUNCTION_CHOICES, MAX_LEVERAGE_FACTOR
from eqlearn.symbolic.equation import Equation
from eqlearn.symbolic.parametric import Formula
from eqlearn.symbolic.snap import number_cost


def leave_one_out(
    equation: Equation, X: np.ndarray, y: np.ndarray, weight: np.ndarray | None = None
) -> np.ndarray:
    """The residual of each row when the constants are fitted to all the others, `(rows,)`.

    No fit is repeated: to first order, leaving a row out divides its residual by one minus its leverage,
    which is exact for a formula that is linear in its constants. Residuals are multiplied by the root of the
    row's weight.
    """
    value, slopes = Formula.of(equation).linearise(
        torch.tensor(np.ascontiguousarray(X.T)), np.array(equation.constants, dtype=np.float64)
    )
    root = np.ones(len(y)) if weight is None else np.sqrt(weight / weight.mean())
    residual: np.ndarray
    with np.errstate(all="ignore"):
        residual, slopes = (value - y) * root, slopes * root[:, None]
        scale = np.sqrt((slopes**2).sum(axis=0))
    if not (np.isfinite(value).all() and np.isfinite(scale).all()):
        return np.full(len(y), math.inf)
    if not slopes.shape[1]:
        return residual
    vectors, singular, _ = np.linalg.svd(slopes / np.where(scale > 0, scale, 1.0), full_matrices=False)
    leverage = (vectors[:, singular > FREE * singular[0]] ** 2).sum(axis=1)
    predicted: np.ndarray = residual / np.maximum(1 - leverage, 1 / MAX_LEVERAGE_FACTOR)
    return predicted


def structure_cost(expr: sp.Expr, columns: int) -> float:
    """Nats to pick the formula, constants apart, among those of `columns` columns and all functions.

    Each place holds a column or a function; the order of terms and factors is free, so a sum of k of p
    columns costs little more than log(p over k).
    """
    cost = 0.0
    for node in sp.preorder_traversal(expr):
        if node.is_Symbol:
            cost += math.log(2 * columns)
        elif isinstance(node, (sp.Add, sp.Mul)):
            cost -= math.lgamma(1 + sum(not arg.is_number for arg in node.args))
        elif node.is_Rational:
            cost += number_cost(node) * math.log(2) if node not in (0, 1, -1) else 0.0
        elif node.args:
            cost += math.log(2 * FUNCTION_CHOICES)
    return max(cost, 0.0)
