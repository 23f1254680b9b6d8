"""Trajectories from a table: rows sorted into series by an id, at any times."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from eqlearn.errors import InvalidArgument, NotFinite, counted
from eqlearn.io.formats import open_source, stem_of
from eqlearn.io.source import Source, fingerprint
from eqlearn.symbolic.printing import printable
from eqlearn.validation.observed import EVEN, observed
from eqlearn.validation.trajectories import Trajectories

MOST_ROWS = 1_000_000


@dataclass(frozen=True, eq=False)
class SeriesTable:
    """The trajectories of a file `name` with `rows` rows; `ids` are the values of its id column."""

    trajectories: Trajectories
    name: str
    rows: int
    ids: tuple[str, ...]

    @property
    def stem(self) -> str:
        """The file's name without folder and ending, for naming what is made from it."""
        return stem_of(self.name)

    @property
    def fingerprint(self) -> str:
        held = self.trajectories
        names = held.names if not held.inputs else (held.names, held.input_names)
        return fingerprint(
            (names, held.dt, [len(one) for one in held.series]),
            [*held.series, *(held.clocks or ()), *held.inputs],
        )


def read_series(
    path: str | Path,
    states: Sequence[str],
    *,
    time: str | None = None,
    run: str | None = None,
    inputs: Sequence[str] = (),
) -> SeriesTable:
    """Reads the columns `states`, as one series for each value of the column `run`, sorted by `time`, and
    beside them the `inputs`, of which the time may be one.

    Without `run` the table is one series; without `time` rows are in order and one unit of time apart. An
    empty cell of a state is a value that was not observed.
    """
    with open_source(path) as source:
        _check(source, [*states, *(name for name in inputs if name != time)], time, run)
        columns = [*states, *inputs, *([time] if time else [])]
        blocks, rows = [], 0
        once = list(dict.fromkeys(columns))  # the time may be an input, too
        for block in source.blocks(once):
            rows += len(block)
            if rows > MOST_ROWS:
                raise InvalidArgument(f"{source.name} has more than {MOST_ROWS:,} rows; give fewer series")
            blocks.append(block[:, [once.index(name) for name in columns]])
        labels = [label for some in source.labels(run) for label in some] if run else ["1"] * rows
    values = np.concatenate(blocks) if blocks else np.empty((0, len(columns)))
    _check_values(source.name, columns, values, len(states))
    if "" in labels:
        raise InvalidArgument(f"{source.name} has no {run!r} in row {labels.index('') + 1}; fill it in")
    times = values[:, -1] if time else None
    series, clocks, members = [], [], defaultdict[str, list[int]](list)
    for row, label in enumerate(labels):
        members[label].append(row)
    for label, places in members.items():
        rows_of = np.array(places)
        called = source.name if run is None else f"{run!r} {printable(label[:40])} of {source.name}"
        if len(rows_of) < 2:
            raise InvalidArgument(
                f"{called} has {counted(len(rows_of), 'row')}, which is no step of time; leave it out"
            )
        if times is not None:
            rows_of = rows_of[np.argsort(times[rows_of], kind="stable")]
            clocks.append(times[rows_of])
            _check_times(called, clocks[-1])
        series.append(values[rows_of, : len(states) + len(inputs)])
    step = _common_step(clocks)
    if step is not None and not inputs and np.isfinite(values).all():
        return SeriesTable(Trajectories.of(series, step, states), source.name, rows, tuple(members))
    trajectories = observed(
        series, (*states, *inputs), None if clocks else 1.0, clocks or None, tuple(inputs), True, 2
    )
    return SeriesTable(trajectories, source.name, rows, tuple(members))


def _check(source: Source, states: Sequence[str], time: str | None, run: str | None) -> None:
    if not states:
        raise InvalidArgument(
            f"name the columns that move with `states`; {source.name} has {source.named_columns}"
        )
    names = [*states, *filter(None, (time, run))]
    source.check(names)
    if twice := [name for name in names if names.count(name) > 1]:
        raise InvalidArgument(f"column {twice[0]!r} is named twice; `states`, `time` and `id` differ")


def _check_values(name: str, columns: Sequence[str], values: np.ndarray, states: int) -> None:
    """A state may be missing, but nothing else, and nothing may be infinite."""
    if not len(values):
        raise InvalidArgument(f"{name} holds no rows")
    bad = ~np.isfinite(values)
    bad[:, :states] = np.isinf(values[:, :states])
    row, column = divmod(int(bad.argmax()), values.shape[1])
    if bad[row, column]:
        raise NotFinite(f"{name} has a missing or infinite {columns[column]!r} in row {row + 1}; fill it in")
    if unseen := [c for c, x in zip(columns, values.T, strict=True) if np.isnan(x).all()]:
        raise NotFinite(f"{name} has no {unseen[0]!r} in any row; leave the column out")


def _check_times(called: str, times: np.ndarray) -> None:
    gaps = np.diff(times)
    if (gaps == 0).any():
        at = float(times[int((gaps == 0).argmax())])
        raise InvalidArgument(
            f"{called} has two rows at the time {at:g}; if they are of several series, tell them apart with "
            "`id`"
        )


def _common_step(clocks: Sequence[np.ndarray]) -> float | None:
    """The step of time of all series, where all are even and have the same."""
    if not clocks:
        return 1.0
    steps = np.concatenate([np.diff(clock) for clock in clocks])
    if np.ptp(steps) > EVEN * float(np.median(steps)):
        return None
    return float(np.median([(clock[-1] - clock[0]) / (len(clock) - 1) for clock in clocks]))
