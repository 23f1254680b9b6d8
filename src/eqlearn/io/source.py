"""An open file of numbers: its columns by name, its rows in blocks."""

from __future__ import annotations

import csv
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from eqlearn.errors import InvalidFile, UnknownName
from eqlearn.validation.options import did_you_mean

# A block of rows holds about this many numbers (16 MB); files are never in memory whole.
CELLS = 2_000_000

Blocks: TypeAlias = Callable[[Sequence[str]], Iterator[np.ndarray]]
Labels: TypeAlias = Callable[[str], Iterator[list[str]]]


@dataclass(frozen=True)
class Source:
    """An open file: its name in messages and its columns.

    `blocks(columns)` reads it through, giving float64 arrays `(rows, columns)`; what is missing is NaN.
    `labels(column)` reads one column through as text, whatever it holds; what is missing is empty.
    """

    name: str
    columns: tuple[str, ...]
    blocks: Blocks
    labels: Labels

    @property
    def named_columns(self) -> str:
        """The columns for a message, the first twenty."""
        return ", ".join(map(repr, self.columns[:20])) + (", ..." if len(self.columns) > 20 else "")

    def check(self, columns: Sequence[str]) -> None:
        """Refuses a column that is not there."""
        for column in columns:
            if column not in self.columns:
                hint = did_you_mean(column, self.columns)
                raise UnknownName(f"{self.name} has no column {column!r}; {hint}")


def label(value: object) -> str:
    """A value of a binary file as a label: whole numbers without a point, nothing for what is missing."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if value is None or value != value:
        return ""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


@contextmanager
def in_one_sentence(name: str) -> Iterator[None]:
    """What the system says about a file that can't be read, as an error of ours."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise InvalidFile(
            f"{name} is not UTF-8 text (byte 0x{error.object[error.start]:02x}); save it as UTF-8, "
            "for example with `iconv -f latin1 -t utf-8`"
        ) from error
    except (OSError, EOFError, zlib.error, csv.Error) as error:
        raise InvalidFile(f"{name} can't be read: {error}") from error
