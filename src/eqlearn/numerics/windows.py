"""Test functions of weak forms: compact bumps along one axis, as wide as the spectrum of the data asks.

A law is multiplied by a test function and integrated by parts, so that no derivative of noisy data is taken.
Messenger & Bortz (2021) choose the bumps, and their widths from where the spectrum goes over to noise. A
trajectory is a field with no axis of space: both use the same ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from scipy.interpolate import make_interp_spline

from eqlearn.numerics.criteria import VANISHED
from eqlearn.numerics.grids import local_polynomials, spectral


@dataclass(frozen=True, eq=False)
class Window:
    """Test functions (1 - s²)^p along one axis, s from -1 to 1 over `half` steps to each side, around
    `centres`.

    Where points are uneven, a `spline` of this degree goes through values there and is integrated on an even
    grid, `finer` times as fine. With `pointwise`, derivatives are taken at the centres instead, by local
    polynomials over `half` steps, or spectrally where that is 0.
    """

    points: np.ndarray
    step: float
    half: int
    power: int
    centres: np.ndarray
    period: float | None = None
    spline: int | None = None
    finer: int = 1
    pointwise: bool = False

    @classmethod
    def over(
        cls, points: np.ndarray, half: int, order: int, period: float | None = None, per_width: float = 2.0
    ) -> Window:
        """For derivatives up to `order`, `per_width` of them for each standard deviation, side by side over
        all points; around the seam where the axis has a `period`."""
        step = float(points[-1] - points[0]) / (len(points) - 1)
        made = cls(points, step, half, bump_power(half, order), points[:1], period)
        low = points[0] + (half * step if period is None else 0.0)
        span = points[-1] - half * step - low if period is None else period
        count = max(1, round(span * per_width / (made.deviation * step)) + (period is None))
        centres = np.linspace(low, low + span, count, endpoint=period is None)
        return replace(made, centres=centres if count > 1 else np.array([low + span / 2]))

    @property
    def deviation(self) -> float:
        """The standard deviation of the test function, in steps."""
        return self.half / math.sqrt(2 * self.power + 3)

    def thinned(self, share: float) -> Window:
        """The same with only this share of the centres, evenly spread."""
        count = max(1, round(share * len(self.centres)))
        if count >= len(self.centres):
            return self
        places = np.linspace(0, len(self.centres) - 1, count).round().astype(int)
        return replace(self, centres=self.centres[places])

    @lru_cache(maxsize=16)  # noqa: B019 (lives as long as the window does, which is short)
    def weights(self, order: int) -> np.ndarray:
        """What each point counts in the integral of each test function's derivative of this order times a
        field, `(centres, points)`; with the sign of integration by parts, so that it is the integral of the
        test function times the field's derivative."""
        points, width = self.points, self.half * self.step
        if self.pointwise:
            at = np.searchsorted(points, self.centres)
            if self.period is not None and self.half == 0:
                return np.asarray(spectral(np.eye(len(points)), 0, self.period, order)[at])
            return np.asarray(local_polynomials(points, order, max(self.half, order + 2)).toarray()[at])
        fine = points
        if self.spline is not None:
            fine = np.linspace(points[0], points[-1], self.finer * (len(points) - 1) + 1)
        gaps = (fine[None] - self.centres[:, None]) / width
        if self.period is not None:
            around = self.period / width
            gaps = (gaps + around / 2) % around - around / 2
        values = (-1) ** order * bump(gaps, self.power, order) / width**order
        values *= (fine[1] - fine[0]) / width  # the integral of a test function is about 1
        if self.spline is None:
            return np.asarray(values)
        return np.asarray(values @ make_interp_spline(points, np.eye(len(points)), k=self.spline)(fine))


def bump(s: np.ndarray, power: int, order: int) -> np.ndarray:
    """The derivative of (1 - s²)^power, zero outside of [-1, 1]: (1 - s²)^(power - order) q(s)."""
    q = np.polynomial.Polynomial([1.0])
    inner = np.polynomial.Polynomial([1.0, 0.0, -1.0])
    line = np.polynomial.Polynomial([0.0, 1.0])
    for k in range(order):
        q = inner * q.deriv() - 2 * (power - k) * line * q
    inside = np.abs(s) < 1
    at = np.where(inside, s, 0.0)
    return np.where(inside, (1 - at**2) ** (power - order) * q(at), 0.0)


def bump_power(half: int, order: int) -> int:
    """The power of a bump that has all but vanished one step before its end: sums over equal steps are then
    integrals to rounding."""
    decay = math.log(VANISHED) / math.log((2 * half - 1) / half**2) if half > 2 else 0.0
    return max(math.ceil(decay), order + 1)


def half_width(deviation: float, order: int, least: int, most: int) -> int:
    """Half the width, in steps, of the narrowest bump of at least this standard deviation, within bounds."""
    halves = range(min(least, most), most + 1)
    wide = (h for h in halves if h / math.sqrt(2 * bump_power(h, order) + 3) >= deviation)
    return next(wide, most)


def amplitudes(lines: np.ndarray, periodic: bool) -> np.ndarray:
    """The mean modulus of Fourier coefficients by wave number of lines `(points, lines)`; a straight line
    between the ends is taken away where they are not periodic."""
    if not periodic:
        ramp = np.linspace(0, 1, len(lines))[:, None]
        lines = lines - lines[:1] * (1 - ramp) - lines[-1:] * ramp
    return np.asarray(np.abs(np.fft.rfft(lines, axis=0)).mean(axis=1))


def corner(modulus: np.ndarray, most: int = 1000) -> int:
    """The wave number where a spectrum goes over to noise: the corner of its cumulative sum, by the best two
    straight lines. In longer spectra at most so many are tried, the closer together the lower."""
    total = np.cumsum(modulus)
    if len(total) < 3 or not total[-1] > 0:
        return 1
    total = total / total[-1] * (len(total) - 1)
    every = np.arange(1, len(total) - 1)
    if len(every) > most:
        every = np.unique(np.geomspace(1, len(total) - 2, most).round().astype(int))
    return int(min(every, key=lambda k: _off_line(total[: k + 1]) + _off_line(total[k:])))


def _off_line(values: np.ndarray) -> float:
    """How far values are from the straight line between the first and the last, relative to their size."""
    line = np.linspace(values[0], values[-1], len(values))
    return float(np.square((values - line) / np.maximum(np.abs(values), 1e-12)).sum())
