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
from itertools import combinations
from typing import Any

import numpy as np
import sympy as sp
import torch

from eqlearn.nn.primitives import Primitive
from eqlearn.numerics.budget import never
from eqlearn.numerics.criteria import EXACT_ERROR
from eqlearn.numerics.subsets import Regression, sparse_path
from eqlearn.search.ansatz.library import parity
from eqlearn.search.units.unit_settings import Enumeration
from eqlearn.symbolic.expressions import fitted, real_symbol
from eqlearn.validation.units import Dimension

# How an expression is made: of a product of columns, a number, or an operator or primitive and others.
Made = tuple[Any, ...]


@dataclass(frozen=True, eq=False)
class Products:
    """Products of powers of columns and at most one difference of two, the shortest first: exponents
    `(products, columns + differences)`, values, what naming each costs in nodes (one that n are shorter than
    takes the bits of n), and of which columns the differences are."""

    exponents: np.ndarray
    values: np.ndarray
    costs: np.ndarray
    pairs: Sequence[tuple[int, int]] = ()

    def symbolic(self, place: int, names: Sequence[str]) -> sp.Expr:
        columns = [real_symbol(name) for name in names]
        powers = (Fraction(float(p)) for p in self.exponents[place])
        return sp.Mul(*(base ** sp.Rational(p.numerator, p.denominator)
                        for base, p in zip([*columns, *(columns[i] - columns[j] for i, j in self.pairs)],
                                           powers, strict=True)))  # fmt: skip


def products_of(
    X: np.ndarray,
    columns: Sequence[Dimension],
    target: Dimension,
    most: int,
    how: Enumeration,
    groups: bool = False,
) -> Products:
    """At most so many products with the unit of the target that are finite and not zero on all rows; as
    `groups`, none that is a power of another or of no column; without a unit, of whole powers."""
    bases = sorted({name for d in (*columns, target) for name, _ in d.powers})
    matrix = np.array([[float(dict(d.powers).get(b, 0)) for b in bases] for d in columns])
    wanted = np.array([float(dict(target.powers).get(b, 0)) for b in bases])
    tried = int(how.max_products ** (1 / len(columns)) + 1e-9)
    powers = np.array([p for p in how.powers[:tried] if target or p == int(p)])
    places = np.indices((len(powers),) * len(columns), dtype=np.int8).reshape(len(columns), -1).T
    grid = powers[places]
    units = grid @ matrix.reshape(len(columns), len(bases))
    right = grid[np.abs(units - wanted).max(axis=1, initial=0.0) < 1e-9]
    if groups:
        right = right[np.gcd.reduce(np.abs(right).astype(int), axis=1) == 1]
    alike = [] if groups else [(i, j) for i, j in combinations(range(len(columns)), 2)
                               if columns[i] and columns[i] == columns[j]]  # fmt: skip
    kinds = [np.hstack([right, np.zeros((len(right), len(alike)))])]
    for k, (i, j) in enumerate(alike):
        alone = (grid[:, i] == 0) & (grid[:, j] == 0)
        for power in how.of_differences:
            others = grid[alone & (np.abs(units + power * matrix[i] - wanted).max(axis=1) < 1e-9)]
            kinds.append(np.hstack([others, np.tile(power * np.eye(len(alike))[k], (len(others), 1))]))
    right = np.vstack(kinds)
    nodes = np.where(right == 0, 0, np.where(np.abs(right) == 1, 2, 3)).sum(axis=1)
    nodes += 2 * (right[:, len(columns) :] != 0).sum(axis=1)
    order = np.lexsort((-right.sum(axis=1), nodes))[:most]
    X = np.column_stack([X, *(X[:, i] - X[:, j] for i, j in alike)])
    with np.errstate(all="ignore"):
        values = np.array([np.prod(X**p, axis=1) for p in right[order]]).reshape(len(order), len(X))
    fine = np.isfinite(values).all(axis=1) & (values != 0).all(axis=1)
    shorter = np.searchsorted(nodes[order][fine], nodes[order][fine])
    return Products(right[order][fine], values[fine], np.log2(1.0 + shorter), alike)


@dataclass(eq=False)
class Expressions:
    """Expressions in dimensionless products, by size, each once: how they are `made`, values and costs. No
    function stands inside of another, but for roots and powers."""

    products: Products
    unary: Sequence[Primitive]
    how: Enumeration
    stop: Callable[[], bool] = never
    made: list[Made] = field(default_factory=list)
    values: np.ndarray = field(init=False)
    costs: list[float] = field(default_factory=list)
    steep: list[bool] = field(default_factory=list)
    seen: set[bytes] = field(default_factory=set)
    levels: dict[int, list[int]] = field(default_factory=dict)
    powers: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        rows = self.products.values.shape[1]
        self.powers = {primitive.name for primitive in self.unary if _is_power(primitive)}
        self.values = np.empty((self.how.most, rows))
        self.directions = np.random.default_rng(0).normal(size=(rows, 2))
        for number in self.how.numbers:
            self._take(1, np.full((1, rows), float(number)), [("number", number)])
        for place, cost in enumerate(self.products.costs):
            self._take(1 + round(cost), self.products.values[place][None], [("product", place)])
        with np.errstate(all="ignore"):
            for level in range(2, self.how.max_level + 1):
                for values, made in self._level(level):
                    if len(self.made) >= self.how.most or self.stop():
                        return
                    self._take(level, values, made)

    def __len__(self) -> int:
        return len(self.made)

    def _take(self, level: int, values: np.ndarray, made: list[Made]) -> None:
        """Takes up what is finite, no number, and new."""
        size = np.abs(values).max(axis=1)
        fine = np.isfinite(values).all(axis=1) & (size > 1e-12) & (size < 1e12)
        fine &= (np.ptp(values, axis=1) > 1e-9 * size) | (made[0][0] == "number")
        keys = np.round(values @ self.directions / size[:, None], 9)
        keys = np.concatenate([keys, np.round(np.log(size)[:, None], 7)], axis=1) + 0.0
        for i in np.flatnonzero(fine).tolist():
            key = keys[i].tobytes()
            if key not in self.seen and len(self.made) < self.how.most:
                self.seen.add(key)
                self.levels.setdefault(level, []).append(len(self.made))
                self.values[len(self.made)] = values[i]
                self.made.append(made[i])
                self.costs.append(float(level))
                self.steep.append(self._is_steep(made[i]))

    def _is_steep(self, made: Made) -> bool:
        how, *args = made
        if isinstance(how, Primitive):
            return how.name not in self.powers or self.steep[args[0]]
        return how in ("+", "-", "*", "/") and (self.steep[args[0]] or self.steep[args[1]])

    def _level(self, level: int) -> Iterator[tuple[np.ndarray, list[Made]]]:
        """Everything of this size, in blocks: functions, then sums, differences, products and quotients."""
        for primitive in self.unary:
            power = primitive.name in self.powers
            nodes = 1 if power else self.how.function
            some = [i for i in self.levels.get(level - nodes, ()) if self.made[i][0] != "number"]
            some = [i for i in some if power or not self.steep[i]]
            for sign in (1, -1) if some and not power and not parity(primitive) else (1,) if some else ():
                value: torch.Tensor = primitive(torch.from_numpy(sign * self.values[some]))
                yield value.numpy(), [(primitive, i, sign) for i in some]
        for one in range(1, level - 1):
            other = level - 1 - one
            for i in list(self.levels.get(one, ())) if one <= other else ():
                others = [j for j in self.levels.get(other, ()) if other > one or j >= i]
                if others:
                    here, there = self.values[i], self.values[others]
                    yield here + there, [("+", i, j) for j in others]
                    yield here - there, [("-", i, j) for j in others]
                    yield here * there, [("*", i, j) for j in others]
                    yield here / there, [("/", i, j) for j in others]
                    yield there / here, [("/", j, i) for j in others]

    def symbolic(self, place: int, names: Sequence[str]) -> sp.Expr:
        how, *args = self.made[place]
        if how == "number":
            return sp.Integer(args[0])
        if how == "product":
            return self.products.symbolic(args[0], names)
        if isinstance(how, Primitive):
            return how.symbolic(args[1] * self.symbolic(args[0], names))
        one, other = (self.symbolic(i, names) for i in args)
        return {"+": one + other, "-": one - other, "*": one * other, "/": one / other}[how]


def _is_power(primitive: Primitive) -> bool:
    """Whether a factor of the argument comes out as a factor, as of a root."""
    g = torch.tensor([0.3, 0.7, 1.1, 1.9], dtype=torch.float64)
    quotient = primitive(2 * g) / primitive(g)
    return bool(torch.allclose(quotient, quotient[:1]))


# Of each term of a sum, its product and its expression.
Places = tuple[tuple[int, int], ...]
# A sum: a number, the place of a product, and those of expressions it is multiplied with, for each term.
Terms = tuple[tuple[float, int, tuple[int, ...]], ...]


@dataclass(frozen=True, eq=False)
class RightTerms:
    """What sums for a power of the target are put together from, and that power of the target, to which each
    row tells as much as its `root` says."""

    scales: Products
    expressions: Expressions
    target: np.ndarray
    root: np.ndarray
    how: Enumeration
    stop: Callable[[], bool]

    def sums(self) -> Iterator[Terms]:
        """The best sums of each kind."""
        if len(self.scales.costs) and len(self.expressions):
            for kind in (self._single, self._twofold, self._several, self._one_by_one):
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

    def _single(self) -> Iterator[Terms]:
        """a·M·F for all M and F."""
        F, M = self.expressions.values[: len(self.expressions)], self.scales.values * self.root
        with np.errstate(all="ignore"):
            above, below = (M * self.target * self.root) @ F.T, M**2 @ (F**2).T
            costs = self.scales.costs[:, None] + np.array(self.expressions.costs)
            scores = self._scores(above**2 / below, costs)
        for place in _least(scores, self.how.kept):
            m, f = divmod(place, F.shape[0])
            yield ((float(above[m, f] / below[m, f]), m, (f,)),)

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

    def _several(self) -> Iterator[Terms]:
        """Sparse sums of the shortest M·F, many of few terms, few of more; and of products M alone."""
        total = self.scales.costs[:, None] + np.array(self.expressions.costs)
        total[:, 1 : len(self.how.numbers)] = np.inf  # each term has a number of its own
        pools = [([divmod(p, total.shape[1]) for p in _least(total, count)], m) for count, m in self.how.sums]
        pools.append(([(m, 0) for m in range(len(self.scales.costs))], self.how.sums[-1][1]))
        for places, most in pools:
            columns = np.array([self.scales.values[m] * self.expressions.values[f] for m, f in places]).T
            regression = Regression.of(columns * self.root[:, None], self.target * self.root)
            beside: list[tuple[int, ...]] = [(), *((k,) for k in range(len(places) if most > 2 else 0))]
            found = sparse_path(regression, most, self.how.beam, beside=beside, sweeps=1, stop=self.stop)
            for some in (some for some in found if some):
                numbers = regression.fitted(some).coefficients
                yield tuple(
                    (float(n), places[k][0], (places[k][1],)) for n, k in zip(numbers, some, strict=True)
                )

    def _one_by_one(self) -> Iterator[Terms]:
        """Sums of all M·F, each next term beside the best before (a beam); in the end, one beside any two of
        the shortest M."""
        count, most, bare = self.how.one_by_one
        F, M = self.expressions.values[:count], self.scales.values * self.root
        with np.errstate(all="ignore"):
            squares = M**2 @ (F**2).T
        costs = self.scales.costs[:, None] + np.array(self.expressions.costs[:count])
        costs[:, 1 : len(self.how.numbers)] = np.inf  # each term has a number of its own
        target = self.target * self.root
        beam: dict[Places, float] = {(): 0.0}
        for size in range(most):
            if size == 2:
                short = np.argsort(self.scales.costs, kind="stable")[:bare].tolist()
                beam |= {((i, 0), (j, 0)): float(costs[i, 0] + costs[j, 0]) for i, j in combinations(short, 2)}
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
                for place in _least(scores, self.how.beam):
                    m, f = divmod(place, len(F))
                    sum_ = tuple(sorted((*places, (m, f))))
                    grown[sum_] = (float(scores[m, f]), cost + float(costs[m, f]))
            best = sorted(grown, key=lambda places: grown[places])[: self.how.beam]
            beam = {places: grown[places][1] for places in best}
            for places in best:
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
    size = float(np.sqrt(np.mean(y**2)))
    if how.max_products < 3 ** len(names) or size == 0:
        return []
    trust = np.ones(len(y)) if weight is None else np.sqrt(weight / weight.mean())
    unary = [p for p in primitives if p.arity == 1 and p.name != "id"]
    groups = products_of(X, dimensions, Dimension(), how.groups, how, groups=True)
    expressions = Expressions(groups, unary, how, stop)
    found: list[tuple[float, float, int, RightTerms, float, Terms]] = []
    for power in how.target_powers:
        small = min(how.floor * size, float(np.median(np.abs(y))))  # which may be nothing but noise
        if (power < 0 and not y.all()) or (power == 2 and (y < -small).any() and (y > small).any()):
            continue
        # An error of y moves its power by as much as the slope. Where y is small, a square is known no better
        # for that, and an inverse is not known at all.
        slope = np.abs(power * np.maximum(np.abs(y), how.floor * size) ** (power - 1.0))
        root = trust / slope if power > 0 else np.where(np.abs(y) < small, 0.0, trust / slope)
        scales = products_of(X, dimensions, target ** Fraction(power), how.scales, how)
        right = RightTerms(scales, expressions, y**power, root, how, stop)
        sign = -1 if power == 2 and y.sum() < 0 else 1
        both = (way for terms in right.sums() for way in ((1.0, terms), _in_proportion(terms)) if way)
        for factor, terms in both:
            with np.errstate(all="ignore"):
                residual = (sign * (factor * right.values(terms)) ** (1 / power) - y) * trust
                left = float(residual @ residual) / float((y * trust) @ (y * trust))
            if math.isfinite(left):
                numbers = len(terms) if factor == 1 else 1 + len(terms) / 4  # bits of whole numbers
                nodes = right.cost(terms) + 0.5 * math.log(len(y)) / math.log(how.symbols) * numbers
                score = float(nats(len(y), left, nodes + (power != 1), how))
                found.append((score, left, power, right, factor, terms))
    found.sort(key=lambda law: law[0])
    laws: dict[float, sp.Expr] = {}  # what leaves the same is the same law
    for _, left, power, right, factor, terms in found:
        if len(laws) < how.kept and round(left, 12) not in laws:
            number = fitted if factor == 1 else sp.Integer
            whole = sp.Add(*(number(n) * right.scales.symbolic(m, names)
                             * sp.Mul(*(expressions.symbolic(e, names) for e in f))
                             for n, m, f in terms))  # fmt: skip
            sign = -1 if power == 2 and y.sum() < 0 else 1
            laws[round(left, 12)] = sign * (whole if factor == 1 else fitted(factor) * whole) ** sp.Rational(1, power)
    return list(laws.values())


def _in_proportion(terms: Terms, largest: int = 4, near: float = 0.15) -> tuple[float, Terms] | None:
    """A factor, and the sum with small whole numbers that is nearly this times it; none, if there is none."""
    numbers = np.array([n for n, _, _ in terms])
    whole = np.round(numbers / np.abs(numbers).min())
    factor = float(numbers @ whole / (whole @ whole))
    if len(terms) < 2 or np.abs(whole).max() > largest or (np.abs(factor * whole / numbers - 1) > near).any():
        return None
    return factor, tuple((float(n), m, f) for n, (_, m, f) in zip(whole, terms, strict=True))
