"""Opening files of numbers: text, Parquet and NumPy, recognised by their content."""

from __future__ import annotations

import csv
import difflib
import gzip
import re
import shutil
import sys
import tempfile
import unicodedata
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

import numpy as np

from eqlearn.errors import InvalidArgument, InvalidFile, MissingExtra
from eqlearn.io import source
from eqlearn.io.source import Source, in_one_sentence, label

MISSING = ("", "NA", "N/A", "#N/A", "na", "n/a", "nan", "NaN", "NAN", "NULL", "null", "None", "-", "?")


@dataclass(frozen=True)
class _Layout:
    """The separator of fields (a space stands for any white space) and the decimal mark of a text file."""

    separator: str
    decimal: str

    def records(self, handle: Iterable[str]) -> Any:
        """The records of the file, from the csv module."""
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


def open_text(file: Path, name: str, opener: Any) -> Source:
    """A text file with a line of column names; `opener` is `open`, or `gzip.open` for compressed files."""

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
        # numpy.savetxt marks the line of names like this; a comment has another number of fields.
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

    def frames(missing: Sequence[str] = MISSING, **options: Any) -> Iterator[Any]:
        import pandas as pd

        options |= {"sep": layout.separator.replace(" ", r"\s+"), "decimal": layout.decimal}
        options |= {"header": None, "names": header, "keep_default_na": False, "na_values": list(missing)}
        rows = source.CELLS // len(header) or 1
        options |= {"skipinitialspace": True, "low_memory": False, "chunksize": rows}
        with in_one_sentence(name), opened() as handle:
            next(layout.records(handle))
            try:
                yield from filter(len, pd.read_csv(handle, **options))
            except (pd.errors.ParserError, csv.Error) as error:
                with opened() as again:
                    raise _irregular(again, layout, len(header), name, error) from error

    def blocks(columns: Sequence[str]) -> Iterator[np.ndarray]:
        from pandas.api.types import is_numeric_dtype

        for frame in frames():
            if wrong := [c for c in columns if not is_numeric_dtype(frame[c])]:
                with opened() as again:
                    error = _text_found(again, layout, header, wrong, name)
                if error is not None:  # else pandas left whole numbers of many digits as they were written
                    raise error
            yield frame[list(columns)].to_numpy(dtype=np.float64)

    def labels(column: str) -> Iterator[list[str]]:
        for frame in frames(missing=(), usecols=[column], dtype=str):  # a series may well be called "NA"
            yield frame[column].fillna("").tolist()

    return Source(name, tuple(filter(None, header)), blocks, labels)


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
    """The error that names the first field that is not a number, if any, with its column and line."""
    records = layout.records(handle)
    next(records)
    for record in records:
        for place, column in ((header.index(column), column) for column in columns):
            if place < len(record) and not layout.is_number(record[place]):
                return InvalidFile(
                    f"line {records.line_num} of {name}: column {column!r} holds {record[place][:40]!r} "
                    "where a number is needed; mend it, or leave the column out"
                )
    return None


def _irregular(
    handle: Iterable[str], layout: _Layout, fields: int, name: str, error: Exception
) -> InvalidFile:
    """The error that names the first line with more fields than columns, or else quotes pandas."""
    records = layout.records(handle)
    with suppress(csv.Error):
        for record in records:
            if len(record) > fields:
                line = f"line {records.line_num} of {name}"
                return InvalidFile(f"{line} has {len(record)} fields for {fields} column names")
    return InvalidFile(f"{name} is not a regular table: {str(error).strip().splitlines()[-1]}")


def open_parquet(file: Path, name: str) -> Source:
    """A Parquet file, read in batches."""
    try:
        import pyarrow as pa  # type: ignore[import-untyped]
        import pyarrow.parquet as pq  # type: ignore[import-untyped]
    except ImportError as error:
        raise MissingExtra("reading Parquet needs pyarrow; run `pip install 'eqlearn[parquet]'`") from error

    try:
        header = pq.ParquetFile(file).schema_arrow.names
    except pa.ArrowInvalid as error:
        raise InvalidFile(f"{name} is not a whole Parquet file: {error}") from error

    def blocks(columns: Sequence[str]) -> Iterator[np.ndarray]:
        rows = max(1, source.CELLS // max(1, len(columns)))
        with in_one_sentence(name), pq.ParquetFile(file) as table:
            for batch in table.iter_batches(rows, columns=list(columns)):
                arrays = [batch.column(c).to_numpy(zero_copy_only=False) for c in columns]
                yield np.stack([_floats(a, c, name) for a, c in zip(arrays, columns, strict=True)], axis=1)

    def labels(column: str) -> Iterator[list[str]]:
        with in_one_sentence(name), pq.ParquetFile(file) as table:
            for batch in table.iter_batches(source.CELLS, columns=[column]):
                yield list(map(label, batch.column(column).to_pylist()))

    return Source(name, tuple(header), blocks, labels)


def unpack(file: Path, name: str, folder: Path) -> dict[str, Path]:
    """The arrays of an .npz file, unpacked to disk, where they can be read in parts."""
    try:
        with zipfile.ZipFile(file) as archive:
            members = archive.namelist()
            if "[Content_Types].xml" in members:
                raise InvalidFile(f"{name} is a spreadsheet; save the sheet as CSV first")
            if not members or not all(m.endswith(".npy") for m in members):
                raise InvalidFile(f"{name} is a zip file, but not of numpy arrays (.npz)")
            unpacked = {}
            for i, member in enumerate(members):
                unpacked[member.removesuffix(".npy")] = target = folder / f"{i}.npy"
                with archive.open(member) as packed, target.open("wb") as plain:
                    shutil.copyfileobj(packed, plain)
    except zipfile.BadZipFile as error:
        raise InvalidFile(f"{name} is not a whole .npz file: {error}") from error
    return unpacked


def open_arrays(files: dict[str, Path], name: str) -> Source:
    """Arrays as columns: `X` of three columns gives X1, X2, X3; a nameless one x1, x2, ..."""
    columns: list[tuple[str, np.ndarray]] = []
    for key, file in files.items():
        try:
            array = np.load(file, mmap_mode="r", allow_pickle=False)
        except ValueError as error:
            raise InvalidFile(f"{name} is not a whole file of plain numbers: {error}") from error
        if array.dtype.names:
            columns += [(field, array[field]) for field in array.dtype.names]
        elif array.ndim == 1:
            columns.append((key or "x", array))
        elif array.ndim == 2:
            columns += [(f"{key or 'x'}{i + 1}", array[:, i]) for i in range(array.shape[1])]
        else:
            raise InvalidFile(f"{name} holds an array of shape {array.shape}; it must have one or two axes")
    lengths = {len(values) for _, values in columns}
    if len(lengths) != 1:
        raise InvalidFile(f"the arrays of {name} have different numbers of rows: {sorted(lengths)}")
    rows, by_name = lengths.pop(), dict(columns)

    def blocks(chosen: Sequence[str]) -> Iterator[np.ndarray]:
        step = max(1, source.CELLS // max(1, len(chosen)))
        for start in range(0, rows, step):
            yield np.stack([_floats(by_name[c][start : start + step], c, name) for c in chosen], axis=1)

    def labels(column: str) -> Iterator[list[str]]:
        yield list(map(label, by_name[column].tolist()))

    return Source(name, tuple(column for column, _ in columns), blocks, labels)


def _floats(values: np.ndarray, column: str, name: str) -> np.ndarray:
    if values.dtype.kind == "O" and all(v is None or isinstance(v, bool | int | float) for v in values):
        values = np.array([np.nan if v is None else v for v in values], dtype=np.float64)
    if values.dtype.kind not in "buif" or values.ndim != 1:
        raise InvalidFile(
            f"column {column!r} of {name} holds {values.dtype} where numbers are needed; leave it out"
        )
    return values.astype(np.float64)


STANDARD_INPUT = "the standard input"
# Characters that change the direction in which text is displayed.
_BACKWARDS = "\u202a\u202b\u202d\u202e\u2066\u2067\u2068"


@contextmanager
def open_source(path: str | Path) -> Iterator[Source]:
    """Opens a file in any of the formats; "-" is standard input.

    **Raises:** an error of one sentence for a file that is missing, empty, binary, in another encoding, or
    without a proper line of column names. Text in place of a number is found while reading.
    """
    with tempfile.TemporaryDirectory(prefix="eqlearn-") as folder:
        if str(path) == "-":
            file, name = Path(folder) / "input", STANDARD_INPUT
            with file.open("wb") as spool:
                shutil.copyfileobj(sys.stdin.buffer, spool)
        else:
            file, name = Path(path), repr(str(path))
            _check_file(file, name)
        with in_one_sentence(name):
            opened = _recognise(file, name, Path(folder))
        _check_names(opened)
        yield opened


def stem_of(name: str) -> str:
    """The name of a `Source` without folder and ending."""
    stem = PurePath(name.strip("'\"")).name.partition(".")[0]
    return "input" if name == STANDARD_INPUT else stem or "data"


def _check_names(source: Source) -> None:
    """Refuses duplicate names, and characters that a terminal would obey or a reader not see."""
    for column in source.columns:
        if source.columns.count(column) > 1:
            raise InvalidFile(f"{source.name} has several columns named {column!r}; rename them")
        if any(unicodedata.category(c) == "Cc" or c in _BACKWARDS for c in column):
            raise InvalidFile(
                f"{source.name} has a control character in the column name {column!r}; rename it"
            )


def _check_file(file: Path, name: str) -> None:
    if file.is_dir():
        raise InvalidArgument(f"{name} is a folder; name a file in it")
    if not file.exists():
        beside = [p for p in file.parent.iterdir() if p.is_file()] if file.parent.is_dir() else []
        # Without the ending, which all tables share.
        near = difflib.get_close_matches(file.stem.casefold(), [p.stem.casefold() for p in beside], n=1)
        hint = next((f"; did you mean {p.name!r}?" for p in beside if [p.stem.casefold()] == near), "")
        raise InvalidArgument(f"there is no file {name}{hint}")


def _recognise(file: Path, name: str, folder: Path) -> Source:
    with file.open("rb") as stream:
        start = stream.read(4096)
    if not start:
        raise InvalidFile(f"{name} is empty")
    if start.startswith(b"PAR1"):
        return open_parquet(file, name)
    if start.startswith(b"\x93NUMPY"):
        return open_arrays({"": file}, name)
    if start.startswith(b"PK"):
        return open_arrays(unpack(file, name, folder), name)
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InvalidFile(
            f"{name} is UTF-16 text; save it as UTF-8, for example with `iconv -f utf-16 -t utf-8`"
        )
    if b"\0" in start and not start.startswith(b"\x1f\x8b"):
        raise InvalidFile(f"{name} is not a table this library reads (CSV, TSV, Parquet, .npy, .npz)")
    return open_text(file, name, gzip.open if start.startswith(b"\x1f\x8b") else open)
