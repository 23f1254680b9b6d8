"""The weak form of equations of motion: rates of change integrated against test functions, by parts, so that
no derivative of noisy data is taken (Messenger & Bortz 2021)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from eqlearn.dynamics.settings import MOTION, MotionSettings
from eqlearn.numerics.criteria import FREE_IN_SQUARES


@dataclass(frozen=True, eq=False)
class WeakForm:
    """One state's linear conditions on its right-hand side f: `tests @ f(states) = target`, with independent
    errors of one size if the noise in the states is as it was taken to be.

    `tests` `(conditions, times)` act on the times of all series, one after the other.
    """

    tests: np.ndarray
    target: np.ndarray

    @staticmethod
    def of(
        series: Sequence[np.ndarray],
        dt: float,
        sigma: Sequence[np.ndarray] | None = None,
        order: int = 1,
        settings: MotionSettings = MOTION,
        errors: Sequence[np.ndarray] | None = None,
    ) -> WeakForm:
        """From one state's series `(time,)` at steps of `dt`; `sigma` are the standard deviations of their
        noise, equal by default, and `order` is that of the derivative which f gives.

        `errors` `(time, noises)` are those of f in each series, per independent noise of size 1, for noise in
        the states is in f as well; the first noises are those of the series itself (Bortz, Messenger & Dukic
        2023).
        """
        halves = half_widths(series, order, settings)
        share = max(1, settings.max_tests // sum(len(one) >= 2 * min(halves) + 1 for one in series))
        blocks, targets = [], []
        for place, one in enumerate(series):
            value, rate = _test_functions(len(one), halves, order, share)
            deviation = np.ones(len(one)) if sigma is None else sigma[place]
            noise = -((-1) ** order) * rate * deviation / dt ** (order - 1)
            if errors is not None:
                inside = value @ errors[place] * dt
                inside[:, : len(one)] += noise
                noise = inside
            whitened = _whitening(noise) if len(rate) else rate[:, :0].T
            blocks.append(whitened @ value * dt)
            targets.append((-1) ** order * (whitened @ (rate @ one)) / dt ** (order - 1))
        tests = np.zeros((sum(len(b) for b in blocks), sum(len(one) for one in series)))
        row = column = 0
        for block in blocks:
            tests[row : row + len(block), column : column + block.shape[1]] = block
            row, column = row + len(block), column + block.shape[1]
        return WeakForm(tests, np.concatenate(targets))

    @property
    def rows(self) -> int:
        return len(self.target)


def corner_frequency(series: np.ndarray) -> float:
    """The number of periods in a series above which its spectrum is noise: where the sum of its amplitudes
    bends, as far as it gets from a straight line."""
    times = np.linspace(-1, 1, len(series))
    flat = series - np.polyval(np.polyfit(times, series, 1), times)
    total = np.cumsum(np.abs(np.fft.rfft(flat)[1:]))
    if len(total) < 3 or total[-1] <= 0:
        return 1.0
    straight = np.linspace(total[0], total[-1], len(total))
    return float(1 + np.argmax(total - straight))


def half_widths(series: Sequence[np.ndarray], order: int, settings: MotionSettings = MOTION) -> list[int]:
    """Half the widths of test functions in steps: the spectrum of the middle one ends where the data's turns
    into noise, the others are narrower and wider, one a quarter of the longest series: where a motion is
    slow, its spectrum ends before it has begun."""
    longest = max(series, key=len)
    q = _exponent(max(2, len(longest) // 10), order)
    # A bump (1 - s²)^q is close to a Gauss function, whose spectrum is one, too.
    middle = (
        settings.spectrum_widths * math.sqrt(2 * q) * len(longest) / (2 * math.pi * corner_frequency(longest))
    )
    most = max(2, (len(longest) - 1) // 4)
    wanted = [*(middle * factor for factor in settings.test_widths), len(longest) / 8]
    return sorted({int(min(max(w, settings.min_half_test), most)) for w in wanted})


def _exponent(half: int, order: int) -> int:
    """The power q of a bump (1 - s²)^q that has all but vanished one step before its end: sums over equal
    steps are then integrals to rounding."""
    return max(order + 1, math.ceil(math.log(1e-10) / math.log((2 * half - 1) / half**2)))


def _test_functions(
    times: int, halves: Sequence[int], order: int, most: int
) -> tuple[np.ndarray, np.ndarray]:
    """Values of the test functions and of their derivative of that order, per step, `(functions, times)`."""
    values, rates = [], []
    total = sum(1 / h for h in halves if 2 * h < times)
    for half in halves:
        if 2 * half >= times:
            continue
        q = _exponent(half, order)
        s = np.arange(-half, half + 1) / half
        bump = np.polynomial.Polynomial([1, 0, -1]) ** q
        value, rate = bump(s), bump.deriv(order)(s) / half**order
        size = np.linalg.norm(value)
        count = max(1, min(times - 2 * half, round(most / half / total)))
        for start in np.unique(np.linspace(0, times - 2 * half - 1, count).round().astype(int)):
            row, slope = np.zeros(times), np.zeros(times)
            row[start : start + 2 * half + 1], slope[start : start + 2 * half + 1] = value / size, rate / size
            values.append(row)
            rates.append(slope)
    shape = (len(values), times)
    return np.reshape(values, shape), np.reshape(rates, shape)


def _whitening(noise: np.ndarray) -> np.ndarray:
    """What makes conditions with errors `noise @ e` for independent e independent themselves (generalised
    least squares); combinations of conditions that say nothing new are left out."""
    size, vectors = np.linalg.eigh(noise @ noise.T)
    kept = size > FREE_IN_SQUARES * size[-1]
    return np.asarray((vectors[:, kept] / np.sqrt(size[kept])).T)
