"""A formula whose float constants can be given other values, on arrays and to fifty digits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import mpmath
import numpy as np
import sympy as sp

from eqlearn.core.expressions import (
    FUNCTIONS,
    NAMES,
    constant_holders,
    fill_constants,
    fitted,
    held_constant,
    real_symbol,
)
from eqlearn.core.program import NUMPY, Program, Step, lower

DIGITS = 50
# Nothing overflows in mpmath, but the exponential of an exponential would take for ever.
MOST_EXPONENT = 1e15


@dataclass(frozen=True, eq=False)
class Formula:
    """A SymPy expression in the real symbols of `variables`, and its float constants in reading order.

    A truth may hold functions that an equation can't; SymPy compiles those, slowly. If it has conditions, its
    constants are not found and stay as they are.
    """

    expr: sp.Expr
    variables: tuple[str, ...]

    @cached_property
    def holders(self) -> tuple[sp.Expr, ...]:
        return () if has_conditions(self.expr) else constant_holders(self.expr)

    @cached_property
    def constants(self) -> np.ndarray:
        return np.array([float(held_constant(h)) for h in self.holders], dtype=float)

    def __call__(self, points: np.ndarray, constants: np.ndarray | None = None) -> np.ndarray:
        """Values at points `(variables, ...)`, NaN where they are not real; the shapes broadcast."""
        constants = self.constants if constants is None else constants
        with np.errstate(all="ignore"):
            values = np.asarray(self._on_arrays(list(points), list(constants)), dtype=np.float64)
        return np.broadcast_to(values, np.broadcast_shapes(points.shape[1:], constants.shape[1:]))

    def precisely(self, point: np.ndarray, constants: np.ndarray) -> Any:
        """The value at one point to 50 digits, complex where it is not real."""
        with mpmath.workdps(DIGITS):
            return self._in_mpmath([mpmath.mpf(v) for v in point], [mpmath.mpf(c) for c in constants])

    def with_constants(self, constants: np.ndarray) -> Any:
        """The expression with these constants in their places."""
        numbers = (fitted(float(c)) for c in constants)
        return self._with_numbers(numbers)

    def _with_numbers(self, numbers: Iterable[sp.Expr]) -> Any:
        return fill_constants(self.expr, self.holders, numbers) if self.holders else self.expr

    @cached_property
    def _symbols(self) -> list[sp.Symbol]:
        return [real_symbol(name) for name in self.variables]

    @cached_property
    def _is_program(self) -> bool:
        known = (sp.Symbol, sp.Number, sp.NumberSymbol, sp.Add, sp.Mul, sp.Pow)
        return all(isinstance(node, known) or node.func in NAMES for node in sp.preorder_traversal(self.expr))

    @cached_property
    def _on_arrays(self) -> Callable[[Sequence[Any], Sequence[Any]], Any]:
        if not self._is_program:
            return self._by_sympy("scipy", "numpy")
        program = lower(self.expr, self._symbols)
        return lambda point, constants: program.run(NUMPY, point, constants, np.float64)

    @cached_property
    def _in_mpmath(self) -> Callable[[Sequence[Any], Sequence[Any]], Any]:
        if not self._is_program:
            return self._by_sympy("mpmath")
        program = lower(self.expr, self._symbols, exact=True)
        numbers: list[Any] = []
        steps: list[Step] = []
        for step in program.steps:
            if step.op == "number":
                numbers.append(mpmath.mpf(sp.N(step.exact, DIGITS)._mpf_))
                step = Step("constant", value=len(program.constants) + len(numbers) - 1)
            steps.append(replace(step, op="power") if step.op == "pow" else step)
        exact = Program(tuple(steps), program.constants)
        return lambda point, constants: exact.run(MPMATH, point, [*constants, *numbers])

    def _by_sympy(self, *modules: str) -> Callable[[Sequence[Any], Sequence[Any]], Any]:
        parameters = [sp.Dummy(real=True) for _ in self.holders]
        template = self._with_numbers(parameters)
        function = sp.lambdify([*self._symbols, *parameters], template, list(modules))
        return lambda point, constants: function(*point, *constants)


def has_conditions(expr: sp.Expr) -> bool:
    """Whether some part of an expression is no expression but a condition, as in a `Piecewise`."""
    return not all(isinstance(node, sp.Expr) for node in sp.preorder_traversal(expr))


def _exponential(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def bounded(g: Any) -> Any:
        if abs(g) > MOST_EXPONENT:
            raise OverflowError
        return function(g)

    return bounded


def _power(base: Any, exponent: Any) -> Any:
    if base != 0 and abs(exponent * mpmath.mag(base)) > MOST_EXPONENT:
        raise OverflowError
    return base**exponent


MPMATH = {
    **{name: getattr(mpmath, name) for name in (*FUNCTIONS, "sqrt") if name != "abs"},
    **{name: _exponential(getattr(mpmath, name)) for name in ("exp", "sinh", "cosh")},
    "abs": abs,
    "power": _power,
}
