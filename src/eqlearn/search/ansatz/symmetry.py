"""Fewer variables: powers that come out as factors, pairs that matter only through one combination.

The symmetries of AI Feynman (Udrescu & Tegmark 2020), read off the slopes of a smooth surrogate of the data;
whether they hold shows when the smaller problem is solved exactly, or not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, combinations_with_replacement

import torch
from torch import Tensor

from eqlearn.numerics.budget import never
from eqlearn.numerics.criteria import FLATTEST
from eqlearn.numerics.least_squares import linear_fit
from eqlearn.search.ansatz.layout import Ansatz, Sum, Unit
from eqlearn.search.ansatz.target_transform import transforms
from eqlearn.search.features import Features
from eqlearn.search.networks.fit import Samples
from eqlearn.search.networks.structures import Vocabulary
from eqlearn.search.problem import Problem


@dataclass(frozen=True)
class Column:
    """A variable of the smaller problem: its values, its formula in the inputs of the larger one, and, if it
    is positive and a product of powers, those powers (by the places of the logarithms) and a factor's log."""

    value: Tensor
    term: Sum
    powers: tuple[tuple[int, float], ...] | None = None
    log_factor: float = 0.0

    @property
    def logarithm(self) -> Sum | None:
        return None if self.powers is None else Sum(self.powers, (), self.log_factor)


@dataclass(frozen=True)
class Reduction:
    """A target divided by powers of columns, as a function of fewer columns."""

    columns: tuple[Column, ...]
    target: Tensor
    factor: Sum  # the logarithm of what the target was divided by

    @property
    def divided(self) -> bool:
        return bool(self.factor.inputs)

    @property
    def in_range(self) -> bool:
        """Whether nothing overflows or vanishes, as where an input that hardly varies seems to have a high
        power, and every column varies: a sum that is conserved is no input."""
        columns = torch.stack([column.value for column in self.columns])
        finite = bool(columns.isfinite().all() and self.target.isfinite().all() and self.target.any())
        return finite and bool((columns.std(dim=1) > FLATTEST * columns.abs().amax(dim=1)).all())


def reduced(problem: Problem, stop: Callable[[], bool] = never) -> Reduction | None:
    """The target with as few variables as its symmetries allow; none if it has no symmetry, or if `stop()`
    holds before all are found."""
    features, x = problem.features, problem.samples.x
    places = dict(zip(features.logarithms, features.logarithm_inputs, strict=True))
    powers = [((places[i], 1.0),) if i in places else None for i in range(len(features.scales))]
    columns = tuple(
        Column(x[i] * size, Sum(((i, size),)), powers[i], math.log(size))
        for i, size in enumerate(features.scales)
    )
    state = Reduction(columns, problem.samples.y[0], Sum())
    for _ in range(2 * len(columns)):
        if stop():
            return None
        options = (
            o for o in _options(state, problem)
            if o[0] <= problem.settings.symmetry.tolerance and o[1].in_range
        )  # fmt: skip
        best = min(options, key=lambda option: option[0], default=None)
        if best is None:
            break
        state = best[1]
    return state if len(state.columns) < len(columns) and state.columns else None


def reduced_problem(state: Reduction, problem: Problem, degree: int) -> Problem:
    """The smaller problem, for the same kinds of units."""
    X = torch.stack([c.value for c in state.columns]).mT.numpy()
    features = Features.of(
        X, state.target.numpy(), logarithms=bool(problem.features.logarithms), degree=degree
    )
    y = state.target[None] / features.outputs[0]
    samples = Samples(features.tensor(X), y, problem.samples.weight)
    unit = features.outputs[0] * problem.features.outputs[0]
    transformed = tuple(transforms(problem.vocabulary.unary, y, unit))
    return replace(problem, samples=samples, features=features, transforms=transformed)


def restored(ansatz: Ansatz, state: Reduction, smaller: Problem, problem: Problem) -> Ansatz | None:
    """A formula of the smaller problem as one of the larger."""
    find, features = problem.vocabulary.named, smaller.features
    term = _Translation(state, features, problem.vocabulary)(ansatz.readout)
    if term is None:
        return None
    if ansatz.transform is not None:
        unit = Unit(ansatz.transform.unit, (term * ansatz.transform.scale,))
        term = Sum(units=((unit, ansatz.transform.amplitude),))
    term = term * features.outputs[0]
    if state.divided:
        exponential, times = find("exp"), find("mul")
        if exponential is None or times is None:
            return None
        factor = Sum.of(Unit(exponential, (state.factor,)))
        term = Sum.of(Unit(times, (factor, term)))
    return Ansatz(None, term)


class _Translation:
    """Sums over the inputs of a smaller problem, rewritten over those of the larger."""

    def __init__(self, state: Reduction, features: Features, vocabulary: Vocabulary) -> None:
        self.state, self.features, self.vocabulary = state, features, vocabulary

    def __call__(self, term: Sum) -> Sum | None:
        total = Sum((), (), term.constant)
        for place, w in term.inputs:
            part = self._product(self.features.factors(place))
            if part is None:
                return None
            total = total + part * w
        for unit, w in term.units:
            arguments = [self(a) for a in unit.arguments]
            if any(a is None for a in arguments):
                return None
            total = total + Sum(units=((Unit(unit.primitive, tuple(a for a in arguments if a)), w),))
        return total

    def _product(self, factors: Sequence[int]) -> Sum | None:
        parts = [self._input(i) for i in factors]
        times = self.vocabulary.named("mul")
        if any(p is None for p in parts) or (len(parts) > 1 and times is None):
            return None
        known = [p for p in parts if p is not None]
        while len(known) > 1 and times is not None:
            first, second, *rest = sorted(known, key=lambda p: p.level)
            known = [*rest, Sum.of(Unit(times, (first, second)))]
        return known[0]

    def _input(self, place: int) -> Sum | None:
        columns = self.state.columns
        if place < len(columns):
            return columns[place].term * (1 / self.features.scales[place])
        number = self.features.logarithms[place - len(columns)]
        size = self.features.scales[number]
        known = columns[number].logarithm
        if known is not None:
            return known + Sum((), (), -math.log(size))
        logarithm = self.vocabulary.named("log")
        if logarithm is None:
            return None
        return Sum.of(Unit(logarithm, (columns[number].term * (1 / size),)))


@dataclass(frozen=True)
class _Slopes:
    """A surrogate's values and its slope along each column, at every row."""

    value: Tensor
    slopes: Tensor  # (columns, rows)
    logarithmic: bool


def _surrogate(columns: Sequence[Column], target: Tensor, degrees: Sequence[int]) -> _Slopes:
    """A polynomial in the columns (or their logarithms), for the target or its logarithm."""
    rows = len(target)
    one_sign = bool((target > 0).all() or (target < 0).all())
    y = target.abs().log() if one_sign else target
    variables, rates = [], []
    for column in columns:
        v = column.value
        positive = bool((v > 0).all())
        z = v.log() if positive else v
        low, high = z.min(), z.max()
        half = torch.clamp((high - low) / 2, min=1e-300)
        variables.append((z - (low + high) / 2) / half)
        rates.append((1 / v if positive else torch.ones_like(v)) / half)
    count = len(columns)
    degree = next(d for d in degrees if math.comb(count + d, d) <= rows / 3 or d == 1)
    terms = [t for d in range(degree + 1) for t in combinations_with_replacement(range(count), d)]
    z = torch.stack(variables)
    design = torch.stack([z[list(t)].prod(dim=0) for t in terms])
    solution = linear_fit(design, y)
    slopes = torch.zeros_like(z)
    for c, term in zip(solution.tolist(), terms, strict=True):
        for k in set(term):
            rest = list(term)
            rest.remove(k)
            slopes[k] += c * term.count(k) * z[rest].prod(dim=0)
    return _Slopes(solution @ design, slopes * torch.stack(rates), one_sign)


def _options(state: Reduction, problem: Problem) -> Iterator[tuple[float, Reduction]]:
    """Every step to fewer variables, with how far the slopes are from allowing it."""
    columns = state.columns
    if len(columns) < 2:
        return
    found = _surrogate(columns, state.target, problem.settings.symmetry.degrees)
    elastic = found.slopes * torch.stack([c.value for c in columns])
    largest = float(_size(elastic).max())
    against = torch.ones_like(found.value) if found.logarithmic else found.value
    if not largest > 0 or not float(against @ against) > 0:
        return
    for k, column in enumerate(columns):
        rest = (*columns[:k], *columns[k + 1 :])
        power = round(2 * float((elastic[k] @ against) / (against @ against))) / 2
        defect = float(_size(elastic[k] - power * against)) / largest
        if power == 0:
            yield defect, Reduction(rest, state.target, state.factor)
        elif column.logarithm is not None:
            target = state.target / column.value**power
            yield defect, Reduction(rest, target, state.factor + column.logarithm * power)
    for i, j in combinations(range(len(columns)), 2):
        rest = tuple(c for k, c in enumerate(columns) if k not in (i, j))
        first, second = columns[i], columns[j]
        size = _size(found.slopes[[i, j]]).sum()
        for sign in (1.0, -1.0):
            defect = float(_size(found.slopes[i] - sign * found.slopes[j]) / size)
            column = Column(first.value + sign * second.value, first.term + second.term * sign)
            yield defect, Reduction((*rest, column), state.target, state.factor)
        exponential = problem.vocabulary.named("exp")
        if exponential is None or first.logarithm is None or second.logarithm is None:
            continue
        size = _size(elastic[[i, j]]).sum()
        for sign in (1.0, -1.0):
            # y = bᵖ·f(a·b^±1), where p is what the elasticities differ by (or sum up to).
            gap = elastic[j] - sign * elastic[i]
            power = round(2 * float((gap @ against) / (against @ against))) / 2
            defect = float(_size(gap - power * against) / size)
            logarithm = first.logarithm + second.logarithm * sign
            term = Sum.of(Unit(exponential, (logarithm,)))
            value = first.value * second.value**sign
            column = Column(value, term, logarithm.inputs, logarithm.constant)
            target, factor = state.target / second.value**power, state.factor
            factor = factor + second.logarithm * power if power else factor
            yield defect + 1e-3 * abs(power), Reduction((*rest, column), target, factor)


def _size(slopes: Tensor) -> Tensor:
    """Root mean square along rows."""
    return slopes.square().mean(dim=-1).sqrt()
