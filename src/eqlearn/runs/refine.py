"""The constants of the chosen equation, fitted to every row of a file of which the search saw a part."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeAlias

import numpy as np
import torch

from eqlearn.io.tables import Measurements
from eqlearn.numerics.covariance import errors_from_slopes
from eqlearn.numerics.least_squares import Rule, SquareRoot, levenberg_marquardt
from eqlearn.search.candidate import Candidate
from eqlearn.symbolic.equation import Equation
from eqlearn.symbolic.parametric import Constant, Formula

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


def _step(
    equation: Equation, blocks: Blocks, inputs: int, output: int
) -> tuple[Equation, tuple[Constant, ...]] | None:
    formula, count = Formula.of(equation), len(equation.constants)

    def pieces(constants: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        for block in blocks():
            rows = block[np.isfinite(block).all(axis=1)]
            columns = torch.tensor(np.ascontiguousarray(rows[:, :inputs].T))
            value, slopes = formula.linearise(columns, constants)
            yield value - rows[:, inputs + output], slopes

    start = torch.tensor(formula.constants)[None]
    # One step with next to no damping is Gauss and Newton's.
    rule = Rule(1, damping=1e-15)
    point, system = levenberg_marquardt(lambda at: SquareRoot.summed(pieces(at[0].numpy())), start, rule)
    slopes = system.slopes[0][0]
    if system.rows <= count or torch.equal(point, start) or not (slopes != 0).any(axis=0).all():
        return None
    better = formula.with_constants(point[0].tolist())
    if len(better.constants) != count:
        return None
    errors = errors_from_slopes(slopes, float(system.loss) * system.rows / (system.rows - count))
    pairs = zip(better.constants, errors, strict=True)
    return better, tuple(Constant(value, float(error)) for value, error in pairs)


def _square(equations: list[Equation] | tuple[Equation, ...], data: Measurements) -> float:
    with np.errstate(all="ignore"):  # what overflows is infinitely wrong
        return float(sum(((e(data.X) - data.y[:, k]) ** 2).sum() for k, e in enumerate(equations)))
