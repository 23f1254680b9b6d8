"""Fields from a file: arrays on a grid, or a long table with a row for each point."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from eqlearn.errors import InvalidArgument, InvalidFile, UnknownName, listed
from eqlearn.fields.scattered import field_of_samples
from eqlearn.io.formats import open_source
from eqlearn.io.source import in_one_sentence
from eqlearn.validation.fields import Field
from eqlearn.validation.options import did_you_mean

# A long table that fills less than this part of the grid of its coordinates is scattered, not a grid.
FILLED = 0.5
FOLDER, HDF5 = "folder", b"\x89HDF"


def read_field(
    path: str | Path, fields: Sequence[str], time: str, space: Sequence[str], *, masked: bool = False
) -> Field:
    """The fields of these names on these axes: from .npz, .mat and .nc files, whose arrays have the same
    names, from a folder with an .npy file for each, which may be larger than memory, or from a table with a
    column for each field and each axis. Arrays with one dimension more hold several experiments, one after
    the other."""
    suffix = FOLDER if Path(path).is_dir() else Path(path).suffix.lower()
    if suffix not in _READERS:
        return _from_table(path, fields, time, space, masked)
    name = repr(str(path))
    if not Path(path).exists():
        raise InvalidFile(f"there is no file {name}")
    with in_one_sentence(name):
        arrays = _arrays(Path(path), suffix, (*fields, *space, time), name)
    axes = {a: np.asarray(arrays[a]).squeeze() for a in (*space, time)}
    given = {f: np.squeeze(arrays[f]) for f in fields}
    shape = next(iter(given.values())).shape
    several = len(shape) == len(axes) + 1
    order = _order(shape[several:], axes, name)
    each: Any = given
    if several:
        each = [{f: given[f][k] for f in fields} for k in range(shape[0])]
    return Field(each, {a: axes[a] for a in order}, time, masked=masked)


def _arrays(path: Path, suffix: str, wanted: Sequence[str], name: str) -> dict[str, Any]:
    """The wanted arrays of a file; nothing in it is run."""
    if suffix != FOLDER:
        with path.open("rb") as file:
            if file.read(len(HDF5)) == HDF5:
                raise InvalidFile(f"{name} is of HDF5 (MATLAB 7.3, NetCDF 4); save it as .npz")
    try:
        known = _READERS[suffix](path)
    except (ValueError, TypeError, NotImplementedError) as error:
        raise InvalidFile(f"{name} can't be read: {error}") from error
    for one in wanted:
        if one not in known:
            raise UnknownName(f"{name} has no array {one!r}; {did_you_mean(one, known)}")
    return {one: known[one] for one in wanted}


def _folder(path: Path) -> dict[str, Any]:
    """The arrays of .npy files, which stay there until they are used."""
    return {file.stem: np.load(file, mmap_mode="r", allow_pickle=False) for file in path.glob("*.npy")}


def _npz(path: Path) -> dict[str, Any]:
    if not zipfile.is_zipfile(path):
        raise ValueError("it is no .npz file")
    with np.load(path, allow_pickle=False) as held:
        return {name: held[name] for name in held.files}


def _mat(path: Path) -> dict[str, Any]:
    from scipy.io import loadmat

    return {name: value for name, value in loadmat(path).items() if not name.startswith("__")}


def _netcdf(path: Path) -> dict[str, Any]:
    """NetCDF 3; the fourth version is another format, of HDF5."""
    from scipy.io import netcdf_file

    with netcdf_file(path, mmap=False) as held:
        return {name: np.array(v[:], dtype=np.float64) for name, v in held.variables.items()}


_READERS = {FOLDER: _folder, ".npz": _npz, ".mat": _mat, ".nc": _netcdf}


def _order(shape: tuple[int, ...], axes: Mapping[str, np.ndarray], name: str) -> list[str]:
    """The axes in the order of an array's dimensions: as given, or as their lengths say."""
    left, found = list(axes), []
    for size in shape:
        fits = [a for a in left if axes[a].size == size]
        if not fits:
            sizes = listed([f"{a} {axes[a].size}" for a in axes])
            raise InvalidArgument(f"the fields of {name} have shape {shape}, but the axes have {sizes}")
        found.append(fits[0])
        left.remove(fits[0])
    if left:
        raise InvalidArgument(
            f"the fields of {name} have shape {shape}, with no dimension for {listed(left)}"
        )
    return found


def _from_table(
    path: str | Path, fields: Sequence[str], time: str, space: Sequence[str], masked: bool
) -> Field:
    columns = [*space, time, *fields]
    with open_source(path) as source:
        source.check(columns)
        rows = np.concatenate(list(source.blocks(columns)))
    places, axes = [], {}
    for k, axis in enumerate((*space, time)):
        axes[axis], at = np.unique(rows[:, k], return_inverse=True)
        places.append(at)
    shape = tuple(len(a) for a in axes.values())
    if len(rows) < FILLED * np.prod(shape, dtype=np.float64):
        each = dict(zip(columns, rows.T, strict=True))
        return field_of_samples({f: each[f] for f in fields}, {a: each[a] for a in axes}, time)
    given = {}
    for k, field in enumerate(fields):
        values = np.full(shape, np.nan)
        values[tuple(places)] = rows[:, len(shape) + k]
        given[field] = values
    holes = any(np.isnan(v).any() for v in given.values())
    return Field(given, axes, time, masked=masked or (holes and not np.isnan(rows).any()))
