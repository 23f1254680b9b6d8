"""A formula as a straight-line tape: each distinct part is computed once, on arrays of any library.

Every export (values, source code, text) is made from this one reading of an expression, so they agree.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, reduce
from typing import Any, TypeAlias

import numpy as np
import sympy as sp
from numpy.typing import NDArray

from eqlearn.errors import NotFinite
from eqlearn.functions import NAMES, NUMPY
from eqlearn.symbolic.expressions import (
    REMEMBERED,
    constant_holders,
    held_constant,
    is_denominator,
    magnitude,
    number_parts,
    parts,
    reading_order,
)

Operations: TypeAlias = Mapping[str, Callable[..., Any]]
Arrays: TypeAlias = "Sequence[Any] | NDArray[Any]"

_OPERATORS: Operations = {
    "add": lambda *terms: reduce(operator.add, terms),
    "mul": lambda *factors: reduce(operator.mul, factors),
    "div": operator.truediv,
    "neg": operator.neg,
    "pow": operator.pow,
}
# Beyond 2**350 a factor of exp(g) goes into its exponent: the product might be moderate where they are not.
_EXTREME = 350


@dataclass(frozen=True)
class Instruction:
    """One operation on earlier steps, or a leaf: a number, or a variable or constant by its index."""

    op: str
    args: tuple[int, ...] = ()
    value: int | float = 0
    exact: Any = None


@dataclass(frozen=True)
class Tape:
    """The steps of a formula; the last one is its value."""

    steps: tuple[Instruction, ...]
    constants: tuple[Any, ...]

    def run(
        self,
        functions: Operations,
        variables: Arrays,
        constants: Arrays,
        number: Callable[[float], Any] = float,
    ) -> Any:
        """The value on arrays; a part is let go as soon as nothing needs it any more."""
        values: dict[int, Any] = {}
        for i, step in enumerate(self.steps):
            if step.op == "variable":
                values[i] = variables[int(step.value)]
            elif step.op == "constant":
                values[i] = constants[int(step.value)]
            elif step.op == "number":
                values[i] = number(step.value)
            else:
                operation = _OPERATORS.get(step.op) or functions[step.op]
                values[i] = operation(*map(values.__getitem__, step.args))
                for a in self._spent[i]:
                    del values[a]
        return values[len(self.steps) - 1]

    @cached_property
    def _spent(self) -> tuple[tuple[int, ...], ...]:
        """What nothing needs any more after each step."""
        last_use = {a: i for i, step in enumerate(self.steps) for a in step.args}
        return tuple(tuple({a for a in s.args if last_use[a] == i}) for i, s in enumerate(self.steps))

    def evaluate(self, columns: Arrays, constants: Arrays | None = None) -> Any:
        """The value in float64, NaN or infinite outside the domain; with other constants if given."""
        constants = self.constants if constants is None else constants
        with np.errstate(all="ignore"):
            return self.run(NUMPY, columns, [np.float64(c) for c in constants], np.float64)


def lower(expr: sp.Expr, symbols: Sequence[sp.Symbol], *, exact: bool = False) -> Tape:
    """The tape of `expr`, for values: numbers are folded, and nothing overflows on the way to a moderate
    value. With `exact`, for text: it says literally what the expression says."""
    return _lowered(expr, tuple(symbols), exact)


@lru_cache(maxsize=REMEMBERED)
def _lowered(expr: sp.Expr, symbols: tuple[sp.Symbol, ...], exact: bool) -> Tape:
    tape = _Lowering(expr, symbols, exact).tape()
    if not exact:
        _check_numbers(tape)
    return tape


def _check_numbers(tape: Tape) -> None:
    """Refuses a part without variables that has no finite real value, such as log(-0.3)."""
    values: dict[int, Any] = {}
    with np.errstate(all="ignore"):
        for i, step in enumerate(tape.steps):
            if step.op in ("constant", "number"):
                leaf = tape.constants[int(step.value)] if step.op == "constant" else step.value
                values[i] = np.float64(leaf)
            elif step.args and values.keys() >= set(step.args):
                values[i] = (_OPERATORS.get(step.op) or NUMPY[step.op])(*map(values.__getitem__, step.args))
                if not np.isfinite(values[i]):
                    raise NotFinite(
                        f"a part of the formula that depends on no variable, `{step.op}` of "
                        f"{', '.join(f'{values[a]:.6g}' for a in step.args)}, is not a finite real number"
                    )


@lru_cache(maxsize=10_000)
def number_value(number: sp.Expr) -> float:
    """The float64 value of an exact number such as `2*pi/3`; unlike SymPy's, it never takes long."""
    if isinstance(number, sp.Rational):
        try:
            return int(number.p) / int(number.q)
        except OverflowError:
            return math.inf
    if number.is_Atom:
        return {sp.pi: math.pi, sp.E: math.e}.get(number, math.nan)
    return float(lower(number, (), exact=True).evaluate(()))


class _Lowering:
    """The walk over the parts of one expression, writing steps and sharing equal ones."""

    def __init__(self, expr: sp.Expr, symbols: Sequence[sp.Symbol], exact: bool) -> None:
        self.expr = expr
        self.exact = exact
        self.place = {symbol: i for i, symbol in enumerate(symbols)}
        self.nodes = parts(expr)
        self.order = reading_order(expr)
        holders = constant_holders(expr)
        self.slot = {holder: k for k, holder in enumerate(holders)}
        self.floats = tuple(held_constant(h) for h in holders)
        numbers = number_parts(self.nodes)
        fitted = {n for n in numbers if n.has(sp.Float)}
        # Numbers that are one step, and those among them that merge into one coefficient.
        self.numbers = {n for n in numbers - fitted if n.is_Atom or not exact}
        self.merged = {n for n in self.numbers if n.is_Rational or not exact}
        self.steps: dict[Instruction, int] = {}
        self.index: dict[sp.Expr, int] = {}

    def tape(self) -> Tape:
        for node in self.nodes:
            if not isinstance(node, sp.Float):
                self.index[node] = self.write(node)
        end = self.operand(self.expr, self.expr)
        steps, needed = list(self.steps), {end}
        for i in range(end, -1, -1):
            needed.update(steps[i].args if i in needed else ())
        moved = {old: new for new, old in enumerate(sorted(needed))}
        kept = (replace(steps[i], args=tuple(moved[a] for a in steps[i].args)) for i in moved)
        return Tape(tuple(kept), self.floats)

    def emit(self, op: str, *args: int, value: int | float = 0, exact: Any = None) -> int:
        return self.steps.setdefault(Instruction(op, args, value, exact), len(self.steps))

    def number(self, exact: Any) -> int:
        exact = sp.S(exact)
        value = number_value(exact)
        if not math.isfinite(value):
            raise NotFinite(f"the number `{exact}` is beyond float64 or not real")
        return self.emit("number", value=value, exact=exact)

    def operand(self, holder: sp.Expr, arg: sp.Expr) -> int:
        if isinstance(arg, sp.Float):
            return self.emit("constant", value=self.slot[holder])
        return self.index[arg]

    def product(self, factors: Sequence[int]) -> int:
        return factors[0] if len(factors) == 1 else self.emit("mul", *factors)

    def write(self, node: sp.Expr) -> int:
        if node in self.numbers:
            return self.number(node)
        if isinstance(node, sp.Symbol):
            return self.emit("variable", value=self.place[node])
        if isinstance(node, sp.Mul):
            return self.write_product(node)
        if is_denominator(node):
            return self.emit("div", self.number(1), self.below(node))
        operands = [self.operand(node, a) for a in self.order[node]]
        if isinstance(node, sp.Pow):
            return self.write_power(node.exp, *operands)
        return self.emit("add" if isinstance(node, sp.Add) else NAMES[node.func], *operands)

    def write_power(self, exponent: sp.Expr, base: int, raised: int) -> int:
        return self.emit("sqrt", base) if exponent == sp.S.Half else self.emit("pow", base, raised)

    def below(self, node: sp.Expr) -> int:
        """What stands under the fraction line for b**-e: b**e."""
        base = self.operand(node, node.base)
        return base if node.exp == -1 else self.write_power(-node.exp, base, self.number(-node.exp))

    def write_product(self, node: sp.Expr) -> int:
        args = self.order[node]
        coefficient = sp.Mul(*(a for a in args if a in self.merged))
        rest = [a for a in args if a not in self.merged]
        numerators, negative = [], False
        shift = None if self.exact else _extreme_exponential(rest)
        if shift is not None:
            rest = [a for a in rest if a not in shift]
            numerators, negative = [self.write_shifted(node, *shift)], bool(shift[0] < 0)
        numerators += [self.operand(node, a) for a in rest if not is_denominator(a)]
        denominators = [self.below(a) for a in rest if is_denominator(a)]
        if not coefficient.is_Rational:
            numerators.insert(0, self.number(coefficient))
        else:
            if coefficient.q != 1:
                denominators.insert(0, self.number(coefficient.q))
            if abs(coefficient.p) != 1 or not numerators:
                numerators.insert(0, self.number(coefficient.p))
            elif coefficient.p == -1:
                negative = not negative
        value = self.product(numerators)
        if denominators:
            value = self.emit("div", value, self.product(denominators))
        return self.emit("neg", value) if negative else value

    def write_shifted(self, node: sp.Expr, constant: sp.Float, exponential: sp.Expr) -> int:
        """|c|*exp(g) as exp(g + log|c|)."""
        if abs(magnitude(constant)) > 1000:
            shift = self.emit("number", value=float(sp.log(abs(constant))))
        else:
            shift = self.emit("log", self.emit("abs", self.operand(node, constant)))
        return self.emit("exp", self.emit("add", self.operand(exponential, exponential.args[0]), shift))


def _extreme_exponential(factors: Sequence[sp.Expr]) -> tuple[sp.Float, sp.Expr] | None:
    constant = next((a for a in factors if isinstance(a, sp.Float) and abs(magnitude(a)) > _EXTREME), None)
    exponential = next((a for a in factors if isinstance(a, sp.exp)), None)
    return None if constant is None or exponential is None else (constant, exponential)
