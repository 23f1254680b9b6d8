"""The data of the page: a sample of rows, and each equation of the front evaluated on them."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from eqlearn.errors import InvalidFile
from eqlearn.report.record import RunRecord
from eqlearn.search.candidate import Candidate
from eqlearn.symbolic.equation import Equation
from eqlearn.symbolic.languages import EXPORTS, function_names, source
from eqlearn.validation.table import some_rows

ROWS = 400
TRAINING, HELD_OUT, OUTSIDE = range(3)
PARTS = ("training", "held out", "extrapolation")


@dataclass(frozen=True, eq=False)
class Sample:
    """Inputs `(rows, in)`, targets `(rows, out)`, the part of each row (an index into `PARTS`), and the
    minimum, median and maximum of each input in training, `(in, 3)`; where rows are of groups, also the place
    of its group."""

    X: np.ndarray
    y: np.ndarray
    part: np.ndarray
    ranges: np.ndarray
    group: np.ndarray | None = None

    @staticmethod
    def of(
        X: np.ndarray,
        y: np.ndarray,
        held_out: np.ndarray,
        outside: tuple[np.ndarray, np.ndarray] | None = None,
        group: np.ndarray | None = None,
    ) -> Sample:
        """At most `ROWS` rows of the data, of which `held_out` marks those that the search did not see, and
        half as many from outside the training range."""
        rows = some_rows(len(X), ROWS)
        codes = None if group is None else group[rows]
        blocks = [(X[rows], y[rows], np.where(held_out[rows], HELD_OUT, TRAINING))]
        if outside is not None:
            rows = some_rows(len(outside[0]), ROWS // 2)
            blocks.append((outside[0][rows], outside[1][rows], np.full(len(rows), OUTSIDE)))
        inputs, targets, parts = (np.concatenate(arrays) for arrays in zip(*blocks, strict=True))
        seen = X[~held_out]
        ranges = np.stack([seen.min(axis=0), np.median(seen, axis=0), seen.max(axis=0)], axis=1)
        return Sample(inputs, targets, parts.astype(np.uint8), ranges, codes)

    def check(self, inputs: int, targets: int) -> None:
        """Refuses arrays that do not fit a run of this size."""
        rows = len(self.X)
        shapes = (self.X.shape, self.y.shape, self.part.shape, self.ranges.shape)
        if shapes != ((rows, inputs), (rows, targets), (rows,), (inputs, 3)) or rows > 2 * ROWS:
            raise InvalidFile(f"the sample of the data has shapes {shapes}, which do not fit the run")
        if self.group is not None and self.group.shape != (rows,):
            raise InvalidFile(f"the sample of the data has groups for {len(self.group)} of {rows} rows")
        if rows and int(self.part.max()) >= len(PARTS):
            raise InvalidFile(f"the sample of the data has a part {int(self.part.max())}")


GRID = 161
MOST_INPUTS = 8
# Longer formulas are not offered for copying: they are of no use as text.
LONGEST = 2000


def payload(record: RunRecord, sample: Sample) -> dict[str, Any]:
    """Everything that the script of the page needs, in the order in which it is read."""
    used = {name for c in record.front for e in c.equations for name in map(str, e.expr.free_symbols)}
    drawn = [i for i, name in enumerate(record.inputs) if name in used and len(sample.X)][:MOST_INPUTS]
    grids = {i: _grid(sample.ranges[i], sample.X[:, i]) for i in drawn}
    return {
        "targets": list(record.targets),
        "pick": record.pick,
        "parts": list(PARTS),
        "part": sample.part.tolist(),
        "measured": [_numbers(column) for column in sample.y.T],
        "inputs": [
            {"name": record.inputs[i], "range": _numbers(sample.ranges[i][[0, 2]]),
             "grid": _numbers(grids[i]), "values": _numbers(sample.X[:, i])}
            for i in drawn
        ],
        "equations": [_equation(c, record.targets, sample, grids) for c in record.front],
        "history": [[s.restarts, _number(s.error)] for s in record.history],
    }  # fmt: skip


def embedded(data: Any) -> str:
    """JSON that is safe anywhere in a page, whatever text it holds."""
    text = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.translate({ord(character): f"\\u{ord(character):04x}" for character in "<>&"})


def _exports(equation: Equation, name: str) -> dict[str, str]:
    """The formula in every language that the page offers for copying."""
    if equation.complexity > LONGEST:
        return {}
    return {export.title: source([equation], [name], export.name) for export in EXPORTS.values()}


def _equation(
    candidate: Candidate, targets: Sequence[str], sample: Sample, grids: dict[int, np.ndarray]
) -> dict[str, Any]:
    names = function_names(targets, candidate.equations[0].variables)
    X, curves = sample.X, [_along(i, grid, sample.ranges) for i, grid in grids.items()]
    if candidate.varying is not None and sample.group is not None:
        X = np.column_stack([X, candidate.varying.values[sample.group]])
        middle = np.median(candidate.varying.values, axis=0)  # of all groups
        curves = [np.column_stack([rows, np.tile(middle, (len(rows), 1))]) for rows in curves]
    else:
        X, curves = candidate.inputs(X), [candidate.inputs(rows) for rows in curves]
    return {
        "complexity": candidate.complexity,
        "error": _number(candidate.training_error),
        "heldOut": _number(candidate.validation_error),
        "outside": _number(candidate.extrapolation_error),
        "outputs": [
            {
                "text": str(equation),
                "exports": _exports(equation, names[k]),
                "predicted": _numbers(equation(X)),
                "residual": _numbers(sample.y[:, k] - equation(X)),
                "curves": [_numbers(equation(rows)) for rows in curves],
            }
            for k, equation in enumerate(candidate.equations)
        ],
    }


def _grid(measured: np.ndarray, shown: np.ndarray) -> np.ndarray:
    """Points that cover the rows shown, and the measured range extended by half of it on each side; without
    negative values if there were none."""
    low, middle, high = measured
    reach = (high - low) / 2 or abs(middle) / 2 or 1.0
    start, end = min(low - reach, shown.min(initial=low)), max(high + reach, shown.max(initial=high))
    return np.linspace(max(start, 0.0) if shown.min(initial=low) >= 0 else start, end, GRID)


def _along(place: int, grid: np.ndarray, ranges: np.ndarray) -> np.ndarray:
    """Rows in which one input varies and the others stay at their medians."""
    rows = np.tile(ranges[:, 1], (len(grid), 1))
    rows[:, place] = grid
    return rows


def _numbers(values: np.ndarray) -> list[float | None]:
    """Six digits are more than a screen shows; what is not finite is left out."""
    return [float(f"{v:.6g}") if math.isfinite(v) else None for v in values.tolist()]


def _number(value: float) -> float | None:
    return _numbers(np.array([value]))[0]
