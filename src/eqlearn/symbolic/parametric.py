"""A formula as a function of its constants: on arrays, to fifty digits, and fitted to data."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache
from typing import Any

import mpmath
import numpy as np
import sympy as sp
import torch
from torch import Tensor

from eqlearn.errors import InvalidArgument, NotFinite, WrongType
from eqlearn.functions import MOST_EXPONENT, NAMES, NUMPY, TORCH, Algebra
from eqlearn.numerics.budget import never
from eqlearn.numerics.covariance import errors_from_slopes
from eqlearn.numerics.least_squares import Rule, SquareRoot, levenberg_marquardt
from eqlearn.symbolic.equation import Equation
from eqlearn.symbolic.expressions import constant_holders, fill_constants, fitted, held_constant, real_symbol
from eqlearn.symbolic.tape import Instruction, Tape, lower
from eqlearn.validation.table import columns_of, read_table, target_of


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


DIGITS = 50


@dataclass(frozen=True, eq=False)
class Formula:
    """A SymPy expression in the real symbols of `variables`, as a function of them and of its float constants
    in reading order: on arrays, to fifty digits, with slopes, and fitted to data.

    A truth may hold functions that an equation can't; SymPy compiles those, slowly, and they have no slopes
    here. If it has conditions, its constants are not found and stay as they are. What is asked for is built
    when it is asked for.
    """

    expr: sp.Expr
    variables: tuple[str, ...]

    @classmethod
    def of(cls, equation: Equation) -> Formula:
        """The formula of an equation."""
        return cls(equation.expr, tuple(equation.variables))

    @cached_property
    def holders(self) -> tuple[sp.Expr, ...]:
        return () if has_conditions(self.expr) else constant_holders(self.expr)

    @cached_property
    def constants(self) -> np.ndarray:
        return np.array([float(held_constant(h)) for h in self.holders], dtype=float)

    def filled(self, constants: Iterable[sp.Expr | float]) -> Any:
        """The expression with these constants, numbers or expressions, in their places."""
        numbers = [c if isinstance(c, sp.Basic) else fitted(float(c)) for c in constants]
        return fill_constants(self.expr, self.holders, numbers) if self.holders else self.expr

    def with_constants(self, constants: Iterable[sp.Expr | float]) -> Equation:
        """The equation with these constants, numbers or exact expressions."""
        return Equation(self.filled(constants), self.variables)

    def __call__(self, points: np.ndarray, constants: np.ndarray | None = None) -> np.ndarray:
        """Values at points `(variables, ...)`, NaN where they are not real; the shapes broadcast."""
        constants = self.constants if constants is None else constants
        with np.errstate(all="ignore"):
            values = np.asarray(self._on_arrays(list(points), list(constants)), dtype=np.float64)
        return np.broadcast_to(values, np.broadcast_shapes(points.shape[1:], constants.shape[1:]))

    def precisely(self, point: np.ndarray, constants: np.ndarray) -> Any:
        """The value at one point to fifty digits, complex where it is not real."""
        with mpmath.workdps(DIGITS):
            return self._in_mpmath([mpmath.mpf(v) for v in point], [mpmath.mpf(c) for c in constants])

    def linearise(self, columns: Tensor, constants: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Values `(rows,)` and slopes by the constants `(rows, constants)` at columns `(in, rows)`."""
        value, slopes = self._on_tensors(columns, constants)
        return value.numpy(), slopes().numpy()

    @cached_property
    def differentiated(self) -> tuple[Tape, dict[int, Tape]]:
        """The tape of the value and those of its slopes that are not zero, by variables and then constants;
        all are run on variables and constants together."""
        symbols = [constant_symbol(i) for i in range(len(self.holders))]
        return _differentiated(self.filled(symbols), self.variables, len(symbols))

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
        """Least squares from `start` until `stop()`; the `fixed` constants stay where they are, with error
        zero."""
        columns = torch.tensor(np.ascontiguousarray(X.T))
        root = None if weight is None else np.sqrt(weight / weight.mean())
        held = np.zeros(len(self.constants), dtype=bool) if fixed is None else fixed

        def linearise(point: Tensor) -> SquareRoot:
            value, slopes = self._on_tensors(columns, point[0].tolist())
            residual = value.numpy() - y if root is None else (value.numpy() - y) * root
            weights = 1.0 if root is None else root[:, None]
            return SquareRoot(residual[None], lambda: ((slopes().numpy() * weights)[None], None))

        point, system = levenberg_marquardt(
            linearise,
            torch.tensor(self.constants if start is None else start)[None],
            Rule(0 if held.all() else steps),
            fixed=torch.from_numpy(held)[None] if held.any() else None,
            stop=stop,
        )
        mean, free = float(system.loss), np.flatnonzero(~held)
        jacobian = system.slopes[0][0][:, free]
        errors, influences = np.zeros(len(held)), np.full(len(held), math.inf)
        errors[free] = errors_from_slopes(jacobian, mean * len(y) / max(1, len(y) - len(free)))
        with np.errstate(all="ignore"):
            influences[free] = np.sqrt((jacobian**2).mean(axis=0))
        return ConstantFit(point[0].numpy(), errors, influences, math.sqrt(mean))

    @cached_property
    def _symbols(self) -> list[sp.Symbol]:
        return [real_symbol(name) for name in self.variables]

    @cached_property
    def _is_tape(self) -> bool:
        known = (sp.Symbol, sp.Number, sp.NumberSymbol, sp.Add, sp.Mul, sp.Pow)
        return all(isinstance(node, known) or node.func in NAMES for node in sp.preorder_traversal(self.expr))

    @cached_property
    def _tape(self) -> Tape:
        return lower(self.expr, self._symbols)

    def _on_tensors(self, columns: Tensor, constants: Iterable[float]) -> tuple[Tensor, Callable[[], Tensor]]:
        """Values `(rows,)`, and what computes their slopes `(rows, constants)`."""
        if not self._is_tape:
            raise InvalidArgument(f"{self.expr} holds a function that has no slopes here")
        rows = columns.shape[1]
        # Rows do not meet, so with constants of its own for each the slope of the sum is every row's slope.
        leaves = [torch.full((rows,), float(c), dtype=torch.float64, requires_grad=True) for c in constants]
        found = self._tape.run(TORCH, list(columns), leaves)
        value = torch.as_tensor(found, dtype=torch.float64).expand(rows)

        return value.detach(), lambda: row_slopes(value, leaves)

    @cached_property
    def _on_arrays(self) -> Callable[[Sequence[Any], Sequence[Any]], Any]:
        if not self._is_tape:
            return self._by_sympy("scipy", "numpy")
        return lambda point, constants: self._tape.run(NUMPY, point, constants, np.float64)

    @cached_property
    def _in_mpmath(self) -> Callable[[Sequence[Any], Sequence[Any]], Any]:
        if not self._is_tape:
            return self._by_sympy("mpmath")
        tape = lower(self.expr, self._symbols, exact=True)
        numbers: list[Any] = []
        steps: list[Instruction] = []
        for step in tape.steps:
            if step.op == "number":
                digits = sp.N(step.exact, DIGITS)  # SymPy's zero has no digits
                numbers.append(mpmath.mpf(digits._mpf_ if digits else 0))
                step = Instruction("constant", value=len(tape.constants) + len(numbers) - 1)
            steps.append(replace(step, op="power") if step.op == "pow" else step)
        exact = Tape(tuple(steps), tape.constants)
        return lambda point, constants: exact.run(MPMATH, point, [*constants, *numbers])

    def _by_sympy(self, *modules: str) -> Callable[[Sequence[Any], Sequence[Any]], Any]:
        parameters = [sp.Dummy(real=True) for _ in self.holders]
        function = sp.lambdify([*self._symbols, *parameters], self.filled(parameters), list(modules))
        return lambda point, constants: function(*point, *constants)


def row_slopes(value: Tensor, leaves: Sequence[Tensor]) -> Tensor:
    """The slopes `(rows, constants)` of values `(rows,)` by constants that each row has its own of."""
    if not leaves:
        return value.new_empty(len(value), 0)
    each = torch.autograd.grad(value.sum(), list(leaves), allow_unused=True, materialize_grads=True)
    # At the edge of a domain, as of √0, a slope is infinite: that row says nothing of the constants.
    return torch.stack(each, dim=1).nan_to_num(nan=0.0, posinf=0.0, neginf=0.0)


@cache
def constant_symbol(place: int) -> sp.Symbol:
    """The symbol of a constant that is free, which no column can be, whatever its name."""
    return sp.Dummy(f"c{place}", real=True)


@lru_cache(maxsize=1024)
def _differentiated(
    expr: sp.Expr, variables: tuple[str, ...], constants: int
) -> tuple[Tape, dict[int, Tape]]:
    symbols = [*map(real_symbol, variables), *map(constant_symbol, range(constants))]
    # |g| of a g that SymPy can't prove real has slopes that it can't write in real functions.
    smooth = expr.replace(sp.Abs, lambda inner: sp.sqrt(inner**2))
    slopes = {
        j: sp.diff(smooth, symbol).replace(sp.sign, lambda inner: inner / sp.Abs(inner))
        for j, symbol in enumerate(symbols)
        if expr.has(symbol)
    }
    return lower(expr, symbols), {j: lower(slope, symbols) for j, slope in slopes.items() if slope != 0}


def noise_of(equation: Equation, X: np.ndarray, y: np.ndarray, weight: np.ndarray | None = None) -> float:
    """The standard deviation of an equation's residuals, with a degree of freedom less for each constant."""
    left = y - equation(X)
    square = float(left @ left) if weight is None else float(left**2 @ (weight / weight.mean()))
    return math.sqrt(square / max(1, len(y) - len(equation.constants)))


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


@dataclass(frozen=True)
class Refitted:
    """An equation with its constants fitted, in the order they are read, and its root mean square error.

    A constant that the data do not determine, or that another can make up for, has an infinite standard
    error.
    """

    equation: Equation
    constants: tuple[Constant, ...]
    error: float


def refit(equation: Equation, X: Any, y: Any, *, sample_weight: Any = None) -> Refitted:
    """Fits the constants of an equation to data by least squares, from the values they have; a new equation.

    Numbers with a point in them are fitted; whole numbers, fractions and pi stay: write `x**2.0` to have the
    exponent fitted. `X` and `y` are as for calling the equation. Standard errors are those of independent
    noise of equal size, or with `sample_weight` of a size that goes as one over the weight's root.
    """
    if not isinstance(equation, Equation):
        raise WrongType(f"`equation` must be an Equation, got {equation!r}; make one with `Equation.parse`")
    columns, rows = columns_of(X, equation.variables)
    target = target_of(y, rows)
    inputs = np.stack(columns, axis=1) if columns else np.zeros((rows, 1))
    table, _ = read_table(inputs, target, sample_weight, equation.variables or ("none",))
    if table.weight is not None:
        table = table.take(np.flatnonzero(table.weight))
    count = len(equation.constants)
    if table.rows <= count:
        raise InvalidArgument(
            f"`X` holds {table.rows} rows of any weight for {count} constants; "
            "give more rows than constants, or write some of them as exact numbers"
        )
    outside = int((~np.isfinite(equation(table.X if columns else table.X[:, :0]))).sum())
    if outside:
        raise NotFinite(
            f"the equation {equation} is not finite on {outside} of {table.rows} rows of `X`; "
            "remove them, or start from other constants"
        )
    formula = Formula.of(equation)
    # From values that someone wrote down it is further to the optimum than from those that a search found.
    fit = formula.fit(table.X, table.y[:, 0], table.weight, steps=300)
    return Refitted(formula.with_constants(list(fit.values)), fit.constants, fit.error)
