"""A formula as a function of its constants: on arrays, to fifty digits, and fitted to data."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import mpmath
import numpy as np
import sympy as sp
import torch
from torch import Tensor

from eqlearn.functions import MOST_EXPONENT, NAMES, NUMPY, TORCH, Algebra
from eqlearn.numerics.budget import never
from eqlearn.numerics.covariance import errors_from_slopes
from eqlearn.symbolic.equation import Equation
from eqlearn.symbolic.expressions import (
    constant_holders,
    fill_constants,
    fitted,
    held_constant,
    real_symbol,
)
from eqlearn.symbolic.tape import Instruction, Tape, lower


@dataclass(frozen=True)
class ConstantFit:
    """Values of a formula's constants, their standard errors, how far the formula moves with each (root mean
    square of its slope), and the root-mean-square error."""

    values: np.ndarray
    standard_errors: np.ndarray
    influences: np.ndarray
    error: float

    @property
    def constants(self) -> tuple[Constant, ...]:
        """Value and standard error of each."""
        pairs = zip(self.values, self.standard_errors, strict=True)
        return tuple(Constant(float(value), float(error)) for value, error in pairs)

    @property
    def loose(self) -> list[int]:
        """Which of them have no value of their own, since others can make up for them."""
        return np.flatnonzero(np.isinf(self.standard_errors)).tolist()


class Parametric:
    """A formula as a function of its fitted constants as well as its variables, with exact slopes."""

    def __init__(self, equation: Equation) -> None:
        self.equation = equation
        self.holders = constant_holders(equation.expr)
        self.tape = lower(equation.expr, [real_symbol(name) for name in equation.variables])
        self.start = np.array(equation.constants, dtype=np.float64)

    def linearise(self, columns: Tensor, constants: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Values `(rows,)` and slopes `(rows, constants)` at columns `(in, rows)`."""
        rows = columns.shape[1]
        leaves = [torch.full((rows,), float(c), dtype=torch.float64, requires_grad=True) for c in constants]
        value = torch.as_tensor(self.tape.run(TORCH, list(columns), leaves), dtype=torch.float64).expand(rows)
        if not leaves:
            return value.numpy(), np.empty((rows, 0))
        # Rows do not meet, so the slope of the sum is every row's own slope.
        slopes = torch.autograd.grad(value.sum(), leaves, allow_unused=True, materialize_grads=True)
        # At the edge of a domain, as of √0, a slope is infinite: that row says nothing of the constants.
        finite = torch.stack(slopes, dim=1).nan_to_num(nan=0.0, posinf=0.0, neginf=0.0)
        return value.detach().numpy(), finite.numpy()

    def fit(
        self,
        X: np.ndarray,
        y: np.ndarray,
        weight: np.ndarray | None = None,
        *,
        start: np.ndarray | None = None,
        fixed: np.ndarray | None = None,
        steps: int = 30,
        stop: Callable[[], bool] = never,
    ) -> ConstantFit:
        """Levenberg-Marquardt from `start` until `stop()`; the `fixed` ones stay where they are, with error
        zero."""
        columns = torch.tensor(np.ascontiguousarray(X.T))
        root = None if weight is None else np.sqrt(weight / weight.mean())
        c = (self.start if start is None else start).copy()
        free = np.flatnonzero(~fixed) if fixed is not None else np.arange(len(c))
        residual, jacobian = self._residual(columns, y, root, c, free)
        loss, damping = _square(residual), 1e-6
        for _ in range(steps if len(free) else 0):
            if not math.isfinite(loss) or stop():
                break
            with np.errstate(all="ignore"):
                scale = np.sqrt((jacobian**2).sum(axis=0))
            scale[~(scale > 0)] = 1.0
            rows = np.vstack([jacobian / scale, math.sqrt(damping) * np.eye(len(free))])
            right = np.concatenate([-residual, np.zeros(len(free))])
            if not np.isfinite(rows).all():
                break
            move = np.linalg.lstsq(rows, right, rcond=None)[0] / scale
            trial = c.copy()
            trial[free] += move
            after, slopes = self._residual(columns, y, root, trial, free)
            new = _square(after)
            if new < loss:
                converged = loss - new <= 1e-14 * loss
                c, residual, jacobian, loss = trial, after, slopes, new
                damping = max(damping / 10, 1e-15)
                if converged:
                    break
            else:
                damping *= 10
                if damping > 1e6 or np.all(np.abs(move) <= 1e-16 * np.abs(c[free])):
                    break
        errors = np.zeros(len(c))
        errors[free] = errors_from_slopes(jacobian, loss / max(1, len(y) - len(free)))
        influences = np.full(len(c), math.inf)
        with np.errstate(all="ignore"):
            influences[free] = np.sqrt((jacobian**2).mean(axis=0))
        error = math.sqrt(loss / len(y)) if math.isfinite(loss) else math.inf
        return ConstantFit(c, errors, influences, error)

    def _residual(
        self, columns: Tensor, y: np.ndarray, root: np.ndarray | None, c: np.ndarray, free: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        value, jacobian = self.linearise(columns, c)
        residual, jacobian = value - y, jacobian[:, free]
        return (residual, jacobian) if root is None else (residual * root, jacobian * root[:, None])

    def with_constants(self, constants: Sequence[sp.Expr | float]) -> Equation:
        """The formula with these constants, numbers or exact expressions."""
        numbers = [c if isinstance(c, sp.Basic) else fitted(float(c)) for c in constants]
        expr = fill_constants(self.equation.expr, self.holders, numbers)
        return Equation(expr, self.equation.variables)


def noise_of(equation: Equation, X: np.ndarray, y: np.ndarray, weight: np.ndarray | None = None) -> float:
    """The standard deviation of what an equation leaves over, its constants' freedom discounted."""
    left = y - equation(X)
    square = float(left @ left) if weight is None else float(left**2 @ (weight / weight.mean()))
    return math.sqrt(square / max(1, len(y) - len(equation.constants)))


def _square(residual: np.ndarray) -> float:
    with np.errstate(all="ignore"):
        total = float(residual @ residual)
    return total if math.isfinite(total) else math.inf


DIGITS = 50


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
    def _is_tape(self) -> bool:
        known = (sp.Symbol, sp.Number, sp.NumberSymbol, sp.Add, sp.Mul, sp.Pow)
        return all(isinstance(node, known) or node.func in NAMES for node in sp.preorder_traversal(self.expr))

    @cached_property
    def _on_arrays(self) -> Callable[[Sequence[Any], Sequence[Any]], Any]:
        if not self._is_tape:
            return self._by_sympy("scipy", "numpy")
        tape = lower(self.expr, self._symbols)
        return lambda point, constants: tape.run(NUMPY, point, constants, np.float64)

    @cached_property
    def _in_mpmath(self) -> Callable[[Sequence[Any], Sequence[Any]], Any]:
        if not self._is_tape:
            return self._by_sympy("mpmath")
        tape = lower(self.expr, self._symbols, exact=True)
        numbers: list[Any] = []
        steps: list[Instruction] = []
        for step in tape.steps:
            if step.op == "number":
                numbers.append(mpmath.mpf(sp.N(step.exact, DIGITS)._mpf_))
                step = Instruction("constant", value=len(tape.constants) + len(numbers) - 1)
            steps.append(replace(step, op="power") if step.op == "pow" else step)
        exact = Tape(tuple(steps), tape.constants)
        return lambda point, constants: exact.run(MPMATH, point, [*constants, *numbers])

    def _by_sympy(self, *modules: str) -> Callable[[Sequence[Any], Sequence[Any]], Any]:
        parameters = [sp.Dummy(real=True) for _ in self.holders]
        template = self._with_numbers(parameters)
        function = sp.lambdify([*self._symbols, *parameters], template, list(modules))
        return lambda point, constants: function(*point, *constants)


def has_conditions(expr: sp.Expr) -> bool:
    """Whether some part of an expression is no expression but a condition, as in a `Piecewise`."""
    return not all(isinstance(node, sp.Expr) for node in sp.preorder_traversal(expr))


def _power(base: Any, exponent: Any) -> Any:
    if base != 0 and abs(exponent * mpmath.mag(base)) > MOST_EXPONENT:
        raise OverflowError
    return base**exponent


MPMATH = Algebra("mpmath", power=_power)


@dataclass(frozen=True)
class Constant:
    """A fitted constant of an equation, with its standard error."""

    value: float
    standard_error: float

    def interval(self) -> tuple[float, float]:
        """The 95 % interval of a normal error."""
        half = 1.959963984540054 * self.standard_error
        return self.value - half, self.value + half
