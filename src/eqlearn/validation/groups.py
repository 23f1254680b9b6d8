"""Which group each row of a table belongs to, checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np

from eqlearn.errors import InvalidArgument, UnknownName, counted
from eqlearn.validation.options import did_you_mean
from eqlearn.validation.table import Table, Uncertainty, arrange

# Numbers that differ by less than this part were calculated in two ways, and are no labels of two groups.
_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Groups:
    """The group of each row: `codes` `(rows,)` are places in `labels`; `name` is what groups are called."""

    name: str
    labels: tuple[Any, ...]
    codes: np.ndarray

    @property
    def count(self) -> int:
        return len(self.labels)

    def of_rows(self) -> np.ndarray:
        """The label of each row."""
        labels = np.empty(self.count, dtype=object)
        labels[:] = self.labels
        of_rows: np.ndarray = labels[self.codes]
        return of_rows

    @property
    def sizes(self) -> np.ndarray:
        """How many rows each group has."""
        return np.bincount(self.codes, minlength=self.count)


def read_groups(groups: Any, rows: int | None, name: str = "") -> Groups:
    """The groups that a user gave: one label for each of so many rows, in a list, an array, a series or a
    categorical.

    **Raises:** `InvalidArgument` for another number of rows, missing labels, one group only, or labels that
    tell hardly any two rows to be of one group.
    """
    if isinstance(groups, Groups) and groups.codes.shape == (rows,):
        return groups
    if isinstance(groups, str):
        raise UnknownName(f"`groups` names no column of `X`: {groups!r}")
    called = name or str(getattr(groups, "name", None) or "group")
    values = _labels(groups, rows)
    rows = len(values)
    missing = np.flatnonzero([_is_missing(v) for v in values.tolist()])
    if len(missing):
        raise InvalidArgument(
            f"`groups` has no label in {counted(len(missing), 'row')}, the first of them row {missing[0]}; "
            "give these rows a group, or leave them out"
        )
    labels, codes = _distinct(values)
    if values.dtype.kind == "f":
        numbers = np.sort(values.astype(np.float64))
        near = np.flatnonzero((np.diff(numbers) > 0) & (np.diff(numbers) <= _ROUNDING * np.abs(numbers[1:])))
        if len(near):
            raise InvalidArgument(
                f"`groups` holds {numbers[near[0]]} and {numbers[near[0] + 1]}, which differ by rounding; "
                "round the numbers that are given as labels"
            )
    if len(labels) < 2:
        raise InvalidArgument(f"`groups` names one group only, {labels[0]!r}; leave it out")
    if 2 * len(labels) > rows:
        kind = "different numbers" if values.dtype.kind == "f" else "different labels"
        hint = (
            "a number that changes from row to row is a column of `X`, or the `varies` of the constants"
            if values.dtype.kind in "fiu"
            else "groups need several rows each"
        )
        raise InvalidArgument(f"`groups` holds {len(labels):,} {kind} in {counted(rows, 'row')}; {hint}")
    return Groups(called, labels, codes)


def taken_apart(X: Any, groups: Any) -> tuple[Any, Any]:
    """A data frame without the column that `groups` is, and the labels: a name stands for the column, and
    labels that are a column of text are no numbers to calculate with. Else both as they are."""
    name = groups if isinstance(groups, str) else getattr(groups, "name", None)
    columns = list(getattr(X, "columns", ()))
    if not isinstance(name, str) or columns.count(name) != 1:
        return X, groups
    if not isinstance(groups, str) and getattr(X[name].dtype, "kind", "f") in "biuf":
        return X, groups
    return X[[c for c in columns if c != name]], X[name] if isinstance(groups, str) else groups


def arrange_groups(
    X: np.ndarray, y: np.ndarray, weight: np.ndarray | None, groups: Any, errors: Uncertainty | None = None
) -> tuple[Table, Groups | None]:
    """The table sorted by its numbers, as `arrange` does it, and the groups of its rows, if any."""
    if groups is None:
        return arrange(X, y, weight, errors), None
    if errors is not None:
        raise InvalidArgument("`groups` can't be used together with `y_error` or `x_error`; leave one out")
    known = read_groups(groups, len(X))
    table = arrange(np.column_stack([X, known.codes]), y, weight)
    codes = table.X[:, -1].astype(np.int64)
    return Table(np.ascontiguousarray(table.X[:, :-1]), table.y, table.weight), replace(known, codes=codes)


def find_column(varies: Any, names: Sequence[str]) -> int:
    """The place of the column that constants vary over, given by its name or its place."""
    if isinstance(varies, str):
        if varies not in names:
            raise UnknownName(f"`varies` names no column of `X`: {varies!r}; {did_you_mean(varies, names)}")
        place = list(names).index(varies)
    elif type(varies) is not bool and isinstance(varies, Integral) and 0 <= int(varies) < len(names):
        place = int(varies)
    else:
        raise InvalidArgument(f"`varies` must be the name or the place of a column of `X`, got {varies!r}")
    if len(names) < 2:
        raise InvalidArgument(f"`varies` needs another column of `X` beside {names[place]!r}")
    return place


def read_levels(column: np.ndarray, name: str, enough: int, most: int) -> Groups:
    """The groups of equal values of a column; where most have fewer rows than `enough`, of neighbouring
    values, as many rows in each and at most `most` groups."""
    levels, codes = np.unique(column, return_inverse=True)
    if len(levels) < 2:
        raise InvalidArgument(f"the column {name!r} of `varies` has one value only; leave `varies` out")
    if np.median(np.bincount(codes)) < enough:
        count = max(2, min(most, len(column) // (2 * enough)))
        edges = np.unique(np.quantile(column, np.linspace(0, 1, count + 1))[1:-1])
        codes = np.unique(np.searchsorted(edges, column, side="right"), return_inverse=True)[1]
        sums = np.bincount(codes, weights=column)
        levels = sums / np.bincount(codes)
    return Groups(name, tuple(levels.tolist()), codes)


def find_codes(groups: Any, labels: Sequence[Any], rows: int) -> np.ndarray:
    """The places of `groups`' labels among known ones.

    **Raises:** `UnknownName` for a label that is not known.
    """
    values = _labels(np.full(rows, groups, dtype=object) if np.ndim(groups) == 0 else groups, rows)
    place = {label: i for i, label in enumerate(labels)}
    codes = [place.get(_plain(value), -1) for value in values.tolist()]
    unknown = next((v for v, code in zip(values.tolist(), codes, strict=True) if code < 0), None)
    if -1 in codes:
        hint = did_you_mean(str(unknown), map(str, labels)).rstrip("?")
        raise UnknownName(
            f"`groups` holds {unknown!r}, which was not fitted; {hint}; with `new_group`, "
            "a new group's constants are fitted to a few rows"
        )
    return np.array(codes, dtype=np.int64)


def _labels(groups: Any, rows: int | None) -> np.ndarray:
    """One label for each of so many rows."""
    if hasattr(groups, "detach"):  # a tensor; torch itself is slow to load
        groups = groups.detach().cpu().numpy()
    values = np.asarray(groups)
    values = values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values
    if values.ndim != 1 or rows not in (None, len(values)):
        raise InvalidArgument(
            f"`groups` must hold one label for each of the {rows} rows, got shape {values.shape}"
        )
    return values


def _is_missing(value: Any) -> bool:
    # NaN and NaT are not equal to themselves; pandas' NA has no truth value.
    return value is None or type(value).__name__ == "NAType" or value == "" or bool(value != value)


def _plain(value: Any) -> Any:
    """A label as Python has it; whole numbers are the same label whatever their type."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _distinct(values: np.ndarray) -> tuple[tuple[Any, ...], np.ndarray]:
    plain = [_plain(v) for v in values.tolist()]
    distinct = dict.fromkeys(plain)
    try:
        labels = tuple(sorted(distinct))
    except TypeError:  # of several types, which have no order
        labels = tuple(distinct)
    place = {label: i for i, label in enumerate(labels)}
    return labels, np.array([place[v] for v in plain], dtype=np.int64)
