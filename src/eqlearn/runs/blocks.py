"""Passes over a whole file, block by block: the last fit of the constants, and predictions."""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from io import TextIOWrapper
from pathlib import Path
from typing import TextIO, TypeAlias

import numpy as np
import torch

from eqlearn.errors import InvalidArgument
from eqlearn.io.checksummed import atomic_file
from eqlearn.io.tables import Measurements, read_blocks, read_labels
from eqlearn.numerics.covariance import errors_from_slopes
from eqlearn.numerics.least_squares import Rule, SquareRoot, levenberg_marquardt
from eqlearn.report.record import RunRecord
from eqlearn.search.candidate import Candidate
from eqlearn.symbolic.equation import Equation
from eqlearn.symbolic.parametric import Constant, Formula

Blocks: TypeAlias = Callable[[], Iterator[np.ndarray]]


def refined(candidate: Candidate, data: Measurements) -> Candidate:
    """The candidate with constants and standard errors from all rows of the file; unchanged if the search had
    them all, or if they can't be read again.

    The constants already suit a large sample, so one Gauss-Newton step is enough; a step that increases the
    error is not taken. The error of the candidate remains that of the rows of the search.
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
    rule = Rule(1, damping=1e-15)  # hardly any damping: a Gauss-Newton step
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
    with np.errstate(all="ignore"):  # an overflow counts as an infinite error
        return float(sum(((e(data.X) - data.y[:, k]) ** 2).sum() for k, e in enumerate(equations)))


def write_predictions(
    record: RunRecord, data: str | Path, out: Path | None = None, *, index: int | None = None
) -> tuple[int, int]:
    """Writes a column per target to `out` (whole or not at all), or to standard output; returns the number of
    rows, and of those in which the equation is not defined."""
    candidate = record.candidate(index)
    labels = _labels(record, data)
    rows = undefined = 0
    with _opened(out) as file:
        writer = csv.writer(file, lineterminator="\n")
        started = False
        for block in read_blocks(data, record.inputs):
            if not started:
                writer.writerow(record.targets)
                started = True
            groups = None if labels is None else labels[rows : rows + len(block)]
            inputs = candidate.inputs(block, groups)
            values = np.stack([equation(inputs) for equation in candidate.equations], axis=1)
            writer.writerows(values.tolist())
            rows, undefined = rows + len(values), undefined + int((~np.isfinite(values)).any(axis=1).sum())
        if not started:
            raise InvalidArgument(f"{str(data)!r} holds no rows to predict for")
    return rows, undefined


def _labels(record: RunRecord, data: str | Path) -> list[int | str] | None:
    """The group of each row of a file, for a run that had groups."""
    group = record.settings.get("group")
    if group is None:
        return None
    if str(data) == "-":
        raise InvalidArgument(
            f"the groups in column {group!r} can't be read from standard input; name a file"
        )
    return read_labels(data, str(group))


@contextmanager
def _opened(out: Path | None) -> Iterator[TextIO]:
    if out is None:
        yield sys.stdout
        return
    if not out.parent.is_dir():
        raise InvalidArgument(f"there is no folder {str(out.parent)!r} to write {out.name!r} into")
    with atomic_file(out) as file:
        text = TextIOWrapper(file, encoding="utf-8", newline="")
        yield text
        text.detach()  # flushes, and leaves the file open
