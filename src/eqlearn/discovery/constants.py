"""The constants of a formula, fitted to data in float64, with their covariance."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import sympy as sp
import torch
from torch import Tensor

from eqlearn.core.equation import Equation
from eqlearn.core.export import TORCH
from eqlearn.core.expressions import constant_holders, fill_constants, fitted, real_symbol
from eqlearn.core.program import lower
from eqlearn.discovery.least_squares import never
from eqlearn.discovery.select import Constant
from eqlearn.discovery.uncertainty import errors_from_slopes


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
        self.program = lower(equation.expr, [real_symbol(name) for name in equation.variables])
        self.start = np.array(equation.constants, dtype=np.float64)

    def linearise(self, columns: Tensor, constants: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Values `(rows,)` and slopes `(rows, constants)` at columns `(in, rows)`."""
        rows = columns.shape[1]
        leaves = [torch.full((rows,), float(c), dtype=torch.float64, requires_grad=True) for c in constants]
        value = torch.as_tensor(self.program.run(TORCH, list(columns), leaves), dtype=torch.float64).expand(
            rows
        )
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
