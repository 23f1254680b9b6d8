"""Least squares, linear and not: one Levenberg-Marquardt for constants, networks, motions and latents.

The loop (damping, acceptance, convergence) is written once, over a batch of members. The linear algebra is in
two kinds of system: `Normal` holds normal equations, for many members at once; `SquareRoot` holds the slopes
themselves, for one problem to all digits, with an optional nuisance block that is solved away. Both can be
summed over pieces of the rows.

`scipy.optimize.least_squares` does the same for one small dense problem, but has no batch, no nuisance block,
no changing penalty and no `stop`, and calls back for slopes of steps that it then refuses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, TypeVar, runtime_checkable

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from eqlearn.numerics.budget import never


def linear_fit(columns: Float[Tensor, "count rows"], y: Float[Tensor, " rows"]) -> Float[Tensor, " count"]:
    """The factors of the columns whose sum comes nearest to `y`."""
    return _solved(columns.mT, y)


def _solved(matrix: Tensor, right: Tensor) -> Tensor:
    # By singular values: torch's own choice, a pivoted QR, starts from pivots that nobody set, so that the
    # last digits of one and the same fit change from call to call.
    solution: Tensor = torch.linalg.lstsq(matrix, right[:, None], driver="gelsd").solution[:, 0]
    return solution


@dataclass(frozen=True)
class Rule:
    """How boldly a fit steps, and when it ends.

    The damping is divided by `down` after a step that lowers the objective, multiplied by `up` after one that
    does not and is refused, and stays within `least` and `most`. A member has come to rest when its loss is
    at most `enough`, or, with a `patience`, after more than that many steps in a row that gained no more than
    the share `gain`, refused ones among them: far from an optimum one such step says little. Without patience
    the first accepted step of so little gain ends it, or a refused one that is `rounding`, relative to the
    parameters, or at the most damping.
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
    penalty: Callable[[Tensor, int], Tensor] | None = None,
    units: Tensor | None = None,
    stop: Callable[[], bool] = never,
) -> tuple[Tensor, S]:
    """The parameters of every member that lower its loss from `point` on, and the system there.

    * `linearise(point)`: the system at a point, for all members.
    * `fixed`: parameters that stay where they are.
    * `linear`: parameters that the residuals are linear in. They are not damped, and solved exactly after
      every step (variable projection, Golub & Pereyra 1973).
    * `penalty(point, step)`: a coefficient for each squared parameter. Since it may change from step to step,
      such a fit takes all its steps.
    * `units`: sizes of the parameters below which moves are rounding even of a parameter that is zero.
    * `stop()`: asked before every step.

    A member that is not finite keeps its last finite parameters, or its start and an infinite loss.
    """
    system = linearise(point)
    damping = point.new_full((len(point),), rule.damping)
    idle = torch.zeros(len(point), dtype=torch.int64)
    at_rest = _hopeless_or_done(system, rule)
    for step in range(rule.steps):
        if stop() or (penalty is None and bool(at_rest.all())):
            break
        ridge = None if penalty is None else penalty(point, step)
        damped = damping[:, None].expand_as(point)
        damped = damped if linear is None else torch.where(linear, 0.0, damped)
        move = system.solve(damped, point, ridge, fixed)
        trial = point + move
        after = linearise(trial)
        if linear is not None:
            trial = trial + after.solve(torch.zeros_like(trial), trial, ridge, ~linear)
            after = linearise(trial)
        old, new = _objective(system, point, ridge), _objective(after, trial, ridge)
        accept = new < old
        little = ~accept | ((old - new) / old.clamp(min=1e-300) <= rule.gain)
        point = torch.where(accept[:, None], trial, point)
        system = after.where(accept, system)
        damping = torch.where(accept, damping / rule.down, damping * rule.up).clamp(rule.least, rule.most)
        idle = torch.where(little, idle + 1, 0)
        if rule.patience:
            at_rest = idle > rule.patience
        else:
            sizes = point.abs() if units is None else torch.maximum(point.abs(), units)
            vain = (move.abs() <= rule.rounding * sizes).all(dim=1) | (damping >= rule.most)
            at_rest = little & (accept | vain)
        at_rest = at_rest | _hopeless_or_done(system, rule)
    return point, system


def _hopeless_or_done(system: System, rule: Rule) -> Tensor:
    return ~torch.isfinite(system.loss) | (system.loss <= rule.enough)


def _objective(system: System, point: Tensor, ridge: Tensor | None) -> Tensor:
    return system.loss if ridge is None else system.loss + (ridge * point.square()).sum(dim=1)


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

    def where(self, accept: Tensor, other: Normal) -> Normal:
        """This one for the members in `accept`, `other` for the rest."""
        return Normal(
            torch.where(accept, self.loss, other.loss),
            torch.where(accept[:, None, None], self.curvature, other.curvature),
            torch.where(accept[:, None], self.slope, other.slope),
        )


class SquareRoot:
    """Residuals and slopes of one problem, solved by orthogonal transformations: no digit is squared away.

    Residuals are `(groups, numbers)`. Of the parameters, the first `P` meet all groups; each group may have
    `k` nuisance parameters that meet no other (the start of a segment of motion, the latent of a series).
    These are eliminated group by group, so that the system solved is as small as `P`, and come last in a
    point: `(1, P + groups·k)`. `slopes()` gives `(groups, numbers, P)` and `(groups, numbers, k)`, and is
    called once, where a step is taken from here; `rows` counts for the mean, all numbers unless given.
    """

    def __init__(
        self, residual: Tensor, slopes: Callable[[], tuple[Tensor, Tensor]], rows: int | None = None
    ) -> None:
        self.residual, self._slopes, self.rows = residual, slopes, rows or residual.numel()

    @classmethod
    def summed(cls, pieces: Iterable[tuple[Tensor, Tensor]]) -> SquareRoot:
        """From pieces of residuals `(numbers,)` and slopes `(numbers, P)`, each added to a triangle by QR."""
        triangle, rows = torch.empty(0), 0
        for residual, slopes in pieces:
            piece = torch.cat([slopes, residual[:, None]], dim=1)
            rows += len(piece)
            fine = bool(torch.isfinite(piece).all())
            both = torch.cat([triangle, piece]) if rows > len(piece) else piece
            triangle = torch.linalg.qr(both, mode="r").R if fine else torch.full_like(both[:1], torch.nan)
        slopes, residual = triangle[None, :, :-1], triangle[None, :, -1]
        return cls(residual, lambda: (slopes, slopes[..., :0]), rows)

    @cached_property
    def loss(self) -> Tensor:
        """The mean squared residual, infinite if it is not finite."""
        mean = self.residual.square().sum() / self.rows
        return torch.where(torch.isfinite(mean), mean, torch.inf)[None]

    @cached_property
    def slopes(self) -> tuple[Tensor, Tensor]:
        """By the parameters of all groups, and by each group's own."""
        return self._slopes()

    @cached_property
    def followed(self) -> Float[Tensor, "numbers parameters"]:
        """The slopes by the common parameters once every group's own parameters have followed."""
        slopes, own = self.slopes
        if own.shape[-1]:
            basis = torch.linalg.qr(own).Q
            slopes = slopes - basis @ (basis.mT @ slopes)
        return slopes.flatten(0, 1)

    def solve(self, damping: Tensor, point: Tensor, ridge: Tensor | None, fixed: Tensor | None) -> Tensor:
        """By QR for each group's own parameters, and by singular values for the common ones."""
        slopes, own = self.slopes
        groups, _, count = slopes.shape
        move = torch.zeros_like(point[0])
        free = torch.arange(count) if fixed is None else (~fixed[0, :count]).nonzero()[:, 0]
        slopes, residual = slopes[..., free], self.residual[..., None]
        # Scales of the whole problem, as if nothing were eliminated: damping then means the same for all.
        scale = _lengths(slopes.flatten(0, 1), 0)
        q, r = own[..., :0], own[..., :0]
        if own.shape[-1]:
            roots = damping[0, count:].view(groups, -1).sqrt() * _lengths(own, 1)
            q, r = torch.linalg.qr(torch.cat([own, torch.diag_embed(roots)], dim=1))
            none = own.shape[-1]
            slopes, residual = (torch.nn.functional.pad(t, (0, 0, 0, none)) for t in (slopes, residual))
        along, off = q.mT @ slopes, q.mT @ residual
        matrix = [(slopes - q @ along).flatten(0, 1) / scale, torch.diag(damping[0, free].sqrt())]
        right = [-(residual - q @ off).flatten(), damping.new_zeros(len(free))]
        if ridge is not None:
            root = (self.rows * ridge[0, free]).sqrt()
            matrix.append(torch.diag(root / scale))
            right.append(-root * point[0, free])
        rows = torch.cat(matrix)
        if len(free) and bool(torch.isfinite(rows).all()):
            move[free] = _solved(rows, torch.cat(right)) / scale
        if own.shape[-1]:
            rest = off + along @ move[free][:, None]
            move[count:] = -torch.linalg.solve_triangular(r, rest, upper=True).flatten()
        return move[None]

    def where(self, accept: Tensor, other: SquareRoot) -> SquareRoot:
        """This one if it is accepted, or `other`."""
        return self if bool(accept) else other


def _lengths(columns: Tensor, dim: int) -> Tensor:
    """The length of each column, 1 for one that is zero."""
    lengths: Tensor = columns.norm(dim=dim)
    return torch.where(lengths > 0, lengths, 1.0)
