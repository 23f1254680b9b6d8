"""Trajectories: series of the states of one system, observed at equal time steps or at given times."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from eqlearn.errors import InvalidArgument, NotFinite, WrongType, counted, listed
from eqlearn.validation.options import checked_names
from eqlearn.validation.table import numbers_of

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False, init=False)
class Trajectories:
    """Series `(time, states)` of any lengths with time step `dt`.

    `parameter` is what differs between them, if known: never shown to a model, only compared with its result.
    Where `Trajectories.observed` made them, `clocks` are the times of each series, NaN is a value that was
    not observed, and `inputs` `(time, inputs)` are known beside the states.
    """

    series: tuple[Array, ...]
    dt: float
    names: tuple[str, ...]
    parameter: Float[Tensor, " series"] | None = None
    clocks: tuple[Array, ...] | None = None
    inputs: tuple[Array, ...] = ()
    input_names: tuple[str, ...] = ()

    def __init__(self, states: Any, dt: float, names: Iterable[str], parameter: Any = None) -> None:
        """From one tensor or array `(series, time, states)`, or a sequence of `(time, states)`."""
        if not isinstance(states, Iterable) or not isinstance(names, Iterable):
            raise WrongType("trajectories need `states`, a sequence of (time, states), and a list of `names`")
        shape = tuple(getattr(states, "shape", (0, 0, 0)))
        if len(shape) != 3:
            raise InvalidArgument(f"`states` must be (series, times, states), got shape {shape}")
        arrays = tuple(numbers_of(one, f"series {place}") for place, one in enumerate(states))
        known = None if parameter is None else numbers_of(parameter, "`parameter`")
        chosen = checked_names(names if isinstance(names, str) else tuple(names), "names")
        _check(arrays, dt, chosen, known)
        tensor = None if known is None else torch.as_tensor(known)
        self.__dict__.update(series=arrays, dt=float(dt), names=chosen, parameter=tensor)

    @classmethod
    def of(
        cls, series: Any, dt: float | None = None, names: Iterable[str] | None = None, parameter: Any = None
    ) -> Trajectories:
        """From `Trajectories`, a data frame, or arrays: one `(time, states)`, one `(series, time, states)`,
        or a list of `(time, states)`. States are named x0, x1, ... and `dt` is 1 by default."""
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
            return series if parameter is None else cls(series.series, series.dt, series.names, parameter)
        arrays, chosen = read_arrays(series, names)
        return cls(arrays, 1.0 if dt is None else dt, chosen, parameter)

    @classmethod
    def unchecked(
        cls, series: Sequence[Array], dt: float, names: Sequence[str], parameter: Tensor | None = None
    ) -> Trajectories:
        """Series that need no check: part of others (in which a state may be constant), or from our files."""
        made = cls.__new__(cls)
        made.__dict__.update(series=tuple(series), dt=dt, names=tuple(names), parameter=parameter)
        return made

    def at_step(self, dt: float) -> Trajectories:
        """The same series at another step of time."""
        if self.clocks is None:
            return Trajectories(self.series, dt, self.names, self.parameter)
        made = self.part(range(len(self.series)))
        made.__dict__.update(dt=float(dt), clocks=tuple(dt / self.dt * clock for clock in self.clocks))
        return made

    def part(self, places: Sequence[int], most: int | None = None) -> Trajectories:
        """The series at these indices, cut to at most `most` times."""
        parameter = None if self.parameter is None else self.parameter[list(places)]
        made = self.unchecked([self.series[i][:most] for i in places], self.dt, self.names, parameter)
        made.__dict__.update(
            clocks=None if self.clocks is None else tuple(self.clocks[i][:most] for i in places),
            inputs=tuple(self.inputs[i][:most] for i in places) if self.inputs else (),
            input_names=self.input_names,
        )
        return made

    @cached_property
    def states(self) -> Float[Tensor, "series time states"]:
        """All series as one tensor; an `InvalidArgument` if they have unequal lengths."""
        lengths = [len(one) for one in self.series]
        if min(lengths) < max(lengths):
            raise InvalidArgument(
                f"`series` have unequal lengths, from {min(lengths)} to {max(lengths)} times; cut all to "
                f"{min(lengths)}, or into pieces of one length"
            )
        return torch.from_numpy(np.stack(self.series))

    @property
    def steps(self) -> int:
        """The number of time steps of each series, if all have one length."""
        return self.states.shape[1] - 1

    @property
    def scales(self) -> Float[Tensor, " states"]:
        """The root mean square of each state over all series, if these have one length."""
        return self.states.square().mean(dim=(0, 1)).sqrt()

    @property
    def spread(self) -> Array:
        """The standard deviation of each state over all series."""
        return np.asarray(np.nanstd(np.concatenate(self.series), axis=0))

    @property
    def rows(self) -> int:
        """The number of observations in all series together."""
        return sum(len(one) for one in self.series)

    def times(self, place: int) -> Array:
        """The times of one series, from 0 on unless they were given."""
        if self.clocks is not None:
            return self.clocks[place]
        return self.dt * np.arange(len(self.series[place]), dtype=np.float64)

    @property
    def variables(self) -> tuple[str, ...]:
        """What equations may be of: the states and the inputs."""
        return (*self.names, *self.input_names)

    @property
    def long_places(self) -> list[int]:
        """Which series have at least half the median length: windows and pieces have one length for all
        series, which a very short one would reduce."""
        half = float(np.median([len(one) for one in self.series])) / 2
        return [place for place, one in enumerate(self.series) if len(one) >= half]

    @property
    def long(self) -> tuple[Array, ...]:
        """The series of at least half the median length."""
        return tuple(self.series[place] for place in self.long_places)

    def piece_places(self, steps: int, most: int) -> tuple[int, list[tuple[int, int]]]:
        """The steps of each piece and where it starts, as series and time: at most `most` pieces of the long
        series, evenly spread, each of `steps` steps, or as many as the shortest series."""
        places = self.long_places
        steps = min(steps, min(len(self.series[i]) for i in places) - 1)
        starts = [(i, at) for i in places for at in range(0, len(self.series[i]) - steps, steps + 1)]
        if len(starts) > most:
            starts = [starts[i] for i in np.linspace(0, len(starts) - 1, most).round().astype(int)]
        return steps, starts


def read_arrays(series: Any, names: Iterable[str] | None) -> tuple[list[Array], Any]:
    """Arrays `(time, columns)` from whatever holds them, and the names of their columns."""
    if hasattr(series, "columns"):  # a data frame
        names = list(series.columns) if names is None else names
        series = series.to_numpy()
    if getattr(series, "ndim", 0) == 1:
        raise InvalidArgument("`series` has one axis; one state over time is `series[:, None]`")
    series = [series] if getattr(series, "ndim", 0) == 2 else series
    if not isinstance(series, Iterable):
        raise WrongType(f"`series` must hold arrays (time, states), got {series!r}")
    arrays = [numbers_of(one, f"series {place}") for place, one in enumerate(series)]
    _check_shapes(arrays)
    return arrays, [f"x{k}" for k in range(arrays[0].shape[1])] if names is None else names


def _check_shapes(arrays: Sequence[Array]) -> None:
    if not arrays:
        raise InvalidArgument("there is no series: `series` must be arrays (time, states), at least one")
    if any(a.ndim != 2 or a.shape[1:] != arrays[0].shape[1:] for a in arrays):
        shapes = [a.shape for a in arrays][:4]
        raise InvalidArgument(f"`series` must be arrays (time, states) with the same states, got {shapes}")


def misnamed(names: Sequence[str], columns: int) -> str:
    """What is wrong with so many names, if anything."""
    return "" if len(names) == columns else f"`names` holds {len(names)} names for {columns} states"


def bad_step(dt: Any) -> str:
    """What is wrong with a step of time, if anything."""
    fine = isinstance(dt, Real) and 0 < float(dt) < math.inf
    return "" if fine else f"`dt` must be positive and finite, got {dt}"


def check_given(dt: float | None, continuous: bool) -> None:
    """Refuses a `continuous` system without a step of time."""
    if continuous and dt is None:
        raise InvalidArgument(
            "`dt`, the step of time, is not given, and rates of change need it; give it (1.0 if rows are one "
            "unit of time apart), or the `times`, or use `form` 'map'"
        )


def check_changing(arrays: Sequence[Array], names: Sequence[str]) -> None:
    """Refuses columns that never change; NaN is what was not observed."""
    every = np.concatenate(arrays)
    # By the range: rounding may leave a standard deviation above zero.
    still = [n for n, x in zip(names, every.T, strict=True) if np.nanmax(x) == np.nanmin(x)]
    if len(still) == len(names):
        raise InvalidArgument("nothing ever changes in these series, so there is no motion to explain")
    if len(still) == 1:
        raise InvalidArgument(f"{still[0]} never changes, so it tells nothing; leave it out")
    if still:
        raise InvalidArgument(f"{listed(still)} never change, so they tell nothing; leave them out")


def _check(arrays: Sequence[Array], dt: Any, names: Sequence[str], parameter: Array | None) -> None:
    """Refuses what can't be a motion, with all problems of size in one message."""
    _check_shapes(arrays)
    problems = []
    if short := [i for i, one in enumerate(arrays) if len(one) < 2]:
        times = counted(len(arrays[short[0]]), "time")
        problems.append(f"series {short[0]} has {times}, but must make at least one step; leave it out")
    problems += [problem for problem in (misnamed(names, arrays[0].shape[1]), bad_step(dt)) if problem]
    if parameter is not None and parameter.shape != (len(arrays),):
        problems.append(f"`parameter` holds {parameter.size} values for {len(arrays)} series")
    if problems:
        several = "these trajectories can't be used: " if len(problems) > 1 else ""
        raise InvalidArgument(f"{several}{'; '.join(problems)}")
    for place, one in enumerate(arrays):
        if not np.isfinite(one).all():
            at = int(np.flatnonzero(~np.isfinite(one).all(axis=1))[0])
            raise NotFinite(
                f"series {place} holds NaN or infinity at time {at}; repair it, or cut the series there"
            )
    if parameter is not None and not np.isfinite(parameter).all():
        at = int(np.flatnonzero(~np.isfinite(parameter))[0])
        raise NotFinite(f"`parameter` holds NaN or infinity in series {at}; repair or leave it out")
    check_changing(arrays, names)


def read_trajectories(
    series: Any, dt: float | None, names: Iterable[str] | None, continuous: bool, fewest: int
) -> Trajectories:
    """The trajectories for a search; a `continuous` system needs `dt`, and `fewest` times per series."""
    if not isinstance(series, Trajectories):
        check_given(dt, continuous)
    trajectories = Trajectories.of(series, dt, names)
    short = [(i, len(one)) for i, one in enumerate(trajectories.series) if len(one) < fewest]
    if continuous and short:
        raise InvalidArgument(
            f"series {short[0][0]} has {short[0][1]} times, too few to tell a rate of change; leave out "
            f"series of fewer than {fewest}, or use `form` 'map'"
        )
    return trajectories


def latent_names(count: int) -> tuple[str, ...]:
    """The names of hidden parameters: z, or z1, z2, ..."""
    return ("z",) if count == 1 else tuple(f"z{i + 1}" for i in range(count))


def velocity_names(names: Sequence[str]) -> tuple[str, ...]:
    """The names of the rates of change of states, where these are states as well: dx for x."""
    return tuple(f"d{name}" for name in names)


def check_latents(latents: int, trajectories: Trajectories, fewest: int) -> None:
    """Refuses hidden parameters with fewer than `fewest` series, or with states of the same names."""
    if latents < 1 or len(trajectories.series) < fewest:
        raise InvalidArgument(
            f"{counted(latents, 'hidden parameter')} in {len(trajectories.series)} series: give at least "
            f"{fewest} series, each with a parameter of its own, or no `latents`"
        )
    # Fewer may be found than allowed, so the name of a single one must be free too.
    if taken := {"z", *(f"z{i + 1}" for i in range(latents))} & set(trajectories.names):
        raise InvalidArgument(f"a state is named {min(taken)}, as hidden parameters are; rename it")
