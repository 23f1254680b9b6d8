"""Trajectories: several series of one system's states, observed at equal steps of time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from eqlearn.core.names import checked_names
from eqlearn.errors import InvalidArgument, NotFinite
from eqlearn.words import listed


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
