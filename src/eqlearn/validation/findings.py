"""What is seen in a table, and the columns as checks look at them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from eqlearn.errors import counted, listed


@dataclass(frozen=True)
class Limits:
    """From where on something is worth a word."""

    rows: int = 5  # with fewer, every formula with as many constants is an exact law
    rows_per_column: int = 10
    columns: int = 36  # as many inputs as a search sees at once
    narrow: float = 1.2  # the largest over the smallest: up to here a power is a straight line within 1 %
    wide: float = 1e4  # of a target: errors of its smallest values vanish beside those of its largest
    together: float = 0.999  # a correlation, also of ranks
    equal: float = 1e-9  # relative to a column's spread
    far: float = 10.0  # from the quartiles, in distances between them
    few: float = 0.02  # outliers are at most this share of the rows
    classes: int = 10  # so few different whole numbers are names, perhaps
    series: int = 20  # rows
    smooth: float = 0.9  # the correlation of a row with the next


@dataclass(frozen=True)
class Finding:
    """Something that was seen: its weight ("stop", "warning" or "note"), in which columns, and what to do."""

    weight: str
    columns: tuple[str, ...]
    what: str
    advice: str = ""

    def __str__(self) -> str:
        return f"{self.what}; {self.advice}" if self.advice else self.what


@dataclass(frozen=True)
class Checkup:
    """What was seen in a table, the weightiest first."""

    rows: int
    columns: tuple[str, ...]
    findings: tuple[Finding, ...] = field(default=())

    @property
    def healthy(self) -> bool:
        """Whether a search can begin as things are."""
        return not any(finding.weight == "stop" for finding in self.findings)

    @property
    def useless(self) -> tuple[str, ...]:
        """The columns that a search had better be given without."""
        named = (c for f in self.findings if f.advice.startswith("leave it out") for c in f.columns)
        return tuple(dict.fromkeys(named))

    def __str__(self) -> str:
        marks = {"stop": "✗", "warning": "!", "note": "·"}
        head = f"{counted(self.rows, 'row')}, {counted(len(self.columns), 'column')}"
        lines = [f"{marks[f.weight]} {f}" for f in self.findings]
        return "\n".join([head, *(lines or ["nothing that would mislead a search"])])


@dataclass(frozen=True)
class Seen:
    """The columns in the order of the file, NaN where a value is missing, and which are targets."""

    values: np.ndarray
    names: tuple[str, ...]
    targets: tuple[str, ...]
    limits: Limits

    def column(self, name: str) -> np.ndarray:
        """The values that are there."""
        column = self.values[:, self.names.index(name)]
        finite: np.ndarray = column[np.isfinite(column)]
        return finite

    def varies(self, name: str) -> bool:
        column = self.column(name)
        return len(column) > 1 and bool(np.ptp(column) > 1e-14 * np.abs(column).max())

    @property
    def inputs(self) -> tuple[str, ...]:
        return tuple(name for name in self.names if name not in self.targets)

    @property
    def moving(self) -> list[str]:
        """The inputs that vary."""
        return [name for name in self.inputs if self.varies(name)]

    def whole(self, names: Sequence[str]) -> np.ndarray:
        """The rows in which none of these columns is missing."""
        chosen = self.values[:, [self.names.index(name) for name in names]]
        finite: np.ndarray = chosen[np.isfinite(chosen).all(axis=1)]
        return finite


def named(names: Sequence[str]) -> str:
    """Names in a list of at most five."""
    shown = [repr(name) for name in names[:5]]
    return listed(shown) if len(names) <= 5 else f"{', '.join(shown)} and {len(names) - 5} more"
