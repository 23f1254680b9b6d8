"""A structure fitted to groups of rows: every constant a group's own, or some of them common to all."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from eqlearn.numerics.bordered import Bordered, Sums, gathered, spread
from eqlearn.numerics.budget import never
from eqlearn.numerics.criteria import EXACT_ERROR, constant_cost, varying_cost
from eqlearn.numerics.least_squares import Normal, Rule, levenberg_marquardt
from eqlearn.search.groups.rows import GroupedRows
from eqlearn.search.groups.structure import Structure

# Rows whose slopes are in memory at a time.
_PIECE = 200_000


def sums(structure: Structure, rows: GroupedRows, values: Tensor) -> Sums:
    """What each group's rows say at constants `(groups, parameters)`."""
    count = len(structure.parameters)
    square = values.new_zeros(rows.count)
    slope, curvature = values.new_zeros(rows.count, count), values.new_zeros(rows.count, count, count)
    for start in range(0, rows.rows, _PIECE):
        piece = slice(start, start + _PIECE)
        codes, root = rows.codes[piece], rows.root[piece]
        value, slopes = structure(rows.columns[:, piece], values[codes].T)
        residual, steep = (value - rows.y[piece]) * root, slopes() * root[:, None]
        square.index_add_(0, codes, residual.square())
        slope.index_add_(0, codes, steep * residual[:, None])
        curvature.index_add_(0, codes, steep[:, :, None] * steep[:, None, :])
    return Sums(square, slope, curvature)


@dataclass(frozen=True, eq=False)
class GroupFit:
    """A structure with constants `(groups, parameters)`, those in `common` the same in all groups."""

    structure: Structure
    rows: GroupedRows
    values: Tensor
    common: Tensor
    system: Bordered
    held: int = 0  # common constants that were not fitted

    def at(self, values: Tensor, rows: GroupedRows) -> GroupFit:
        """The same with other constants, or on rows that are weighted otherwise."""
        system = Bordered(sums(self.structure, rows, values), self.common, rows.rows)
        return replace(self, rows=rows, values=values, system=system)

    @cached_property
    def error(self) -> float:
        """Root-mean-square error relative to the target's spread."""
        square = float(self.system.loss)
        return math.sqrt(square) / self.rows.spread if math.isfinite(square) else math.inf

    @cached_property
    def variance(self) -> float:
        """Of a residual, with a degree of freedom less for each constant."""
        common = int(self.common.sum())
        fitted = common - self.held + self.rows.count * (len(self.common) - common)
        mean = max(float(self.system.loss), (EXACT_ERROR * self.rows.spread) ** 2)
        return mean * self.rows.rows / max(1, self.rows.rows - fitted)

    @cached_property
    def errors(self) -> Tensor:
        """Standard errors `(groups, parameters)`."""
        return self.system.errors(self.variance)

    @cached_property
    def cost(self) -> float:
        """Nats for the data and the constants; the formula itself apart."""
        if not math.isfinite(self.error):
            return math.inf
        rows = self.rows.rows
        numbers = sum(
            constant_cost(float(v), float(e), rows)
            for v, e in zip(self.values[0, self.common], self.errors[0, self.common], strict=True)
        )
        return rows * math.log(max(self.error, EXACT_ERROR)) + numbers + self.varying_cost

    @cached_property
    def varying_cost(self) -> float:
        """Nats for the constants that each group has its own of."""
        # By the variance as the likelihood has it, so that a distance costs here what it saves there.
        variance = max(float(self.system.loss), (EXACT_ERROR * self.rows.spread) ** 2)
        information = (self.system.blocks[2] / variance).numpy()
        return varying_cost(self.values[:, ~self.common].numpy(), information, self.rows.rows)


@dataclass(frozen=True, eq=False)
class Prior:
    """What is known of constants beforehand: their `mean`, and how much each squared distance from it adds to
    the squared residuals."""

    mean: Tensor
    precision: Tensor

    def added(self, found: Sums, values: Tensor) -> Sums:
        """The sums of the rows and of this at constants `(groups, parameters)`."""
        away = values - self.mean
        return Sums(
            found.square + (self.precision * away.square()).sum(dim=1),
            found.slope + self.precision * away,
            found.curvature + torch.diag(self.precision),
        )


def fit_own(
    structure: Structure,
    rows: GroupedRows,
    start: Tensor,
    *,
    steps: int,
    prior: Prior | None = None,
    stop: Callable[[], bool] = never,
) -> GroupFit:
    """All constants fitted in each group alone from `start` `(groups, parameters)`, all groups at once."""
    sizes = rows.sizes.clamp(min=1).double()

    def linearise(point: Tensor) -> Normal:
        found = sums(structure, rows, point)
        found = found if prior is None else prior.added(found, point)
        loss, curvature, slope = (
            part / sizes.reshape(-1, *[1] * (part.ndim - 1))
            for part in (found.square, found.curvature, found.slope)
        )
        fine = torch.isfinite(loss) & torch.isfinite(curvature).flatten(1).all(dim=1)
        return Normal(torch.where(fine, loss, torch.inf), curvature, slope)

    linear = torch.from_numpy(structure.linear).expand_as(start)
    point = start
    if structure.linear.any():
        at_start = linearise(start)
        point = start + at_start.solve(torch.zeros_like(start), start, None, ~linear)
    enough = (EXACT_ERROR * rows.spread) ** 2 * 1e-6
    rule = Rule(steps, damping=1e-3, enough=enough, gain=1e-10)
    solved = linear if structure.linear.any() else None
    point, system = levenberg_marquardt(linearise, point, rule, linear=solved, stop=stop)
    none = torch.zeros(point.shape[1], dtype=torch.bool)
    whole = Sums(system.loss * sizes, system.slope * sizes[:, None], system.curvature * sizes[:, None, None])
    return GroupFit(structure, rows, point, none, Bordered(whole, none, rows.rows))


def fit_from_many(
    structure: Structure,
    rows: GroupedRows,
    start: np.ndarray,
    factors: tuple[float, ...],
    *,
    steps: int,
    prior: Prior | None = None,
    stop: Callable[[], bool] = never,
) -> GroupFit:
    """The same from `start` `(parameters,)` and from where each constant that bends the formula is so many
    times as large: each group goes on from the best of a few steps."""
    starts = [start]
    for i in np.flatnonzero(~structure.linear):
        for factor in factors:
            moved = start.copy()
            moved[i] *= factor
            starts.append(moved)
    times, count = len(starts), rows.count
    many = torch.tensor(np.repeat(np.array(starts), count, axis=0))
    if times > 1:
        tried = fit_own(
            structure, rows.repeated(times), many, steps=max(2, steps // 4), prior=prior, stop=stop
        )
        squares = tried.system.square.reshape(times, count)
        # The first start is kept unless another leads to less, so that signs agree between groups.
        squares = torch.cat([squares[:1] * (1 - 1e-4), squares[1:]])
        best = squares.nan_to_num(nan=torch.inf).argmin(dim=0)
        many = tried.values.reshape(times, count, -1)[best, torch.arange(count)]
        many = torch.where(torch.isfinite(many).all(dim=1, keepdim=True), many, torch.tensor(start))
    return _aligned(fit_own(structure, rows, many, steps=steps, prior=prior, stop=stop), prior)


def _aligned(fit: GroupFit, prior: Prior | None) -> GroupFit:
    """The fit with the same signs in all groups where another sign of one, two or three constants changes
    nothing: -a*sin(-b*x) is a*sin(b*x)."""
    signs = fit.values.sign()
    most = torch.where(signs.sum(dim=0) < 0, -1.0, 1.0)
    odd = signs * most < 0
    if prior is not None or not odd.any():
        return fit
    values, square = fit.values, fit.system.square
    count = values.shape[1]
    for some in (c for size in (1, 2, 3) for c in itertools.combinations(range(count), size)):
        fewer = odd[:, some].sum(dim=1) * 2 > len(some)
        if not fewer.any():
            continue
        turned = values.clone()
        turned[:, some] = -turned[:, some]
        after = sums(fit.structure, fit.rows, turned).square
        same = fewer & (after <= square * (1 + 1e-9) + (EXACT_ERROR * fit.rows.spread) ** 2)
        values = torch.where(same[:, None], turned, values)
        odd = values.sign() * most < 0
    return fit.at(values, fit.rows)


def fit_shared(
    structure: Structure,
    rows: GroupedRows,
    common: Tensor,
    start: Tensor,
    *,
    fixed: Tensor | None = None,
    steps: int,
    stop: Callable[[], bool] = never,
) -> GroupFit:
    """Constants in `common` fitted to all groups together, the others in each, from `start` `(groups,
    parameters)`; of the common ones, `fixed` `(common,)` stay where they are."""

    def linearise(point: Tensor) -> Bordered:
        return Bordered(sums(structure, rows, spread(point, common, rows.count)), common, rows.rows)

    point = gathered(start, common)
    held = None
    if fixed is not None:
        held = torch.zeros_like(point, dtype=torch.bool)
        held[0, : len(fixed)] = fixed
    enough = (EXACT_ERROR * rows.spread) ** 2 * 1e-6
    rule = Rule(steps, damping=1e-3, enough=enough, gain=1e-10)
    point, system = levenberg_marquardt(linearise, point, rule, fixed=held, stop=stop)
    values = spread(point, common, rows.count)
    return GroupFit(structure, rows, values, common, system, 0 if fixed is None else int(fixed.sum()))
