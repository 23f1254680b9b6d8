"""Constants fitted to data with errors in all variables: the effective variance of Orear (1982).

An error of an input moves the value of a formula by its slope, so each row has the variance
σ² = σ_y² + Σ (∂f/∂x_j)² σ_j², which depends on the constants. Residuals over σ are minimised with that
dependence, which is orthogonal distance regression to first order in the errors; weights that are held fixed
would keep the slope of a line too small, as least squares does.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from eqlearn.functions import TORCH
from eqlearn.numerics.budget import never
from eqlearn.numerics.covariance import errors_from_slopes
from eqlearn.numerics.least_squares import Rule, SquareRoot, levenberg_marquardt
from eqlearn.symbolic.parametric import Constant, Formula, row_slopes

# Where slopes vanish and the target has no error, a row would weigh infinitely much: its error is taken for
# at least this part of the target's spread.
LEAST_ERROR = 1e-9


@dataclass(frozen=True)
class MeasuredFit:
    """Constants with standard errors, each row's residual over its standard deviation, those deviations, and
    the slopes of the former by the constants."""

    constants: tuple[Constant, ...]
    residuals: np.ndarray
    deviations: np.ndarray
    slopes: np.ndarray

    @property
    def chi_square(self) -> float:
        return float(self.residuals @ self.residuals)

    @property
    def freedom(self) -> int:
        """Degrees of freedom: rows that are not used up by constants."""
        return max(1, len(self.residuals) - len(self.constants))


def fit_measured(
    formula: Formula,
    X: np.ndarray,
    y: np.ndarray,
    y_error: np.ndarray,
    x_error: np.ndarray,
    *,
    steps: int = 60,
    stop: Callable[[], bool] = never,
) -> MeasuredFit:
    """Fits the constants from where they are, to inputs `(rows, in)` and a target `(rows,)` with standard
    deviations of the same shapes.

    Standard errors are those of the given deviations, made larger by √(χ²/ν) where the data scatter more than
    these say.
    """
    columns = list(torch.tensor(np.ascontiguousarray(X.T)))
    target, rows = torch.tensor(y), len(y)
    squares = torch.tensor(np.ascontiguousarray(x_error.T)) ** 2
    least = (LEAST_ERROR * (float(y.std()) or 1.0)) ** 2
    own = torch.tensor(y_error) ** 2
    value_tape, slope_tapes = formula.differentiated
    uncertain = [j for j in slope_tapes if j < len(columns) and bool(squares[j].any())]

    def over_error(constants: list[float]) -> tuple[Tensor, Tensor, list[Tensor]]:
        # Rows do not meet, so with constants of its own for each the slope of the sum is every row's slope.
        leaves = [torch.full((rows,), c, dtype=torch.float64, requires_grad=True) for c in constants]
        given = [*columns, *leaves]
        value = torch.as_tensor(value_tape.run(TORCH, given, ()), dtype=torch.float64).expand(rows)
        variance = own
        for j in uncertain:
            slope = torch.as_tensor(slope_tapes[j].run(TORCH, given, ()), dtype=torch.float64).expand(rows)
            variance = variance + slope**2 * squares[j]
        deviation = variance.clamp(min=least).sqrt()
        return (value - target) / deviation, deviation, leaves

    def linearise(point: Tensor) -> SquareRoot:
        residual, _, leaves = over_error(point[0].tolist())

        def slopes() -> tuple[np.ndarray, None]:
            return row_slopes(residual, leaves).numpy()[None], None

        return SquareRoot(residual.detach().numpy()[None], slopes)

    start = torch.tensor(formula.constants)[None]
    point, system = levenberg_marquardt(
        linearise, start, Rule(steps if len(formula.constants) else 0), stop=stop
    )
    values = point[0].tolist()
    residuals, deviations, _ = over_error(values)
    jacobian = system.slopes[0][0]
    left = residuals.detach().numpy()
    scale = max(1.0, float(left @ left) / max(1, rows - len(values)))
    errors = errors_from_slopes(jacobian, scale) if math.isfinite(scale) else np.full(len(values), math.inf)
    constants = tuple(Constant(v, float(e)) for v, e in zip(values, errors, strict=True))
    return MeasuredFit(constants, left, deviations.detach().numpy(), jacobian)
