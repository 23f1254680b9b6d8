"""Opening files of numbers: text, Parquet and NumPy, recognised by their content."""

from __future__ import annotations

import difflib
import gzip
import shutil
import sys
import tempfile
import unicodedata
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePath

import numpy as np

from eqlearn.errors import InvalidArgument, InvalidFile, MissingExtra, NotNumbers
from eqlearn.io import source
from eqlearn.io.source import Source, in_one_sentence, label
from eqlearn.io.text import open_text


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
        kind = "dates" if values.dtype.kind == "M" else str(values.dtype)
        raise NotNumbers(
            f"column {column!r} of {name} holds {kind} where numbers are needed; leave it out", {column: kind}
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
