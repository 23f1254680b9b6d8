"""Columns in whose place a search sees others, so that what it finds has the symmetries that are known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy as sp

from eqlearn.search.knowledge.constraints import Survey, Symmetry
from eqlearn.search.knowledge.knowledge import Knowledge
from eqlearn.symbolic.equation import Equation
from eqlearn.symbolic.expressions import real_symbol
from eqlearn.symbolic.snap import snap_constant
from eqlearn.validation.table import Table

# A period this near to a simple number is that number.
SIMPLE = 1e-12


@dataclass(frozen=True)
class Substitution:
    """What the search sees: formulas in the columns `variables`, by the names of what it sees.

    A column in which the law is even is seen as |x|, one in which it is periodic as the sine and cosine of
    its phase. Where it is odd, every row is seen a second time, mirrored: even terms then cancel.
    """

    variables: tuple[str, ...]
    seen: tuple[tuple[str, Any], ...]
    odd: tuple[int, ...] = ()

    @classmethod
    def of(cls, knows: Knowledge, variables: Sequence[str]) -> Substitution:
        seen: list[tuple[str, Any]] = []
        for name in variables:
            x = real_symbol(name)
            if name in knows.periodic:
                phase = 2 * sp.pi / exact_number(knows.periodic[name]) * x
                seen += [(f"sin({phase})", sp.sin(phase)), (f"cos({phase})", sp.cos(phase))]
            else:
                seen.append((f"|{name}|", sp.Abs(x)) if name in knows.even else (name, x))
        odd = tuple(variables.index(name) for name in knows.odd)
        return cls(tuple(variables), tuple(seen), odd)

    def beside(self, columns: Sequence[tuple[str, Any]]) -> Substitution:
        """The same with further columns."""
        return Substitution(self.variables, (*self.seen, *columns), self.odd)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.seen)

    def inputs(self, X: np.ndarray) -> np.ndarray:
        """What the search sees of rows `(rows, variables)`."""
        own = {real_symbol(name): X[:, k] for k, name in enumerate(self.variables)}
        each = [own[e] if e in own else Equation(e, self.variables)(X) for _, e in self.seen]
        return np.stack(each, axis=1)

    def mirrored(self, table: Table) -> Table:
        """The rows, and for every column in which the law is odd all of them mirrored."""
        for column in self.odd:
            sign = np.ones(table.X.shape[1])
            sign[column] = -1
            table = table.join(Table(table.X * sign, -table.y, table.weight))
        return table

    def back(self, equation: Equation, survey: Survey) -> Equation:
        """An equation in what is seen, in the columns; |x| is written as x where the law stays even."""
        places = {real_symbol(name): expr for name, expr in self.seen}
        expr = equation.expr.xreplace(places)
        for k, name in enumerate(self.variables):
            x = real_symbol(name)
            if expr.has(sp.Abs(x)):
                plain = Equation(expr.xreplace({sp.Abs(x): x}), self.variables)
                expr = plain.expr if Symmetry("even", k).holds(plain, survey) else expr
        return Equation(expr, self.variables)


def exact_number(value: float) -> Any:
    """A number that no fit moves: a simple one if it is that near, else all its decimals."""
    simple = snap_constant(value, SIMPLE * abs(value))
    return sp.Rational(repr(value)) if simple is None else simple
