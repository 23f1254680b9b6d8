"""Trajectories: series of one system's states, observed at equal steps of time."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from eqlearn.errors import InvalidArgument, NotFinite, counted, listed
from eqlearn.validation.names import checked_names


@dataclass(frozen=True, eq=False)
class Trajectories:
    """Series of `names`d states, `dt` apart; `parameter` is what was different in each, where it is known.

    The parameter is never shown to a model: it is there to be compared with what a model finds.
    """

    states: Float[Tensor, "series time states"]
    dt: float
    names: tuple[str, ...]
    parameter: Float[Tensor, " series"] | None = None

    def __post_init__(self) -> None:
        names = checked_names(self.names)
        if problems := _problems(self.states, self.dt, names, self.parameter):
            raise InvalidArgument(f"these trajectories can't be used: {'; '.join(problems)}")
        for what, values in (("states", self.states), ("parameter", self.parameter)):
            if values is not None and not bool(torch.isfinite(values).all()):
                raise NotFinite(
                    f"`{what}` holds NaN or infinity{_place(what, values)}; repair or leave it out"
                )
        still = (self.states == self.states[:1, :1]).all(dim=(0, 1)).tolist()
        if constant := [name for name, flat in zip(names, still, strict=True) if flat]:
            raise InvalidArgument(f"`states`: {at_rest(constant)}")
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "states", self.states.double())
        if self.parameter is not None:
            object.__setattr__(self, "parameter", self.parameter.double())

    @classmethod
    def of(
        cls, series: Sequence[Any] | Any, dt: float, names: Sequence[str], parameter: Any = None
    ) -> Trajectories:
        """From arrays: one `(series, time, states)`, or a list of `(time, states)`, all of one length."""
        arrays = [np.asarray(one, dtype=np.float64) for one in series]
        if not arrays:
            raise InvalidArgument("`series` is empty; give at least one trajectory")
        if flat := [a.shape for a in arrays if a.ndim != 2]:
            raise InvalidArgument(f"each of `series` must be (time, states), got shape {flat[0]}")
        if len({a.shape[1] for a in arrays}) > 1:
            raise InvalidArgument(
                f"`series` have {sorted({a.shape[1] for a in arrays})} states; give each the same"
            )
        lengths = sorted({len(a) for a in arrays})
        if len(lengths) > 1:
            raise InvalidArgument(
                f"`series` have unequal lengths, from {lengths[0]} to {lengths[-1]} times; cut all to "
                f"{lengths[0]}, or into pieces of one length"
            )
        known = None if parameter is None else torch.as_tensor(np.asarray(parameter, dtype=np.float64))
        return cls(torch.from_numpy(np.stack(arrays)), dt, tuple(names), known)

    @property
    def steps(self) -> int:
        """How many steps of time each series makes."""
        return self.states.shape[1] - 1

    @property
    def scales(self) -> Float[Tensor, " states"]:
        """The root mean square of each state over all series: divided by it, values lie near 1."""
        return self.states.square().mean(dim=(0, 1)).sqrt()


def at_rest(names: Sequence[str]) -> str:
    """What to say of states that never change."""
    if len(names) == 1:
        return f"{names[0]} never changes, so it has no equation; leave it out"
    return f"{listed(names)} never change, so they have no equations; leave them out"


def _problems(states: Tensor, dt: float, names: tuple[str, ...], parameter: Tensor | None) -> list[str]:
    if states.dim() != 3:
        return [f"`states` must be (series, times, states), got shape {tuple(states.shape)}"]
    problems = []
    if states.shape[0] < 1:
        problems.append("`states` holds no series")
    if states.shape[1] < 2:
        problems.append(f"a series must make at least one step, 2 times, got {states.shape[1]}")
    if states.shape[2] != len(names):
        problems.append(f"`names` holds {len(names)} names for {states.shape[2]} states")
    if not 0 < dt < math.inf:
        problems.append(f"`dt` must be positive and finite, got {dt}")
    if parameter is not None and len(parameter) != len(states):
        problems.append(f"`parameter` holds {len(parameter)} values for {len(states)} series")
    return problems


def _place(what: str, values: Tensor) -> str:
    where = [int(i) for i in (~torch.isfinite(values)).nonzero()[0]]
    return f" in series {where[0]}" + (f" at time {where[1]}" if what == "states" else "")


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


def latent_names(count: int) -> tuple[str, ...]:
    """What hidden parameters are called: z, or z1, z2, ..."""
    return ("z",) if count == 1 else tuple(f"z{i + 1}" for i in range(count))
