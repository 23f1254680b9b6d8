"""Least squares, linear and not: one Levenberg-Marquardt for constants, networks, motions and latents.

The loop (damping, acceptance, convergence) is written once, over a batch of members. The linear algebra is in
two kinds of system: `Normal` holds normal equations, for many members at once; `SquareRoot` holds the slopes
themselves, for one problem to all digits, with an optional nuisance block that is solved away. Both can be
summed over pieces of the rows.

`scipy.optimize.least_squares` finds the same optimum of one small dense problem (a test compares them), but
knows no batch of members, no nuisance block, no exactly solved linear block and no rows in pieces.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, TypeVar, runtime_checkable

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from eqlearn.numerics.budget import never


def linear_fit(columns: Float[Tensor, "count rows"], y: Float[Tensor, " rows"]) -> Float[Tensor, " count"]:
    """The factors of the columns whose sum comes nearest to `y`."""
    # By singular values: torch's own choice, a pivoted QR, starts from pivots that nobody set, so that the
    # last digits of one and the same fit change from call to call.
    factors: Tensor = torch.linalg.lstsq(columns.mT, y[:, None], driver="gelsd").solution[:, 0]
    return factors


@dataclass(frozen=True)
class Rule:
    """How boldly a fit steps, and when it ends.

    The damping is divided by `down` after a step that lowers the objective, multiplied by `up` after one that
    does not and is refused, and stays within `least` and `most`. A member is done when its loss is
    at most `enough`, or, with a `patience`, after more than that many steps in a row that gained no more than
    the share `gain`, refused ones among them: far from an optimum one such step says little. Without patience
    the first accepted step of so little gain ends it, or a refused one that promised no more, that was
    `rounding` relative to the parameters, or that was damped most.
    """

    steps: int
    damping: float = 1e-6
    down: float = 10.0
    up: float = 10.0
    least: float = 1e-15
    most: float = 1e6
    gain: float = 1e-14
    patience: int = 0
    enough: float = 0.0
    rounding: float = 1e-16


@runtime_checkable
class System(Protocol):
    """A least-squares problem made linear at a point, for each member of a batch."""

    @property
    def loss(self) -> Tensor:
        """The mean squared residual of each member, infinite where something is not finite."""

    def solve(self, damping: Tensor, point: Tensor, ridge: Tensor | None, fixed: Tensor | None) -> Tensor:
        """The damped step (Marquardt's scaling); `fixed` parameters do not move, `ridge` is the coefficient
        of each squared parameter in the objective. All arguments are `(members, parameters)`."""

    def promised(self, move: Tensor) -> Tensor:
        """By how much each member's loss falls if the problem is as linear as it looks from here."""

    def where(self: S, accept: Tensor, other: S) -> S:
        """This system for the members in `accept`, `other` for the rest."""


S = TypeVar("S", bound=System)


def levenberg_marquardt(
    linearise: Callable[[Tensor], S],
    point: Float[Tensor, "members parameters"],
    rule: Rule,
    *,
    fixed: Bool[Tensor, "members parameters"] | None = None,
    linear: Bool[Tensor, "members parameters"] | None = None,
    settle: Callable[[Tensor], Tensor] | None = None,
    penalty: Callable[[Tensor, int], Tensor] | None = None,
    units: Tensor | None = None,
    stop: Callable[[], bool] = never,
) -> tuple[Tensor, S]:
    """The parameters of every member that lower its loss from `point` on, and the system there.

    * `linearise(point)`: the system at a point, for all members.
    * `fixed`: parameters that stay where they are.
    * `linear`: parameters that the residuals are linear in. They are not damped, and solved exactly after
      every step (variable projection, Golub & Pereyra 1973).
    * `settle(point)`: the point with those parameters at their best, where that is cheaper than the system's
      own solution, which takes the slopes once more.
    * `penalty(point, step)`: a coefficient for each squared parameter. Since it may change from step to step,
      such a fit takes all its steps.
    * `units`: sizes of the parameters below which moves are rounding even of a parameter that is zero.
    * `stop()`: asked before every step.

    A member that is not finite keeps its last finite parameters, or its start and an infinite loss.
    """
    system = linearise(point)
    # What there is one of for each member is kept in NumPy, where small arrays cost less.
    damping, idle = np.full(len(point), rule.damping), np.zeros(len(point), dtype=int)
    at_rest = _hopeless_or_done(system, rule)
    bent = None if linear is None else ~linear if fixed is None else ~linear | fixed
    for step in range(rule.steps):
        if stop() or (penalty is None and at_rest.all()):
            break
        ridge = None if penalty is None else penalty(point, step)
        damped = torch.from_numpy(damping)[:, None].expand_as(point)
        damped = damped if linear is None else torch.where(linear, 0.0, damped)
        move = system.solve(damped, point, ridge, fixed)
        trial = point + move
        trial = trial if settle is None else settle(trial)
        after = linearise(trial)
        if bent is not None and settle is None:
            trial = trial + after.solve(torch.zeros_like(trial), trial, ridge, bent)
            after = linearise(trial)
        old, new = _objective(system, point, ridge), _objective(after, trial, ridge)
        accept = new < old
        with np.errstate(invalid="ignore"):
            little = ~accept | ((old - new) / np.maximum(old, 1e-300) <= rule.gain)
        if accept.all():
            point, system = trial, after
        elif accept.any():
            chosen = torch.from_numpy(accept)
            point, system = torch.where(chosen[:, None], trial, point), after.where(chosen, system)
        damping = np.where(accept, damping / rule.down, damping * rule.up)
        damping = np.minimum(np.maximum(damping, rule.least), rule.most)
        idle = np.where(little, idle + 1, 0)
        if rule.patience:
            at_rest = idle > rule.patience
        else:
            at_rest = little & (accept | (damping >= rule.most))
            if not at_rest.all() and not accept.all():
                sizes = point.abs() if units is None else torch.maximum(point.abs(), units)
                rounding = (move.abs() <= rule.rounding * sizes).all(dim=1)
                vain = rounding | (system.promised(move) <= rule.gain * system.loss)
                at_rest = at_rest | (~accept & vain.numpy())
        at_rest = at_rest | _hopeless_or_done(system, rule)
    return point, system


def _hopeless_or_done(system: System, rule: Rule) -> np.ndarray:
    loss = system.loss.numpy()
    return np.asarray(~np.isfinite(loss) | (loss <= rule.enough))


def _objective(system: System, point: Tensor, ridge: Tensor | None) -> np.ndarray:
    loss = system.loss if ridge is None else system.loss + (ridge * point.square()).sum(dim=1)
    return loss.numpy()


@dataclass(frozen=True)
class Normal:
    """Normal equations: the mean squared residual, curvature `(members, P, P)` and slope `(members, P)`."""

    loss: Tensor
    curvature: Tensor
    slope: Tensor

    @classmethod
    def summed(cls, pieces: Iterable[tuple[Tensor, Tensor, Tensor | None]], rows: int) -> Normal:
        """From pieces of the residuals `(members, numbers)`, their slopes `(members, P, numbers)` and weights
        `(numbers,)` or none, over `rows`: memory stays bounded however many there are."""
        total: list[Tensor] = []
        for residual, slopes, weight in pieces:
            weighted = residual if weight is None else residual * weight
            steep = slopes if weight is None else slopes * weight
            parts = (
                (residual * weighted).sum(dim=1),
                torch.bmm(steep, slopes.mT),
                torch.bmm(slopes, weighted[:, :, None])[:, :, 0],
            )
            total = [t + part for t, part in zip(total, parts, strict=True)] if total else list(parts)
        loss, curvature, slope = (t / rows for t in total)
        fine = torch.isfinite(loss) & torch.isfinite(curvature).flatten(1).all(dim=1)
        return cls(torch.where(fine, loss, torch.inf), curvature, slope)

    def solve(self, damping: Tensor, point: Tensor, ridge: Tensor | None, fixed: Tensor | None) -> Tensor:
        """By Cholesky's decomposition; a member whose curvature has none does not move."""
        curvature, slope = self.curvature, self.slope
        added = torch.zeros_like(point) if ridge is None else ridge
        if fixed is not None:
            added = torch.where(fixed, 0.0, added)
            curvature = torch.where(fixed[:, :, None] | fixed[:, None, :], 0.0, curvature)
            slope = torch.where(fixed, 0.0, slope)
        slope = slope + added * point
        curvature = curvature + torch.diag_embed(added if fixed is None else added + fixed)
        scale = curvature.diagonal(dim1=1, dim2=2)
        floor = 1e-12 * scale.amax(dim=1, keepdim=True) + 1e-30
        factor, info = torch.linalg.cholesky_ex(curvature + torch.diag_embed(damping * scale + floor))
        solution = torch.cholesky_solve(slope[:, :, None], factor)[:, :, 0]
        usable = (info == 0) & torch.isfinite(solution).all(dim=1)
        return torch.where(usable[:, None], -solution, 0.0)

    def promised(self, move: Tensor) -> Tensor:
        """By how much each member's loss falls according to these equations."""
        bent = torch.bmm(self.curvature, move[:, :, None])[:, :, 0]
        fall: Tensor = -((2 * self.slope + bent) * move).sum(dim=1)
        return fall

    def where(self, accept: Tensor, other: Normal) -> Normal:
        """This one for the members in `accept`, `other` for the rest."""
        return Normal(
            torch.where(accept, self.loss, other.loss),
            torch.where(accept[:, None, None], self.curvature, other.curvature),
            torch.where(accept[:, None], self.slope, other.slope),
        )


class SquareRoot:
    """Residuals and slopes of one problem, solved by orthogonal transformations: no digit is squared away.

    Residuals are `(groups, numbers)`. The first `P` parameters act on all groups; each group may have
    `k` nuisance parameters that act on no other (the start of a segment of motion, the latent of a series).
    These are eliminated group by group, so that the system solved is as small as `P`, and come last in a
    point: `(1, P + groups·k)`; none of them can be fixed or penalised. `slopes()` gives `(groups, numbers,
    P)`, and `(groups, numbers, k)` or none; it is called once, and only where a step is taken from here. The
    mean is over `rows`, all numbers unless given.
    """

    def __init__(
        self,
        residual: np.ndarray,
        slopes: Callable[[], tuple[np.ndarray, np.ndarray | None]],
        rows: int | None = None,
    ) -> None:
        self.residual, self._slopes, self.rows = residual, slopes, rows or residual.size

    @classmethod
    def summed(cls, pieces: Iterable[tuple[np.ndarray, np.ndarray]]) -> SquareRoot:
        """From pieces of residuals `(numbers,)` and slopes `(numbers, P)`, each added to a triangle by QR."""
        rows, triangle = 0, np.empty((0, 0))
        for residual, slopes in pieces:
            both = np.column_stack([slopes, residual])
            rows += len(both)
            both = np.vstack([triangle, both]) if triangle.size else both
            fine = np.isfinite(both).all()
            triangle = np.asarray(np.linalg.qr(both, mode="r")) if fine else np.full_like(both[:1], np.nan)
        return cls(triangle[None, :, -1], lambda: (triangle[None, :, :-1], None), rows)

    @cached_property
    def loss(self) -> Tensor:
        """The mean squared residual, infinite if it is not finite."""
        with np.errstate(all="ignore"):
            mean = float(np.vdot(self.residual, self.residual)) / max(1, self.rows)
        return torch.tensor([mean if math.isfinite(mean) else math.inf], dtype=torch.float64)

    @cached_property
    def slopes(self) -> tuple[np.ndarray, np.ndarray | None]:
        """By the parameters of all groups, and by each group's own."""
        return self._slopes()

    @property
    def followed(self) -> np.ndarray:
        """The slopes by the common parameters, `(all numbers, P)`, once each group's own have followed."""
        slopes, own = self.slopes
        if own is not None:
            basis = np.linalg.qr(own)[0]
            slopes = slopes - basis @ (_turned(basis) @ slopes)
        return slopes.reshape(self.residual.size, slopes.shape[2])

    def solve(self, damping: Tensor, point: Tensor, ridge: Tensor | None, fixed: Tensor | None) -> Tensor:
        """By QR for each group's own parameters, and by singular values for the common ones."""
        (slopes, own), residual, rates = self.slopes, self.residual[..., None], damping[0].numpy()
        count, move = slopes.shape[2], np.zeros(point.shape[1])
        free = np.arange(count) if fixed is None else np.flatnonzero(~fixed[0, :count].numpy())
        slopes = slopes if fixed is None else slopes[..., free]
        # Scales of the whole problem, as if nothing were eliminated: damping then means the same for all.
        scale = _lengths(slopes, (0, 1))
        if own is not None:
            roots = np.sqrt(rates[count:]).reshape(len(own), -1) * _lengths(own, 1)
            q, r = np.linalg.qr(np.concatenate([own, roots[:, :, None] * np.eye(own.shape[2])], axis=1))
            below = ((0, 0), (0, own.shape[2]), (0, 0))
            slopes, residual = np.pad(slopes, below), np.pad(residual, below)
            along, off = _turned(q) @ slopes, _turned(q) @ residual
            slopes, residual = slopes - q @ along, residual - q @ off
        matrix = [slopes.reshape(residual.size, len(free)) / scale, np.diag(np.sqrt(rates[free]))]
        right = [-residual.ravel(), np.zeros(len(free))]
        if ridge is not None:
            root = np.sqrt(self.rows * ridge[0].numpy()[free])
            matrix.append(np.diag(root / scale))
            right.append(-root * point[0].numpy()[free])
        rows = np.concatenate(matrix)
        if len(free) and np.isfinite(rows).all():
            move[free] = np.linalg.lstsq(rows, np.concatenate(right), rcond=None)[0] / scale
        if own is not None:
            move[count:] = -np.linalg.solve(r, off + along @ move[free][:, None]).ravel()
        return torch.from_numpy(move)[None]

    def promised(self, move: Tensor) -> Tensor:
        """By how much the loss falls according to the slopes."""
        (slopes, own), count = self.slopes, self.slopes[0].shape[2]
        change = slopes @ move[0, :count].numpy()
        if own is not None:
            change = change + (own @ move[0, count:].numpy().reshape(len(own), -1, 1))[..., 0]
        fall = -float(np.vdot(2 * self.residual + change, change)) / self.rows
        return torch.tensor([fall], dtype=torch.float64)

    def where(self, accept: Tensor, other: SquareRoot) -> SquareRoot:
        """This one if it is accepted, or `other`."""
        return self if bool(accept) else other


def _turned(matrices: np.ndarray) -> np.ndarray:
    return matrices.transpose(0, 2, 1)


def _lengths(columns: np.ndarray, axis: int | tuple[int, int]) -> np.ndarray:
    """The length of each column, 1 for one that is zero."""
    with np.errstate(all="ignore"):
        lengths = np.sqrt((columns**2).sum(axis=axis))
    return np.where(lengths > 0, lengths, 1.0)
