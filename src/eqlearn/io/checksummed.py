"""Checksummed files of tensors and plain data: written whole or not at all, refused if a byte changed."""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor

from eqlearn.errors import InvalidArgument, InvalidFile

LARGEST_FILE = 2**30
LARGEST_HEADER = 2**24
_BLANK = "0" * 64
# In a JSON file; and inside the safetensors header, where the JSON is a text with its quotes escaped.
_SEAL = re.compile(rb'"sha256": "([0-9a-f]{64})"')
_INNER_SEAL = re.compile(rb'\\"sha256\\": \\"([0-9a-f]{64})\\"')


@contextmanager
def atomic_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A file that replaces `path` when the block succeeds: readers see all of the old content or all of the
    new, even after a crash."""
    target = Path(path)
    temporary = target.with_name(f".{target.name[:200]}.{secrets.token_hex(8)}.tmp")
    try:
        with open(temporary, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


def atomic_write(path: str | os.PathLike[str], data: bytes) -> None:
    """Writes a file, whole or not at all."""
    with atomic_file(path) as file:
        file.write(data)


def write_json(path: str | os.PathLike[str], plain: Mapping[str, Any]) -> None:
    """Writes plain data as a readable JSON file with a checksum."""
    text = json.dumps({**plain, "sha256": _BLANK}, indent=1, ensure_ascii=False, allow_nan=False)
    atomic_write(path, _checksum(text.encode() + b"\n", _SEAL))


def write_tensors(
    path: str | os.PathLike[str], plain: Mapping[str, Any], tensors: Mapping[str, Tensor]
) -> None:
    """Writes tensors, and plain data about them, as one safetensors file with a checksum."""
    metadata = {"eqlearn": json.dumps({**plain, "sha256": _BLANK}, allow_nan=False)}
    # Clones, because safetensors refuses tensors that share memory.
    copies = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
    data = safetensors.torch.save(copies, metadata)
    if len(data) > LARGEST_FILE:
        raise InvalidArgument(
            f"the tensors take {len(data)} bytes, more than a file may hold, {LARGEST_FILE}"
        )
    atomic_write(path, _checksum(data, _INNER_SEAL))


def read_checksummed(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The plain data and the tensors of a checksummed file; a JSON file has no tensors.

    Nothing is run, and memory stays within a few times the size of the file. A checksum shows that a file is
    whole, not who wrote it: the caller must still check what the data say.

    **Raises:** `InvalidFile` for a file that was not written here, or has changed since.
    """
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size > LARGEST_FILE:
            raise InvalidFile(f"{path} has {size} bytes, more than any file of eqlearn, {LARGEST_FILE}")
        data = file.read(size)
    try:
        if data.startswith(b"{"):
            _check_checksum(data, _SEAL.search(data))
            plain, tensors = _object(data), {}
        else:
            end = 8 + int.from_bytes(data[:8], "little")
            if end > min(len(data), LARGEST_HEADER):
                raise InvalidFile("it is truncated, or not a file of eqlearn")
            _check_checksum(data, _INNER_SEAL.search(data, 8, end))
            plain, tensors = _object(_object(data[8:end])["__metadata__"]["eqlearn"]), _tensors(data)
        return {key: value for key, value in plain.items() if key != "sha256"}, tensors
    except (InvalidFile, SafetensorError, LookupError, TypeError, ValueError, RuntimeError) as error:
        raise InvalidFile(f"{path} can't be loaded: {error}") from error


def _checksum(data: bytes, place: re.Pattern[bytes]) -> bytes:
    digest = hashlib.sha256(data).hexdigest().encode()
    return place.sub(lambda seal: seal[0].replace(_BLANK.encode(), digest), data, count=1)


def _check_checksum(data: bytes, seal: re.Match[bytes] | None) -> None:
    if seal is None:
        raise InvalidFile("it has no checksum, so it was cut short or edited, or is no file of eqlearn")
    view, digest = memoryview(data), hashlib.sha256()
    for piece in (view[: seal.start(1)], _BLANK.encode(), view[seal.end(1) :]):
        digest.update(piece)
    if digest.hexdigest().encode() != seal[1]:
        raise InvalidFile("it was changed or cut short after it was written, for its checksum does not fit")


def _object(text: bytes | str) -> dict[str, Any]:
    try:
        data = json.loads(text)
    except RecursionError as error:
        raise InvalidFile("its JSON is nested too deep") from error
    if not isinstance(data, dict):
        raise InvalidFile("its JSON does not hold an object")
    return data


def _tensors(data: bytes) -> dict[str, Tensor]:
    tensors: dict[str, Tensor] = safetensors.torch.load(data)
    for name, tensor in tensors.items():
        # Only bytes 0 and 1 are truth values; torch would count another one as more than one.
        if tensor.dtype == torch.bool and bool((tensor.view(torch.uint8) > 1).any()):
            raise InvalidFile(f"tensor {name!r} holds values that are neither true nor false")
    return tensors
