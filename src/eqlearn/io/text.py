"""Tables in text files: separators, numerals, names and units are told from their content."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from eqlearn.errors import InvalidFile, NotNumbers, counted
from eqlearn.io import source
from eqlearn.io.numerals import MISSING, Numerals, nature
from eqlearn.io.source import Source, in_one_sentence

# How many records are looked at to tell how a file is written.
LOOK = 500
# In a line of units these stand for a number without one.
_NO_UNIT = ("", "-", "--", "1")
_NAMELESS = "\0"


@dataclass(frozen=True)
class _Layout:
    """The separator of fields (a space stands for any white space) and how numbers are written."""

    separator: str
    numerals: Numerals

    def records(self, handle: Iterable[str]) -> Any:
        """The records of the file, from the csv module."""
        if self.separator == " ":
            return csv.reader((" ".join(line.split()) for line in handle), delimiter=" ")
        return csv.reader(handle, delimiter=self.separator, skipinitialspace=True)


@dataclass(frozen=True)
class _Head:
    """What stands above the numbers: `lines` to skip, then `records`, the names and perhaps units of them.

    A column without a name begins with a character that no name may hold.
    """

    lines: int
    records: int
    names: tuple[str, ...]
    units: dict[str, str]
    notes: tuple[str, ...] = ()

    def skip(self, handle: Iterator[str], layout: _Layout) -> Any:
        """The records behind the head."""
        for _ in range(self.lines):
            next(handle, None)
        records = layout.records(handle)
        for _ in range(self.records):
            while next(records, None) == []:
                pass
        return records


def open_text(file: Path, name: str, opener: Any) -> Source:
    """A text file with a line of column names; `opener` is `open`, or `gzip.open` for compressed files."""

    def opened() -> Any:
        return opener(file, "rt", encoding="utf-8-sig", newline="")

    layout, head = _look(opened, name, file.suffix)
    numerals, header = layout.numerals, list(head.names)

    def frames(missing: Sequence[str] = MISSING, **options: Any) -> Iterator[Any]:
        import pandas as pd

        options |= {"sep": layout.separator.replace(" ", r"\s+"), "decimal": numerals.decimal}
        options |= {"header": None, "names": header, "keep_default_na": False, "na_values": list(missing)}
        rows = source.CELLS // len(header) or 1
        options |= {"skipinitialspace": True, "low_memory": False, "chunksize": rows}
        with in_one_sentence(name), opened() as handle:
            head.skip(handle, layout)
            try:
                yield from filter(len, pd.read_csv(handle, **options))
            except (pd.errors.ParserError, csv.Error) as error:
                with opened() as again:
                    raise _irregular(head.skip(again, layout), head, name, error) from error

    def blocks(columns: Sequence[str]) -> Iterator[np.ndarray]:
        from pandas.api.types import is_numeric_dtype

        for frame in frames():
            odd = {c: _converted(frame[c], numerals) for c in columns if not is_numeric_dtype(frame[c])}
            if wrong := [column for column, values in odd.items() if values is None]:
                with opened() as again:
                    raise _no_numbers(head.skip(again, layout), head, layout, wrong, name)
            numbers = {column: odd.get(column, frame[column]) for column in columns}
            yield np.column_stack([np.asarray(values, dtype=np.float64) for values in numbers.values()])

    def labels(column: str) -> Iterator[list[str]]:
        for frame in frames(missing=(), usecols=[column], dtype=str):  # a series may well be called "NA"
            yield frame[column].fillna("").tolist()

    columns = tuple(column for column in header if not column.startswith(_NAMELESS))
    return Source(name, columns, blocks, labels, head.units, head.notes)


def _look(opened: Any, name: str, suffix: str) -> tuple[_Layout, _Head]:
    """How a file is written, and its head."""
    with opened() as handle:
        start, given, comments = handle.readline(), "", []
        if told := re.fullmatch(r"sep=(.)\s*", start):  # a spreadsheet's own line
            given, start = told[1], handle.readline()
        while start.startswith("#"):
            comments.append(start)
            start = handle.readline()
    lines = bool(given) + len(comments)
    separator = given or _separator(start if start.strip() else "".join(comments[-1:]), suffix)
    with opened() as handle:
        records = _Head(lines, 0, (), {}).skip(handle, _Layout(separator, Numerals()))
        looked = [(record, lines + records.line_num) for record in islice(records, LOOK) if record]
    fields = (field for record, _ in looked[1:] for field in record)
    layout = _Layout(separator, Numerals.of(fields, comma=separator == ";"))
    first = looked[0][0] if looked else []
    if comments:
        # numpy.savetxt marks the line of names with a hash; a comment has another number of fields.
        numbers = [layout.numerals.is_number(field) for field in first]
        names = next((n for n in _behind_the_hash(comments[-1], layout) if len(n) == len(first)), None)
        if names is not None and any(numbers):
            return layout, _head(lines - 1, names, looked, layout, name)
        if all(numbers):
            raise InvalidFile(
                f"the first line of {name} is a comment; it must name the columns, so remove it"
            )
    return layout, _head(lines, first, looked[1:], layout, name)


def _behind_the_hash(line: str, layout: _Layout) -> Iterator[list[str]]:
    """What a line that begins with a hash may name: with a column called #, or without."""
    header = next(layout.records([line]))
    bare = header[0].lstrip("# ")
    yield [bare, *header[1:]] if bare else header
    yield header[1:]


def _separator(header: str, suffix: str) -> str:
    bare = re.sub(r'"[^"]*"', "", header)
    if suffix.lower() in (".tsv", ".tab"):
        return "\t"
    separator = max(",\t;", key=bare.count)
    if bare.count(separator):
        return separator
    return " " if suffix.lower() in (".txt", ".dat") else ","


def _head(
    lines: int, header: Sequence[str], behind: Sequence[tuple[list[str], int]], layout: _Layout, name: str
) -> _Head:
    """The head of a file whose names are known, with the records that follow them and their lines."""
    rows = [record for record, _ in behind]
    names = [" ".join(field.split()) for field in header]
    numerals = layout.numerals
    if not any(names):
        raise InvalidFile(f"{name} has no column names in its first line")
    if rows and all(map(numerals.is_number, names)):
        raise InvalidFile(f"the first line of {name} holds numbers; it must name the columns")
    width = max(map(len, rows), default=0)
    names += [""] * (_blank_to(rows, width, len(names)) - len(names))
    if rows and len(rows[0]) > len(names):
        raise InvalidFile(
            f"line {behind[0][1]} of {name} has {len(rows[0])} fields for {len(names)} column names; "
            "the first line must name the columns"
        )
    empty = [k for k, column in enumerate(names) if not column and _blank(rows, k)]
    for k, column in enumerate(names):
        if not column and k and k not in empty:  # the first may hold row labels, as pandas and R write them
            raise InvalidFile(f"{name} has no name for column {k + 1} in its first line")
    names = [column or f"{_NAMELESS}{k}" for k, column in enumerate(names)]
    units = _units(names, rows, numerals)
    notes = []
    between = {";": "semicolons", "\t": "tabs", " ": "spaces", ",": "commas"}.get(layout.separator, "others")
    if numerals.words:
        notes.append(f"fields are separated by {between}, numbers are written with {numerals.words}")
    if units:
        told = ", ".join(f"{column} in {unit}" for column, unit in list(units.items())[:8])
        notes.append(f"the line below the names holds units: {told}{', ...' if len(units) > 8 else ''}")
    if empty:
        notes.append(f"{counted(len(empty), 'empty column')} without a name left out")
    return _Head(lines, 2 if units else 1, tuple(names), units, tuple(notes))


def _blank_to(rows: Sequence[Sequence[str]], width: int, least: int) -> int:
    """How many fields a record may have: those behind the last name are blank, as a last separator is."""
    blank = least
    while blank < width and _blank(rows, blank):
        blank += 1
    return blank


def _blank(rows: Sequence[Sequence[str]], place: int) -> bool:
    return all(place >= len(row) or not row[place].strip() for row in rows)


def _units(names: Sequence[str], rows: Sequence[Sequence[str]], numerals: Numerals) -> dict[str, str]:
    """The units by column, if the first record holds them: no number where all others hold numbers."""
    if len(rows) < 3:
        return {}
    first, *others = rows
    below = [
        k for k in range(min(map(len, rows))) if all(numerals.is_number(row[k]) for row in others)
        and any(row[k].strip() for row in others)
    ]  # fmt: skip
    told = {names[k]: first[k].strip().strip("[]()") for k in below if first[k].strip() not in _NO_UNIT}
    ones = sum(first[k].strip() == "1" for k in below)
    # A word among numbers is a mistake, not a line of units.
    if len(told) <= ones or any(numerals.is_number(unit) for unit in told.values()):
        return {}
    return {column: unit for column, unit in told.items() if not column.startswith(_NAMELESS)}


def _converted(column: Any, numerals: Numerals) -> np.ndarray | None:
    """The column's numbers, from text; None if one of its fields holds no number."""
    values = [numerals.value(v) if isinstance(v, str) else float(v) for v in column.tolist()]
    return None if None in values else np.array(values, dtype=np.float64)


def _no_numbers(records: Any, head: _Head, layout: _Layout, columns: Sequence[str], name: str) -> NotNumbers:
    """The error that names each column's first field that is not a number, with its line."""
    numerals, above = layout.numerals, head.lines
    found: dict[str, tuple[str, int]] = {}
    for record in records:
        for column in columns:
            place = head.names.index(column)
            if column not in found and place < len(record) and not numerals.is_number(record[place]):
                found[column] = (record[place][:40], above + records.line_num)
        if len(found) == len(columns):
            break
    kinds = {column: nature(field) for column, (field, _) in found.items()}
    column, (field, line) = next(iter(found.items()))
    where = f"line {line} of {name}: column {column!r} holds {field!r}"
    if len(found) > 1:
        some = ", ".join(f"{c!r} {kinds[c]} ({found[c][0]!r} in line {found[c][1]})" for c in list(found)[:5])
        more = f" and {len(found) - 5} more" if len(found) > 5 else ""
        text = f"columns of {name} hold no numbers: {some}{more}; mend them, or leave them out with `ignore`"
    elif numerals.doubtful and Numerals(".", ",").is_number(field):
        plain = field.strip().replace(",", "")
        text = f"{where}, which may be {plain} or {field.strip().replace(',', '.')}; write it without a comma"
    elif kinds[column] == "dates":
        text = f"{where}, a date; leave the column out, or give numbers, such as days since the first"
    elif kinds[column] == "numbers with a unit":
        text = f"{where} where a number is needed; write the unit into the column's name"
    else:
        text = f"{where} where a number is needed; mend it, or leave the column out"
    return NotNumbers(
        text, {c: f"{kinds[c]} ({field!r} in line {line})" for c, (field, line) in found.items()}
    )


def _irregular(records: Any, head: _Head, name: str, error: Exception) -> InvalidFile:
    """The error that names the first line with more fields than columns, or else quotes pandas."""
    fields = len(head.names)
    with suppress(csv.Error):
        for record in records:
            if len(record) > fields:
                line = f"line {head.lines + records.line_num} of {name}"
                return InvalidFile(f"{line} has {len(record)} fields for {fields} column names")
    return InvalidFile(f"{name} is not a regular table: {str(error).strip().splitlines()[-1]}")
