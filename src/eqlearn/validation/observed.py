"""Trajectories as they come from a laboratory: at any times, with values missing, driven by known inputs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from eqlearn.errors import InvalidArgument, NotFinite, counted, listed
from eqlearn.validation.options import checked_names
from eqlearn.validation.table import numbers_of
from eqlearn.validation.trajectories import (
    Array,
    Trajectories,
    bad_step,
    check_changing,
    check_given,
    misnamed,
    read_arrays,
    read_trajectories,
    velocity_names,
)

# Steps of time may differ by this share of a step: files round their times.
EVEN = 0.01


def read_observed(
    series: Any,
    dt: float | None,
    names: Iterable[str] | None,
    *,
    times: Any = None,
    inputs: Iterable[str] = (),
    order: int = 1,
    continuous: bool,
    fewest: int,
) -> Trajectories:
    """The trajectories for a search: at steps of `dt` or at `times`, the columns `inputs` known beside the
    states, NaN where nothing was observed, for equations of that `order`."""
    if order not in (1, 2):
        raise InvalidArgument(f"`order` must be 1 (rates of change) or 2 (accelerations), got {order!r}")
    if order == 2 and not continuous:
        raise InvalidArgument("`order` 2 asks for accelerations, which only `form` 'ode' has")
    driving = checked_names(inputs if isinstance(inputs, str) else tuple(inputs), "inputs")
    if isinstance(series, Trajectories) and not driving and times is None:
        read = read_trajectories(series, dt, names, continuous, fewest)
        if not continuous and not all(np.isfinite(one).all() for one in read.series):
            raise NotFinite("`series` hold NaN, which a map can't step over; cut the series there")
        if not continuous and any(np.ptp(np.diff(clock)) > EVEN * read.dt for clock in read.clocks or ()):
            raise InvalidArgument(
                "`series` have uneven steps of time, which a map can't have; use `form` 'ode'"
            )
    else:
        arrays, labels = _arrays(series, names)
        whole = all(np.isfinite(one).all() for one in arrays)
        if times is None and not driving and (whole or not continuous):
            read = read_trajectories(series, dt, names, continuous, fewest)
        else:
            read = observed(arrays, labels, dt, times, driving, continuous, fewest)
    if order == 2 and (taken := set(velocity_names(read.names)) & set(read.variables)):
        raise InvalidArgument(
            f"a column is named {min(taken)}, as velocities are where `order` is 2; rename it, or give both "
            "as states of `order` 1"
        )
    return read


def _arrays(series: Any, names: Iterable[str] | None) -> tuple[list[Array], tuple[str, ...]]:
    """Arrays `(time, columns)` and the names of their columns."""
    if isinstance(series, Trajectories):
        return list(series.series), series.variables
    arrays, chosen = read_arrays(series, names)
    labels = checked_names(chosen if isinstance(chosen, str) else tuple(chosen), "names")
    if problem := misnamed(labels, arrays[0].shape[1]):
        raise InvalidArgument(problem)
    return arrays, labels


def observed(
    arrays: Sequence[Array],
    names: tuple[str, ...],
    dt: float | None,
    times: Any,
    driving: tuple[str, ...],
    continuous: bool,
    fewest: int,
) -> Trajectories:
    """Trajectories of arrays `(time, columns)`, of which the `driving` columns are inputs."""
    unknown = [name for name in driving if name not in names]
    if unknown:
        raise InvalidArgument(f"`inputs` names {unknown[0]!r}, which is no column; these are {listed(names)}")
    states = [k for k, name in enumerate(names) if name not in driving]
    known = [names.index(name) for name in driving]
    if not states:
        raise InvalidArgument("all columns are `inputs`, so nothing is left that moves")
    clocks, step = _clocks(arrays, dt, times, continuous)
    for place, one in enumerate(arrays):
        if np.isinf(one).any():
            raise NotFinite(f"series {place} holds infinity; write NaN where nothing was observed")
        if not np.isfinite(one[:, known]).all():
            raise NotFinite(
                f"an input of series {place} holds NaN; inputs must be known at all times, so fill it in"
            )
        if not continuous and not np.isfinite(one).all():
            raise NotFinite(f"series {place} holds NaN, which a map can't step over; cut the series there")
        seen = np.isfinite(one[:, states]).sum(axis=0)
        if continuous and seen.min() < fewest:
            raise InvalidArgument(
                f"{names[states[int(seen.argmin())]]} was observed {counted(int(seen.min()), 'time')} in "
                f"series {place}, too few to tell a rate of change; leave out series of fewer than {fewest}"
            )
    check_changing(arrays, names)
    made = Trajectories.unchecked([one[:, states] for one in arrays], step, [names[k] for k in states])
    made.__dict__.update(
        clocks=tuple(clocks),
        inputs=tuple(one[:, known] for one in arrays) if driving else (),
        input_names=tuple(driving),
    )
    return made


def _clocks(
    arrays: Sequence[Array], dt: float | None, times: Any, continuous: bool
) -> tuple[list[Array], float]:
    """The times of each series, and the step that is usual."""
    if times is None:
        check_given(dt, continuous)
        if dt is not None and (problem := bad_step(dt)):
            raise InvalidArgument(problem)
        step = 1.0 if dt is None else float(dt)
        return [step * np.arange(len(one), dtype=np.float64) for one in arrays], step
    if not continuous:
        raise InvalidArgument("`times` tell rates of change, which a map has none of; leave them out")
    if dt is not None:
        raise InvalidArgument(f"`times` tell the steps of time, and so does `dt`, {dt:g}; leave one out")
    one_for_all = np.ndim(times[0]) == 0 if len(times) else True
    clocks = [numbers_of(times if one_for_all else t, "`times`") for t in (arrays if one_for_all else times)]
    if len(clocks) != len(arrays):
        raise InvalidArgument(f"`times` holds {len(clocks)} arrays for {len(arrays)} series")
    for place, (clock, one) in enumerate(zip(clocks, arrays, strict=True)):
        if clock.shape != (len(one),):
            raise InvalidArgument(f"`times` of series {place} hold {clock.size} for {len(one)} rows")
        if not np.isfinite(clock).all() or (np.diff(clock) <= 0).any():
            raise InvalidArgument(f"`times` of series {place} must be finite and increase from row to row")
    return clocks, float(np.median(np.concatenate([np.diff(clock) for clock in clocks])))
