"""Networks fitted to data: a whole population at once by Levenberg-Marquardt, and what one fit is."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from eqlearn.numerics import least_squares
from eqlearn.numerics.budget import never
from eqlearn.numerics.criteria import EXACT_LOSS, SAME_ERROR, credible, information_criterion
from eqlearn.numerics.least_squares import Normal, Rule
from eqlearn.search.networks.population import Population

# What one linearisation may hold: members x weights x rows, in float64 numbers (64 MB).
CELLS = 8_000_000


@dataclass(frozen=True)
class Samples:
    """The data of a fit, feature-major: inputs `(in, rows)`, targets `(out, rows)` or, if each member has its
    own, `(members, out, rows)`, row weights or none."""

    x: Tensor
    y: Tensor
    weight: Tensor | None = None

    @property
    def rows(self) -> int:
        return self.x.shape[1]

    def split(self, rows: int) -> list[Samples]:
        """The same data in pieces of at most `rows` rows."""
        if rows >= self.rows:
            return [self]
        weights = [None] * self.rows if self.weight is None else self.weight.split(rows)
        pieces = zip(self.x.split(rows, dim=1), self.y.split(rows, dim=-1), weights, strict=False)
        return [Samples(x, y, w) for x, y, w in pieces]


def normal_equations(
    population: Population, theta: Tensor, samples: Samples, guarded: bool = False
) -> Normal:
    """Accumulated over pieces of the rows, so that memory stays bounded however many there are."""
    cells = max(1, population.members * theta.shape[1] * population.out_features)

    def pieces() -> Iterator[tuple[Tensor, Tensor, Tensor | None]]:
        for piece in samples.split(max(64, CELLS // cells)):
            y, slopes = population.linearise(theta, piece.x, guarded)
            weight = None if piece.weight is None else piece.weight.repeat(population.out_features)
            yield (y - piece.y).flatten(1), slopes, weight

    return Normal.summed(pieces(), samples.rows)


def levenberg_marquardt(
    population: Population,
    theta: Tensor,
    samples: Samples,
    *,
    steps: int,
    penalty: Callable[[Tensor, int], Tensor] | None = None,
    guarded: bool = False,
    project: bool = False,
    enough: float = 0.0,
    patience: float = 1e-7,
    stop: Callable[[], bool] = never,
) -> tuple[Tensor, Tensor]:
    """Fits all members at once (see `numerics.least_squares`); returns weights and mean squared errors.

    `penalty(theta, step)` gives a coefficient for each squared weight. Without one, the fit ends when
    every member's error is at most `enough` or no longer falls by a fraction `patience`. With `project`, the
    linear read-out is solved exactly at every step (variable projection): it is not damped, and follows
    the inner weights. A member that is not finite keeps its last finite weights and an infinite error.
    """
    # Random weights are far from any optimum, so that damping changes gently and one bad step says little.
    rule = Rule(
        steps, damping=1e-2, down=4.0, up=4.0, least=1e-12, most=1e8, gain=patience, patience=6, enough=enough
    )
    theta, system = least_squares.levenberg_marquardt(
        lambda at: normal_equations(population, at, samples, guarded),
        theta,
        rule,
        fixed=population.padding,
        linear=population.readout() if project else None,
        penalty=penalty,
        stop=stop,
    )
    return theta, system.loss


@dataclass(frozen=True)
class Fit:
    """One network during a search: a population of one, its weights, its error."""

    population: Population
    theta: Tensor
    loss: float

    @property
    def weights(self) -> int:
        return int(self.population.counts[0])

    @property
    def kind(self) -> tuple[int, bool]:
        """Depth and skip connections: fits of one kind can be solved together."""
        return self.population.structures[0].kind

    def alike(self, other: Fit) -> bool:
        """Whether both say the same: by their errors, or because the same weights of the same units are left,
        whose errors are then rounding."""
        if self.weights != other.weights:
            return False
        same = self.population.structures == other.population.structures
        return abs(self.loss - other.loss) <= SAME_ERROR * self.loss or (
            same and all(map(torch.equal, self.population.masks[0], other.population.masks[0]))
        )

    def credible(self, rows: int) -> bool:
        """Whether the observations outnumber the weights by enough: otherwise anything could be fitted."""
        return credible(self.weights, rows * self.population.out_features)

    def exact(self, rows: int) -> bool:
        """Whether the fit is exact to rounding, and not because there are as many weights as rows."""
        return self.loss < EXACT_LOSS and self.credible(rows)

    def score(self, rows: int) -> float:
        """The information criterion; the smaller, the better."""
        if not self.credible(rows):
            return math.inf
        numbers = rows * self.population.out_features
        return information_criterion(numbers, self.loss, self.weights)


def take(population: Population, theta: Tensor, losses: Tensor, index: int) -> Fit:
    """One member of a fitted population."""
    keep = ~population.padding[index : index + 1]
    single, weights = population.restrict(theta, keep, [index])
    return Fit(single, weights, float(losses[index]))


def stack(singles: Sequence[Population], values: Sequence[Tensor]) -> tuple[Population, Tensor]:
    """One population of several populations of one, and their weights."""
    population = Population([p.structures[0] for p in singles], [p.masks[0] for p in singles])
    counts = (int(single.counts[0]) for single in singles)
    return population, population.packed([v[:count] for v, count in zip(values, counts, strict=True)])
