"""Candidates weighed by known errors of measurement: fit, standard errors and choice."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from eqlearn.numerics.budget import never
from eqlearn.numerics.criteria import ROWS_PER_CONSTANT
from eqlearn.search.candidate import Candidate, formula_costs, left_out, structure_cost
from eqlearn.symbolic.effective_variance import fit_measured
from eqlearn.symbolic.parametric import Formula
from eqlearn.validation.table import Table


def first_weights(table: Table) -> np.ndarray:
    """What rows weigh before any formula is known, `(rows,)`: one over the variance, to which errors of
    inputs add by the slopes of a quadratic polynomial, or of a plane where there are few rows."""
    assert table.errors is not None
    total = np.zeros(table.rows)
    for k, y in enumerate(table.y.T):
        variance = table.errors.y[:, k] ** 2
        if table.errors.x.any():
            variance = variance + (_slopes(table.X, y) ** 2 * table.errors.x**2).sum(axis=1)
        # A row must not decide alone because the polynomial happens to be flat there.
        floor = max(1e-3 * float(np.median(variance)), 1e-300)
        total += float(y.var()) / np.maximum(variance, floor)
    return total / max(float(total.mean()), 1e-300)


def _slopes(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The slopes `(rows, in)` of a polynomial fitted to the target."""
    middle, spread = X.mean(axis=0), X.std(axis=0)
    spread = np.where(spread > 0, spread, 1.0)
    z = (X - middle) / spread
    columns = z.shape[1]
    pairs = [(i, j) for i in range(columns) for j in range(i, columns)]
    if len(y) < 3 * (1 + columns + len(pairs)):
        pairs = []
    basis = np.column_stack([np.ones(len(y)), z, *(z[:, i] * z[:, j] for i, j in pairs)])
    factors = np.linalg.lstsq(basis, y, rcond=None)[0]
    slopes = np.tile(factors[1 : columns + 1], (len(y), 1))
    for factor, (i, j) in zip(factors[columns + 1 :], pairs, strict=True):
        slopes[:, i] += factor * z[:, j]
        slopes[:, j] += factor * z[:, i]
    result: np.ndarray = slopes / spread
    return result


def weighed(
    candidate: Candidate, table: Table, spreads: np.ndarray, stop: Callable[[], bool] = never
) -> Candidate:
    """The candidate with its constants fitted to all rows by effective variance, and with its lengths for
    errors of known size: ½χ² and the logarithm of each row's deviation in the place of a fitted noise.

    A candidate whose constants these errors leave loose, or that is not finite, stays behind all others.
    """
    errors = table.errors
    assert errors is not None
    fits, equations = [], []
    for k, equation in enumerate(candidate.equations):
        formula = Formula.of(equation)
        fit = fit_measured(formula, table.X, table.y[:, k], errors.y[:, k], errors.x, stop=stop)
        if not math.isfinite(fit.chi_square):
            return replace(candidate, description_length=math.inf, prediction_length=math.inf)
        fits.append(fit)
        equations.append(formula.with_constants([c.value for c in fit.constants]))
    constants = tuple(fit.constants for fit in fits)
    rows = table.rows * len(fits)
    numbers, nodes, symbols = formula_costs(equations, constants, rows)
    size = numbers + nodes * math.log(max(symbols, 2))
    scattered = [np.log(f.deviations / s).sum() for f, s in zip(fits, spreads, strict=True)]
    freedom = sum(f.freedom for f in fits)
    squares = [(f.residuals * f.deviations / s) ** 2 for f, s in zip(fits, spreads, strict=True)]
    weights = [1 / f.deviations**2 for f in fits]
    error = math.sqrt(np.mean([np.average(q, weights=w) for q, w in zip(squares, weights, strict=True)]))
    enough = all(table.rows >= ROWS_PER_CONSTANT * len(f.constants) for f in fits)
    structure = sum(structure_cost(e.expr, table.X.shape[1]) for e in equations)
    squares_left = (float(np.square(left_out(f.residuals, f.slopes)).sum()) for f in fits)
    return replace(
        candidate,
        equations=tuple(equations),
        constants=constants,
        training_error=error,
        description_length=0.5 * sum(f.chi_square for f in fits) + float(sum(scattered)) + size,
        prediction_length=0.5 * sum(squares_left) + structure + float(sum(scattered)) if enough else math.nan,
        reduced_chi_square=sum(f.chi_square for f in fits) / freedom,
    )
