"""Trajectories from a table: rows sorted into series by an id, with even time steps."""

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
from eqlearn.validation.trajectories import Trajectories

# Steps of time may differ by this share of a step: files round their times.
UNEVEN = 0.01
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
        return fingerprint((held.names, held.dt, [len(one) for one in held.series]), held.series)


def read_series(
    path: str | Path, states: Sequence[str], *, time: str | None = None, run: str | None = None
) -> SeriesTable:
    """Reads the columns `states`, as one series for each value of the column `run`, sorted by `time`.

    Without `run` the table is one series; without `time` rows are in order and one unit of time apart. All
    series must have the same, even time step.
    """
    with open_source(path) as source:
        _check(source, states, time, run)
        columns = [*states, *([time] if time else [])]
        blocks, rows = [], 0
        for block in source.blocks(columns):
            rows += len(block)
            if rows > MOST_ROWS:
                raise InvalidArgument(f"{source.name} has more than {MOST_ROWS:,} rows; give fewer series")
            blocks.append(block)
        labels = [label for some in source.labels(run) for label in some] if run else ["1"] * rows
    values = np.concatenate(blocks) if blocks else np.empty((0, len(columns)))
    _check_values(source.name, columns, values)
    if "" in labels:
        raise InvalidArgument(f"{source.name} has no {run!r} in row {labels.index('') + 1}; fill it in")
    times = values[:, len(states)] if time else None
    series, steps, members = [], [], defaultdict[str, list[int]](list)
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
            steps.append(_step(called, times[rows_of]))
        series.append(values[rows_of, : len(states)])
    trajectories = Trajectories.of(series, _common_step(source.name, steps), states)
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


def _check_values(name: str, columns: Sequence[str], values: np.ndarray) -> None:
    if not len(values):
        raise InvalidArgument(f"{name} holds no rows")
    row, column = divmod(int((~np.isfinite(values)).argmax()), values.shape[1])
    if not np.isfinite(values[row, column]):
        raise NotFinite(
            f"{name} has a missing or infinite {columns[column]!r} in row {row + 1}; fill it in, or end the "
            "series there and give the rest another id"
        )


def _step(called: str, times: np.ndarray) -> float:
    """The time step of one series, sorted by time."""
    gaps = np.diff(times)
    if (gaps == 0).any():
        at = float(times[int((gaps == 0).argmax())])
        raise InvalidArgument(
            f"{called} has two rows at the time {at:g}; if they are of several series, tell them apart with "
            "`id`"
        )
    step = float(np.median(gaps))
    worst = int(np.abs(gaps - step).argmax())
    if abs(gaps[worst] - step) > UNEVEN * step:
        raise InvalidArgument(
            f"{called} has uneven steps of time: {gaps[worst]:g} after the time {times[worst]:g}, elsewhere "
            f"{step:g}; interpolate to even steps, or cut the series there with another id"
        )
    return float((times[-1] - times[0]) / len(gaps))


def _common_step(name: str, steps: Sequence[float]) -> float:
    if not steps:
        return 1.0
    low, high = min(steps), max(steps)
    if high - low > UNEVEN * low:
        raise InvalidArgument(
            f"the series of {name} have different steps of time, from {low:g} to {high:g}; give each step a "
            "file of its own, or interpolate to one step"
        )
    return float(np.median(steps))
