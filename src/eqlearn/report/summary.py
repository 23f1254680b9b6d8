"""A run in words: its verdict, its constants with their intervals, the front."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

from eqlearn.errors import counted, listed
from eqlearn.report.mathml import name_markup
from eqlearn.report.record import RunRecord
from eqlearn.symbolic.parametric import Constant
from eqlearn.symbolic.printing import printable

WIDTH, HEIGHT = 130, 16


def constants_table(targets: Sequence[str], constants: Sequence[Sequence[Constant]]) -> str:
    """One row per fitted constant of each target, in reading order."""
    several = len(targets) > 1
    rows = [
        _row(constant, output, place, targets[output] if several else "")
        for output, each in enumerate(constants)
        for place, constant in enumerate(each)
    ]
    if not rows:
        return '<p class="lead">The equation has no fitted constant: every number in it is exact.</p>'
    heads = ("value", "standard error", "95 % interval")
    cells = "".join(f'<th scope="col" class="number">{h}</th>' for h in heads)
    first = '<th scope="col">target</th>' if several else ""
    return (
        '<div class="scroll" tabindex="0" role="region" aria-label="Constants"><table class="plain">'
        f'<thead><tr>{first}<th scope="col"></th>{cells}<th></th></tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def value_text(value: float, error: float) -> str:
    """A value with as many decimals as its standard error justifies: to the second digit of the error."""
    if not 0 < error < math.inf:
        return f"{value:.10g}"
    decimals = 1 - math.floor(math.log10(error))
    if 0 <= decimals <= 9 and abs(value) < 1e9:
        return f"{value:.{decimals}f}"
    digits = (math.floor(math.log10(abs(value))) if value else 0) + decimals + 1
    return f"{value:.{min(max(digits, 2), 15)}g}"


def _row(constant: Constant, output: int, place: int, target: str) -> str:
    low, high = constant.interval()
    known = math.isfinite(constant.standard_error)
    value, start, end = (value_text(v, constant.standard_error) for v in (constant.value, low, high))
    error = (f"{constant.standard_error:.2g}", f"{start} … {end}") if known else ("undetermined", "–")
    cells = "".join(f'<td class="number">{escape(n)}</td>' for n in (value, *error))
    first = f"<td><math>{name_markup(target)}</math></td>" if target else ""
    name = f"<td><math><msub><mi>c</mi><mn>{place + 1}</mn></msub></math></td>"
    drawing = _whisker(constant) if known else ""
    return f'<tr data-row="{output}-{place}">{first}{name}{cells}<td class="interval">{drawing}</td></tr>'


def _whisker(constant: Constant) -> str:
    """The interval on a scale from zero to 1.25 times the value, which shows if the constant may be zero."""
    low, high = constant.interval()
    ends = sorted((0.0, 1.25 * constant.value)) if constant.value else (-1.0, 1.0)
    scale = (WIDTH - 8) / ((ends[1] - ends[0]) or 1.0)

    def place(value: float) -> float:
        return min(max(4 + (value - ends[0]) * scale, 0.0), float(WIDTH))

    middle = HEIGHT / 2
    zero, left, right, dot = (place(v) for v in (0.0, low, high, constant.value))
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" aria-hidden="true" class="whisker">'
        f'<line class="zero" x1="{zero:.1f}" x2="{zero:.1f}" y1="1" y2="{HEIGHT - 1}"/>'
        f'<line class="reach" x1="{left:.1f}" x2="{right:.1f}" y1="{middle}" y2="{middle}"/>'
        f'<circle cx="{dot:.1f}" cy="{middle}" r="3.4"/></svg>'
    )


# An equation that leaves less than this fraction of the spread is called close.
CLOSE = 0.01


def grade(record: RunRecord) -> str:
    """ "exact", "close" or "none"."""
    if record.best.exact:
        return "exact"
    # Errors add up where motion is simulated.
    bound = 2 * CLOSE if "form" in record.data else CLOSE
    return "close" if record.best.training_error < bound else "none"


def verdict(record: RunRecord) -> str:
    """Whether an exact law was found and, if not, how much remains unexplained."""
    best, names = record.best, listed(record.targets)
    if "form" in record.data:
        return _verdict_on_motion(record)
    if not any(e.expr.free_symbols for e in best.equations):
        if best.exact:
            return f"There is nothing to explain: {names} did not vary in the training rows."
        if record.ended == "out of time":
            return (
                f"The time was too short to find an equation for {names} that is better than a constant; "
                "give it more seconds."
            )
        return f"No law was found: no equation describes {names} better than a constant does."
    if best.exact:
        return f"An exact law was found: it gives {names} in the training rows to rounding error."
    level = listed([f"±{short(n)}" for n in record.noise])
    left = f"{percent(best.training_error)} of the spread of {names} unexplained (noise of {level})"
    one = len(record.targets) == 1
    if grade(record) == "close":
        close = "this one comes close: it leaves" if one else "these come close: they leave"
        return f"No exact law was found, but {close} {left}."
    return f"No exact law was found: {'this equation leaves' if one else 'these equations leave'} {left}."


def _verdict_on_motion(record: RunRecord) -> str:
    """The verdict on equations of motion, which are judged by simulation."""
    best = record.best
    states = listed(record.inputs[: len(record.targets)])
    over = f"simulated over {record.data.get('horizon')} steps at a time"
    if best.exact:
        return f"Exact equations of motion were found: {over}, they give {states} to rounding error."
    if not math.isfinite(best.training_error):
        return f"No equations of motion were found: {over}, these diverge."
    left = f"{percent(best.training_error)} of the spread of {states}"
    level = listed([f"±{short(n)}" for n in record.noise])
    close = "comes close" if grade(record) == "close" else "does not come close"
    return f"No exact law was found; this one {close}: {over}, it leaves {left} (noise of {level})."


def checks(record: RunRecord) -> str:
    """The errors on rows that the search did not see, and χ² where errors of measurement were given, in
    words; "" without any."""
    best, sentences = record.best, []
    if not math.isnan(best.validation_error):
        error = percent(best.validation_error)
        sentences.append(f"On {best.held_out_rows} rows held out from the search the error is {error}.")
    if not math.isnan(best.extrapolation_error):
        sentences.append(f"Outside the training range it is {percent(best.extrapolation_error)}.")
    if outliers := [row for row in record.data.get("outliers", ()) if isinstance(row, int)]:
        some = ", ".join(str(row + 1) for row in outliers[:10]) + (", ..." if len(outliers) > 10 else "")
        whole = record.data.get("rows") == record.data.get("rows_read")  # else their numbers are others
        left_out = f"{counted(len(outliers), 'row')} far off the law left out"
        sentences.append(f"{left_out}: {some}." if whole else f"{left_out}.")
    if isinstance(units := record.settings.get("units"), Mapping):
        sentences.append(
            f"Units: {printable(', '.join(f'{name} in {unit}' for name, unit in units.items()))}."
        )
    if not math.isnan(best.reduced_chi_square):
        sentences.append(
            f"By the errors given, χ² per degree of freedom is {short(best.reduced_chi_square)}."
        )
    return " ".join(sentences)


def unseen_errors(record: RunRecord) -> dict[str, str]:
    """The errors on rows that the search did not see, if any: a heading, and the field of a candidate."""
    fields = {"held out": "validation_error", "beyond": "extrapolation_error"}
    return {h: f for h, f in fields.items() if not all(math.isnan(getattr(c, f)) for c in record.front)}


def percent(fraction: float) -> str:
    """A fraction in per cent, to two or three significant digits."""
    if math.isnan(fraction):
        return "-"
    if math.isinf(fraction):
        return "undefined"
    value = float(f"{100 * fraction:.3g}")
    if 0 < value < 1e-4:
        return f"{value:.0e} %"
    # Three digits from 10 % on, two below.
    decimals = (1 if value < 10 else 2) - math.floor(math.log10(value)) if value > 0 else 0
    return f"{value:.{max(0, decimals)}f} %"


def short(value: float) -> str:
    """Three significant digits."""
    return f"{value:.3g}"


def equations_text(record: RunRecord, index: int | None = None) -> str:
    """One line per target: the chosen equation, or that at `index` of the front."""
    lines = zip(record.targets, record.candidate(index).equations, strict=True)
    return "\n".join(printable(f"{target} = {equation}") for target, equation in lines)


def summary(record: RunRecord, width: int = 100) -> str:
    """The equations in full, verdict, constants, and the front with long formulas cut to the width."""
    parts = [equations_text(record), "\n".join(filter(None, [printable(verdict(record)), checks(record)]))]
    parts += ["\n".join(_constants(record)), "\n".join(_front(record, width))]
    return "\n\n".join(filter(None, parts))


def _constants(record: RunRecord) -> list[str]:
    rows = []
    for target, constants in zip(record.targets, record.best.constants, strict=True):
        for place, c in enumerate(constants):
            name = f"c{place + 1}" if len(record.targets) == 1 else f"c{place + 1} of {printable(target)}"
            low, high = (value_text(end, c.standard_error) for end in c.interval())
            known = f"± {c.standard_error:.2g}   95 %: {low} to {high}"
            known = known if math.isfinite(c.standard_error) else "not determined by the data"
            rows.append((name, value_text(c.value, c.standard_error), known))
    if (varying := record.best.varying) is not None:
        for name, values in zip(varying.names, varying.values.T, strict=True):
            ends = f"{short(float(values.min()))} to {short(float(values.max()))}"
            how = f"over {counted(len(values), 'group')} by {printable(varying.group)}"
            rows.append(
                (name, ends, how if varying.parameter is None else f"{how}, interpolated: no law found")
            )
    if not rows:
        return []
    widths = [max(len(row[k]) for row in rows) for k in range(2)]
    return [f"  {n:<{widths[0]}}   {v:>{widths[1]}} {known}" for n, v, known in rows]


def _front(record: RunRecord, width: int) -> list[str]:
    unseen = unseen_errors(record)
    rows = [["", "#", "nodes", "error", *unseen, "equation"]]
    for i, c in enumerate(record.front):
        errors = [percent(getattr(c, f)) for f in ("training_error", *unseen.values())]
        formula = "; ".join(equations_text(record, i).splitlines())
        rows.append(["*" if i == record.pick else "", str(i), str(c.complexity), *errors, formula])
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]) - 1)]
    cells = [[f"{cell:>{w}}" for cell, w in zip(row, widths, strict=False)] for row in rows]
    lines = ["  ".join([*start, row[-1]]) for start, row in zip(cells, rows, strict=True)]
    return [line if len(line) <= width else line[: width - 3] + "..." for line in lines]
