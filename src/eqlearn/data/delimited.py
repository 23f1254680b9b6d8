"""Tables written as text: CSV, TSV and columns separated by semicolons or white space."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from eqlearn.data import source
from eqlearn.errors import InvalidFile

MISSING = ("", "NA", "N/A", "#N/A", "na", "n/a", "nan", "NaN", "NAN", "NULL", "null", "None", "-", "?")


@dataclass(frozen=True)
class _Layout:
    """How a text file is written: what separates fields (a space: any white space), the decimal mark."""

    separator: str
    decimal: str

    def records(self, handle: Iterable[str]) -> Any:
        """The file's records, with their line numbers, by the csv module."""
        if self.separator == " ":
            return csv.reader((" ".join(line.split()) for line in handle), delimiter=" ")
        return csv.reader(handle, delimiter=self.separator, skipinitialspace=True)

    def is_number(self, field: str) -> bool:
        field = field.strip().replace(self.decimal, ".")
        if field in MISSING:
            return True
        try:
            float(field)
        except ValueError:
            return False
        return "_" not in field


def open_text(file: Path, name: str, opener: Any) -> source.Source:
    """A text file with a line of column names; `opener` is `open` or its like for compressed files."""

    def opened() -> Any:
        return opener(file, "rt", encoding="utf-8-sig", newline="")

    with opened() as handle:
        layout = _layout(handle.readline(), handle.readline(), file.suffix)
    with opened() as handle:
        records = layout.records(handle)
        header = [" ".join(field.split()) for field in next(records, [])]
        first: list[str] = next((record for record in records if record), [])
        line = records.line_num
    if header and header[0].startswith("#"):
        # As numpy.savetxt marks the line of names; a comment has another number of fields.
        header = [header[0].lstrip("# "), *header[1:]] if header[0].strip("#") else header[1:]
        if len(header) != len(first):
            raise InvalidFile(
                f"the first line of {name} is a comment; it must name the columns, so remove it"
            )
    if not any(header):
        raise InvalidFile(f"{name} has no column names in its first line")
    if "" in header[1:]:  # a first column without a name holds row labels, as pandas and R write them
        raise InvalidFile(f"{name} has no name for column {header.index('', 1) + 1} in its first line")
    if first and all(map(layout.is_number, header)):
        raise InvalidFile(f"the first line of {name} holds numbers; it must name the columns")
    if len(first) > len(header):
        raise InvalidFile(f"line {line} of {name} has {len(first)} fields for {len(header)} column names")

    def frames(missing: Sequence[str] = tuple(MISSING), **options: Any) -> Iterator[Any]:
        import pandas as pd

        with source.in_one_sentence(name), opened() as handle:
            next(layout.records(handle))
            try:
                yield from filter(len, pd.read_csv(
                    handle, header=None, names=header, chunksize=max(1, source.CELLS // len(header)),
                    sep=r"\s+" if layout.separator == " " else layout.separator, decimal=layout.decimal,
                    keep_default_na=False, na_values=list(missing), skipinitialspace=True, low_memory=False,
                    **options,
                ))  # fmt: skip
            except (pd.errors.ParserError, csv.Error) as error:
                with opened() as again:
                    raise _irregular(again, layout, len(header), name, error) from error

    def blocks(columns: Sequence[str]) -> Iterator[np.ndarray]:
        from pandas.api.types import is_numeric_dtype

        for frame in frames():
            wrong = [c for c in columns if not is_numeric_dtype(frame[c])]
            if wrong:
                with opened() as again:
                    error = _text_found(again, layout, header, wrong, name)
                if error is not None:  # else pandas left whole numbers of many digits as they were written
                    raise error
            yield frame[list(columns)].to_numpy(dtype=np.float64)

    def labels(column: str) -> Iterator[list[str]]:
        for frame in frames(missing=(), usecols=[column], dtype=str):  # a series may well be called "NA"
            yield frame[column].fillna("").tolist()

    return source.Source(name, tuple(filter(None, header)), blocks, labels)


def _layout(header: str, row: str, suffix: str) -> _Layout:
    bare = re.sub(r'"[^"]*"', "", header)
    if suffix.lower() in (".tsv", ".tab"):
        return _Layout("\t", ".")
    separator = max(",\t;", key=bare.count)
    if bare.count(separator):
        return _Layout(separator, "," if separator == ";" and re.search(r"\d,\d", row) else ".")
    return _Layout(" " if suffix.lower() in (".txt", ".dat") else ",", ".")


def _text_found(
    handle: Iterable[str], layout: _Layout, header: Sequence[str], columns: Sequence[str], name: str
) -> InvalidFile | None:
    """The error that names the first field that is no number, its column and its line; none if all are."""
    places = [(header.index(column), column) for column in columns]
    records = layout.records(handle)
    next(records)
    for record in records:
        for place, column in places:
            if place < len(record) and not layout.is_number(record[place]):
                return InvalidFile(
                    f"line {records.line_num} of {name}: column {column!r} holds {record[place][:40]!r} "
                    "where a number is needed; mend it, or leave the column out"
                )
    return None


def _irregular(
    handle: Iterable[str], layout: _Layout, fields: int, name: str, error: Exception
) -> InvalidFile:
    """The error that names the first line with more fields than columns, or else says what pandas said."""
    records = layout.records(handle)
    with suppress(csv.Error):
        for record in records:
            if len(record) > fields:
                line = f"line {records.line_num} of {name}"
                return InvalidFile(f"{line} has {len(record)} fields for {fields} column names")
    reason = str(error).strip().splitlines()[-1]
    return InvalidFile(f"{name} is not a regular table: {reason}")
