"""Derivatives on grids: by local polynomials, which smooth (Savitzky & Golay 1964), and spectral."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sparse


def polynomial_weights(points: np.ndarray, at: np.ndarray, degree: int, order: int) -> np.ndarray:
    """What values at `points` count, `(at, points)`, in the derivative of this order of the polynomial of
    this degree that is fitted to them."""
    middle = (points[0] + points[-1]) / 2
    width = float(points[-1] - points[0]) / 2
    powers = np.arange(degree + 1)
    fit = np.linalg.pinv(((points - middle) / width)[:, None] ** powers)
    falling = np.array([math.perm(p, order) for p in powers], dtype=np.float64)
    rows = falling * ((at - middle) / width)[:, None] ** np.maximum(powers - order, 0) / width**order
    return np.asarray(rows @ fit)


@dataclass(frozen=True)
class SavitzkyGolay:
    """The filter for equal steps: a polynomial of some `degree`, fitted to the `2 * half + 1` values around
    each time."""

    half: int
    degree: int

    def weights(self, order: int) -> np.ndarray:
        """What each value of a window counts, `(places, places)`, in the derivative per step at each place
        in the window; the middle row serves all times but the ends."""
        places = np.arange(-self.half, self.half + 1.0)
        return polynomial_weights(places, places, self.degree, order)

    def apply(self, series: np.ndarray, order: int) -> np.ndarray:
        """Smoothed values of a series `(time,)`, or slopes per step; the ends lean on the nearest window."""
        weights, half = self.weights(order), self.half
        middle = np.convolve(series, weights[half, ::-1], mode="valid")
        start, end = weights[:half] @ series[: 2 * half + 1], weights[half + 1 :] @ series[-2 * half - 1 :]
        return np.concatenate([start, middle, end])


def local_polynomials(
    points: np.ndarray, order: int, half: int, degree: int | None = None
) -> sparse.csr_array:
    """The same on any grid, as a matrix that gives the derivative at each point."""
    count = len(points)
    half = min(half, (count - 1) // 2)
    # As many points as coefficients interpolate; wider windows smooth.
    degree = min(2 * half, order + 4) if degree is None else degree
    lows = np.clip(np.arange(count) - half, 0, count - 2 * half - 1)
    columns = lows[:, None] + np.arange(2 * half + 1)
    entries = [
        polynomial_weights(points[some], points[i : i + 1], degree, order)[0]
        for i, some in enumerate(columns)
    ]
    rows = np.repeat(np.arange(count), 2 * half + 1)
    return sparse.csr_array((np.concatenate(entries), (rows, columns.ravel())), shape=(count, count))


def spectral(values: np.ndarray, place: int, length: float, order: int) -> np.ndarray:
    """The derivative along a periodic axis, by Fourier's transform."""
    if order == 0:
        return values
    count = values.shape[place]
    wave = 2j * math.pi * np.fft.rfftfreq(count, length / count)
    if order % 2 and count % 2 == 0:
        wave[-1] = 0.0
    shape = [1] * values.ndim
    shape[place] = len(wave)
    spectrum = np.fft.rfft(values, axis=place) * (wave**order).reshape(shape)
    return np.fft.irfft(spectrum, count, axis=place)
