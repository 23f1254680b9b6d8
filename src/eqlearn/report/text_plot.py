"""A plot of letters for the terminal: measured points and the equation's curve, in Braille or in ASCII."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from eqlearn.report.payload import Sample
from eqlearn.report.record import RunRecord
from eqlearn.report.summary import short
from eqlearn.symbolic.printing import printable

# Values over more than this are drawn on a logarithmic axis.
DECADES = 100.0
# The dots of a Braille letter, by row and column.
_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))


@dataclass(frozen=True)
class _Axis:
    """A range of values, mapped to 0 ... 1."""

    low: float
    high: float
    logarithmic: bool

    @staticmethod
    def over(values: np.ndarray) -> _Axis:
        low, high = float(values.min()), float(values.max())
        logarithmic = low > 0 and high > DECADES * low
        if not high > low:
            reach = abs(low) or 1.0
            low, high = low - 0.5 * reach, high + 0.5 * reach
        return _Axis(low, high, logarithmic)

    def __call__(self, values: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            if self.logarithmic:
                share = np.log(values / self.low) / math.log(self.high / self.low)
            else:
                share = (values / 2 - self.low / 2) / (self.high / 2 - self.low / 2)
        inside: np.ndarray = np.where((share >= 0) & (share <= 1), share, np.nan)
        return inside

    def spread(self, count: int) -> np.ndarray:
        """Values from end to end, evenly spaced on the axis."""
        return (
            np.geomspace(self.low, self.high, count)
            if self.logarithmic
            else np.linspace(self.low, self.high, count)
        )


def text_plot(
    points: tuple[np.ndarray, np.ndarray],
    curve: tuple[np.ndarray, np.ndarray],
    labels: tuple[str, str],
    *,
    width: int = 60,
    height: int = 14,
    unicode: bool = True,
) -> str:
    """Points and a curve, each as values across and up, in `width` by `height` letters and a frame.

    What is not finite is not drawn; the range is that of the points.
    """
    finite = np.isfinite(points[0]) & np.isfinite(points[1])
    if not finite.any():
        return ""
    across, up = (_Axis.over(values[finite]) for values in points)
    rows = _curve(across(curve[0]), up(curve[1]), width, height, unicode)
    mark = "●" if unicode else "o"
    for x, y in zip(across(points[0][finite]), up(points[1][finite]), strict=True):
        rows[height - 1 - min(int(y * height), height - 1)][min(int(x * width), width - 1)] = mark
    return _framed(["".join(row) for row in rows], across, up, labels, unicode)


def _curve(x: np.ndarray, y: np.ndarray, width: int, height: int, unicode: bool) -> list[list[str]]:
    finite = np.isfinite(x) & np.isfinite(y)
    fine = (4 * height, 2 * width) if unicode else (height, width)
    row = fine[0] - 1 - np.minimum((y[finite] * fine[0]).astype(int), fine[0] - 1)
    column = np.minimum((x[finite] * fine[1]).astype(int), fine[1] - 1)
    cells = [[" "] * width for _ in range(height)]
    if not unicode:
        for r, c in zip(row, column, strict=True):
            cells[r][c] = "."
        return cells
    dots = np.zeros((height, width), dtype=np.int64)
    for r, c in zip(row, column, strict=True):
        dots[r // 4, c // 2] |= _DOTS[r % 4][c % 2]
    for r, c in zip(*np.nonzero(dots), strict=True):
        cells[r][c] = chr(0x2800 + int(dots[r, c]))
    return cells


def _framed(rows: list[str], across: _Axis, up: _Axis, labels: tuple[str, str], unicode: bool) -> str:
    side, corner, line = ("│", "└", "─") if unicode else ("|", "+", "-")
    ends = [short(up.high), *[""] * (len(rows) - 2), short(up.low)]
    margin = max(map(len, ends))
    lines = [f"{end:>{margin}} {side}{row.rstrip()}" for end, row in zip(ends, rows, strict=True)]
    width = len(rows[0])
    low, high = short(across.low), short(across.high)
    below = f"{labels[0]}{' (log)' if across.logarithmic else ''}"
    middle = max(1, (width - len(below)) // 2 - len(low))
    gap = max(1, width - len(low) - middle - len(below) - len(high))
    above = f"{labels[1]}{' (log)' if up.logarithmic else ''}"
    return "\n".join([
        " " * (margin + 1) + above, *lines, " " * (margin + 1) + corner + line * width,
        " " * (margin + 2) + low + " " * middle + below + " " * gap + high,
    ])  # fmt: skip


def fit_plot(record: RunRecord, sample: Sample, *, width: int = 60, unicode: bool = True) -> str:
    """The chosen equation of the first target on a sample of the data: over its input if it has one and no
    constant varies, else measured over predicted values, with the line on which they agree."""
    equation, y = record.best.equations[0], sample.y[:, 0]
    target = printable(record.targets[0])
    used = [k for k, name in enumerate(record.inputs) if name in {str(s) for s in equation.expr.free_symbols}]
    used = used or [0]
    one = len(used) == 1 and record.best.varying is None
    if one:
        x = sample.X[:, used[0]]
        finite = x[np.isfinite(x)]
        over = _Axis.over(finite).spread(400) if len(finite) else np.empty(0)
        inputs = np.ones((len(over), len(record.inputs)))
        inputs[:, used[0]] = over
        curve, label = (over, equation(inputs)), printable(record.inputs[used[0]])
    else:
        x = equation(sample.inputs(record.best))
        finite = y[np.isfinite(y)]
        over = _Axis.over(finite).spread(400) if len(finite) else np.empty(0)
        curve, label = (over, over), f"{target} by the equation"
    labels = (label, f"{target}{'' if one else ', measured'}")
    return text_plot((x, y), curve, labels, width=max(20, min(width - 12, 72)), unicode=unicode)
