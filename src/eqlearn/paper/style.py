"""How the paper's pages and figures look: their colours, tables in Markdown, numbers of things."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

INK, GREY, FAINT = "#1b2733", "#8291a1", "#e3e8ee"
DATA, CHOSEN = "#2b6cb0", "#c2410c"
# Of rates and of motions: ours, another's, a simple method's, the truth.
OURS, OTHER, PLAIN, TRUE = "#2b6cb0", "#c05621", "#718096", "#1a202c"


def counted(number: int, noun: str) -> str:
    """A number of things: "1 seed", "20 seeds"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table in Markdown."""
    lines = [f"| {' | '.join(map(str, row))} |" for row in (heads, *rows)]
    return "\n".join([lines[0], "|---" * len(heads) + "|", *lines[1:]])
