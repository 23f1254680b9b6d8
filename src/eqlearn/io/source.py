"""An open file of numbers: its columns by name, its rows in blocks."""

from __future__ import annotations

import csv
import hashlib
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

from eqlearn.errors import InvalidFile, UnknownName
from eqlearn.validation.options import did_you_mean

# A block of rows holds about this many numbers (16 MB); no file is ever in memory as a whole.
CELLS = 2_000_000


@dataclass(frozen=True)
class Source:
    """An open file: its name in messages and its columns.

    `blocks(columns)` reads float64 arrays `(rows, columns)`, missing values as NaN; `labels(column)` reads
    one column as text, missing values as "". `units` are those that the file tells, by column; `notes` say
    what was understood or left out while opening it.
    """

    name: str
    columns: tuple[str, ...]
    blocks: Callable[[Sequence[str]], Iterator[np.ndarray]]
    labels: Callable[[str], Iterator[list[str]]]
    units: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def named_columns(self) -> str:
        """The first twenty columns, for a message."""
        return ", ".join(map(repr, self.columns[:20])) + (", ..." if len(self.columns) > 20 else "")

    def check(self, columns: Sequence[str]) -> None:
        """Refuses a column that is not there."""
        for column in columns:
            if column not in self.columns:
                hint = did_you_mean(column, self.columns)
                raise UnknownName(f"{self.name} has no column {column!r}; {hint}")


def fingerprint(header: object, arrays: Iterable[np.ndarray]) -> str:
    """A hash that is the same for the same header and values, whatever the format of the file."""
    digest = hashlib.sha256(repr(header).encode())
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def label(value: object) -> str:
    """A value of a binary file as a label: whole numbers without a point, "" for a missing value."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if value is None or value != value:
        return ""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


@contextmanager
def in_one_sentence(name: str) -> Iterator[None]:
    """Turns the errors of reading a file into one of ours."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise InvalidFile(
            f"{name} is not UTF-8 text (byte 0x{error.object[error.start]:02x}); save it as UTF-8, "
            'which spreadsheets offer as "CSV UTF-8", or with `iconv -f latin1 -t utf-8`'
        ) from error
    except (OSError, EOFError, zlib.error, csv.Error) as error:
        raise InvalidFile(f"{name} can't be read: {error}") from error
