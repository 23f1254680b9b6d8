"""A file looked at before any search: how it was read, which columns hold numbers, what would mislead."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from eqlearn.errors import InvalidArgument, InvalidFile, NotNumbers, counted
from eqlearn.io.formats import open_source
from eqlearn.io.numerals import nature
from eqlearn.io.source import Source
from eqlearn.validation.checkup import look
from eqlearn.validation.findings import Checkup, Finding

# Rows are looked at in their order, and this many numbers at most.
MOST_CELLS = 4_000_000
# More words than in this part of the rows are no sums or means.
MOST_STRAYS = 0.1
ADVICE, SERIES = "leave it out with `ignore`", ", or write the time since the first as a number"


@dataclass(frozen=True)
class FileCheckup:
    """What was seen in a file: its name in messages, how it was read, all its columns, and the findings."""

    name: str
    notes: tuple[str, ...]
    columns: tuple[str, ...]
    checkup: Checkup

    def to_json(self) -> dict[str, Any]:
        """Plain data, for programs."""
        findings = [
            {"weight": f.weight, "columns": list(f.columns), "what": f.what, "advice": f.advice}
            for f in self.checkup.findings
        ]
        return {
            "name": self.name, "rows": self.checkup.rows, "columns": list(self.columns),
            "numbers": list(self.checkup.columns), "notes": list(self.notes), "findings": findings,
        }  # fmt: skip


def examine_file(path: str | Path, targets: Sequence[str] = ()) -> FileCheckup:
    """Looks at all columns of a file that hold numbers, and says which do not."""
    with open_source(path) as source:
        source.check(targets)
        values, names, others, rows = _numbers(source)
        strays = list(_strays(source, others))
    for target in targets:
        if target in others:
            raise InvalidFile(f"the target {target!r} of {source.name} holds {others[target]}, not numbers")
    if not rows:
        raise InvalidArgument(f"{source.name} holds no rows")
    seen = look(values, names, targets)
    findings = [
        Finding(
            "warning", (column,), f"column {column!r} holds {what}", ADVICE + SERIES * (what[:5] == "dates")
        )
        for column, what in others.items()
    ]
    notes = source.notes
    findings += strays
    if rows > len(values):
        notes += (f"of {counted(rows, 'row')}, the first {len(values):,} were looked at",)
    checkup = replace(seen, rows=rows, findings=(*findings, *seen.findings))
    return FileCheckup(source.name, notes, source.columns, checkup)


def _numbers(source: Source) -> tuple[np.ndarray, list[str], dict[str, str], int]:
    """The first rows of the columns that hold numbers, their names, what the others hold, and how many rows
    there are."""
    names, others = list(source.columns), dict[str, str]()
    while names:
        most = max(1, MOST_CELLS // len(names))
        blocks, kept, rows = [], 0, 0
        try:
            for block in source.blocks(names):
                rows += len(block)
                if kept < most:
                    blocks.append(block[: most - kept])
                    kept += len(blocks[-1])
        except NotNumbers as error:
            others |= error.columns
            names = [name for name in names if name not in others]
            continue
        return np.concatenate(blocks) if blocks else np.empty((0, len(names))), names, others, rows
    raise InvalidFile(f"{source.name} holds no column of numbers")


def _strays(source: Source, others: Mapping[str, str]) -> Iterator[Finding]:
    """Words in a column of dates: sums and means below a table look like further rows."""
    for column in (column for column, what in others.items() if what.startswith("dates")):
        labels = [label.strip() for block in source.labels(column) for label in block]
        strays = [(row, label) for row, label in enumerate(labels, 1) if label and nature(label) != "dates"]
        if 0 < len(strays) <= MOST_STRAYS * len(labels):
            row, label = strays[0]
            what = f"row {row} has {label[:40]!r} among the dates of {column!r}"
            yield Finding("warning", (column,), what, "remove it, if it sums up the rows above")
