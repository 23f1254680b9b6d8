"""Least squares with parameters common to all groups of rows beside parameters of each group alone.

The normal equations are bordered: a block for the common parameters, one for each group's own, nothing
between groups. Each group's own are eliminated (Schur complement), so that time and memory are linear in the
number of groups. `Bordered` is a system of the one Levenberg-Marquardt; a point is `(1, P + groups·k)`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Float
from torch import Tensor

from eqlearn.numerics.criteria import FREE_IN_SQUARES

# Of its diagonal, what is added to a block so that it can be decomposed where the data leave it singular.
_RIDGE = 1e-13


@dataclass(frozen=True, eq=False)
class Sums:
    """What the rows of each group say, summed: squared residuals `(groups,)`, and the slope `(groups, P)` and
    curvature `(groups, P, P)` of half of them by all parameters as they stand in the formula."""

    square: Tensor
    slope: Tensor
    curvature: Tensor


class Bordered:
    """The problem made linear, where the parameters in `common` have one value and the others one a group."""

    def __init__(self, sums: Sums, common: Tensor, rows: int) -> None:
        self.rows, self.common = rows, common
        self.own = ~common
        self.square, self.slope, self.curvature = sums.square, sums.slope, sums.curvature

    @cached_property
    def loss(self) -> Tensor:
        """The mean squared residual, infinite if something is not finite."""
        mean = self.square.sum() / self.rows
        fine = torch.isfinite(mean) & torch.isfinite(self.curvature).all()
        return torch.where(fine, mean, torch.inf)[None]

    @cached_property
    def blocks(self) -> tuple[Tensor, Tensor, Tensor]:
        """Curvature of the common ones `(P, P)`, of the own `(groups, k, k)`, and between them."""
        c, own, common = self.curvature, self.own, self.common
        return c[:, common][:, :, common].sum(dim=0), c[:, common][:, :, own], c[:, own][:, :, own]

    def solve(self, damping: Tensor, point: Tensor, ridge: Tensor | None, fixed: Tensor | None) -> Tensor:
        """The damped step; `ridge` is not known here, and of the own parameters none can be fixed."""
        corner, border, own = self.blocks
        count, rates = len(corner), damping[0]
        first, second = self.slope[:, self.common].sum(dim=0), self.slope[:, self.own]
        corner = _damped(corner[None], rates[None, :count])[0]
        if fixed is not None:
            held = fixed[0, :count]
            first = torch.where(held, 0.0, first)
            border = torch.where(held[None, :, None], 0.0, border)
            corner = torch.where(held[:, None] | held[None, :], 0.0, corner) + torch.diag(held.double())
        factor, info = torch.linalg.cholesky_ex(_damped(own, rates[count:].reshape(len(own), -1)))
        if int(info.abs().sum()):
            return torch.zeros_like(point)
        followed = torch.cholesky_solve(border.mT, factor)  # (groups, k, P)
        alone = torch.cholesky_solve(second[:, :, None], factor)
        schur = corner - torch.bmm(border, followed).sum(dim=0)
        right = first - torch.bmm(border, alone).sum(dim=0)[:, 0]
        common = _solved(schur, right)
        each = alone[:, :, 0] + followed @ common if count else alone[:, :, 0]
        move = torch.cat([common, -each.flatten()])
        return torch.where(torch.isfinite(move).all(), move, 0.0)[None]

    def promised(self, move: Tensor) -> Tensor:
        """By how much the loss falls according to these equations."""
        parts = spread(move, self.common, len(self.square))
        bent = torch.bmm(self.curvature, parts[:, :, None])[:, :, 0]
        fall: Tensor = -((2 * self.slope + bent) * parts).sum() / self.rows
        return fall[None]

    def where(self, accept: Tensor, other: Bordered) -> Bordered:
        """This one if it is accepted, or `other`."""
        return self if bool(accept) else other

    def errors(self, variance: float) -> Float[Tensor, "groups parameters"]:
        """The standard error of each parameter in each group (the same for all where it is common); infinite
        where the rows leave it free."""
        corner, border, own = self.blocks
        inverse, free = _inverse(own)
        followed = torch.bmm(inverse, border.mT)
        schur = corner - torch.bmm(border, followed).sum(dim=0)
        common, loose = _inverse(schur[None])
        each = inverse.diagonal(dim1=1, dim2=2) + ((followed @ common[0]) * followed).sum(dim=2)
        squares = self.slope.new_empty(len(own), len(self.common))
        squares[:, self.common] = torch.where(loose[0], torch.inf, common[0].diagonal())
        squares[:, self.own] = torch.where(free, torch.inf, each)
        return (variance * squares.clamp(min=0.0)).sqrt()


def spread(point: Tensor, common: Tensor, groups: int) -> Tensor:
    """A point `(1, P + groups·k)` as the parameters of each group, the common ones repeated."""
    count = int(common.sum())
    values = point.new_empty(groups, len(common))
    values[:, common] = point[0, :count]
    values[:, ~common] = point[0, count:].reshape(groups, -1)
    return values


def gathered(values: Tensor, common: Tensor) -> Tensor:
    """The point of parameters `(groups, parameters)`; a common one is their median."""
    return torch.cat([values[:, common].median(dim=0).values, values[:, ~common].flatten()])[None]


def _damped(curvature: Tensor, rates: Tensor) -> Tensor:
    scale = curvature.diagonal(dim1=1, dim2=2)
    floor = _RIDGE * scale.amax(dim=1, keepdim=True) + 1e-300 if scale.shape[1] else scale
    return curvature + torch.diag_embed((rates + _RIDGE) * scale + floor)


def _solved(schur: Tensor, right: Tensor) -> Tensor:
    """Minus the solution, by eigenvalues, since what is left of a block may be singular to rounding."""
    if not len(right) or not bool(torch.isfinite(schur).all() & torch.isfinite(right).all()):
        return torch.zeros_like(right)
    scale = schur.diagonal().clamp(min=1e-300).sqrt()
    values, vectors = torch.linalg.eigh(schur / scale[:, None] / scale)
    usable = values > _RIDGE * values[-1]
    along = (vectors.T @ (right / scale)) * torch.where(usable, 1 / torch.where(usable, values, 1.0), 0.0)
    solution: Tensor = -(vectors @ along) / scale
    return solution


def _inverse(blocks: Tensor) -> tuple[Tensor, Tensor]:
    """The inverse of each block, and which parameters it leaves free."""
    if not blocks.shape[-1] or not bool(torch.isfinite(blocks).all()):
        return torch.zeros_like(blocks), torch.ones(blocks.shape[:2], dtype=torch.bool)
    diagonal = blocks.diagonal(dim1=1, dim2=2)
    scale = torch.where(diagonal > 0, diagonal, 1.0).sqrt()
    values, vectors = torch.linalg.eigh(blocks / scale[:, :, None] / scale[:, None, :])
    free = values <= FREE_IN_SQUARES**2 * values[:, -1:]
    inverse = torch.where(free, 0.0, 1 / torch.where(free, 1.0, values))
    whole = (vectors * inverse[:, None, :]) @ vectors.mT / scale[:, :, None] / scale[:, None, :]
    loose = ((vectors.abs() > 1e-3) & free[:, None, :]).any(dim=2) | (diagonal <= 0)
    return whole, loose
