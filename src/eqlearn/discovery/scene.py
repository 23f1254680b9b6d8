"""What all rounds of a search share."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from eqlearn.discovery.features import Features
from eqlearn.discovery.inversion import Inversion
from eqlearn.discovery.least_squares import LeastSquares
from eqlearn.discovery.sparsify import Half, HardConcreteL0
from eqlearn.discovery.starts import Waves
from eqlearn.discovery.structures import Vocabulary


@dataclass(frozen=True)
class Scene:
    """The scaled data of a search, what networks may see and be made of."""

    problem: LeastSquares
    features: Features
    vocabulary: Vocabulary
    waves: Waves
    inversions: tuple[Inversion, ...]
    sparsifier: Half | HardConcreteL0
    hidden_layers: int
    finalists: int = 4

    def seen(self, inversion: Inversion | None) -> tuple[Tensor, int]:
        """What a single output is fitted to, `(rows,)`, and how many layers a network for it may have."""
        if inversion is None:
            return self.problem.y[0], self.hidden_layers
        return inversion.target[0] / inversion.scale, self.hidden_layers - 1

    def weighted(self, values: Tensor) -> Tensor:
        """Values `(..., rows)` times the roots of the rows' weights: as least squares sees them."""
        weight = self.problem.weight
        return values if weight is None else values * weight.sqrt()

    def thinned(self, rows: int) -> Scene:
        """The same scene on every so manieth row: as many as it takes to tell formulas apart."""
        if self.problem.rows <= rows:
            return self
        chosen = torch.linspace(0, self.problem.rows - 1, rows).round().long()
        x, y, weight = self.problem.x, self.problem.y, self.problem.weight
        problem = LeastSquares(x[:, chosen], y[:, chosen], None if weight is None else weight[chosen])
        inversions = tuple(replace(i, target=i.target[:, chosen]) for i in self.inversions)
        return replace(self, problem=problem, inversions=inversions)

    @property
    def targets(self) -> tuple[Inversion | None, ...]:
        """The ways to see the target: as it is, and through each inversion."""
        return (None, *self.inversions)
