"""Opens a file of any format that is read here, told by its content, or standard input."""

from __future__ import annotations

import difflib
import gzip
import shutil
import sys
import tempfile
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePath

from eqlearn.data.binary import open_arrays, open_parquet, unpack
from eqlearn.data.delimited import open_text
from eqlearn.data.source import Source, in_one_sentence
from eqlearn.errors import InvalidArgument, InvalidFile

STANDARD_INPUT = "the standard input"
# Characters that make what follows run from right to left, or seem to.
_BACKWARDS = "\u202a\u202b\u202d\u202e\u2066\u2067\u2068"


@contextmanager
def open_source(path: str | Path) -> Iterator[Source]:
    """Opens a file of any of the formats, told by its content; "-" is standard input.

    **Raises:** an error of one sentence for a file that is missing, empty, binary, in another encoding, or
    has no proper line of column names. Text where a number should be is found while reading.
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
            source = _recognise(file, name, Path(folder))
        _check_names(source)
        yield source


def stem_of(name: str) -> str:
    """The name of a `Source` without folder and ending."""
    stem = PurePath(name.strip("'\"")).name.partition(".")[0]
    return "input" if name == STANDARD_INPUT else stem or "data"


def _check_names(source: Source) -> None:
    """Refuses names that are there twice, and what a terminal would obey or a reader not see."""
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
        # All tables end alike, so that only what stands before the ending tells them apart.
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
