"""Names as users give them: checked, and guessed at where one is not known."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from enum import StrEnum

from eqlearn.errors import InvalidArgument, WrongType

# A message lists at most this number of known names: all primitives, but not all columns.
MOST = 40


class SearchPenalty(StrEnum):
    """How a search makes networks sparse: by L0.5, or by L0."""

    half = "half"
    l0 = "l0"


def checked_names(names: Sequence[str], argument: str = "variables") -> tuple[str, ...]:
    """The names that were given as that argument, as a tuple: distinct, and none of them empty."""
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise WrongType(f"`{argument}` must be a sequence of names such as ['x', 'y'], got {names!r}")
    if len(set(names)) < len(names) or "" in names:
        raise InvalidArgument(f"`{argument}` must be distinct and not empty, got {list(names)!r}")
    return tuple(names)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A hint for a name that was not found."""
    known = list(dict.fromkeys(known))
    folded = {k.casefold(): k for k in reversed(known)}
    nearest = difflib.get_close_matches(name.casefold(), folded, n=1, cutoff=0.5)
    if nearest:
        return f"did you mean {folded[nearest[0]]!r}?"
    return f"the known ones are {', '.join(known[:MOST])}{', ...' if len(known) > MOST else ''}"
