"""The paper's two dynamical systems as values: exact solutions, and data drawn from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from eqlearn import Pairs, Trajectories

Range = tuple[float, float]
Solution = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray], np.ndarray]


@dataclass(frozen=True)
class System:
    """A law of motion with one hidden parameter: where it starts, how it is seen, and what is true of it.

    `solution(u0, v0, parameter, times)` is exact, for columns of initial values against a row of times.
    `truth` are the equations of one step in the true parameter, `higher` the terms that the next orders of
    its expansion would add; `rate` is the rate of change, for Euler's method. A coefficient is right within
    `tolerance`. The encoder reads `observed` times; the cell propagates `horizon` steps, and is looked at
    over `far` steps.
    """

    name: str
    parameter: str
    solution: Solution
    truth: Mapping[str, str]
    rate: Mapping[str, str]
    dt: float
    series: int
    observed: int
    horizon: int
    far: int
    ranges: Mapping[str, Range]
    tolerance: float
    higher: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    states: tuple[str, ...] = ("u", "v")

    def pairs(self, seed: int, *, series: int | None = None, steps: int | None = None) -> Pairs:
        """Fresh pairs of series for a seed: one parameter each, two independent initial states."""
        rng = np.random.default_rng([20192, seed])
        count = self.series if series is None else series
        parameter = rng.uniform(*self.ranges[self.parameter], size=count)
        return Pairs(
            self._drawn(rng, parameter, self.observed - 1),
            self._drawn(rng, parameter, self.horizon if steps is None else steps),
        )

    def _drawn(self, rng: np.random.Generator, parameter: np.ndarray, steps: int) -> Trajectories:
        initial = {name: rng.uniform(*self.ranges[name], size=len(parameter)) for name in self.states}
        states = self.solve(initial, parameter, steps)
        return Trajectories(states, self.dt, self.states, torch.from_numpy(parameter))

    def solve(
        self, initial: Mapping[str, np.ndarray], parameter: np.ndarray, steps: int
    ) -> Float[Tensor, "series time states"]:
        """The exact states at `steps` + 1 times."""
        times = self.dt * np.arange(steps + 1)
        columns = [initial[name][:, None] for name in self.states]
        return torch.from_numpy(self.solution(columns[0], columns[1], parameter[:, None], times[None]))


def _kinematics(u: np.ndarray, v: np.ndarray, a: np.ndarray, t: np.ndarray) -> np.ndarray:
    return np.stack([u + v * t + a * t**2 / 2, v + a * t], axis=-1)


def _oscillator(u: np.ndarray, v: np.ndarray, w2: np.ndarray, t: np.ndarray) -> np.ndarray:
    w = np.sqrt(w2)
    cos, sin = np.cos(w * t), np.sin(w * t)
    return np.stack([u * cos + v / w * sin, v * cos - u * w * sin], axis=-1)


def _frozen(**values: Any) -> Mapping[str, Any]:
    return MappingProxyType(values)


KINEMATICS = System(
    name="kinematics",
    parameter="a",
    solution=_kinematics,
    truth=_frozen(u="u + v + a/2", v="v + a"),
    rate=_frozen(u="v", v="a"),
    dt=1.0,
    series=100,
    observed=100,
    horizon=5,
    far=25,
    ranges=_frozen(u=(-1.0, 1.0), v=(-1.0, 1.0), a=(-1.0, 1.0)),
    tolerance=0.005,
)
OSCILLATOR = System(
    name="oscillator",
    parameter="w2",
    solution=_oscillator,
    # The expansion of the exact step to second order in dt.
    truth=_frozen(u="u + v/10 - w2*u/200", v="v - w2*u/10 - w2*v/200"),
    rate=_frozen(u="v", v="-w2*u"),
    dt=0.1,
    series=1000,
    observed=500,
    horizon=25,
    far=500,
    ranges=_frozen(u=(-1.0, 1.0), v=(-1.0, 1.0), w2=(0.1, 1.0)),
    tolerance=0.02,
    higher=_frozen(
        u=("v*w2", "u*w2**2", "v*w2**2", "u*w2**3"), v=("u*w2**2", "v*w2**2", "u*w2**3", "v*w2**3")
    ),
)
# Numbers in brackets are rows of "the paper's text and the authors' code" in docs/paper.md.
RELEASED_OSCILLATOR = replace(
    OSCILLATOR,
    dt=50 / 499,  # [50]
    ranges=_frozen(u=(-1.0, 1.0), v=(-0.5, 0.5), w2=(0.1, 1.0)),  # [49]
)
