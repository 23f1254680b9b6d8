"""Every exception of the library, each also the builtin that users expect; and words for messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


class EqlearnError(Exception):
    """The base of all errors that eqlearn raises itself."""


class InvalidArgument(EqlearnError, ValueError):
    """An argument has the wrong value, shape or combination; the message names it and says what to do."""


class WrongType(EqlearnError, TypeError):
    """An argument has a type that can't be used here."""


class UnknownName(EqlearnError, LookupError, ValueError):
    """A name that is not in a registry; the message suggests the nearest one, or lists those there are."""


class NotFinite(EqlearnError, ValueError):
    """NaN or infinity where a number is needed."""


class InvalidExpression(EqlearnError, ValueError):
    """A text that is not a formula in numbers, variables and known functions."""


class InvalidFile(EqlearnError, ValueError):
    """A file that is truncated, altered or not ours; nothing of it was run."""


class NotNumbers(InvalidFile):
    """Columns of a file hold something else than numbers; `columns` says what, by name."""

    def __init__(self, message: str, columns: Mapping[str, str]) -> None:
        super().__init__(message)
        self.columns = dict(columns)

    def __reduce__(self) -> tuple[type, tuple[str, dict[str, str]]]:
        return type(self), (str(self), self.columns)


class MissingExtra(EqlearnError, ImportError):
    """An optional dependency is not installed; the message names the extra."""


class Diverged(EqlearnError, RuntimeError):
    """The loss of every member stopped being finite, in this `phase` at this `step`."""

    def __init__(self, phase: str, step: int) -> None:
        super().__init__(
            f"the loss became non-finite for every member in phase {phase!r} at step {step}; "
            "lower `lr` for that phase, or train more members"
        )
        self.phase = phase
        self.step = step

    def __reduce__(self) -> tuple[type, tuple[str, int]]:
        return type(self), (self.phase, self.step)


def counted(number: int, noun: str) -> str:
    """A number with its noun: "1 node", "2 nodes", "12,000 rows"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def listed(words: Sequence[str]) -> str:
    """A list in words: "a", "a and b", "a, b and c"."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
