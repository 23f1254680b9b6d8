"""The constants of the chosen equation, fitted to every row of a file of which the search saw a part."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import torch

from eqlearn.io.tables import Measurements
from eqlearn.numerics.covariance import errors_from_curvature
from eqlearn.search.candidate import Candidate
from eqlearn.symbolic.equation import Equation
from eqlearn.symbolic.parametric import Constant, Parametric

Blocks: TypeAlias = Callable[[], Iterator[np.ndarray]]


def refined(candidate: Candidate, data: Measurements) -> Candidate:
    """The candidate with constants, and standard errors, from all rows; the same if there are no more rows
    than the search had, or if they can't be read again.

    The search's constants are already those of a large sample, so one Gauss-Newton step is enough; a step
    that makes the error larger is not taken. Its errors stay those of the search's rows.
    """
    if data.reread is None or data.rows_read - data.rows_dropped <= len(data.X):
        return candidate
    equations, constants = [], []
    for k, (equation, old) in enumerate(zip(candidate.equations, candidate.constants, strict=True)):
        better = _step(equation, data.reread, len(data.inputs), k) if old else None
        equations.append(equation if better is None else better[0])
        constants.append(old if better is None else better[1])
    before, after = (_square(es, data) for es in (candidate.equations, equations))
    error = candidate.training_error * (np.sqrt(after / before) if before > 0 else 1.0)
    return replace(
        candidate, equations=tuple(equations), constants=tuple(constants), training_error=float(error)
    )


@dataclass
class _Sums:
    """The normal equations of a fit, added up over blocks."""

    rows: int
    square: float
    curvature: np.ndarray
    slope: np.ndarray


def _step(
    equation: Equation, blocks: Blocks, inputs: int, output: int
) -> tuple[Equation, tuple[Constant, ...]] | None:
    sums = _normal_equations(equation, blocks, inputs, output)
    count = len(equation.constants)
    scale = np.sqrt(np.diag(sums.curvature))
    if not np.isfinite(sums.curvature).all() or not (scale > 0).all() or sums.rows <= count:
        return None
    step = np.linalg.pinv(sums.curvature / np.outer(scale, scale), rcond=1e-12) @ (sums.slope / scale) / scale
    if not np.isfinite(step).all():
        return None
    better = equation.with_constants(np.array(equation.constants) - step)
    if len(better.constants) != count:
        return None
    after = _normal_equations(better, blocks, inputs, output)
    if not after.square <= sums.square:
        return None
    errors = errors_from_curvature(after.curvature, after.square / (sums.rows - count))
    pairs = zip(better.constants, errors, strict=True)
    return better, tuple(Constant(value, float(error)) for value, error in pairs)


def _normal_equations(equation: Equation, blocks: Blocks, inputs: int, output: int) -> _Sums:
    formula, count = Parametric(equation), len(equation.constants)
    sums = _Sums(0, 0.0, np.zeros((count, count)), np.zeros(count))
    for block in blocks():
        rows = block[np.isfinite(block).all(axis=1)]
        columns = torch.tensor(np.ascontiguousarray(rows[:, :inputs].T))
        value, slopes = formula.linearise(columns, formula.start)
        residual = value - rows[:, inputs + output]
        sums.rows += len(rows)
        sums.square += float(residual @ residual)
        sums.curvature += slopes.T @ slopes
        sums.slope += slopes.T @ residual
    return sums


def _square(equations: list[Equation] | tuple[Equation, ...], data: Measurements) -> float:
    with np.errstate(all="ignore"):  # what overflows is infinitely wrong
        return float(sum(((e(data.X) - data.y[:, k]) ** 2).sum() for k, e in enumerate(equations)))
