"""A recording: series of a system's states, of any lengths, observed at equal steps of time."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from eqlearn.core.names import checked_names
from eqlearn.errors import InvalidArgument, NotFinite
from eqlearn.systems.trajectories import Trajectories, at_rest
from eqlearn.words import counted


@dataclass(frozen=True, eq=False)
class Recording:
    """Series `(time, states)` of `names`d states, `dt` apart."""

    series: tuple[np.ndarray, ...]
    dt: float
    names: tuple[str, ...]

    @staticmethod
    def of(series: Any, dt: float | None = None, names: Iterable[str] | None = None) -> Recording:
        """From `Trajectories`, a data frame, or arrays: one `(time, states)`, one `(series, time, states)`,
        or a list of `(time, states)` of any lengths; states are named x0, x1, ... unless told. Without `dt`
        times are counted: 0, 1, 2, ...

        **Raises:** an error of one sentence for what can't be a motion.
        """
        names = names if names is None or isinstance(names, str) else list(names)
        if isinstance(series, Trajectories):
            if dt is not None and not math.isclose(dt, series.dt):
                raise InvalidArgument(
                    f"`dt` is {dt}, but the trajectories have steps of {series.dt}; leave it out"
                )
            if names is not None and tuple(names) != series.names:
                raise InvalidArgument(
                    f"`names` are {names}, but those of the trajectories {list(series.names)}; leave them out"
                )
            return Recording(tuple(series.states.numpy()), series.dt, series.names)
        if hasattr(series, "columns"):  # a data frame
            names = list(series.columns) if names is None else names
            series = series.to_numpy()
        if getattr(series, "ndim", 0) == 1:
            raise InvalidArgument("`series` has one axis; one state over time is `series[:, None]`")
        if getattr(series, "ndim", 0) == 2:
            series = [series]
        arrays = tuple(np.asarray(one, dtype=np.float64) for one in series)
        if not arrays or any(a.ndim != 2 or a.shape[1:] != arrays[0].shape[1:] for a in arrays):
            shapes = [a.shape for a in arrays][:4]
            raise InvalidArgument(
                f"`series` must be arrays (time, states) with the same states, got {shapes}"
            )
        count = arrays[0].shape[1]
        if names is not None and len(names) != count:
            raise InvalidArgument(f"`names` holds {len(names)} names for {count} states")
        step = 1.0 if dt is None else float(dt)
        if not 0 < step < math.inf:
            raise InvalidArgument(f"`dt` must be positive and finite, got {dt}")
        chosen = checked_names([f"x{k}" for k in range(count)] if names is None else names)
        for place, one in enumerate(arrays):
            if len(one) < 2:
                raise InvalidArgument(
                    f"series {place} has {counted(len(one), 'time')}, which is no step; leave it out of "
                    "`series`"
                )
            if not np.isfinite(one).all():
                at = int(np.flatnonzero(~np.isfinite(one).all(axis=1))[0])
                raise NotFinite(
                    f"series {place} holds NaN or infinity at time {at}; repair it, or cut the series there"
                )
        # Their standard deviation need not be zero: it rounds.
        still = [n for n, x in zip(chosen, np.concatenate(arrays).T, strict=True) if np.ptp(x) == 0]
        if still:
            if len(still) == len(chosen):
                raise InvalidArgument(
                    "nothing ever changes in these series, so there is no motion to explain"
                )
            raise InvalidArgument(at_rest(still))
        return Recording(arrays, step, chosen)

    @property
    def spread(self) -> np.ndarray:
        """The standard deviation of each state over all series."""
        return np.asarray(np.concatenate(self.series).std(axis=0))

    @property
    def long(self) -> tuple[np.ndarray, ...]:
        """The series of at least half the median length: windows and pieces have one length for all, which a
        series of a few times would make short."""
        half = float(np.median([len(one) for one in self.series])) / 2
        return tuple(one for one in self.series if len(one) >= half)

    @property
    def times(self) -> int:
        """How many times were observed, in all series together."""
        return sum(len(one) for one in self.series)
