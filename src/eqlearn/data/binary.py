"""Tables in binary files: Parquet, and numpy's .npy and .npz."""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from eqlearn.data import source
from eqlearn.errors import InvalidFile, MissingExtra


def open_parquet(file: Path, name: str) -> source.Source:
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
        with source.in_one_sentence(name), pq.ParquetFile(file) as table:
            for batch in table.iter_batches(rows, columns=list(columns)):
                yield np.stack(
                    [_floats(batch.column(c).to_numpy(zero_copy_only=False), c, name) for c in columns], 1
                )

    def labels(column: str) -> Iterator[list[str]]:
        with source.in_one_sentence(name), pq.ParquetFile(file) as table:
            for batch in table.iter_batches(source.CELLS, columns=[column]):
                yield [source.label(value) for value in batch.column(column).to_pylist()]

    return source.Source(name, tuple(header), blocks, labels)


def unpack(file: Path, name: str, folder: Path) -> dict[str, Path]:
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


def open_arrays(files: dict[str, Path], name: str) -> source.Source:
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
        yield [source.label(value) for value in by_name[column].tolist()]

    return source.Source(name, tuple(column for column, _ in columns), blocks, labels)


def _floats(values: np.ndarray, column: str, name: str) -> np.ndarray:
    if values.dtype.kind == "O" and all(v is None or isinstance(v, bool | int | float) for v in values):
        values = np.array([np.nan if v is None else v for v in values], dtype=np.float64)
    if values.dtype.kind not in "buif" or values.ndim != 1:
        raise InvalidFile(
            f"column {column!r} of {name} holds {values.dtype} where numbers are needed; leave it out"
        )
    return values.astype(np.float64)
