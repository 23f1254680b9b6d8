"""Names as users give them: checked, and guessed at where one is not known."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from enum import StrEnum
from numbers import Integral
from typing import Any

from eqlearn.errors import InvalidArgument, WrongType

# Of the names that would have been known, a message lists so many: all primitives, but not all columns.
MOST = 40


class SearchPenalty(StrEnum):
    """How a search makes networks sparse: by L0.5, or by L0."""

    half = "half"
    l0 = "l0"


def is_whole(value: Any) -> bool:
    """Whether a value is a whole number, of Python or NumPy."""
    return isinstance(value, Integral)


def checked_names(variables: Sequence[str]) -> tuple[str, ...]:
    """The variables as a tuple of distinct, non-empty names."""
    if isinstance(variables, str) or not all(isinstance(v, str) for v in variables):
        raise WrongType(f"`variables` must be a sequence of names such as ['x', 'y'], got {variables!r}")
    if len(set(variables)) < len(variables) or "" in variables:
        raise InvalidArgument(f"`variables` must be distinct and not empty, got {list(variables)!r}")
    return tuple(variables)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A hint for a name that was not found."""
    known = list(dict.fromkeys(known))
    folded = {k.casefold(): k for k in reversed(known)}
    nearest = difflib.get_close_matches(name.casefold(), folded, n=1, cutoff=0.5)
    if nearest:
        return f"did you mean {folded[nearest[0]]!r}?"
    return f"the known ones are {', '.join(known[:MOST])}{', ...' if len(known) > MOST else ''}"
