"""Laws that are dimensionally right, put together by size and compared with the data all at once.

By Buckingham's theorem a law is a sum of M·F: M is a product of powers of columns with the unit of the target, F
an expression in dimensionless products of columns. There are few of either that are short, so that, even in
noise, all M·F can be tried, and all M·F·G and sums of two of them, each by least squares in closed form.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import islice
from typing import Any

import numpy as np
import sympy as sp
import torch

from eqlearn.nn.primitives import Primitive
from eqlearn.numerics.budget import never
from eqlearn.numerics.criteria import EXACT_ERROR
from eqlearn.search.units.unit_settings import Enumeration
from eqlearn.symbolic.expressions import fitted, real_symbol
from eqlearn.validation.units import Dimension

# How an expression is made: of a product of columns, a number, or a primitive or sign of others, by place.
Made = tuple[Any, ...]


@dataclass(frozen=True, eq=False)
class Products:
    """Products of powers of columns, the shortest first: exponents `(products, columns)`, values and costs."""

    exponents: np.ndarray
    values: np.ndarray
    costs: np.ndarray

    def symbolic(self, place: int, names: Sequence[str]) -> sp.Expr:
        powers = (Fraction(float(p)) for p in self.exponents[place])
        return sp.Mul(*(real_symbol(n) ** sp.Rational(p.numerator, p.denominator)
                        for n, p in zip(names, powers, strict=True)))  # fmt: skip


def products_of(
    X: np.ndarray, columns: Sequence[Dimension], target: Dimension, most: int, how: Enumeration
) -> Products:
    """At most so many products with the unit of the target that are finite and not zero on all rows."""
    bases = sorted({name for d in (*columns, target) for name, _ in d.powers})
    matrix = np.array([[float(dict(d.powers).get(b, 0)) for b in bases] for d in columns])
    wanted = np.array([float(dict(target.powers).get(b, 0)) for b in bases])
    tried = 1 + max(0, int(how.max_products ** (1 / len(columns)) + 1e-9) - 1)
    powers = np.array(how.powers[:tried])
    grid = powers[np.indices((len(powers),) * len(columns), dtype=np.int8).reshape(len(columns), -1).T]
    right = grid[
        np.abs(grid @ matrix.reshape(len(columns), len(bases)) - wanted).max(axis=1, initial=0.0) < 1e-9
    ]
    right = right[right.any(axis=1)] if not target else right
    each = np.where(right == 0, 0.0, np.where(np.abs(right) == 1, 2.0, 3.0))
    costs = each.sum(axis=1) - 1 if len(right) else np.empty(0)
    order = np.lexsort((-right.sum(axis=1), costs))[:most]
    with np.errstate(all="ignore"):
        values = np.array([np.prod(X**p, axis=1) for p in right[order]]).reshape(len(order), len(X))
    fine = np.isfinite(values).all(axis=1) & (values != 0).all(axis=1)
    return Products(right[order][fine], values[fine], np.maximum(costs[order][fine], 0.0))


@dataclass(eq=False)
class Expressions:
    """Expressions in dimensionless products, by size, each once: how they are `made`, values and costs."""

    products: Products
    unary: Sequence[Primitive]
    how: Enumeration
    stop: Callable[[], bool] = never
    made: list[Made] = field(default_factory=list)
    values: np.ndarray = field(init=False)
    costs: list[float] = field(default_factory=list)
    seen: set[bytes] = field(default_factory=set)
    levels: dict[int, list[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        rows = self.products.values.shape[1]
        self.values = np.empty((self.how.most, rows))
        self.directions = np.random.default_rng(0).normal(size=(rows, 2))
        numbers = [float(n) for n in self.how.numbers]
        self._take(1, np.repeat(np.array(numbers)[:, None], rows, axis=1), [("number", n) for n in numbers])
        for place, cost in enumerate(self.products.costs):
            self._take(max(1, int(cost)), self.products.values[place][None], [("product", place)])
        for level in range(2, self.how.max_level + 1):
            for values, made in self._level(level):
                if len(self.made) >= self.how.most or self.stop():
                    return
                self._take(level, values, made)

    def __len__(self) -> int:
        return len(self.made)

    def _take(self, level: int, values: np.ndarray, made: list[Made]) -> None:
        """Takes up what is finite and new."""
        with np.errstate(all="ignore"):
            largest = np.abs(values).max(axis=1)
            fine = np.isfinite(values).all(axis=1) & (largest > 1e-12) & (largest < 1e12)
            keys = values @ self.directions
            keys /= 10.0 ** np.floor(np.log10(np.abs(keys).max(axis=1, keepdims=True) + 1e-300))
        keys = (
            np.concatenate([np.round(keys, 8), np.round(np.log10(largest + 1e-300), 6)[:, None]], axis=1)
            + 0.0
        )
        for i in np.flatnonzero(fine).tolist():
            key = keys[i].tobytes()
            if key not in self.seen and len(self.made) < self.how.most:
                self.seen.add(key)
                self.levels.setdefault(level, []).append(len(self.made))
                self.values[len(self.made)] = values[i]
                self.made.append(made[i])
                self.costs.append(float(level))

    @np.errstate(all="ignore")
    def _level(self, level: int) -> Iterator[tuple[np.ndarray, list[Made]]]:
        """Everything of this size, in blocks: functions, then sums, differences, products and quotients."""
        arguments = [i for i in self.levels.get(level - 1, ()) if np.ptp(self.values[i]) > 0]
        for primitive in self.unary if arguments else ():
            own = self.values[arguments]
            for sign in (1.0, -1.0):
                value: torch.Tensor = primitive(torch.from_numpy(sign * own))
                yield value.numpy(), [(primitive, i, sign) for i in arguments]
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
            return sp.nsimplify(args[0])
        if how == "product":
            return self.products.symbolic(args[0], names)
        if isinstance(how, Primitive):
            return how.symbolic(sp.Integer(int(args[1])) * self.symbolic(args[0], names))
        one, other = (self.symbolic(i, names) for i in args)
        return {"+": one + other, "-": one - other, "*": one * other, "/": one / other}[how]


@dataclass(frozen=True)
class _Law:
    """A sum of terms, each a number times a product and expressions, by their places, and its score."""

    score: float
    terms: tuple[tuple[int, tuple[int, ...]], ...]
    numbers: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class RightTerms:
    """What laws with the target's unit are put together from, and the target, all multiplied by the roots of
    the rows' weights."""

    scales: Products
    expressions: Expressions
    y: np.ndarray
    root: np.ndarray
    names: Sequence[str]
    how: Enumeration

    def best(self) -> list[sp.Expr]:
        """The laws that describe the data best, each with fitted numbers in front of its terms."""
        if not len(self.scales.costs) or not len(self.expressions):
            return []
        kept = [islice(laws, self.how.kept) for laws in (self._single(), self._twofold(), self._sums())]
        ranked = sorted((law for laws in kept for law in laws), key=lambda law: law.score)
        return [self._written(law) for law in ranked]

    def _written(self, law: _Law) -> sp.Expr:
        return sp.Add(
            *(
                fitted(number)
                * self.scales.symbolic(scale, self.names)
                * sp.Mul(*(self.expressions.symbolic(e, self.names) for e in expressions))
                for number, (scale, expressions) in zip(law.numbers, law.terms, strict=True)
            )
        )

    def _scores(self, explained: np.ndarray, costs: np.ndarray) -> np.ndarray:
        """Nats to describe the data, but for what all have in common."""
        total = float(self.y @ self.y)
        left = np.maximum(1 - np.nan_to_num(explained, nan=0.0, posinf=0.0) / total, EXACT_ERROR**2)
        return 0.5 * len(self.y) * np.log(left) + costs * math.log(self.how.symbols)

    def _single(self) -> Iterator[_Law]:
        """a·M·F for all M and F."""
        F, M = self.expressions.values[: len(self.expressions)], self.scales.values * self.root
        with np.errstate(all="ignore"):
            above, below = (M * self.y) @ F.T, M**2 @ (F**2).T
            scores = self._scores(
                above**2 / below, self.scales.costs[:, None] + np.array(self.expressions.costs)
            )
        for place in _least(scores, self.how.kept):
            m, f = divmod(int(place), F.shape[0])
            yield _Law(float(scores[m, f]), ((m, (f,)),), (float(above[m, f] / below[m, f]),))

    def _twofold(self) -> Iterator[_Law]:
        """a·M·F·G for the shortest of all."""
        some = min(len(self.expressions), self.how.factors)
        F, M = self.expressions.values[:some], self.scales.values * self.root
        costs = np.array(self.expressions.costs[:some])
        found = []
        for m in range(min(len(M), self.how.scales_of_factors)):
            with np.errstate(all="ignore"):
                above, below = (F * (M[m] * self.y)) @ F.T, ((F * M[m]) ** 2) @ (F**2).T
                scores = self._scores(above**2 / below, costs[:, None] + costs + self.scales.costs[m])
            scores[np.tril_indices(some, -1)] = np.inf
            for place in _least(scores, self.how.kept):
                f, g = divmod(int(place), some)
                number = float(above[f, g] / below[f, g])
                found.append(_Law(float(scores[f, g]), ((m, (f, g)),), (number,)))
        return iter(sorted(found, key=lambda law: law.score))

    def _sums(self) -> Iterator[_Law]:
        """a·M·F + b·N·G for the shortest M·F, each once."""
        total = self.scales.costs[:, None] + np.array(self.expressions.costs)
        places = [divmod(int(p), total.shape[1]) for p in _least(total, 3 * self.how.terms)]
        values = np.array([self.scales.values[m] * self.expressions.values[f] for m, f in places]) * self.root
        size = np.linalg.norm(values, axis=1)
        fine = np.flatnonzero(np.isfinite(size) & (size > 0))
        unit = values[fine] / size[fine, None]
        _, first = np.unique(np.round(unit[:, :8], 9), axis=0, return_index=True)
        chosen = np.sort(first)[: self.how.terms]
        unit, fine = unit[chosen], fine[chosen]
        costs = np.array([total[places[i]] for i in fine])
        gram, along = unit @ unit.T, unit @ self.y
        with np.errstate(all="ignore"):
            apart = 1 - gram**2
            explained = (along[:, None] ** 2 + along**2 - 2 * gram * along[:, None] * along) / apart
            scores = self._scores(explained, costs[:, None] + costs + 1)
        scores += 0.5 * math.log(len(self.y))
        scores[(apart < 1e-9) | np.tri(len(unit), dtype=bool)] = np.inf
        for place in _least(scores, self.how.kept):
            i, j = divmod(int(place), len(unit))
            if math.isfinite(scores[i, j]):
                a = (along[i] - gram[i, j] * along[j]) / apart[i, j] / size[fine[i]]
                b = (along[j] - gram[i, j] * along[i]) / apart[i, j] / size[fine[j]]
                terms = tuple((places[fine[k]][0], (places[fine[k]][1],)) for k in (i, j))
                yield _Law(float(scores[i, j]), terms, (float(a), float(b)))


def _least(scores: np.ndarray, count: int) -> np.ndarray:
    """The flat places of the least scores, in order."""
    flat = scores.ravel()
    count = min(count, flat.size)
    some = np.argpartition(flat, count - 1)[:count]
    return some[np.argsort(flat[some], kind="stable")]


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
    """Dimensionally right laws for `y` `(rows,)` in the columns of `X`, the best first."""
    if how.max_products < 3 ** len(names):  # more columns than can be told apart by trying
        return []
    root = np.ones(len(y)) if weight is None else np.sqrt(weight / weight.mean())
    scales = products_of(X, dimensions, target, how.scales, how)
    groups = products_of(X, dimensions, Dimension(), how.groups, how)
    if not len(scales.costs):
        return []
    unary = [p for p in primitives if p.arity == 1 and p.name != "id"]
    expressions = Expressions(groups, unary, how, stop)
    return RightTerms(scales, expressions, y * root, root, names, how).best()
