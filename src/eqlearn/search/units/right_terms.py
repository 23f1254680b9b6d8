"""Laws that are dimensionally right, put together by size and compared with the data all at once.

By Buckingham's theorem a law is a sum of M·F: M is a product of powers of columns with the unit of the
target, F an expression in dimensionless products of columns. There are few of either that are short, so that,
even in noise, all M·F, M·F·G and sparse sums of M·F can be tried by least squares, for the target itself, its
inverse and its square.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
import sympy as sp

from eqlearn.nn.primitives import Primitive
from eqlearn.numerics.budget import never
from eqlearn.numerics.criteria import EXACT_ERROR
from eqlearn.search.units.buckingham import Expressions, Products, products_of
from eqlearn.search.units.unit_settings import Enumeration
from eqlearn.symbolic.expressions import fitted
from eqlearn.validation.units import Dimension

# Of each term of a sum, its product and its expression.
Places = tuple[tuple[int, int], ...]
# A sum: a number, the place of a product, and those of expressions it is multiplied with, for each term.
Terms = tuple[tuple[float, int, tuple[int, ...]], ...]


@dataclass(frozen=True, eq=False)
class RightTerms:
    """What sums for a power of the target `y` are put together from; each row tells as much of y as its
    `trust` says, and of that power, `target`, as its `root` does."""

    scales: Products
    expressions: Expressions
    power: int
    y: np.ndarray
    trust: np.ndarray
    how: Enumeration
    stop: Callable[[], bool]
    target: np.ndarray = field(init=False)
    root: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        # An error of y moves its power by as much as the slope. Where y is small, a square is known no better
        # for that, and an inverse is not known at all.
        size, small = float(np.sqrt(np.mean(self.y**2))), smallest(self.y, self.how)
        slope = np.abs(self.power * np.maximum(np.abs(self.y), self.how.floor * size) ** (self.power - 1.0))
        known = (np.abs(self.y) >= small) | (self.power > 0)
        object.__setattr__(self, "target", self.y**self.power)
        object.__setattr__(self, "root", np.where(known, self.trust / slope, 0.0))

    @property
    def sign(self) -> int:
        return -1 if self.power == 2 and self.y.sum() < 0 else 1

    def laws(self) -> Iterator[Law]:
        """The best sums of each kind, with numbers as they are fitted, and in proportion."""
        for terms in self.sums():
            yield Law(self, None, terms)
            for factor, whole in in_proportion([n for n, _, _ in terms], *self.how.proportion):
                yield Law(self, factor, tuple((n, m, f) for n, (_, m, f) in zip(whole, terms, strict=True)))

    def sums(self) -> Iterator[Terms]:
        """The best sums of each kind."""
        if len(self.scales.costs) and len(self.expressions):
            for kind in (self._twofold, self._one_by_one):
                if not self.stop():
                    yield from kind()

    def values(self, terms: Terms) -> np.ndarray:
        with np.errstate(all="ignore"):
            each = [n * self.scales.values[m] * self.expressions.values[list(f)].prod(axis=0)
                    for n, m, f in terms]  # fmt: skip
        return np.asarray(sum(each))

    def cost(self, terms: Terms) -> float:
        """What naming the terms costs, in nodes."""
        each = [self.scales.costs[m] + sum(1 + self.expressions.costs[e] for e in f) for _, m, f in terms]
        return float(sum(each))

    def _twofold(self) -> Iterator[Terms]:
        """a·M·F·G for the shortest of all."""
        some = min(len(self.expressions), self.how.factors)
        F, M = self.expressions.values[:some], self.scales.values * self.root
        costs = np.array(self.expressions.costs[:some])
        for m in range(min(len(M), self.how.scales_of_factors)):
            with np.errstate(all="ignore"):
                above = (F * (M[m] * self.target * self.root)) @ F.T
                below = ((F * M[m]) ** 2) @ (F**2).T
                scores = self._scores(above**2 / below, costs[:, None] + costs + self.scales.costs[m])
            scores[np.tril_indices(some, -1)] = np.inf
            for place in _least(scores, self.how.kept):
                f, g = divmod(place, some)
                yield ((float(above[f, g] / below[f, g]), m, (f, g)),)

    def _one_by_one(self) -> Iterator[Terms]:
        """Sums of all M·F, each next term beside the best before (a beam) and one of the shorter ones; in the
        end, one beside any two of the shortest M."""
        shorter, most, bare = self.how.one_by_one
        F, M = self.expressions.values[: len(self.expressions)], self.scales.values * self.root
        target = self.target * self.root
        with np.errstate(all="ignore"):
            squares = M**2 @ (F**2).T
        costs = self.scales.costs[:, None] + np.array(self.expressions.costs)
        costs[:, 1 : len(self.how.numbers)] = np.inf  # each term has a number of its own
        beam: dict[Places, float] = {(): 0.0}
        for size in range(most):
            if size == 1:
                F, squares, costs = F[:shorter], squares[:, :shorter], costs[:, :shorter]
            elif size == 2:
                short = np.argsort(self.scales.costs, kind="stable")[:bare].tolist()
                pairs = (((i, 0), (j, 0)) for i, j in combinations(short, 2))
                beam |= {(one, two): float(costs[one] + costs[two]) for one, two in pairs}
            grown: dict[Places, tuple[float, float]] = {}
            for places, cost in beam.items():
                if self.stop():
                    return
                basis = np.linalg.qr(np.array([M[m] * F[f] for m, f in places]).reshape(-1, len(target)).T)[0]
                left = target - basis @ (basis.T @ target)
                with np.errstate(all="ignore"):
                    apart = squares - sum(((M * q) @ F.T) ** 2 for q in basis.T)
                    gains = np.where(apart > 1e-6 * squares, ((M * left) @ F.T) ** 2 / apart, 0.0)
                    scores = self._scores(target @ target - left @ left + gains, cost + costs)
                for width in {len(F), min(len(F), shorter)}:
                    for place in _least(scores[:, :width], self.how.beam):
                        term = divmod(place, width)
                        sum_ = tuple(sorted((*places, term)))
                        grown[sum_] = (float(scores[term]), cost + float(costs[term]))
            best = sorted(grown, key=lambda places: grown[places])
            short_ones = [places for places in best if max(f for _, f in places) < shorter]
            beam = {places: grown[places][1] for places in short_ones[: self.how.beam]}
            for places in best[: 2 * self.how.beam]:
                columns = np.array([M[m] * F[f] for m, f in places]).T
                numbers = np.linalg.lstsq(columns, target)[0]
                yield tuple((float(n), m, (f,)) for n, (m, f) in zip(numbers, places, strict=True))

    def _scores(self, explained: np.ndarray, costs: np.ndarray) -> np.ndarray:
        weighed = self.target * self.root
        left = np.nan_to_num(1 - explained / float(weighed @ weighed), nan=1.0, neginf=1.0)
        return np.asarray(nats(len(weighed), left, costs, self.how))


def nats(rows: int, left: Any, nodes: Any, how: Enumeration) -> Any:
    """What it takes to tell data of which the part `left` of the squares is left, and the formula."""
    return 0.5 * rows * np.log(np.maximum(left, EXACT_ERROR**2)) + nodes * math.log(how.symbols)


def _least(scores: np.ndarray, count: int) -> list[int]:
    """The flat places of the least scores, in order."""
    flat = scores.ravel()
    some = np.argpartition(flat, min(count, flat.size) - 1)[:count]
    ordered: list[int] = some[np.argsort(flat[some], kind="stable")].tolist()
    return [place for place in ordered if math.isfinite(flat[place])]


@dataclass(frozen=True, eq=False)
class Law:
    """A law for the target: a sum for a power of it with numbers that were fitted, or a fitted `factor` times
    a sum with whole numbers."""

    right: RightTerms
    factor: float | None
    terms: Terms

    @cached_property
    def left(self) -> float:
        """The part of the target's squares that it leaves."""
        right = self.right
        with np.errstate(all="ignore"):
            power = (1.0 if self.factor is None else self.factor) * right.values(self.terms)
            residual = (right.sign * power ** (1 / right.power) - right.y) * right.trust
            return float(residual @ residual) / float(np.square(right.y * right.trust).sum())

    @cached_property
    def score(self) -> float:
        """Nats of data and law; infinite where it has no values."""
        rows, how = len(self.right.y), self.right.how
        numbers = len(self.terms) if self.factor is None else 1 + len(self.terms) / 4  # whole ones have bits
        nodes = self.right.cost(self.terms) + 0.5 * math.log(rows) / math.log(how.symbols) * numbers
        score = float(nats(rows, self.left, nodes + (self.right.power != 1), how))
        return score if math.isfinite(self.left) else math.inf

    def symbolic(self, names: Sequence[str]) -> sp.Expr:
        right, number = self.right, fitted if self.factor is None else sp.Integer
        each = [number(n) * right.scales.symbolic(m, names)
                * sp.Mul(*(right.expressions.symbolic(e, names) for e in f))
                for n, m, f in self.terms]  # fmt: skip
        root = sp.Rational(1, right.power)
        if self.factor is None:
            return right.sign * sp.Add(*each) ** root
        # A number times a sum would become numbers in the sum, and each would be fitted by itself.
        outer = each[0] if right.power == 1 else sp.S.One
        inner = sp.Add(*(term / outer for term in each)) ** root
        return fitted(right.sign * self.factor ** float(root)) * outer * inner


def in_proportion(numbers: Sequence[float], largest: int, near: float) -> list[tuple[float, list[float]]]:
    """A factor, and the small whole numbers that it makes nearly these of, if there are any."""
    least = np.abs(numbers).min()
    if len(numbers) < 2 or np.abs(numbers).max() > (largest + 0.5) * least:
        return []
    whole = np.round(np.array(numbers) / least)
    factor = float(whole @ numbers / (whole @ whole))
    return [] if (np.abs(factor * whole / numbers - 1) > near).any() else [(factor, whole.tolist())]


def smallest(y: np.ndarray, how: Enumeration) -> float:
    """What may be nothing but noise, at least for half of the rows."""
    return min(how.floor * float(np.sqrt(np.mean(y**2))), float(np.median(np.abs(y))))


def right_laws(
    X: np.ndarray,
    y: np.ndarray,
    weight: np.ndarray | None,
    names: Sequence[str],
    dimensions: Sequence[Dimension],
    target: Dimension,
    primitives: Sequence[Primitive],
    how: Enumeration,
    stop: Callable[[], bool] = never,
) -> list[sp.Expr]:
    """Dimensionally right laws for `y` `(rows,)` in the columns of `X`, the best first, with the numbers in
    front of their terms fitted; none where there are more columns than products can be told of."""
    if how.max_products < 3 ** len(names) or not y.any():
        return []
    trust = np.ones(len(y)) if weight is None else np.sqrt(weight / weight.mean())
    unary = [p for p in primitives if p.arity == 1 and p.name != "id"]
    groups = products_of(X, dimensions, Dimension(), how.groups, how, groups=True)
    expressions = Expressions(groups, unary, how, stop)
    found: list[Law] = []
    for power in how.target_powers:
        both_signs = (y < -smallest(y, how)).any() and (y > smallest(y, how)).any()
        if (power < 0 and not y.all()) or (power == 2 and both_signs):
            continue
        scales = products_of(X, dimensions, target ** Fraction(power), how.scales, how)
        found += RightTerms(scales, expressions, power, y, trust, how, stop).laws()
    # What leaves the same is the same law.
    best = sorted((law for law in found if math.isfinite(law.score)), key=lambda law: law.score)
    laws = {round(law.left, 12): law for law in reversed(best)}
    return [law.symbolic(names) for law in sorted(laws.values(), key=lambda law: law.score)[: how.kept]]
