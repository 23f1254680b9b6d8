"""Tables of measurements from files: columns chosen, values checked, memory bounded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from eqlearn.errors import InvalidArgument, NotFinite, counted, listed
from eqlearn.io.formats import STANDARD_INPUT, open_source, stem_of
from eqlearn.io.source import Source, fingerprint

if TYPE_CHECKING:
    from eqlearn.validation.groups import Groups
    from eqlearn.validation.table import Uncertainty

# With fewer rows, every formula with as many constants is an exact law.
FEWEST_ROWS = 5
# The most that a search is given; of a larger file, rows are drawn at random.
MOST_ROWS, MOST_CELLS = 1_000_000, 16_000_000


@dataclass(frozen=True, eq=False)
class Measurements:
    """Inputs `(rows, in)` and targets `(rows, out)` with their names, from the file `name`.

    `rows_read` counts the rows of the file and `rows_dropped` those left out for missing values; of a large
    file the arrays hold a sample. `reread()` reads all rows again, in blocks with the targets last, missing
    values included; it is None for what can't be read twice. `notes` say what was understood of the file or
    left out of it, `units` are those that it tells, by column; `errors` are the standard deviations of the
    values, where they were named; `groups` are those of a column that tells them.
    """

    X: np.ndarray
    y: np.ndarray
    inputs: tuple[str, ...]
    targets: tuple[str, ...]
    name: str
    rows_read: int
    rows_dropped: int = 0
    reread: Callable[[], Iterator[np.ndarray]] | None = None
    notes: tuple[str, ...] = ()
    units: Mapping[str, str] = field(default_factory=dict)
    errors: Uncertainty | None = None
    groups: Groups | None = None

    @property
    def stem(self) -> str:
        """The file's name without folder and ending, for naming what is made from it."""
        return stem_of(self.name)

    @property
    def fingerprint(self) -> str:
        known = () if self.errors is None else (self.errors.y, self.errors.x)
        header, arrays = (self.inputs, self.targets, self.X.shape, self.y.shape), (self.X, self.y, *known)
        if self.groups is None:
            return fingerprint(header, arrays)
        return fingerprint((*header, self.groups.name, self.groups.labels), (*arrays, self.groups.codes))


def read_measurements(
    path: str | Path,
    target: Sequence[str],
    *,
    inputs: Sequence[str] = (),
    ignore: Sequence[str] = (),
    group: str | None = None,
    y_error: Sequence[str] = (),
    x_error: Mapping[str, str] | None = None,
    drop_missing: bool = False,
    seed: int = 0,
    fewest_rows: int = FEWEST_ROWS,
    most_rows: int = MOST_ROWS,
) -> Measurements:
    """Reads a file for `eqlearn fit` in blocks, so that memory stays bounded however large it is.

    By default, inputs are all columns but the targets, the ignored ones and those of errors. `y_error` holds
    a column of standard deviations, or a number, for each target; `x_error` one for each input that it names.
    The column `group` tells groups of rows apart, by names or numbers. Of a file larger than `most_rows`, a
    uniform sample of that many rows is drawn by `seed`; all are checked.
    """
    with open_source(path) as source:
        known = None
        if group is not None:
            from eqlearn.validation.groups import read_groups  # slow: it loads torch

            source.check([group])
            ignore = [*ignore, group]
            known = read_groups(_labels(source, group), None, group)
        stated = _Stated.of(source, target, y_error, x_error or {})
        targets, chosen = _choose(source, target, inputs, ignore, stated.columns)
        stated.check(chosen)
        codes = None if known is None else known.codes
        sample = _Sample.drawn(source, [*chosen, *targets, *stated.columns], seed, most_rows, codes)
        empty = () if inputs else tuple(c for c in chosen if c in sample.empty)
        if empty and len(empty) < len(chosen):  # a column without a value says nothing of the target
            chosen = tuple(c for c in chosen if c not in empty)
            sample = _Sample.drawn(source, [*chosen, *targets, *stated.columns], seed, most_rows, codes)
    columns = [*chosen, *targets, *stated.columns]
    bad, read, dropped = sample.bad, sample.read, sample.dropped
    if bad.any() and not drop_missing:
        raise NotFinite(_missing(source.name, columns, bad, dropped, read))
    if read - dropped < fewest_rows:
        left = counted(read - dropped, "row") + (" without missing values" if dropped else "")
        raise InvalidArgument(f"{source.name} has {left}; there must be at least {fewest_rows}")
    notes = source.notes + tuple(f"column {c!r} is empty and left out" for c in empty)
    values = sample.rows.values()
    X, y = values[:, : len(chosen)], values[:, len(chosen) : len(chosen) + len(targets)]
    errors = stated.of_rows(chosen, values[:, len(chosen) + len(targets) : len(columns)], X, y)
    if known is not None:
        known = replace(known, codes=values[:, -1].astype(np.int64))
    for i, name in enumerate(chosen):
        for k, other in enumerate(targets):
            # A few rows may agree by chance.
            if len(X) >= FEWEST_ROWS and np.array_equal(X[:, i], y[:, k]):
                raise InvalidArgument(
                    f"column {name!r} equals the target {other!r} in every row; leave it out with `ignore`"
                )
    reread = None if source.name == STANDARD_INPUT else partial(read_blocks, path, [*chosen, *targets])
    units = {c: source.units[c] for c in columns if c in source.units}
    return Measurements(
        X, y, chosen, targets, source.name, read, dropped, reread, notes, units, errors, known
    )


def read_labels(path: str | Path, column: str) -> list[int | str]:
    """A column of a file as the labels of its rows' groups."""
    with open_source(path) as source:
        source.check([column])
        return _labels(source, column)


def _labels(source: Source, column: str) -> list[int | str]:
    """A column as labels; as whole numbers where all of them are."""
    labels = [label.strip() for block in source.labels(column) for label in block]
    if all(label.removeprefix("-").isdecimal() for label in labels):
        return [int(label) for label in labels]
    return list(labels)


def read_blocks(path: str | Path, columns: Sequence[str]) -> Iterator[np.ndarray]:
    """The named columns of a file, block by block, as float64 `(rows, columns)`; missing values are NaN."""
    with open_source(path) as source:
        source.check(columns)
        yield from source.blocks(columns)


@dataclass(frozen=True)
class _Stated:
    """The standard deviations that a user stated: for each target, and for inputs by name, a number or a
    column's name; `columns` are those."""

    y: tuple[str | float, ...]
    x: dict[str, str | float]
    columns: tuple[str, ...]

    @staticmethod
    def of(source: Source, target: Sequence[str], y: Sequence[str], x: Mapping[str, str]) -> _Stated:
        if y and len(y) != len(target):
            raise InvalidArgument(
                f"`y_error` must name an error for each of {counted(len(target), 'target')}, got {len(y)}"
            )

        def number_or_column(text: str) -> str | float:
            if text in source.columns:
                return text
            try:
                return float(text)
            except ValueError:
                source.check([text])
                raise

        told = tuple(map(number_or_column, y)), {name: number_or_column(text) for name, text in x.items()}
        source.check(list(x))
        columns = [c for c in (*told[0], *told[1].values()) if isinstance(c, str)]
        if taken := [c for c in columns if c in target]:
            raise InvalidArgument(f"column {taken[0]!r} is the target and can't be an error as well")
        return _Stated(*told, tuple(dict.fromkeys(columns)))

    def check(self, inputs: Sequence[str]) -> None:
        """Refuses the error of a column that is no input."""
        for name in self.x:
            if name not in inputs:
                raise InvalidArgument(
                    f"`x_error` names {name!r}, which is no input; name one of {listed(inputs)}"
                )

    def of_rows(
        self, inputs: Sequence[str], values: np.ndarray, X: np.ndarray, y: np.ndarray
    ) -> Uncertainty | None:
        """The deviations of each row, from the values of the columns."""
        if not self.y and not self.x:
            return None
        # These import torch, which takes seconds.
        from eqlearn.validation.table import Table
        from eqlearn.validation.uncertainty import read_uncertainty

        def filled(error: str | float) -> Any:
            return values[:, self.columns.index(error)] if isinstance(error, str) else error

        by_name = {name: filled(error) for name, error in self.x.items()}
        rows = [np.broadcast_to(filled(error), len(values)) for error in self.y]
        return read_uncertainty(np.stack(rows, axis=1) if rows else None, by_name, Table(X, y), inputs)


def _choose(
    source: Source,
    target: Sequence[str],
    inputs: Sequence[str],
    ignore: Sequence[str],
    errors: Sequence[str] = (),
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The targets and the inputs: all exist, and none is both."""
    listed = source.named_columns
    if not target:
        raise InvalidArgument(f"name the column to explain with `target`; {source.name} has {listed}")
    source.check([*target, *inputs, *ignore])
    for name in (*inputs, *target):
        if name in target and name in inputs:
            raise InvalidArgument(f"column {name!r} is the target and can't be an input as well")
        if name in ignore:
            raise InvalidArgument(f"column {name!r} is both wanted and in `ignore`")
    chosen = tuple(inputs) or tuple(c for c in source.columns if c not in (*target, *ignore, *errors))
    if not chosen:
        raise InvalidArgument(
            f"{source.name} has no column left to explain {target[0]!r} with; it has {listed}"
        )
    for names, argument in ((chosen, "inputs"), (tuple(target), "target")):
        if len(set(names)) < len(names):
            raise InvalidArgument(f"`--{argument}` names a column twice: {', '.join(names)}")
    return tuple(target), chosen


def _missing(name: str, columns: Sequence[str], bad: np.ndarray, rows: int, read: int) -> str:
    if empty := [c for c, n in zip(columns, bad, strict=True) if n == read]:
        return f"column {empty[0]!r} of {name} holds no value at all; fill it, or leave it out"
    worst = sorted(((int(n), c) for c, n in zip(columns, bad, strict=True) if n), key=lambda p: (-p[0], p[1]))
    counts = ", ".join(f"{c!r}: {n}" for n, c in worst[:5]) + (", ..." if len(worst) > 5 else "")
    return (
        f"{name} holds {counted(int(bad.sum()), 'missing or infinite value')} in {counted(rows, 'row')} "
        f"({counts}); fill them, or leave those rows out with `drop_missing`"
    )


@dataclass(frozen=True, eq=False)
class _Sample:
    """Rows without missing values, drawn from a file; how many values of each column are missing, how many
    rows were read and how many of them dropped."""

    columns: tuple[str, ...]
    rows: _Reservoir
    bad: np.ndarray
    read: int
    dropped: int

    @staticmethod
    def drawn(
        source: Source, columns: Sequence[str], seed: int, most_rows: int, codes: np.ndarray | None = None
    ) -> _Sample:
        """A sample of these columns; the codes of the rows' groups, if any, come last."""
        width = len(columns) + (codes is not None)
        rows = _Reservoir(min(most_rows, MOST_CELLS // width), width, seed)
        bad = np.zeros(len(columns), dtype=np.int64)
        read = dropped = 0
        for block in source.blocks(columns):
            finite = np.isfinite(block)
            bad += (~finite).sum(axis=0)
            whole = finite.all(axis=1)
            if codes is not None:
                block = np.column_stack([block, codes[read : read + len(block)]])
            read, dropped = read + len(block), dropped + int((~whole).sum())
            rows.add(block[whole])
        return _Sample(tuple(columns), rows, bad, read, dropped)

    @property
    def empty(self) -> tuple[str, ...]:
        """The columns without a single value."""
        return tuple(c for c, n in zip(self.columns, self.bad, strict=True) if n == self.read > 0)


class _Reservoir:
    """A uniform sample of at most `most` of the rows added, in their order (reservoir sampling).

    Every row draws a number and the smallest are kept, so the sample depends on the seed and the positions of
    the rows, not on the blocks.
    """

    def __init__(self, most: int, width: int, seed: int) -> None:
        self.most = most
        self.rng = np.random.default_rng([seed, 2])
        self.rows = np.empty((0, width))
        self.keys = np.empty(0)
        self.waiting: list[tuple[np.ndarray, np.ndarray]] = []

    def add(self, block: np.ndarray) -> None:
        keys = self.rng.random(len(block))
        if len(self.keys) == self.most:
            near = keys < self.keys.max(initial=0.0)
            block, keys = block[near], keys[near]
        self.waiting.append((block, keys))
        if sum(len(k) for _, k in self.waiting) > self.most:
            self._merge()

    def _merge(self) -> None:
        rows = np.concatenate([self.rows, *(b for b, _ in self.waiting)])
        keys = np.concatenate([self.keys, *(k for _, k in self.waiting)])
        self.waiting = []
        if len(keys) > self.most:
            kept = np.sort(np.argpartition(keys, self.most)[: self.most])
            rows, keys = rows[kept], keys[kept]
        self.rows, self.keys = rows, keys

    def values(self) -> np.ndarray:
        self._merge()
        return self.rows
