"""Splines of one variable, in which a function is written before it has a formula."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.interpolate import BSpline


@dataclass(frozen=True, eq=False)
class Splines:
    """B-splines over the range of a variable, or around it where it has a `period`."""

    knots: np.ndarray
    degree: int
    period: float | None = None

    @classmethod
    def over(cls, values: np.ndarray, count: int, degree: int, period: float | None = None) -> Splines:
        """So many of about equal spacing over the range of these values; around, the more of them the finer
        the spacing, else as many less as the degree."""
        low, high = float(np.nanmin(values)), float(np.nanmax(values))
        if period is not None:
            steps = np.arange(-degree, max(count, degree + 1) + degree + 1)
            return cls(low + period / max(count, degree + 1) * steps, degree, period)
        inner = np.linspace(low, high, max(count - degree, 2) + 1)
        return cls(np.concatenate([[low] * degree, inner, [high] * degree]), degree)

    @property
    def count(self) -> int:
        every = len(self.knots) - self.degree - 1
        return every if self.period is None else every - self.degree

    def __call__(self, values: np.ndarray, place: int, order: int = 0) -> np.ndarray:
        """The derivative of one of them at these values."""
        spline = BSpline(self.knots, np.eye(len(self.knots) - self.degree - 1)[place], self.degree)
        inside = np.clip(values, self.knots[0], self.knots[-1])
        return np.asarray(spline.derivative(order)(inside) if order else spline(inside))

    def design(self, values: np.ndarray, order: int = 0) -> np.ndarray:
        """The derivatives of all of them at these values, `(values, count)`."""
        low, high = self.knots[self.degree], self.knots[-self.degree - 1]
        spline = BSpline(self.knots, np.eye(len(self.knots) - self.degree - 1), self.degree)
        inside = np.clip(values, low, high) if self.period is None else low + (values - low) % self.period
        found = np.asarray(spline.derivative(order)(inside) if order else spline(inside))
        if self.period is None:
            return found
        found[:, : self.degree] += found[:, self.count :]
        return found[:, : self.count]
