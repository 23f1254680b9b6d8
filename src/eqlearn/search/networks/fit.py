"""Levenberg-Marquardt for a whole population at once, with optional quadratic penalties on the weights."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from eqlearn.nn.eql import EQL
from eqlearn.numerics.budget import never
from eqlearn.numerics.criteria import EXACT_LOSS, credible, information_criterion
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


def linear_fit(columns: Tensor, y: Tensor) -> Tensor:
    """The factors of the columns `(count, rows)` whose sum comes nearest to `y`, `(rows,)`."""
    # By singular values: torch's own choice, a pivoted QR, starts from pivots that nobody set, so that the
    # last digits of one and the same fit change from call to call.
    factors: Tensor = torch.linalg.lstsq(columns.mT, y[:, None], driver="gelsd").solution[:, 0]
    return factors


@dataclass(frozen=True)
class Normal:
    """The normal equations at a point: squared error (mean over rows), curvature `(members, P, P)`, slope."""

    loss: Tensor
    curvature: Tensor
    slope: Tensor

    def where(self, accept: Tensor, other: Normal) -> Normal:
        """This one for the members in `accept`, `other` for the rest."""
        return Normal(
            torch.where(accept, self.loss, other.loss),
            torch.where(accept[:, None, None], self.curvature, other.curvature),
            torch.where(accept[:, None], self.slope, other.slope),
        )


def normal_equations(
    population: Population, theta: Tensor, samples: Samples, guarded: bool = False
) -> Normal:
    """Accumulated over pieces of the rows, so that memory stays bounded however many there are."""
    cells = max(1, population.members * theta.shape[1] * population.out_features)
    loss = theta.new_zeros(population.members)
    curvature = theta.new_zeros(population.members, theta.shape[1], theta.shape[1])
    slope = torch.zeros_like(theta)
    for piece in samples.split(max(64, CELLS // cells)):
        y, jacobian = population.linearise(theta, piece.x, guarded)
        residual = (y - piece.y).flatten(1)
        if piece.weight is None:
            weighted = residual
            curvature += torch.bmm(jacobian, jacobian.mT)
        else:
            weight = piece.weight.repeat(population.out_features)
            weighted = residual * weight
            curvature += torch.bmm(jacobian * weight, jacobian.mT)
        loss += (residual * weighted).sum(dim=1)
        slope += torch.bmm(jacobian, weighted[:, :, None])[:, :, 0]
    return Normal(loss / samples.rows, curvature / samples.rows, slope / samples.rows)


Ridge = Callable[[Tensor, int], Tensor]


def levenberg_marquardt(
    population: Population,
    theta: Tensor,
    samples: Samples,
    *,
    steps: int,
    penalty: Ridge | None = None,
    guarded: bool = False,
    project: bool = False,
    enough: float = 0.0,
    patience: float = 1e-7,
    stop: Callable[[], bool] = never,
) -> tuple[Tensor, Tensor]:
    """Fits all members at once; returns their weights and mean squared errors.

    `penalty(theta, step)` gives a coefficient for each squared weight. Without one, the fit ends when
    every member's error is below `enough` or no longer falls by a fraction `patience`. With `project`, the
    linear read-out is solved exactly at every step (variable projection): it is not damped, and follows
    the inner weights. A member that is not finite keeps its last finite weights and an infinite error.
    The fit ends early when `stop()` says so.
    """
    linear = population.readout() if project else None
    damping = theta.new_full((population.members,), 1e-2)
    still = torch.zeros(population.members, dtype=torch.int64)
    state = normal_equations(population, theta, samples, guarded)
    fine = torch.isfinite(state.loss) & torch.isfinite(state.curvature).flatten(1).all(dim=1)
    blank = Normal(
        torch.full_like(state.loss, torch.inf),
        torch.zeros_like(state.curvature),
        torch.zeros_like(state.slope),
    )
    state = state.where(fine, blank)
    for step in range(steps):
        if stop():
            break
        coefficient = torch.zeros_like(theta) if penalty is None else penalty(theta, step)
        damped = damping[:, None].expand_as(theta)
        if linear is not None:
            damped = torch.where(linear, 0.0, damped)
        trial = theta + _step(state, coefficient, theta, damped, population.padding)
        after = normal_equations(population, trial, samples, guarded)
        if linear is not None:
            inner = Normal(after.loss, *_only(linear, after.curvature, after.slope))
            trial = trial + _step(inner, coefficient * linear, trial, torch.zeros_like(trial), ~linear)
            after = normal_equations(population, trial, samples, guarded)
        fine = torch.isfinite(after.loss) & torch.isfinite(after.curvature).flatten(1).all(dim=1)
        old = state.loss + (coefficient * theta.square()).sum(dim=1)
        new = after.loss + (coefficient * trial.square()).sum(dim=1)
        accept = fine & (new < old)
        gained = torch.where(accept, (old - new) / old.clamp(min=1e-300), 0.0)
        theta = torch.where(accept[:, None], trial, theta)
        state = after.where(accept, state)
        damping = torch.where(accept, damping / 4, damping * 4).clamp(1e-12, 1e8)
        if penalty is None:
            still = torch.where(gained > patience, 0, still + 1)
            if bool(((state.loss < enough) | (still > 6)).all()):
                break
    return theta, state.loss


def _only(chosen: Tensor, curvature: Tensor, slope: Tensor) -> tuple[Tensor, Tensor]:
    """The normal equations of the chosen weights alone."""
    both = chosen[:, :, None] & chosen[:, None, :]
    return torch.where(both, curvature, 0.0), torch.where(chosen, slope, 0.0)


def _step(state: Normal, coefficient: Tensor, theta: Tensor, damping: Tensor, padding: Tensor) -> Tensor:
    """The damped Newton step, scaled by the curvature's diagonal (Marquardt); zero where unsolvable."""
    curvature = state.curvature + torch.diag_embed(coefficient + padding)
    scale = curvature.diagonal(dim1=1, dim2=2)
    floor = 1e-12 * scale.amax(dim=1, keepdim=True) + 1e-30
    curvature = curvature + torch.diag_embed(damping * scale + floor)
    factor, info = torch.linalg.cholesky_ex(curvature)
    solution = torch.cholesky_solve((state.slope + coefficient * theta)[:, :, None], factor)[:, :, 0]
    usable = (info == 0) & torch.isfinite(solution).all(dim=1)
    return torch.where(usable[:, None], -solution, 0.0)


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
        return self.population.depth, self.population.skip

    def network(self) -> EQL:
        return self.population.network(0, self.theta)

    def credible(self, rows: int) -> bool:
        """Whether the numbers told outnumber the weights by enough: otherwise anything could be fitted."""
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
    theta = torch.zeros(population.places.shape, dtype=torch.float64)
    for row, (single, value) in enumerate(zip(singles, values, strict=True)):
        count = int(single.counts[0])
        theta[row, :count] = value[:count]
    return population, theta
