"""The served comparison: every structure fitted with its latents free to bend, as one batch of least squares.

What a latent means is its encoder's choice: behind z**2 a straight line is as good an equation as a parabola
behind z. So structures are compared after the bend that suits each best, fitted together with its constants.
Nothing is trained; columns, which are measured, do not bend.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from eqlearn.latent.comparison.structures import Program, Tree, compiled, size
from eqlearn.numerics.budget import never
from eqlearn.numerics.least_squares import Normal, Rule, levenberg_marquardt

# Sign, shift and size of the latents, which come with mean 0 and spread 1, where fits start.
_STARTS = ((1.0, 0.0, 1.0), (1.0, 2.5, 1.0), (-1.0, 2.5, 1.0), (1.0, -2.5, 0.4), (-1.0, -2.5, 0.4))


@dataclass(frozen=True, eq=False)
class Served:
    """A structure for each output, and what suits it best: the coefficients of the bends, (slots, functions)
    by group, a factor for each column's place, inner constants, and a factor and offset of each output.

    `error` is the mean square that is left, in units of the targets' variance.
    """

    trees: tuple[Tree, ...]
    error: float
    bends: tuple[Tensor, ...]
    factors: np.ndarray
    constants: np.ndarray
    readout: np.ndarray

    @property
    def size(self) -> int:
        return sum(size(tree) for tree in self.trees)

    @property
    def numbers(self) -> np.ndarray:
        """All numbers but the bends': factors of columns, constants, factor and offset of each output."""
        return np.concatenate([self.factors, self.constants, self.readout])


@dataclass(frozen=True, eq=False)
class Comparison:
    """The data that structures are compared on, in the user's units.

    `designs` are the basis functions of each input's latents, `(rows, functions)`; `slots` says which input
    and which coefficients each latent of an equation uses; `identities` `(latents, functions)` are, for each
    group, the coefficients that leave its latents as they are, `counts` how many of them, mixed, it may use.
    `columns` are `(columns, rows)`, targets `y` `(outputs, rows)`; errors are divided by the targets'
    `spreads`.
    """

    designs: tuple[Tensor, ...]
    slots: tuple[Slot, ...]
    identities: tuple[Tensor, ...]
    counts: tuple[int, ...]
    columns: Tensor
    y: Tensor
    spreads: Tensor

    @property
    def rows(self) -> int:
        return self.y.shape[1]

    def some(self, count: int) -> Comparison:
        """The same with `count` of the rows, spread evenly."""
        if count >= self.rows:
            return self
        return self._of(torch.linspace(0, self.rows - 1, count).round().long())

    def near(self, fit: Served, factor: float, exact: float) -> Comparison:
        """The same without the rows that a fit misses by more than `factor` robust standard deviations, as it
        does pictures that no one can read. Errors below `exact`, of a target's spread, are no outliers."""
        batch = Batch(self, [fit.trees], 1)
        missed = batch.residuals(batch.continued([fit])).reshape(len(self.y), self.rows).abs()
        bound = (factor * 1.4826 * missed.median(dim=1, keepdim=True).values).clamp(min=exact)
        return self._of((missed <= bound).all(dim=0).nonzero().flatten())

    def _of(self, rows: Tensor) -> Comparison:
        designs = tuple(d[rows] for d in self.designs)
        return replace(self, designs=designs, columns=self.columns[:, rows], y=self.y[:, rows])

    def of_output(self, output: int) -> Comparison:
        """The same with one of the targets."""
        return replace(self, y=self.y[output : output + 1], spreads=self.spreads[output : output + 1])


@dataclass(frozen=True)
class Slot:
    """A latent of the equation: of which input, of which group of shared encoders, and which of its own."""

    name: str
    input: int
    group: int
    place: int


class Batch:
    """Several structures from several starts each, as one least-squares problem.

    Parameters of a member: the coefficients of all bends, a factor for each column in each output, the inner
    constants, and a factor and an offset for each output.
    """

    def __init__(self, data: Comparison, trees: Sequence[tuple[Tree, ...]], starts: int) -> None:
        self.data, self.trees, self.starts = data, list(trees), starts
        self.programs = [[compiled(tree) for tree in each] for each in self.trees]
        outputs = data.y.shape[0]
        self.columns = data.columns.numpy()
        self.designs = [d.numpy().T.copy() for d in data.designs]
        self.shapes = [(c, ident.shape[1]) for c, ident in zip(data.counts, data.identities, strict=True)]
        sizes = [count * functions for count, functions in self.shapes]
        self.bend_ends = np.cumsum([0, *sizes])
        self.factors = int(self.bend_ends[-1])
        self.own = self.factors + outputs * len(self.columns)
        most = max(sum(p.constants for p in each) for each in self.programs)
        self.readout = self.own + most
        self.parameters = self.readout + 2 * outputs
        self.y, self.spreads = data.y.numpy(), data.spreads.numpy()
        self.levels = self.y.mean(axis=1)

    def place(self, slot: Slot) -> slice:
        functions = self.data.identities[slot.group].shape[1]
        begin = int(self.bend_ends[slot.group]) + slot.place * functions
        return slice(begin, begin + functions)

    def begin(self, generator: np.random.Generator) -> Tensor:
        """Starts, by turns: latents as they are or turned, about zero, all positive or all negative, the last
        ones small, so that exponentials are; constants at rest or a little above, away from poles; factors of
        both signs."""
        point = np.zeros((len(self.trees), self.starts, self.parameters))
        for s in range(self.starts):
            for g, identity in enumerate(self.data.identities):
                base, functions = identity.numpy(), identity.shape[1]
                for k in range(self.shapes[g][0]):
                    like_first = s < len(_STARTS)
                    sign, shift, size = _STARTS[s if like_first else generator.integers(len(_STARTS))]
                    plain = s < 2 or len(base) == 1
                    mixed = base[k] if plain else generator.normal(size=len(base)) @ base
                    begin = int(self.bend_ends[g]) + k * functions
                    point[:, s, begin : begin + functions] = size * (sign * mixed + shift)
        sizes = np.sqrt(np.square(self.columns).mean(axis=1)) if len(self.columns) else np.ones(0)
        point[:, :, self.factors : self.own] = np.tile(1 / np.where(sizes > 0, sizes, 1.0), len(self.y))
        for i, programs in enumerate(self.programs):
            own = np.concatenate([p.start for p in programs])
            jitter = 0.3 * generator.normal(size=(self.starts, len(own)))
            turn = np.arange(self.starts)[:, None]
            lift = 0.5 * (turn % 3) * (own == 0)
            point[i, :, self.own : self.own + len(own)] = own * (-1.0) ** turn + jitter + lift
        point[:, :, self.readout :: 2] = self.spreads
        point[:, :, self.readout + 1 :: 2] = self.levels
        return torch.from_numpy(point.reshape(-1, self.parameters))

    def settled(self, point: Tensor, fixed: Tensor | None = None) -> Tensor:
        """The point with the factor and offset of each output that suit it best, but for those that are
        fixed. A start that leaves more than the mean would be bettered by any step onto a pole, from which
        none leads back."""
        theta = point.numpy().reshape(len(self.trees), self.starts, self.parameters).copy()
        held = np.zeros(theta.shape, dtype=bool) if fixed is None else fixed.numpy().reshape(theta.shape)
        with np.errstate(all="ignore"):
            for i, mine in enumerate(theta):
                for output, (program, variables, constants) in enumerate(self._written(i, mine)):
                    at = self.readout + 2 * output
                    value = np.broadcast_to(program.value(variables, constants), (len(mine), self.y.shape[1]))
                    mine[:, at : at + 2] = _line(
                        value, self.y[output], mine[:, at : at + 2], held[i, :, at : at + 2]
                    )
        return torch.from_numpy(theta.reshape(-1, self.parameters))

    def continued(self, fits: Sequence[Served]) -> Tensor:
        """The point where these fits stand."""
        point = np.zeros((len(fits), self.parameters))
        for row, fit in zip(point, fits, strict=True):
            row[: self.factors] = np.concatenate([b.numpy().ravel() for b in fit.bends])
            row[self.factors : self.own] = fit.factors
            row[self.own : self.own + len(fit.constants)] = fit.constants
            row[self.readout :] = fit.readout
        return torch.from_numpy(point)

    @property
    def linear(self) -> Tensor:
        mask = torch.zeros(len(self.trees) * self.starts, self.parameters, dtype=torch.bool)
        mask[:, self.readout :] = True
        return mask

    def linearise(self, point: Tensor) -> Normal:
        theta = point.numpy().reshape(len(self.trees), self.starts, self.parameters)
        outputs, rows = self.y.shape
        pieces: list[tuple[Tensor, Tensor, Tensor]] = []
        chunk = max(1, 4_000_000 // (self.starts * self.parameters * rows * outputs))
        for begin in range(0, len(self.trees), chunk):
            part = range(begin, min(begin + chunk, len(self.trees)))
            residual = np.empty((len(part), self.starts, outputs * rows))
            slopes = np.zeros((len(part), self.starts, self.parameters, outputs * rows))
            with np.errstate(all="ignore"):
                for k, i in enumerate(part):
                    self._member(i, theta[i], residual[k], slopes[k])
                flat = torch.from_numpy(slopes.reshape(-1, self.parameters, outputs * rows))
                left = torch.from_numpy(residual.reshape(-1, outputs * rows))
                system = Normal.summed([(left, flat, None)], outputs * rows)
            pieces.append((system.loss, system.curvature, system.slope))
        return Normal(*(torch.cat(parts) for parts in zip(*pieces, strict=True)))

    def residuals(self, point: Tensor) -> Tensor:
        """What each structure misses in each row, by its target's spread: `(structures x starts, rows)`."""
        theta = point.numpy().reshape(len(self.trees), self.starts, self.parameters)
        rows = self.y.size
        found = np.empty((len(self.trees), self.starts, rows))
        with np.errstate(all="ignore"):
            for i in range(len(self.trees)):
                self._member(i, theta[i], found[i], np.zeros((self.starts, self.parameters, rows)))
        return torch.from_numpy(found.reshape(-1, rows))

    def _written(self, i: int, theta: np.ndarray) -> Iterator[tuple[Program, list[np.ndarray], np.ndarray]]:
        """One structure's programs, one for each output, with their variables and constants here."""
        latents = [theta[:, self.place(slot)] @ self.designs[slot.input] for slot in self.data.slots]
        at = self.own
        for output, program in enumerate(self.programs[i]):
            first = self.factors + output * len(self.columns)
            scaled = [theta[:, first + j, None] * x for j, x in enumerate(self.columns)]
            yield program, [*latents, *scaled], theta[:, at : at + program.constants].T[:, :, None]
            at += program.constants

    def _member(self, i: int, theta: np.ndarray, residual: np.ndarray, slopes: np.ndarray) -> None:
        """Residuals and slopes of one structure's starts, written in place."""
        slots, rows = self.data.slots, self.y.shape[1]
        count, at = len(self.columns), self.own
        for output, (program, variables, constants) in enumerate(self._written(i, theta)):
            there = slice(output * rows, (output + 1) * rows)
            first = self.factors + output * count
            value, by_variable, by_constant = program.linearise(variables, constants)
            spread = self.spreads[output]
            factor = theta[:, self.readout + 2 * output, None] / spread
            offset = theta[:, self.readout + 2 * output + 1, None]
            residual[:, there] = factor * value + (offset - self.y[output]) / spread
            for variable, slope in by_variable.items():
                steep = np.broadcast_to(factor * slope, (self.starts, rows))
                if variable < len(slots):
                    slot = slots[variable]
                    slopes[:, self.place(slot), there] += steep[:, None] * self.designs[slot.input]
                else:
                    j = variable - len(slots)
                    slopes[:, first + j, there] += steep * self.columns[j]
            for j, slope in enumerate(by_constant):
                slopes[:, at + j, there] = factor * slope
            slopes[:, self.readout + 2 * output, there] = value / spread
            slopes[:, self.readout + 2 * output + 1, there] = 1 / spread
            at += program.constants

    def fits(self, point: Tensor, loss: Tensor) -> list[Served]:
        """The best start of each structure; infinite where none is finite."""
        by_tree = loss.reshape(len(self.trees), self.starts)
        best = by_tree.nan_to_num(nan=math.inf).argmin(dim=1)
        theta = point.reshape(len(self.trees), self.starts, self.parameters)
        found = []
        for i, programs in enumerate(self.programs):
            mine = theta[i, best[i]]
            bends = tuple(
                mine[int(a) : int(b)].reshape(shape).clone()
                for a, b, shape in zip(self.bend_ends[:-1], self.bend_ends[1:], self.shapes, strict=True)
            )
            numbers, own = mine.numpy(), sum(p.constants for p in programs)
            found.append(
                Served(
                    self.trees[i],
                    float(by_tree[i, best[i]]),
                    bends,
                    numbers[self.factors : self.own].copy(),
                    numbers[self.own : self.own + own].copy(),
                    numbers[self.readout :].copy(),
                )
            )
        return found


def _line(value: np.ndarray, y: np.ndarray, line: np.ndarray, held: np.ndarray) -> np.ndarray:
    """The factor and offset that take each row of values nearest to y; what is held stays as in `line`, and
    where no factor is finite both do."""
    level, mean, rows = value.mean(axis=1), y.mean(), len(y)
    about = value - level[:, None]
    square, product = np.einsum("sr,sr->s", about, about), about @ y
    whole = square + rows * level**2  # about zero, which counts where the offset is held
    slope = np.where(held[:, 1], (product + rows * level * (mean - line[:, 1])) / whole, product / square)
    factor = np.where(held[:, 0], line[:, 0], slope)
    offset = np.where(held[:, 1], line[:, 1], mean - factor * level)
    fine = np.isfinite(factor + offset) & (held.any(axis=1) | (square > 1e-24 * whole))
    return np.where(fine[:, None], np.stack([factor, offset], axis=1), line)


def serve(
    data: Comparison,
    trees: Sequence[tuple[Tree, ...]],
    *,
    starts: int = 4,
    steps: int = 12,
    seed: int = 0,
    stop: Callable[[], bool] = never,
) -> list[Served]:
    """Each structure (one for each output) fitted with free bends, from several starts."""
    batch = Batch(data, trees, starts)
    point = batch.settled(batch.begin(np.random.default_rng(seed)))
    rule = Rule(steps, damping=1.0, gain=1e-3, patience=2, least=1e-9)
    point, system = levenberg_marquardt(
        batch.linearise, point, rule, linear=batch.linear, settle=batch.settled, stop=stop
    )
    return batch.fits(point, system.loss)


def served_again(
    data: Comparison, fits: Sequence[Served], *, steps: int = 30, stop: Callable[[], bool] = never
) -> list[Served]:
    """The same structures fitted further, each from where it stands."""
    batch = Batch(data, [fit.trees for fit in fits], 1)
    rule = Rule(steps, damping=1e-3, gain=1e-4, patience=2, least=1e-12)
    point, system = levenberg_marquardt(
        batch.linearise, batch.continued(fits), rule, linear=batch.linear, settle=batch.settled, stop=stop
    )
    return batch.fits(point, system.loss)
