"""White noise in smooth data: how large it is, and products of noisy values that are right on average."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np


def white_noise(arrays: Sequence[np.ndarray], highest: int, axis: int = 0) -> float:
    """The standard deviation of white noise in arrays that are smooth along an axis with equal steps, at
    most: the smallest root mean square of differences up to the `highest` order, in units of what noise of
    deviation 1 has there. NaN is left out.

    A difference of order 2n is what a polynomial of degree 2n - 2 misses a value by that its n neighbours on
    either side predict: leaving out values in windows of Savitzky & Golay finds the same.
    """
    shortest = min(one.shape[axis] for one in arrays)
    levels = []
    for order in range(1, min(highest, shortest - 2) + 1):
        squares = [np.square(np.diff(one.astype(np.float64, copy=False), order, axis=axis)) for one in arrays]
        seen = sum(int(np.isfinite(each).sum()) for each in squares)
        if seen:
            mean = sum(float(np.nansum(each)) for each in squares) / seen
            levels.append(math.sqrt(mean / math.comb(2 * order, order)))
    return min(levels, default=0.0)


def hermite(values: np.ndarray, power: int, noise: float) -> np.ndarray:
    """The power of a value whose noise is white and of this deviation, right on average: the Hermite
    polynomial u² - σ², u³ - 3σ²u, ..."""
    before, now = np.ones_like(values), values
    for n in range(1, power):
        before, now = now, values * now - n * noise**2 * before
    return now if power else np.ones_like(values)


def product(values: Sequence[np.ndarray], powers: Sequence[int], noise: Sequence[float]) -> np.ndarray:
    """The product of powers of values with independent noise, right on average."""
    parts = [hermite(v, p, level) for v, p, level in zip(values, powers, noise, strict=True) if p]
    return math.prod(parts[1:], start=parts[0]) if parts else np.ones_like(values[0])
