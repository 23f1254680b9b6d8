"""Test functions of the weak form: compact polynomials, as wide as the fields' spectrum asks."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from scipy.interpolate import make_interp_spline

from eqlearn.fields.settings import FieldSettings
from eqlearn.validation.fields import Field

# The largest support is divided so finely where an axis is uneven.
FINER = 4


@dataclass(frozen=True, eq=False)
class Window:
    """Test functions (1 - s²)^p along one axis, s from -1 to 1 over `half` steps to each side, around
    `centres` (Messenger & Bortz 2021)."""

    points: np.ndarray
    step: float
    half: int
    power: int
    centres: np.ndarray
    period: float | None
    spline: int = 5

    @property
    def deviation(self) -> float:
        """The standard deviation of the test function, in steps."""
        return self.half / math.sqrt(2 * self.power + 3)

    def thinned(self, share: float) -> Window:
        """The same with only this share of the centres, evenly spread."""
        count = max(1, round(share * len(self.centres)))
        if count == len(self.centres):
            return self
        places = np.linspace(0, len(self.centres) - 1, count).round().astype(int)
        return replace(self, centres=self.centres[places])

    def weights(self, order: int) -> np.ndarray:
        """What each point counts in the integral of each test function's derivative of this order times a
        field, `(centres, points)`; with the sign of integration by parts, so that it is the integral of the
        test function times the field's derivative."""
        return self._weights(order)

    @lru_cache(maxsize=16)  # noqa: B019 (lives as long as the window does, which is short)
    def _weights(self, order: int) -> np.ndarray:
        points, width = self.points, self.half * self.step
        steps = np.diff(points)
        even = bool(np.abs(steps - self.step).max() <= 1e-4 * self.step)
        fine = points if even else np.linspace(points[0], points[-1], FINER * (len(points) - 1) + 1)
        gaps = (fine[None] - self.centres[:, None]) / width
        if self.period is not None:
            around = self.period / width
            gaps = (gaps + around / 2) % around - around / 2
        values = (-1) ** order * _derivative(gaps, self.power, order) / width**order
        values *= (fine[1] - fine[0]) / width  # the integral of a test function is about 1
        if even:
            return np.asarray(values)
        # A spline through the values at uneven points, integrated on a finer even grid.
        return np.asarray(values @ make_interp_spline(points, np.eye(len(points)), k=self.spline)(fine))


def _derivative(s: np.ndarray, power: int, order: int) -> np.ndarray:
    """The derivative of (1 - s²)^power, zero outside of [-1, 1]: (1 - s²)^(power - order) q(s)."""
    q = np.polynomial.Polynomial([1.0])
    bump = np.polynomial.Polynomial([1.0, 0.0, -1.0])
    line = np.polynomial.Polynomial([0.0, 1.0])
    for k in range(order):
        q = bump * q.deriv() - 2 * (power - k) * line * q
    inside = np.abs(s) < 1
    at = np.where(inside, s, 0.0)
    return np.where(inside, (1 - at**2) ** (power - order) * q(at), 0.0)


def spectrum(field: Field, place: int) -> np.ndarray:
    """The mean modulus of the fields' Fourier coefficients by wave number along one axis, each field by its
    spread; a straight line between the ends is taken away where the axis is not periodic."""
    axis = tuple(field.axes)[place]
    total = np.zeros(len(field.axes[axis]) // 2 + 1)
    for one in field.experiments:
        for name, values in one.items():
            lines = np.moveaxis(_sampled(values, place), place, 0)
            lines = np.nan_to_num(lines.reshape(len(lines), -1).astype(np.float64))
            if axis not in field.periodic:
                ramp = np.linspace(0, 1, len(lines))[:, None]
                lines = lines - lines[:1] * (1 - ramp) - lines[-1:] * ramp
            total += np.abs(np.fft.rfft(lines, axis=0)).mean(axis=1) / max(field.spreads[name], 1e-300)
    return total


def _sampled(values: np.ndarray, place: int, most: int = 400) -> np.ndarray:
    """Every few lines along an axis, so that there are not many more than `most`."""
    others = values.size // values.shape[place]
    stride = max(1, round((others / most) ** (1 / max(values.ndim - 1, 1))))
    return values[tuple(slice(None) if k == place else slice(None, None, stride) for k in range(values.ndim))]


def corner(modulus: np.ndarray) -> int:
    """The wave number where a spectrum goes over to noise: the corner of its cumulative sum, by the best two
    straight lines."""
    total = np.cumsum(modulus)
    total = total / total[-1] * (len(total) - 1)
    best, at = math.inf, 1
    for k in range(1, len(total) - 1):
        misfit = _off_line(total[: k + 1]) + _off_line(total[k:])
        if misfit < best:
            best, at = misfit, k
    return at


def _off_line(values: np.ndarray) -> float:
    """How far values are from the straight line between the first and the last, relative to their size."""
    line = np.linspace(values[0], values[-1], len(values))
    return float(np.square((values - line) / np.maximum(np.abs(values), 1e-12)).sum())


def window(
    field: Field,
    place: int,
    order: int,
    settings: FieldSettings,
    *,
    widened: float = 1.0,
    noisy: bool = False,
) -> Window:
    """The test functions along one axis for derivatives up to `order`."""
    axis = tuple(field.axes)[place]
    count, step = len(field.axes[axis]), field.step(axis)
    wave = 2 * math.pi * corner(spectrum(field, place)) / count
    most = int((count - 1) / 2 / (1.0 if axis in field.periodic else settings.min_windows / 2))
    most = min(most, (count - 1) // 2)
    least = min(max(settings.min_half_width, order + 2), most)

    def power(half: int) -> int:
        decay = math.log(settings.edge) / math.log((2 * half - 1) / half**2) if half > 2 else 0.0
        return max(math.ceil(decay), order + 1)

    halves = range(least, most + 1)
    wanted = settings.corner_deviations * widened / wave
    half = next((h for h in halves if h / math.sqrt(2 * power(h) + 3) >= wanted), most)
    points = field.axes[axis]
    period = field.length(axis) if axis in field.periodic else None
    low, high = (points[0], points[-1]) if period is not None else (
        points[0] + half * step, points[-1] - half * step
    )  # fmt: skip
    spacing = half / math.sqrt(2 * power(half) + 3) / settings.per_width * step
    span = period if period is not None else high - low
    places = max(1, round(span / spacing) + (period is None))
    centres = (
        np.linspace(low, low + span, places, endpoint=period is None)
        if places > 1
        else np.array([(low + high) / 2])
    )
    found = Window(points, step, half, power(half), centres, period)
    return found if field.even(axis) else _least_amplified(found, order, 1.2 if noisy else 100.0)


def _least_amplified(one: Window, order: int, most: float) -> Window:
    """The window with the smoothest spline that does not amplify noise between uneven points by `most`."""
    each = [replace(one, spline=degree) for degree in (1, 3, 5)]
    sizes = [float(np.square(w.weights(order)).sum()) for w in each]
    return [w for w, size in zip(each, sizes, strict=True) if size <= most * sizes[0]][-1]
