"""Groups on the page: the constants that vary, and one panel for each group."""

from __future__ import annotations

from html import escape

import numpy as np

from eqlearn.errors import counted
from eqlearn.report.charts import Frame, around, figure
from eqlearn.report.payload import Sample
from eqlearn.report.record import RunRecord
from eqlearn.symbolic.varying import Varying

# More panels, and more lines of a table, nobody looks at; the folder's `constants.csv` has them all.
PANELS, LINES = 12, 40


def groups_section(record: RunRecord, sample: Sample) -> str:
    """A section with the constants of each group and small multiples, if constants vary; else nothing."""
    varying = record.best.varying
    if varying is None:
        return ""
    what = (
        f"No law in {escape(varying.parameter)} was found for them that shortens the description: between "
        "the values of this table they are interpolated."
        if varying.parameter is not None
        else "Vertical bars are two standard errors."
    )
    names = ", ".join(map(escape, varying.names))
    constants = "".join(_constant(varying, k) for k in range(len(varying.names)))
    return (
        f'<section aria-labelledby="groups"><h2 id="groups">Constants that vary</h2><p class="lead">{names}: '
        f"a value for each of {counted(len(varying.labels), 'group')}. {what}</p>"
        f"{constants}{_table(varying)}{_panels(record, sample, varying)}</section>"
    )


def _constant(varying: Varying, k: int) -> str:
    """One constant over the groups: against their numbers, or else in their order."""
    numeric = all(isinstance(label, int | float) for label in varying.labels)
    x = np.array(varying.labels if numeric else range(len(varying.labels)), dtype=float)
    x = x if varying.at is None else varying.at
    value, error = varying.values[:, k], varying.standard_errors[:, k]
    known = np.where(np.isfinite(error), 2 * error, 0.0)
    frame = Frame(around(x), around(np.concatenate([value - known, value + known])), label=varying.group)
    bars = "".join(
        frame.line(np.array([a, a]), np.array([b - d, b + d]))
        for a, b, d in zip(x, value, known, strict=True)
    )
    if varying.parameter is not None:
        along = np.linspace(x.min(), x.max(), 400)
        bars += frame.line(along, varying.interpolated(along)[:, k])
    words = f"{varying.names[k]} against {varying.group}"
    return figure(varying.names[k], frame.svg(frame.dots(x, value) + bars, words))


def _table(varying: Varying) -> str:
    heads = "".join(
        f'<th scope="col" class="number">{escape(n)}</th>' for n in (varying.group, *varying.names)
    )
    rows = []
    for g, label in enumerate(varying.labels[:LINES]):
        cells = "".join(
            f'<td class="number">{v:.6g} ± {e:.2g}</td>'
            for v, e in zip(varying.values[g], varying.standard_errors[g], strict=True)
        )
        said = f"{label:.10g}" if isinstance(label, float) else str(label)
        rows.append(f'<tr><td class="number">{escape(said)}</td>{cells}</tr>')
    more = len(varying.labels) - LINES
    rest = f"<p>{counted(more, 'further group')} in constants.csv.</p>" if more > 0 else ""
    head = f"<thead><tr>{heads}</tr></thead>"
    return f'<div class="card scroll"><table>{head}<tbody>{"".join(rows)}</tbody></table></div>{rest}'


def _panels(record: RunRecord, sample: Sample, varying: Varying) -> str:
    """Small multiples of the first groups, on the same axes: the target against its input and the line of the
    equation, or where there are several inputs, measured against predicted."""
    if sample.group is None:
        return ""
    equation, target = record.best.equation, record.targets[0]
    used = [i for i, name in enumerate(record.inputs) if name in map(str, equation.expr.free_symbols)]
    y, one = sample.y[:, 0], len(used) == 1
    label = record.inputs[used[0]] if one else f"{target} measured"
    frame = Frame(around(sample.X[:, used[0]] if one else y), around(y, 0.15), 420.0, 230.0, label)
    across, figures = np.linspace(*frame.x, 200), []
    for g in range(min(PANELS, len(varying.labels))):
        mine = sample.group == g
        if not mine.any():
            continue
        X, constants = sample.X[mine], np.tile(varying.values[g], (max(200, int(mine.sum())), 1))
        if one:
            grid = np.tile(np.median(X, axis=0), (200, 1))
            grid[:, used[0]] = across
            line = frame.line(across, equation(np.column_stack([grid, constants[:200]])))
            inside = line + frame.dots(X[:, used[0]], y[mine])
        else:
            said = equation(np.column_stack([X, constants[: len(X)]]))
            inside = frame.line(across, across) + frame.dots(y[mine], said)
        way = "in" if one else "predicted against measured in"
        chart = frame.svg(inside, f"{target} {way} {varying.labels[g]}")
        figures.append(figure(f"{varying.group} {varying.labels[g]}", chart, "card"))
    return f'<div class="multiples">{"".join(figures)}</div>'
