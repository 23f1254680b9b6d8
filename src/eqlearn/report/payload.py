"""What the page draws: each equation of the front on the sample and along each input, as plain numbers."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from eqlearn.core.equation import Equation
from eqlearn.discovery.select import Candidate
from eqlearn.report.languages import LANGUAGES, function_names, source
from eqlearn.report.record import RunRecord
from eqlearn.report.sample import PARTS, Sample

GRID = 161
MOST_INPUTS = 8
# Formulas longer than this are left out of what can be copied: nobody pastes them.
LONGEST = 2000


def payload(record: RunRecord, sample: Sample) -> dict[str, Any]:
    """Everything the page's script needs, in the order it reads it."""
    used = {name for c in record.front for e in c.equations for name in map(str, e.expr.free_symbols)}
    drawn = [i for i, name in enumerate(record.inputs) if name in used][:MOST_INPUTS]
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
    """JSON that no text inside can break out of, wherever in a page it stands."""
    text = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _exports(equation: Equation, name: str) -> dict[str, str]:
    """The formula in the languages that can be copied from the page."""
    if equation.complexity > LONGEST:
        return {}
    return {title: source([equation], [name], language) for title, language in LANGUAGES.items()}


def _equation(
    candidate: Candidate, targets: Sequence[str], sample: Sample, grids: dict[int, np.ndarray]
) -> dict[str, Any]:
    names = function_names(targets, candidate.equations[0].variables)
    return {
        "complexity": candidate.complexity,
        "error": _number(candidate.training_error),
        "heldOut": _number(candidate.validation_error),
        "outside": _number(candidate.extrapolation_error),
        "outputs": [
            {
                "text": str(equation),
                "exports": _exports(equation, names[k]),
                "predicted": _numbers(equation(sample.X)),
                "residual": _numbers(sample.y[:, k] - equation(sample.X)),
                "curves": [_numbers(equation(_along(i, grid, sample.ranges))) for i, grid in grids.items()],
            }
            for k, equation in enumerate(candidate.equations)
        ],
    }


def _grid(measured: np.ndarray, shown: np.ndarray) -> np.ndarray:
    """Points from half a range below to half a range above what was measured, and as far as rows are shown;
    what was never negative stays so."""
    low, middle, high = measured
    reach = (high - low) / 2 or abs(middle) / 2 or 1.0
    start, end = min(low - reach, shown.min(initial=low)), max(high + reach, shown.max(initial=high))
    return np.linspace(max(start, 0.0) if shown.min(initial=low) >= 0 else start, end, GRID)


def _along(place: int, grid: np.ndarray, ranges: np.ndarray) -> np.ndarray:
    """Rows in which one input moves and the others stay at the middle of what was measured."""
    rows = np.tile(ranges[:, 1], (len(grid), 1))
    rows[:, place] = grid
    return rows


def _numbers(values: np.ndarray) -> list[float | None]:
    return [_number(float(v)) for v in values]


def _number(value: float) -> float | None:
    """Six digits are more than a screen shows; what is not finite is left out."""
    return float(f"{value:.6g}") if math.isfinite(value) else None
