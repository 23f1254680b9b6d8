"""Smooth states and rates of change from noisy series, by Savitzky-Golay filters as the noise asks."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from eqlearn.dynamics.settings import MOTION, MotionSettings
from eqlearn.numerics.criteria import DECISIVE
from eqlearn.numerics.grids import SavitzkyGolay
from eqlearn.numerics.noise import white_noise


def smooth(
    series: Sequence[np.ndarray], dt: float, settings: MotionSettings = MOTION
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """States and rates of change of series `(time, states)`, each state with a window of its own, at the
    times where it is full, but never less than four fifths of a series."""
    windows = choose_windows(series, settings)
    half = max(window.half for window in windows)
    kept = [_kept(len(one), half) for one in series]
    states, slopes = filtered(series, windows, 0), filtered(series, windows, 1)
    return [x[k] for x, k in zip(states, kept, strict=True)], [
        x[k] / dt for x, k in zip(slopes, kept, strict=True)
    ]


def choose_windows(series: Sequence[np.ndarray], settings: MotionSettings = MOTION) -> list[SavitzkyGolay]:
    """The window of each state of series `(time, states)`."""
    return [choose_window([one[:, k] for one in series], settings) for k in range(series[0].shape[1])]


def filtered(series: Sequence[np.ndarray], windows: Sequence[SavitzkyGolay], order: int) -> list[np.ndarray]:
    """The states without their noise, or their rates of change per step, at all their times."""
    return [np.stack([w.apply(one[:, k], order) for k, w in enumerate(windows)], axis=1) for one in series]


def choose_window(series: Sequence[np.ndarray], settings: MotionSettings = MOTION) -> SavitzkyGolay:
    """The window whose slopes of these series `(time,)` have the least expected error.

    The noise is the residual of the best window when it predicts each value from the others. A window's
    error is the noise that passes through it, and the bias that a polynomial two degrees higher shows.
    """
    windows = _windows(min(len(one) for one in series), settings)
    left_out = [_left_out(series, window) for window in windows]
    noise = min(left_out)
    # A window that smooths the motion itself away shows no bias, but does not predict the values.
    faithful = [w for w, left in zip(windows, left_out, strict=True) if left <= settings.faithful * noise]
    return min(faithful, key=lambda window: _slope_error(series, window, noise))


def noise_level(series: Sequence[np.ndarray], settings: MotionSettings = MOTION) -> np.ndarray:
    """The standard deviation of each state's noise, at most."""
    states = range(series[0].shape[1])
    return np.array([white_noise([one[:, k] for one in series], settings.max_difference) for k in states])


def smoother(window: SavitzkyGolay, times: int) -> np.ndarray:
    """What smooths a series of so many times, as a matrix `(time, time)`."""
    return np.stack([window.apply(e, 0) for e in np.eye(times)], axis=1)


def deviations(
    series: Sequence[np.ndarray], states: Sequence[np.ndarray], settings: MotionSettings = MOTION
) -> list[np.ndarray]:
    """The standard deviation of the noise at each time, given the smoothed states: the same at all times, or
    in proportion to the state's size where that is decisively more likely."""
    found = [np.empty_like(one) for one in series]
    for k in range(series[0].shape[1]):
        left = np.concatenate([one[:, k] - s[:, k] for one, s in zip(series, states, strict=True)])
        size = np.abs(np.concatenate([s[:, k] for s in states]))
        size = np.maximum(size, settings.least_noise * size.max())
        equal = max(float(np.sqrt((left**2).mean())), 1e-300)
        relative = max(float(np.sqrt(((left / size) ** 2).mean())), 1e-300)
        # Half the difference of deviances: the likelihood of normal noise, at its best in either case.
        gain = len(left) * (math.log(equal) - math.log(relative)) - float(np.log(size).sum())
        for one, s in zip(found, states, strict=True):
            shape = np.maximum(np.abs(s[:, k]), settings.least_noise * size.max()) * relative
            one[:, k] = shape if gain > DECISIVE else equal
    return found


def _windows(times: int, settings: MotionSettings) -> list[SavitzkyGolay]:
    largest = min((times - 1) // 2, settings.max_half_window)
    halves = sorted({round(h) for h in np.geomspace(2, largest, 24)})
    # As many values as a polynomial two degrees higher has coefficients.
    return [SavitzkyGolay(h, d) for d in settings.window_degrees for h in halves if 2 * h + 1 >= d + 3]


def _left_out(series: Sequence[np.ndarray], window: SavitzkyGolay) -> float:
    """The mean square difference of values from what the others predict, ends and all (generalised
    cross-validation, Golub, Heath & Wahba 1979)."""
    own = np.diag(window.weights(0))[np.concatenate([_leant(len(one), window.half) for one in series])]
    left = np.concatenate([one - window.apply(one, 0) for one in series])
    return float((left**2).mean() / (1 - own.mean()) ** 2)


def _slope_error(series: Sequence[np.ndarray], window: SavitzkyGolay, noise: float) -> float:
    weights, higher = window.weights(1), SavitzkyGolay(window.half, window.degree + 2)
    both = [(one, _kept(len(one), window.half)) for one in series]
    gaps = np.concatenate([(window.apply(one, 1) - higher.apply(one, 1))[some] for one, some in both])
    rows = np.concatenate([_leant(len(one), window.half)[some] for one, some in both])
    passed, apart = (np.square(w).sum(axis=1)[rows].mean() for w in (weights, weights - higher.weights(1)))
    return float(max((gaps**2).mean() - noise * apart, 0.0) + noise * passed)


def _leant(times: int, half: int) -> np.ndarray:
    """Which polynomial of a window each time leans on: the middle one, but at the ends."""
    places = np.arange(times)
    return np.minimum(places, half) + np.maximum(places - (times - 1 - half), 0)


def _kept(times: int, half: int) -> slice:
    cut = min(half, times // 10)
    return slice(cut, times - cut)
