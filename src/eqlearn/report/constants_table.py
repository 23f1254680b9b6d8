"""The constants of the chosen equation as a table, each with its 95 % interval drawn."""

from __future__ import annotations

import math
from html import escape

from eqlearn.discovery.select import Constant
from eqlearn.report.mathml import name_markup
from eqlearn.report.record import RunRecord

WIDTH, HEIGHT = 130, 16


def constants_table(record: RunRecord) -> str:
    """One row for each fitted constant, in the order they are read in the formula."""
    several = len(record.targets) > 1
    rows = [
        _row(constant, output, place, record.targets[output] if several else "")
        for output, constants in enumerate(record.best.constants)
        for place, constant in enumerate(constants)
    ]
    if not rows:
        return '<p class="lead">The equation has no fitted constant: every number in it is exact.</p>'
    heads = ["value", "standard error", "95 % interval"]
    cells = "".join(f'<th scope="col" class="number">{h}</th>' for h in heads)
    first = '<th scope="col">target</th>' if several else ""
    return (
        '<div class="scroll" tabindex="0" role="region" aria-label="Constants"><table class="plain">'
        f'<thead><tr>{first}<th scope="col"></th>{cells}<th></th></tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def value_text(value: float, error: float) -> str:
    """A value with the decimals that its standard error lets mean something: to the error's second digit."""
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
    numbers = (
        [value, f"{constant.standard_error:.2g}", f"{start} … {end}"]
        if known
        else [value, "undetermined", "–"]
    )
    cells = "".join(f'<td class="number">{escape(n)}</td>' for n in numbers)
    first = f"<td><math>{name_markup(target)}</math></td>" if target else ""
    name = f"<td><math><msub><mi>c</mi><mn>{place + 1}</mn></msub></math></td>"
    drawing = _whisker(constant) if known else ""
    return f'<tr data-row="{output}-{place}">{first}{name}{cells}<td class="interval">{drawing}</td></tr>'


def _whisker(constant: Constant) -> str:
    """The interval on a scale from zero to 1.25 times the value: whether a constant may be zero is seen."""
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
