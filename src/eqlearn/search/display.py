"""What a notebook shows of a search: the chosen equation typeset, and the front as a picture and a table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from eqlearn.numerics.criteria import EXACT_ERROR
from eqlearn.search.candidate import Candidate

WIDTH, HEIGHT, EDGE = 240, 120, 14
# Longer formulas are cut in the table.
LONGEST = 160


def front_html(front: Sequence[Candidate], best: Candidate, targets: Sequence[str] = ("y",)) -> str:
    """HTML without scripts or styles from elsewhere; names of columns can't be markup."""
    heads = "".join(f"<th>{head}</th>" for head in ("", "nodes", "error", "equation"))
    rows = "".join(_row(candidate, candidate is best, targets) for candidate in front)
    chosen = "".join(
        f"<div><b>{escape(target)}</b> = {equation._repr_html_()}</div>"
        for target, equation in zip(targets, best.equations, strict=False)
    )
    return (
        f'<div class="eqlearn">{chosen}{_picture(front, best)}'
        f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _row(candidate: Candidate, chosen: bool, targets: Sequence[str]) -> str:
    named = zip(targets, candidate.equations, strict=False)
    text = "; ".join(f"{target} = {equation}" for target, equation in named)
    text = text if len(text) <= LONGEST else text[:LONGEST] + " …"
    error = "exact" if candidate.exact else f"{100 * candidate.training_error:.2g} %"
    cells = ("●" if chosen else "", str(candidate.complexity), error)
    plain = "".join(f"<td>{cell}</td>" for cell in cells)
    return f'<tr>{plain}<td style="text-align:left"><code>{escape(text)}</code></td></tr>'


def _picture(front: Sequence[Candidate], best: Candidate) -> str:
    """The error over the size, in powers of ten, as SVG."""
    shown = [c for c in front if math.isfinite(c.training_error)]
    if len(shown) < 2:
        return ""
    heights = [math.log10(max(c.training_error, EXACT_ERROR)) for c in shown]
    low, high = min(heights), max(max(heights), min(heights) + 1e-9)
    most = max(c.complexity for c in shown)

    def place(candidate: Candidate, height: float) -> tuple[float, float]:
        x = EDGE + (WIDTH - 2 * EDGE) * candidate.complexity / most
        return x, EDGE + (HEIGHT - 2 * EDGE) * (high - height) / (high - low)

    points = [place(c, h) for c, h in zip(shown, heights, strict=True)]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    dots = "".join(
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{5 if c is best else 3}" fill="currentColor"/>'
        for c, (x, y) in zip(shown, points, strict=True)
    )
    return (
        f'<svg width="{WIDTH}" height="{HEIGHT}" role="img" aria-label="error over size of the equations">'
        f'<polyline points="{line}" fill="none" stroke="currentColor" stroke-opacity="0.4"/>{dots}</svg>'
    )
