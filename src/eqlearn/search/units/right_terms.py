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
    """Products of powers of columns, the shortest first: exponents `(products, columns)`, values, and what
    naming each costs in nodes: one that n are shorter than takes the bits of n."""

    exponents: np.ndarray
    values: np.ndarray
    costs: np.ndarray

    def symbolic(self, place: int, names: Sequence[str]) -> sp.Expr:
        powers = (Fraction(float(p)) for p in self.exponents[place])
        return sp.Mul(*(real_symbol(n) ** sp.Rational(p.numerator, p.denominator)
                        for n, p in zip(names, powers, strict=True)))  # fmt: skip


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
    off = np.abs(grid @ matrix.reshape(len(columns), len(bases)) - wanted).max(axis=1, initial=0.0)
    right = grid[off < 1e-9]
    if groups:
        right = right[np.gcd.reduce(np.abs(right).astype(int), axis=1) == 1]
    nodes = np.where(right == 0, 0, np.where(np.abs(right) == 1, 2, 3)).sum(axis=1)
    order = np.lexsort((-right.sum(axis=1), nodes))[:most]
    with np.errstate(all="ignore"):
        values = np.array([np.prod(X**p, axis=1) for p in right[order]]).reshape(len(order), len(X))
    fine = np.isfinite(values).all(axis=1) & (values != 0).all(axis=1)
    shorter = np.searchsorted(nodes[order][fine], nodes[order][fine])
    return Products(right[order][fine], values[fine], np.log2(1.0 + shorter))


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
            for kind in (self._single, self._twofold, self._several):
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
        """Sparse sums of the shortest M·F: many of few terms, few of more."""
        total = self.scales.costs[:, None] + np.array(self.expressions.costs)
        total[:, 1 : len(self.how.numbers)] = np.inf  # each term has a number of its own
        for count, most in self.how.sums:
            places = [divmod(p, total.shape[1]) for p in _least(total, count)]
            columns = np.array([self.scales.values[m] * self.expressions.values[f] for m, f in places]).T
            regression = Regression.of(columns * self.root[:, None], self.target * self.root)
            beside: list[tuple[int, ...]] = [(), *((k,) for k in range(count if most > 2 else 0))]
            found = sparse_path(regression, most, self.how.beam, beside=beside, sweeps=1, stop=self.stop)
            for some in (some for some in found if some):
                numbers = regression.fitted(some).coefficients
                yield tuple(
                    (float(n), places[k][0], (places[k][1],)) for n, k in zip(numbers, some, strict=True)
                )

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
    root = np.ones(len(y)) if weight is None else np.sqrt(weight / weight.mean())
    unary = [p for p in primitives if p.arity == 1 and p.name != "id"]
    groups = products_of(X, dimensions, Dimension(), how.groups, how, groups=True)
    expressions = Expressions(groups, unary, how, stop)
    found: list[tuple[float, float, int, RightTerms, Terms]] = []
    for power in how.target_powers:
        if (power < 0 and not y.all()) or (power == 2 and (y < 0).any() and (y > 0).any()):
            continue
        # An error of y moves its power by as much as the slope; where y is in the noise, by no less.
        slope = np.abs(power * np.maximum(np.abs(y), how.floor * size) ** (power - 1.0))
        scales = products_of(X, dimensions, target ** Fraction(power), how.scales, how)
        right = RightTerms(scales, expressions, y**power, root / slope, how, stop)
        sign = -1 if power == 2 and y.sum() < 0 else 1
        for terms in right.sums():
            with np.errstate(all="ignore"):
                residual = (sign * right.values(terms) ** (1 / power) - y) * root
                left = float(residual @ residual) / float((y * root) @ (y * root))
            if math.isfinite(left):
                nodes = right.cost(terms) + 0.5 * math.log(len(y)) / math.log(how.symbols) * len(terms)
                score = float(nats(len(y), left, nodes + (power != 1), how))
                found.append((score, left, power, right, terms))
    found.sort(key=lambda law: law[0])
    laws: dict[float, sp.Expr] = {}  # what leaves the same is the same law
    for _, left, power, right, terms in found:
        if len(laws) < how.kept and round(left, 12) not in laws:
            whole = sp.Add(*(fitted(n) * right.scales.symbolic(m, names)
                             * sp.Mul(*(expressions.symbolic(e, names) for e in f))
                             for n, m, f in terms))  # fmt: skip
            sign = -1 if power == 2 and y.sum() < 0 else 1
            laws[round(left, 12)] = sign * whole ** sp.Rational(1, power)
    return list(laws.values())
