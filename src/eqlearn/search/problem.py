"""The problem of a search: what all of its steps share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import wraps
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from eqlearn.search.ansatz.target_transform import TargetTransform
from eqlearn.search.features import Features
from eqlearn.search.networks.fit import Samples
from eqlearn.search.networks.sparsify import Half, HardConcreteL0
from eqlearn.search.networks.starts import Waves
from eqlearn.search.networks.structures import Vocabulary
from eqlearn.search.settings import DEFAULTS, Settings


@dataclass(frozen=True, eq=False)
class Problem:
    """The scaled data of a search, what networks may see and be made of."""

    samples: Samples
    features: Features
    vocabulary: Vocabulary
    waves: Waves
    transforms: tuple[TargetTransform, ...]
    sparsifier: Half | HardConcreteL0
    hidden_layers: int
    settings: Settings = DEFAULTS
    noisy: bool = False  # the values hold noise: no law will be exact
    settled: bool = False  # what the best law so far leaves looks like noise

    def __eq__(self, other: object) -> bool:
        """Whether the same data are seen in the same way."""
        if not isinstance(other, Problem):
            return NotImplemented
        same = self.vocabulary == other.vocabulary and self.settings == other.settings
        return self.samples is other.samples and same

    def __hash__(self) -> int:
        return id(self.samples)

    def seen(self, transform: TargetTransform | None) -> tuple[Tensor, int]:
        """What a single output is fitted to, `(rows,)`, and how many layers a network for it may have."""
        if transform is None:
            return self.samples.y[0], self.hidden_layers
        return transform.target[0] / transform.scale, self.hidden_layers - 1

    def weighted(self, values: Tensor) -> Tensor:
        """Values `(..., rows)` times the roots of the rows' weights: as least squares sees them."""
        weight = self.samples.weight
        return values if weight is None else values * weight.sqrt()

    def thinned(self, rows: int) -> Problem:
        """The same problem on this number of rows, spread evenly over all."""
        if self.samples.rows <= rows:
            return self
        chosen = torch.from_numpy(thinned_rows(self.samples.rows, rows))
        x, y, weight = self.samples.x, self.samples.y, self.samples.weight
        samples = Samples(x[:, chosen], y[:, chosen], None if weight is None else weight[chosen])
        transforms = tuple(replace(i, target=i.target[:, chosen]) for i in self.transforms)
        return replace(self, samples=samples, transforms=transforms)

    @property
    def targets(self) -> tuple[TargetTransform | None, ...]:
        """The ways to see the target: as it is, and through each transform."""
        return (None, *self.transforms)


def thinned_rows(rows: int, most: int) -> np.ndarray:
    """The places of at most that many rows, spread evenly over all."""
    return np.linspace(0, rows - 1, min(most, rows)).round().astype(int)


T = TypeVar("T")
Make = Callable[[Problem, Callable[[], bool]], T]  # what is made of a problem, until a condition holds


def remembered(most: int) -> Callable[[Make[T]], Make[T]]:
    """Has what is made of a problem until `stop()` holds remembered for the last `most` problems, unless it
    was cut short."""

    def wrapped(make: Make[T]) -> Make[T]:
        made: dict[Problem, T] = {}

        @wraps(make)
        def lookup(problem: Problem, stop: Callable[[], bool]) -> T:
            if problem in made:
                return made[problem]
            found = make(problem, stop)
            if not stop():
                made[problem] = found
                for first in list(made)[:-most]:
                    made.pop(first, None)
            return found

        return lookup

    return wrapped
