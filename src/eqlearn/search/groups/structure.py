"""The structure of a formula: what is left of it when every number in it may have any value."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import sympy as sp
import torch
from torch import Tensor

from eqlearn.functions import TORCH
from eqlearn.symbolic.equation import Equation
from eqlearn.symbolic.expressions import number_parts, parts, reading_order, real_symbol
from eqlearn.symbolic.parametric import constant_symbol, row_slopes
from eqlearn.symbolic.tape import Tape, lower, number_value

# How a number came into a structure: it was fitted, or written exactly, or it is a factor of 1 nobody wrote.
FITTED, WRITTEN, IMPLIED = 0, 1, 2
# A slope that the others make up for but for this part of it is no slope of its own. Rounding leaves 1e-15.
_REDUNDANT = 1e-9
# Parameters are moved by this part before their slopes are compared: a start may happen to be special.
_ASIDE = 0.03


@dataclass(frozen=True, eq=False)
class Structure:
    """An expression in the columns' symbols and in `parameters`, with values to start a fit from."""

    expr: Any
    variables: tuple[str, ...]
    parameters: tuple[sp.Symbol, ...]
    start: np.ndarray
    kinds: tuple[int, ...]

    @property
    def key(self) -> Any:
        """Equal for equal structures, whatever the values of their parameters."""
        numbered = dict(zip(self.parameters, map(constant_symbol, range(len(self.parameters))), strict=True))
        return self.expr.xreplace(numbered)

    @cached_property
    def tape(self) -> Tape:
        return lower(self.expr, [*map(real_symbol, self.variables), *self.parameters])

    def __call__(self, columns: Tensor, constants: Tensor) -> tuple[Tensor, Callable[[], Tensor]]:
        """Values `(rows,)`, and what computes their slopes `(rows, parameters)`, at columns `(in, rows)` and
        parameters `(parameters, rows)`."""
        leaves = [c.detach().clone().requires_grad_() for c in constants]
        found = self.tape.run(TORCH, [*columns, *leaves], [float(c) for c in self.tape.constants])
        value = torch.as_tensor(found, dtype=torch.float64).expand(columns.shape[1])
        return value.detach(), lambda: row_slopes(value, leaves)

    @cached_property
    def linear(self) -> np.ndarray:
        """Which parameters the expression is linear in, all of them together."""
        chosen: list[sp.Symbol] = []
        for symbol in self.parameters:
            slope = sp.diff(self.expr, symbol)
            if not slope.has(symbol, *chosen):
                chosen.append(symbol)
        return np.array([symbol in chosen for symbol in self.parameters], dtype=bool)

    def fixed(self, values: Mapping[int, Any]) -> Structure:
        """The structure with these parameters replaced by numbers."""
        kept = [i for i in range(len(self.parameters)) if i not in values]
        numbers = {self.parameters[i]: sp.S(value) for i, value in values.items()}
        expr = self.expr.xreplace(numbers)
        lost = [i for i in kept if not expr.has(self.parameters[i])]  # 0·c is 0
        kept = [i for i in kept if i not in lost]
        return Structure(
            expr, self.variables, tuple(self.parameters[i] for i in kept), self.start[kept],
            tuple(self.kinds[i] for i in kept),
        )  # fmt: skip


def freed(equation: Equation, positive: Callable[[sp.Expr], bool] | None = None) -> Structure:
    """The structure of an equation: every coefficient of a term, of an argument and of the whole is a
    parameter, also those that are 1 and not written; so are exponents other than whole and half ones, and
    with `positive`, which says whether a part is positive on all rows, all exponents of such parts."""
    freeing = _Freeing(equation.expr, positive)
    expr = freeing.term(equation.expr)
    symbols = tuple(map(constant_symbol, range(len(freeing.values))))
    kept = [i for i, symbol in enumerate(symbols) if expr.has(symbol)]
    return Structure(
        expr, equation.variables, tuple(symbols[i] for i in kept),
        np.array([freeing.values[i] for i in kept]), tuple(freeing.kinds[i] for i in kept),
    )  # fmt: skip


class _Freeing:
    """The walk over an expression that puts parameters into the places of its numbers."""

    def __init__(self, expr: sp.Expr, positive: Callable[[sp.Expr], bool] | None) -> None:
        self.order, self.positive = reading_order(expr), positive
        self.numbers = number_parts(parts(expr))
        self.values: list[float] = []
        self.kinds: list[int] = []

    def number(self, factors: Sequence[sp.Expr]) -> Any:
        product = sp.Mul(*factors)
        kind = FITTED if product.has(sp.Float) else IMPLIED if abs(product) == 1 else WRITTEN
        self.values.append(float(product) if kind == FITTED else number_value(product))
        self.kinds.append(kind)
        return constant_symbol(len(self.values) - 1)

    def term(self, node: sp.Expr) -> Any:
        """A coefficient and what it multiplies."""
        if node in self.numbers:
            return self.number([node])
        if not isinstance(node, sp.Mul):
            return self.number([]) * self.inner(node)
        args = self.order[node]
        coefficient = self.number([a for a in args if a in self.numbers])
        return sp.Mul(coefficient, *(self.inner(a) for a in args if a not in self.numbers))

    def inner(self, node: sp.Expr) -> Any:
        if isinstance(node, sp.Symbol):
            return node
        if isinstance(node, sp.Pow):
            return self.power(node)
        args = [self.term(a) for a in self.order[node]]
        return node.func(*args)

    def power(self, node: sp.Expr) -> Any:
        base, exponent = node.base, node.exp
        if base in self.numbers:
            return self.number([base]) ** self.term(exponent)
        below = self.term(base) if isinstance(base, sp.Mul) else self.inner(base)
        if exponent not in self.numbers:
            return below ** self.term(exponent)
        plain = exponent.is_Rational and exponent.q <= 2
        if plain and (self.positive is None or not self.positive(base)):
            return below**exponent
        return below ** self.number([exponent])


def parametrisations(structure: Structure, columns: Tensor, most: int) -> Iterator[Structure]:
    """The structure without parameters that others can make up for: first with those that were fitted or
    written, then with others in their places (`a/(1 + b*x)` for `a/(b + x)`), at most `most` in all."""
    slopes = _slopes(structure, columns)
    count = len(structure.parameters)
    preferred = sorted(range(count), key=lambda i: (structure.kinds[i], i))
    first = independent(slopes, preferred)
    yield structure.fixed({i: _number(structure, i) for i in range(count) if i not in first})
    given = 1
    for others in itertools.combinations(range(count), len(first)):
        if given >= most:
            return
        if set(others) != set(first) and len(independent(slopes, others)) == len(others):
            given += 1
            signs = {i: int(math.copysign(1, structure.start[i])) for i in range(count) if i not in others}
            yield structure.fixed(signs)


def _number(structure: Structure, i: int) -> Any:
    value = float(structure.start[i])
    return sp.Integer(int(value)) if value.is_integer() and abs(value) < 100 else value


def _slopes(structure: Structure, columns: Tensor) -> np.ndarray:
    aside = 1 + _ASIDE * np.sin(1.0 + np.arange(len(structure.start)))
    constants = torch.from_numpy(structure.start * aside)[:, None].expand(-1, columns.shape[1])
    slopes: np.ndarray = structure(columns, constants)[1]().numpy()
    return slopes


def independent(slopes: np.ndarray, order: Sequence[int]) -> list[int]:
    """Those columns, taken in order, that no sum of the ones before them is equal to; they are scaled to unit
    length first."""
    with np.errstate(all="ignore"):
        lengths = np.sqrt((slopes**2).sum(axis=0))
    usable = np.isfinite(lengths) & (lengths > 0)
    slopes = np.where(usable, slopes / np.where(usable, lengths, 1.0), 0.0)
    chosen: list[int] = []
    basis = np.empty((len(slopes), 0))
    for i in order:
        rest = slopes[:, i]
        for _ in range(2):  # once more, for rounding
            rest = rest - basis @ (basis.T @ rest)
        length = float(np.sqrt(rest @ rest))
        if length > _REDUNDANT and len(chosen) < len(slopes):
            chosen.append(i)
            basis = np.column_stack([basis, rest / length])
    return chosen
