"""The unit of a formula, from those of its variables: terms of a sum must agree, arguments have none.

The dimension of every part is linear in the unknown dimensions of its constants, so what a formula demands is
a system of linear equations; where it has no solution, the part that asked for too much is named.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import sympy as sp

from eqlearn.errors import InvalidArgument
from eqlearn.symbolic.equation import Equation
from eqlearn.symbolic.printing import write
from eqlearn.validation.units import Dimension, dimension_of

# Functions whose value has the unit of their arguments.
_KEEPING = (sp.Abs, sp.Max, sp.Min)


@dataclass
class _Part:
    """A dimension that is known, times powers of the unknown ones of constants."""

    known: Dimension
    unknown: dict[int, Fraction] = field(default_factory=dict)

    def over(self, other: _Part) -> _Part:
        return self.times(other.to(Fraction(-1)))

    def times(self, other: _Part) -> _Part:
        unknown = {i: self.unknown.get(i, Fraction(0)) + other.unknown.get(i, Fraction(0))
                   for i in {*self.unknown, *other.unknown}}  # fmt: skip
        return _Part(self.known * other.known, {i: p for i, p in unknown.items() if p})

    def to(self, power: Fraction) -> _Part:
        return _Part(self.known**power, {i: p * power for i, p in self.unknown.items() if p * power})


class _Reading:
    """Walks through a formula, and solves for the dimensions of constants on the way."""

    def __init__(self, equation: Equation, dimensions: Mapping[str, Dimension], free: bool) -> None:
        self.equation, self.dimensions, self.free = equation, dimensions, free
        self.solved: dict[int, _Part] = {}
        self.constants: list[tuple[sp.Expr, int]] = []

    def settled(self, part: _Part) -> _Part:
        """The part with what has been solved filled in."""
        while taken := next((i for i in part.unknown if i in self.solved), None):
            power = part.unknown[taken]
            rest = _Part(part.known, {i: p for i, p in part.unknown.items() if i != taken})
            part = rest.times(self.solved[taken].to(power))
        return part

    def demand_none(self, part: _Part) -> bool:
        """Asks that a part has no dimension; False if that is impossible."""
        part = self.settled(part)
        if not part.unknown:
            return not part.known
        chosen = max(part.unknown)
        rest = _Part(part.known, {i: p for i, p in part.unknown.items() if i != chosen})
        self.solved[chosen] = rest.to(-1 / part.unknown[chosen])
        return True

    def number(self, node: sp.Expr) -> _Part:
        if not self.free or node in (sp.S.One, sp.S.NegativeOne, sp.S.Zero):
            return _Part(Dimension())
        self.constants.append((node, len(self.constants) + 1))
        return _Part(Dimension(), {len(self.constants): Fraction(1)})

    def of(self, node: sp.Expr) -> _Part:
        if node.is_Symbol:
            return _Part(self.dimensions[node.name])
        if node.is_number:
            return self.number(node)
        if isinstance(node, sp.Mul):
            part = _Part(Dimension())
            for factor in node.args:
                part = part.times(self.of(factor))
            return part
        if isinstance(node, (sp.Add, *_KEEPING)):
            return self.sum_of(node)
        if isinstance(node, sp.Pow) and node.exp.is_number:
            power = Fraction(float(node.exp)).limit_denominator(1000)
            return self.settled(self.of(node.base)).to(power)
        for argument in node.args:
            self.plain(argument, node)
        return _Part(Dimension())

    def sum_of(self, node: sp.Expr) -> _Part:
        terms = sorted(node.args, key=lambda term: term.is_number)  # numbers take the unit of the rest
        first = self.of(terms[0])
        for term in terms[1:]:
            part = self.of(term)
            if not self.demand_none(part.over(first)):
                here, there = (self.settled(p).known for p in (first, part))
                raise InvalidArgument(
                    f"in `{self.text(node)}` the unit of `{self.text(terms[0])}` is {here}, and that of "
                    f"`{self.text(term)}` is {there}"
                )
        return self.settled(first)

    def plain(self, argument: sp.Expr, node: sp.Expr) -> None:
        """Asks that an argument has no unit."""
        part = self.of(argument)
        if not self.demand_none(part):
            raise InvalidArgument(
                f"in `{self.text(node)}` the argument `{self.text(argument)}` has the unit "
                f"{self.settled(part).known}, and must have none"
            )

    def text(self, node: sp.Expr) -> str:
        return write(node, self.equation.variables, 6)


def formula_dimension(
    equation: Equation,
    dimensions: Mapping[str, Dimension],
    *,
    free_constants: bool = False,
    target: Dimension | None = None,
) -> tuple[Dimension, dict[float, Dimension]]:
    """The dimension of an equation, and of the numbers in it, by their sizes.

    With `free_constants`, numbers have the dimensions that the formula needs, and what stays open has none.
    **Raises:** an error that names the part whose units do not agree; also if the whole has not the
    dimension of the `target`.
    """
    reading = _Reading(equation, dimensions, free_constants)
    whole = reading.of(equation.expr)
    if target is not None and not reading.demand_none(whole.over(_Part(target))):
        raise InvalidArgument(
            f"the unit of `{equation}` is {reading.settled(whole).known}, and that of the target is {target}"
        )
    found = reading.settled(whole).known
    numbers = {abs(float(n)): _Part(Dimension(), {i: Fraction(1)}) for n, i in reading.constants}
    return found, {size: reading.settled(part).known for size, part in numbers.items()}


def unit_of(equation: Equation, units: Mapping[str, str], *, free_constants: bool = False) -> str:
    """The unit of an equation's value in the SI, such as "m/s**2", from the units of its variables.

    With `free_constants`, numbers may have units. **Raises:** an error that names the part of the formula
    whose units do not agree.
    """
    missing = [name for name in map(str, equation.expr.free_symbols) if name not in units]
    if missing:
        raise InvalidArgument(f"`units` lacks {min(missing)!r}; give '1' for a number without a unit")
    known: dict[str, Any] = {name: dimension_of(unit, name) for name, unit in units.items()}
    return str(formula_dimension(equation, known, free_constants=free_constants)[0])
