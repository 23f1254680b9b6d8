"""Predictions for new data, block by block, as CSV."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import TextIO

import numpy as np

from eqlearn.errors import InvalidArgument
from eqlearn.io.checksummed import atomic_file
from eqlearn.io.tables import read_blocks
from eqlearn.report.record import RunRecord


def write_predictions(
    record: RunRecord, data: str | Path, out: Path | None = None, *, index: int | None = None
) -> tuple[int, int]:
    """Writes a column for each target to `out`, or to standard output; gives how many rows there were, and
    in how many of them the equation is not defined. The file is there whole or not at all."""
    equations = record.candidate(index).equations
    rows = undefined = 0
    with _opened(out) as file:
        writer = csv.writer(file, lineterminator="\n")
        started = False
        for block in read_blocks(data, record.inputs):
            if not started:
                writer.writerow(record.targets)
                started = True
            values = np.stack([equation(block) for equation in equations], axis=1)
            writer.writerows(values.tolist())
            rows, undefined = rows + len(values), undefined + int((~np.isfinite(values)).any(axis=1).sum())
        if not started:
            raise InvalidArgument(f"{str(data)!r} holds no rows to predict for")
    return rows, undefined


@contextmanager
def _opened(out: Path | None) -> Iterator[TextIO]:
    if out is None:
        yield sys.stdout
        return
    if not out.parent.is_dir():
        raise InvalidArgument(f"there is no folder {str(out.parent)!r} to write {out.name!r} into")
    with atomic_file(out) as file:
        text = TextIOWrapper(file, encoding="utf-8", newline="")
        yield text
        text.detach()  # writes what is left, and leaves the file open
