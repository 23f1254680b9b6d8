"""Files of numbers as named columns and blocks of rows: CSV, TSV, Parquet, .npy, .npz, standard input."""

from __future__ import annotations

import csv
import gzip
import re
import shutil
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from eqlearn.core.expressions import did_you_mean
from eqlearn.errors import InvalidArgument, InvalidFile, MissingExtra, UnknownName

# A block of rows holds about so many numbers (16 MB); files are never in memory whole.
CELLS = 2_000_000
MISSING = ("", "NA", "N/A", "#N/A", "na", "n/a", "nan", "NaN", "NAN", "NULL", "null", "None", "-", "?")

Blocks = Callable[[Sequence[str]], Iterator[np.ndarray]]


@dataclass(frozen=True)
class Source:
    """An open file: its name in messages, its columns, and `blocks(columns)`, which reads it through, giving
    float64 arrays `(rows, columns)`; what is missing is NaN."""

    name: str
    columns: tuple[str, ...]
    blocks: Blocks

    def check(self, columns: Sequence[str]) -> None:
        """Refuses a column that is not there."""
        for column in columns:
            if column not in self.columns:
                hint = did_you_mean(column, self.columns)
                raise UnknownName(f"{self.name} has no column {column!r}; {hint}")


@contextmanager
def open_source(path: str | Path) -> Iterator[Source]:
    """Opens a file of any of the formats, told by its content; "-" is standard input.

    **Raises:** an error of one sentence for a file that is missing, empty, binary, in another encoding, or
    has no proper line of column names. Text where a number should be is found while reading.
    """
    with tempfile.TemporaryDirectory(prefix="eqlearn-") as folder:
        if str(path) == "-":
            file, name = Path(folder) / "input", "the standard input"
            with file.open("wb") as spool:
                shutil.copyfileobj(sys.stdin.buffer, spool)
        else:
            file, name = Path(path), repr(str(path))
            _check_file(file, name)
        with _in_one_sentence(name):
            source = _recognise(file, name, Path(folder))
        twice = sorted({c for c in source.columns if source.columns.count(c) > 1})
        if twice:
            raise InvalidFile(f"{name} has several columns named {twice[0]!r}; rename them")
        yield source


@contextmanager
def _in_one_sentence(name: str) -> Iterator[None]:
    """What the system says about a file that can't be read, as an error of ours."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise InvalidFile(
            f"{name} is not UTF-8 text (byte 0x{error.object[error.start]:02x}); save it as UTF-8, "
            "for example with `iconv -f latin1 -t utf-8`"
        ) from error
    except (OSError, EOFError, zlib.error) as error:
        raise InvalidFile(f"{name} can't be read: {error}") from error


def _check_file(file: Path, name: str) -> None:
    if file.is_dir():
        raise InvalidArgument(f"{name} is a folder; name a file in it")
    if not file.exists():
        beside = [p.name for p in file.parent.iterdir() if p.is_file()] if file.parent.is_dir() else []
        hint = did_you_mean(file.name, beside)
        raise InvalidArgument(f"there is no file {name}" + (f"; {hint}" if hint.startswith("did") else ""))


def _recognise(file: Path, name: str, folder: Path) -> Source:
    with file.open("rb") as stream:
        start = stream.read(4096)
    if not start:
        raise InvalidFile(f"{name} is empty")
    if start.startswith(b"PAR1"):
        return _parquet(file, name)
    if start.startswith(b"\x93NUMPY"):
        return _arrays({"": file}, name)
    if start.startswith(b"PK"):
        return _arrays(_unpack(file, name, folder), name)
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InvalidFile(f"{name} is UTF-16 text; save it as UTF-8, for example with `iconv -f utf-16 -t utf-8`")
    if b"\0" in start and not start.startswith(b"\x1f\x8b"):
        raise InvalidFile(f"{name} is not a table this library reads (CSV, TSV, Parquet, .npy, .npz)")
    return _text(file, name, gzip.open if start.startswith(b"\x1f\x8b") else open)


# --- text ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Layout:
    """How a text file is written: what separates fields (a space: any white space), the decimal mark."""

    separator: str
    decimal: str

    def records(self, handle: TextIO) -> Any:
        """The file's records, with their line numbers, by the csv module."""
        if self.separator == " ":
            return csv.reader((" ".join(line.split()) for line in handle), delimiter=" ")
        return csv.reader(handle, delimiter=self.separator, skipinitialspace=True)

    def is_number(self, field: str) -> bool:
        field = field.strip().replace(self.decimal, ".")
        if field in MISSING or field in ("True", "False"):
            return True
        try:
            float(field)
        except ValueError:
            return False
        return "_" not in field


def _text(file: Path, name: str, opener: Any) -> Source:
    def opened() -> Any:
        return opener(file, "rt", encoding="utf-8-sig", newline="")

    with opened() as handle:
        layout = _layout(handle.readline(), handle.readline(), file.suffix)
    with opened() as handle:
        records = layout.records(handle)
        header = [field.strip() for field in next(records, [])]
        first = next((record for record in records if record), [])
        line = records.line_num
    if not any(header):
        raise InvalidFile(f"{name} has no column names in its first line")
    if "" in header:
        raise InvalidFile(f"{name} has no name for column {header.index('') + 1} in its first line")
    if first and all(map(layout.is_number, header)):
        raise InvalidFile(f"the first line of {name} holds numbers; it must name the columns")
    if len(first) > len(header):
        raise InvalidFile(f"line {line} of {name} has {len(first)} fields for {len(header)} column names")

    def blocks(columns: Sequence[str]) -> Iterator[np.ndarray]:
        import pandas as pd

        with _in_one_sentence(name), opened() as handle:
            next(layout.records(handle))
            try:
                frames = pd.read_csv(
                    handle, header=None, names=header, sep=r"\s+" if layout.separator == " " else layout.separator,
                    decimal=layout.decimal, chunksize=max(1, CELLS // len(header)), low_memory=False,
                    keep_default_na=False, na_values=list(MISSING), skipinitialspace=True,
                )  # fmt: skip
                for frame in filter(len, frames):
                    chosen = [frame[c].to_numpy() for c in columns]
                    if any(values.dtype.kind not in "buif" for values in chosen):
                        with opened() as again:
                            raise _text_found(again, layout, header, columns, name)
                    yield np.stack(chosen, axis=1).astype(np.float64)
            except (pd.errors.ParserError, csv.Error) as error:
                raise InvalidFile(f"{name} is not a regular table: {_reason(error)}") from error

    return Source(name, tuple(header), blocks)


def _layout(header: str, row: str, suffix: str) -> _Layout:
    bare = re.sub(r'"[^"]*"', "", header)
    if suffix.lower() in (".tsv", ".tab"):
        return _Layout("\t", ".")
    separator = max(",\t;", key=bare.count)
    if bare.count(separator):
        return _Layout(separator, "," if separator == ";" and re.search(r"\d,\d", row) else ".")
    return _Layout(" " if suffix.lower() in (".txt", ".dat") else ",", ".")


def _text_found(
    handle: TextIO, layout: _Layout, header: Sequence[str], columns: Sequence[str], name: str
) -> InvalidFile:
    """The error that names the first field that is no number, its column and its line."""
    places = [(header.index(column), column) for column in columns]
    records = layout.records(handle)
    next(records)
    for record in records:
        for place, column in places:
            if place < len(record) and not layout.is_number(record[place]):
                return InvalidFile(
                    f"line {records.line_num} of {name}: column {column!r} holds the text {record[place][:40]!r} "
                    "where a number is needed; mend it, or leave the column out with `ignore`"
                )
    return InvalidFile(f"{name} holds text where numbers are needed")


def _reason(error: Exception) -> str:
    match = re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", str(error))
    if match is None:
        return str(error).strip().splitlines()[-1]
    return f"row {match[2]} has {match[3]} fields for {match[1]} column names"


# --- binary formats --------------------------------------------------------------------------------------


def _parquet(file: Path, name: str) -> Source:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise MissingExtra("reading Parquet needs pyarrow; run `pip install 'eqlearn[parquet]'`") from error

    try:
        header = pq.ParquetFile(file).schema_arrow.names
    except pa.ArrowInvalid as error:
        raise InvalidFile(f"{name} is not a whole Parquet file: {error}") from error

    def blocks(columns: Sequence[str]) -> Iterator[np.ndarray]:
        rows = max(1, CELLS // max(1, len(columns)))
        with _in_one_sentence(name), pq.ParquetFile(file) as table:
            for batch in table.iter_batches(rows, columns=list(columns)):
                yield np.stack([_floats(batch.column(c).to_numpy(zero_copy_only=False), c, name) for c in columns], 1)

    return Source(name, tuple(header), blocks)


def _unpack(file: Path, name: str, folder: Path) -> dict[str, Path]:
    """The arrays of an .npz file, unpacked onto disk, where parts of them can be read."""
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


def _arrays(files: dict[str, Path], name: str) -> Source:
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
        step = max(1, CELLS // max(1, len(chosen)))
        for start in range(0, rows, step):
            yield np.stack([_floats(by_name[c][start : start + step], c, name) for c in chosen], axis=1)

    return Source(name, tuple(column for column, _ in columns), blocks)


def _floats(values: np.ndarray, column: str, name: str) -> np.ndarray:
    if values.dtype.kind == "O" and all(v is None or isinstance(v, bool | int | float) for v in values):
        values = np.array([np.nan if v is None else v for v in values], dtype=np.float64)
    if values.dtype.kind not in "buif" or values.ndim != 1:
        raise InvalidFile(f"column {column!r} of {name} holds {values.dtype} where numbers are needed; leave it out with `ignore`")
    return values.astype(np.float64)
