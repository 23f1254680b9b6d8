"""The IDX format of the MNIST files: a magic number, the sizes of the axes, then bytes."""

from __future__ import annotations

import gzip
import math
import zlib
from pathlib import Path

import numpy as np

from eqlearn.errors import InvalidFile

LARGEST = 2**26  # bytes; the largest file of MNIST has 47 million
_UNSIGNED_BYTES = 0x08


def unpacked(data: bytes, name: str) -> bytes:
    """The content of a file that may be gzipped, refused if cut short or beyond what MNIST needs."""
    if not data.startswith(b"\x1f\x8b"):
        return data
    decompressor = zlib.decompressobj(16 + zlib.MAX_WBITS)
    try:
        content = decompressor.decompress(data, LARGEST)
    except zlib.error as error:
        raise InvalidFile(f"{name} is not a whole gzip file: {error}; fetch it again") from error
    if not decompressor.eof:
        raise InvalidFile(f"{name} is cut short, or unpacks to more than {LARGEST} bytes; fetch it again")
    return content


def packed(content: bytes) -> bytes:
    """The content gzipped, the same bytes for the same content."""
    return gzip.compress(content, compresslevel=6, mtime=0)


def read_idx(content: bytes, name: str) -> np.ndarray:
    """The array that unpacked IDX content holds; `name` is for messages.

    **Raises:** `InvalidFile` for another magic number, other numbers than bytes, or a wrong length.
    """
    if len(content) < 4 or content[:3] != bytes([0, 0, _UNSIGNED_BYTES]):
        raise InvalidFile(f"{name} does not begin as an IDX file of bytes does (00 00 08), but with "
                          f"{content[:3].hex(' ') or 'nothing'}")  # fmt: skip
    start = 4 + 4 * content[3]
    if len(content) < start:
        raise InvalidFile(f"{name} is cut short within its header of {start} bytes; fetch it again")
    shape = tuple(int(n) for n in np.frombuffer(content[4:start], dtype=">u4"))
    if len(content) - start != math.prod(shape):
        raise InvalidFile(
            f"{name} says it holds {' x '.join(map(str, shape))} bytes, but has {len(content) - start}; "
            "fetch it again"
        )
    return np.frombuffer(content, dtype=np.uint8, offset=start).reshape(shape).copy()


def read_file(path: Path) -> bytes:
    """The unpacked content of a file on disk."""
    try:
        with open(path, "rb") as file:
            return unpacked(file.read(LARGEST), str(path))
    except OSError as error:
        raise InvalidFile(f"{path} can't be read: {error}") from error
