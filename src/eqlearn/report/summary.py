"""A run in words for a terminal: the equation, what it is worth, its constants, the front."""

from __future__ import annotations

import math

from eqlearn.core.text import printable
from eqlearn.report.constants_table import value_text
from eqlearn.report.record import RunRecord
from eqlearn.report.verdict import checks, percent, unseen_errors, verdict


def equations_text(record: RunRecord, index: int | None = None) -> str:
    """One line for each target: the equation chosen, or that at place `index` of the front."""
    lines = zip(record.targets, record.candidate(index).equations, strict=True)
    return "\n".join(printable(f"{target} = {equation}") for target, equation in lines)


def summary(record: RunRecord, width: int = 100) -> str:
    """Everything that fits on a screen; formulas longer than a line are cut in the list, never above it."""
    parts = [equations_text(record), "\n".join(filter(None, [printable(verdict(record)), checks(record)]))]
    constants = _constants(record)
    if constants:
        parts.append("\n".join(constants))
    parts.append("\n".join(_front(record, width)))
    return "\n\n".join(parts)


def _constants(record: RunRecord) -> list[str]:
    rows = []
    for target, constants in zip(record.targets, record.best.constants, strict=True):
        for place, c in enumerate(constants):
            name = f"c{place + 1}" if len(record.targets) == 1 else f"c{place + 1} of {printable(target)}"
            low, high = (value_text(end, c.standard_error) for end in c.interval())
            known = f"± {c.standard_error:.2g}   95 %: {low} to {high}"
            known = known if math.isfinite(c.standard_error) else "not determined by the data"
            rows.append((name, value_text(c.value, c.standard_error), known))
    if not rows:
        return []
    widths = [max(len(row[k]) for row in rows) for k in range(2)]
    return [f"  {n:<{widths[0]}}   {v:>{widths[1]}} {known}" for n, v, known in rows]


def _front(record: RunRecord, width: int) -> list[str]:
    heads = ["", "#", "nodes", "error"]
    unseen = unseen_errors(record)
    rows = [[*heads, *unseen, "equation"]]
    for i, c in enumerate(record.front):
        errors = [percent(getattr(c, f)) for f in ("training_error", *unseen.values())]
        formula = "; ".join(equations_text(record, i).splitlines())
        rows.append(["*" if i == record.pick else "", str(i), str(c.complexity), *errors, formula])
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]) - 1)]
    lines = [
        "  ".join([*(f"{cell:>{w}}" for cell, w in zip(row, widths, strict=False)), row[-1]]) for row in rows
    ]
    return [line if len(line) <= width else line[: width - 3] + "..." for line in lines]
