"""Products of powers of columns with a given unit, dimensionless groups (Buckingham 1914), and expressions in
these."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations, islice
from typing import Any

import numpy as np
import sympy as sp
import torch

from eqlearn.nn.primitives import Primitive
from eqlearn.numerics.budget import never
from eqlearn.search.ansatz.library import parity
from eqlearn.search.units.unit_settings import Enumeration
from eqlearn.symbolic.expressions import real_symbol
from eqlearn.validation.units import Dimension


@dataclass(frozen=True)
class Groups:
    """A product of powers with the unit of the target, and dimensionless ones, by column: the exponents."""

    scale: tuple[Fraction, ...]
    groups: tuple[tuple[Fraction, ...], ...]

    @property
    def size(self) -> Fraction:
        """How large the powers are; broken ones count more."""
        every = [p for powers in (self.scale, *self.groups) for p in powers]
        return sum((abs(p) + (2 if p.denominator > 1 else 0) for p in every), Fraction(0))

    def values(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The scale `(rows,)` and the groups `(rows, groups)`."""
        with np.errstate(all="ignore"):
            each = [
                np.prod(X ** np.array(powers, dtype=float), axis=1) for powers in (self.scale, *self.groups)
            ]
        return each[0], np.stack(each[1:], axis=1) if self.groups else np.empty((len(X), 0))

    def symbolic(self, names: Sequence[str]) -> tuple[sp.Expr, list[sp.Expr]]:
        return power_product(names, self.scale), [power_product(names, powers) for powers in self.groups]


def power_product(names: Sequence[str], powers: Sequence[Fraction]) -> sp.Expr:
    """The product of powers of these symbols."""
    return sp.Mul(*(real_symbol(n) ** _rational(p) for n, p in zip(names, powers, strict=True)))


def buckingham(columns: Sequence[Dimension], target: Dimension, most: int) -> list[Groups]:
    """At most so many choices of groups, the smallest powers first; none, if no product has the target's
    unit."""
    bases = sorted({name for d in (*columns, target) for name, _ in d.powers})
    matrix = sp.Matrix(
        len(bases), len(columns), lambda i, j: _rational(dict(columns[j].powers).get(bases[i], 0))
    )
    wanted = sp.Matrix([_rational(dict(target.powers).get(base, 0)) for base in bases])
    rank = matrix.rank() if bases else 0
    if bases and sp.Matrix.hstack(matrix, wanted).rank() > rank:
        return []
    dimensional = [j for j, d in enumerate(columns) if d]
    found: dict[Groups, None] = {}
    for repeated in islice(combinations(dimensional, rank), most):
        part = matrix[:, list(repeated)] if rank else sp.zeros(len(bases), 0)
        if rank and part.rank() < rank:
            continue

        def powers(
            vector: sp.Matrix, part: sp.Matrix = part, repeated: Sequence[int] = repeated
        ) -> list[Fraction]:
            solution = (part.T * part).LUsolve(part.T * vector) if rank else []
            exponents = [Fraction(0)] * len(columns)
            for j, value in zip(repeated, solution, strict=True):
                exponents[j] = Fraction(int(value.p), int(value.q))
            return exponents

        groups = []
        for j in range(len(columns)):
            if j in repeated:
                continue
            exponents = [-p for p in powers(matrix[:, j])] if columns[j] else [Fraction(0)] * len(columns)
            exponents[j] += 1
            groups.append(tuple(exponents))
        found[Groups(tuple(powers(wanted)), tuple(groups))] = None
    return sorted(found, key=lambda g: g.size)


def _rational(value: Any) -> sp.Rational:
    fraction = Fraction(value)
    return sp.Rational(fraction.numerator, fraction.denominator)


@dataclass(frozen=True, eq=False)
class Products:
    """Products of powers of columns, the shortest first: exponents `(products, columns)`, values, and what
    naming each costs in nodes: one that n are shorter than takes the bits of n."""

    exponents: np.ndarray
    values: np.ndarray
    costs: np.ndarray

    def symbolic(self, place: int, names: Sequence[str]) -> sp.Expr:
        return power_product(names, [Fraction(float(p)) for p in self.exponents[place]])


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


# How an expression is made: of a product of columns, a number, or an operator or primitive and others.
Made = tuple[Any, ...]


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
