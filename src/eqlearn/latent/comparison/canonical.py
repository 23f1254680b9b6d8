"""The canonical gauge: constants that the encoders can make up for, or that the data do not need, go.

An encoder's latent has an arbitrary scale and zero. Here each constant of a law is tried at its simplest
value (nothing added, a factor of one or minus one) with the latents free to follow; it stays there if no more
than a little is left over. What remains is snapped where a simple number does as well. Where a sign is free,
latents are positive; where the zero of a latent is free, its mean is zero, and where its scale is, its spread
is one.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy as sp
import torch

from eqlearn.latent.comparison.served import Batch, Comparison, Served
from eqlearn.latent.comparison.structures import SCALE, by_output, leaves, symbolic
from eqlearn.latent.settings import LATENT, LatentSettings
from eqlearn.numerics.budget import never
from eqlearn.numerics.covariance import errors_from_curvature
from eqlearn.numerics.least_squares import Rule, levenberg_marquardt
from eqlearn.symbolic.equation import Equation
from eqlearn.symbolic.expressions import fitted, real_symbol
from eqlearn.symbolic.snap import snap_constant, trusted_bits


@dataclass(frozen=True, eq=False)
class Reduced:
    """A fit some of whose numbers are exact: `exact` holds those by place, `errors` the standard errors of
    the others, with the bends free to follow."""

    fit: Served
    exact: dict[int, sp.Expr]
    errors: np.ndarray

    @property
    def fixed(self) -> np.ndarray:
        held = np.zeros(len(self.fit.numbers), dtype=bool)
        held[list(self.exact)] = True
        return held

    def equations(self, latents: Sequence[str], columns: Sequence[str]) -> tuple[Equation, ...]:
        """The law, one equation for each output, in these names."""
        numbers = [self.exact.get(i, fitted(float(v))) for i, v in enumerate(self.fit.numbers)]
        hidden, seen = ([real_symbol(name) for name in names] for names in (latents, columns))
        trees, found = self.fit.trees, []
        for tree, (_, factors, own, (factor, offset)) in zip(trees, by_output(trees, numbers), strict=True):
            scaled = [c * x for c, x in zip(factors, seen, strict=True)]
            inner = symbolic(tree, [*hidden, *scaled], iter(own))
            found.append(Equation(factor * inner + offset, (*latents, *columns)).simplified())
        return tuple(found)


class _Fitting:
    """Fits of one law with some of its numbers held, from several points at once."""

    def __init__(self, data: Comparison, trees: tuple[Any, ...], stop: Callable[[], bool]) -> None:
        self.data, self.trees, self.stop = data, trees, stop
        self.batch = Batch(data, [trees], 1)

    def fit(
        self, points: Sequence[np.ndarray], held: np.ndarray, steps: int = 40
    ) -> list[tuple[np.ndarray, float]]:
        batch = Batch(self.data, [self.trees] * len(points), 1)
        fixed = torch.from_numpy(held)[None].expand(len(points), -1)
        linear = batch.linear & ~fixed
        point, system = levenberg_marquardt(
            batch.linearise,
            torch.from_numpy(np.stack(points)),
            Rule(steps, damping=1e-3, gain=1e-4, patience=3, least=1e-12),
            fixed=fixed,
            linear=linear if bool(linear.any()) else None,
            settle=lambda at: batch.settled(at, fixed),
            stop=self.stop,
        )
        return [(p.numpy(), float(loss)) for p, loss in zip(point, system.loss, strict=True)]

    def errors(self, point: np.ndarray, held: np.ndarray) -> np.ndarray:
        """Standard errors of all numbers but the bends' own, those held zero."""
        system = self.batch.linearise(torch.from_numpy(point)[None])
        free = np.flatnonzero(~held)
        count = self.data.rows * len(self.data.spreads)
        curvature = system.curvature[0].numpy()[np.ix_(free, free)] * count
        variance = float(system.loss) * count / max(1, count - len(free))
        errors = np.zeros(len(point))
        errors[free] = errors_from_curvature(curvature, variance)
        return errors[self.batch.factors :]

    def served(self, point: np.ndarray, error: float) -> Served:
        return self.batch.fits(torch.from_numpy(point)[None], torch.tensor([error], dtype=torch.float64))[0]


def reduce(
    data: Comparison,
    fit: Served,
    *,
    settings: LatentSettings = LATENT,
    stop: Callable[[], bool] = never,
    known: dict[int, sp.Expr] | None = None,
) -> Reduced:
    """The law without the numbers that its encoders can make up for or the data do not need; see above. With
    `known` exact numbers, the others are fitted, without outliers, and nothing more is tried."""
    if known is not None:  # joint training did not follow outliers, so the last fit must not either
        data = data.near(fit, settings.outlying, settings.exact)
    fitting = _Fitting(data, fit.trees, stop)
    batch = fitting.batch
    begin = batch.factors
    point = batch.continued([fit])[0].numpy()
    held = np.zeros(len(point), dtype=bool)
    exact: dict[int, sp.Expr] = dict(known or {})
    for place, number in exact.items():
        held[begin + place], point[begin + place] = True, float(number)
    ((point, error),) = fitting.fit([point], held)
    if known is not None:
        return Reduced(fitting.served(point, error), exact, fitting.errors(point, held))
    limit = settings.removal * error + 1e-9
    for place, simple in _simplest(batch, fit):
        if stop():
            break
        if held[place]:
            continue
        trials = [(value, p) for value in simple for p in _moved(data, batch, point, place, float(value))]
        hold = held.copy()
        hold[place] = True
        results = fitting.fit([p for _, p in trials], hold)
        good = [(v, p, e) for (v, _), (p, e) in zip(trials, results, strict=True) if e <= limit]
        if not good:
            continue
        value, point, _ = min(good, key=lambda g: (-_positive(data, batch, g[1]), g[0] < 0, g[2]))
        held, exact[place - begin] = hold, sp.S(value)
    for place in range(begin, len(point)):
        now = float(point[place])
        if held[place] or not math.isfinite(now) or stop():
            continue
        width = max(settings.snapped * abs(now), 1e-12)
        number = snap_constant(now, width, max_cost=trusted_bits(now, width))
        if number is None:
            continue
        hold, moved = held.copy(), point.copy()
        hold[place], moved[place] = True, float(number)
        ((there, left),) = fitting.fit([moved], hold)
        if left <= limit:
            point, held, exact[place - begin] = there, hold, number
    ((point, error),) = fitting.fit([point], held)
    point = _conventions(data, batch, point)
    errors = fitting.errors(point, held)
    return Reduced(fitting.served(point, error), exact, errors)


def _simplest(batch: Batch, fit: Served) -> list[tuple[int, tuple[int, ...]]]:
    """Each number's place and simplest values, in the order in which they are tried: offsets, constants,
    factors of columns that stand more than once, factors of outputs, factors of the other columns; last, one
    for what is added inside and can't be nothing. A column that does not stand in a law has no factor."""
    outputs, columns = len(fit.trees), len(batch.columns)
    tried: list[tuple[int, tuple[int, ...]]] = []
    tried += [(batch.readout + 2 * o + 1, (0,)) for o in range(outputs)]
    at, added = batch.own, []
    for program in batch.programs[0]:
        for step in program.own:
            scales = program.steps[step][0] == SCALE
            tried.append((at, (1, -1) if scales else (0,)))
            added += [] if scales else [(at, (1, -1))]
            at += 1
    latents = len(batch.data.slots)
    often: list[tuple[int, tuple[int, ...]]] = []
    once: list[tuple[int, tuple[int, ...]]] = []
    for o, tree in enumerate(fit.trees):
        standing = Counter(leaf for leaf, _ in leaves(tree))
        for j in range(columns):
            times = standing[latents + j]
            one = (batch.factors + o * columns + j, (1, -1) if times else (1,))
            (often if times > 1 else once).append(one)
    factors = [(batch.readout + 2 * o, (1, -1)) for o in range(outputs)]
    return [*tried, *often, *factors, *once, *added]


def _moved(data: Comparison, batch: Batch, point: np.ndarray, place: int, value: float) -> list[np.ndarray]:
    """Where to start once a number has its simplest value: the latents as they are, and scaled or shifted so
    as to make up for it."""
    before = float(point[place])
    starts = []
    if value == 0:
        factor = float(point[batch.readout]) if place >= batch.readout else 1.0
        whole = before / factor if factor else 0.0
        shifts = [0.0, *(whole * s for s in (1.0, 0.5, -1.0, 1 / 3))]
        starts = [_regauged(data, batch, point, 1.0, shift) for shift in shifts]
    else:
        ratio = before / value
        size = max(abs(ratio), 1e-12)
        for power in (0.0, 1.0, 0.5, -1.0):
            for sign in (1.0, -1.0):
                starts.append(_regauged(data, batch, point, sign * size**power, 0.0))
    for start in starts:
        start[place] = value
    return starts


def _regauged(data: Comparison, batch: Batch, point: np.ndarray, scale: float, shift: float) -> np.ndarray:
    """All latents scaled and shifted."""
    moved = point.copy()
    for g in range(len(data.identities)):
        _scale_group(data, batch, moved, g, scale, shift)
    return moved


def _scale_group(
    data: Comparison, batch: Batch, point: np.ndarray, group: int, scale: float, shift: float
) -> None:
    a, b = int(batch.bend_ends[group]), int(batch.bend_ends[group + 1])
    functions = batch.shapes[group][1]
    block = point[a:b].reshape(batch.shapes[group])
    # The splines of one latent sum to one; of several, the first function is one.
    ones = np.ones(functions) if len(data.identities[group]) == 1 else np.eye(functions)[0]
    point[a:b] = (scale * block + shift * ones).ravel()


def _positive(data: Comparison, batch: Batch, point: np.ndarray) -> int:
    """How many latents are positive in nearly all rows, less those that are negative in as many."""
    values = [point[batch.place(slot)] @ batch.designs[slot.input] for slot in data.slots]
    return sum(int(np.mean(v > 0) > 0.9) - int(np.mean(v < 0) > 0.9) for v in values)


def _conventions(data: Comparison, batch: Batch, point: np.ndarray) -> np.ndarray:
    """The freedom that is left: signs so that latents are positive, zeros so that their mean is zero, scales
    so that their spread is one, each only where the law's values stay as they are."""
    before = batch.linearise(torch.from_numpy(point)[None]).loss
    for group in range(len(data.identities)):
        slots = [s for s in data.slots if s.group == group]
        values = np.concatenate([point[batch.place(s)] @ batch.designs[s.input] for s in slots])
        mean, spread = float(values.mean()), float(values.std()) or 1.0
        for scale, shift in ((1.0, -mean), (1 / spread, 0.0), (-1.0, 0.0)):
            if scale == -1.0 and not np.mean(values < 0) > 0.5:
                continue
            moved = point.copy()
            _scale_group(data, batch, moved, group, scale, shift)
            after = batch.linearise(torch.from_numpy(moved)[None]).loss
            if bool(after <= before * (1 + 1e-6) + 1e-12):
                point = moved
    return point
