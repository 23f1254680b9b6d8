"""The weak form of equations of motion: rates of change integrated against test functions, by parts.

Unlike those of a field (`fields/weak`), the conditions of all widths are one system: they are so few that it
can be whitened by their whole covariance, with noise that differs from time to time and is in the terms.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from eqlearn.dynamics.settings import MOTION, MotionSettings
from eqlearn.numerics.criteria import FREE_IN_SQUARES
from eqlearn.numerics.windows import Window, amplitudes, corner, half_width


@dataclass(frozen=True, eq=False)
class WeakForm:
    """One state's linear conditions on its right-hand side f: `tests @ f(states) = target`, with independent
    errors of one size if the noise in the states is as it was taken to be.

    `tests` `(conditions, times)` act on the times of all series, one after the other.
    """

    tests: np.ndarray
    target: np.ndarray
    most_independent: int | None = None

    @staticmethod
    def of(
        series: Sequence[np.ndarray], dt: float, sigma: Sequence[np.ndarray] | None = None, order: int = 1,
        settings: MotionSettings = MOTION, errors: Sequence[np.ndarray] | None = None,
    ) -> WeakForm:  # fmt: skip
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
            value, rate = _test_functions(len(one), dt, halves, order, share)
            noise = -rate * (1.0 if sigma is None else sigma[place])
            if errors is not None:
                inside = value @ errors[place]
                inside[:, : len(one)] += noise
                noise = inside
            whitened = _whitening(noise) if len(rate) else rate[:, :0].T
            blocks.append(whitened @ value)
            targets.append(whitened @ (rate @ one))
        tests = np.zeros((sum(len(b) for b in blocks), sum(len(one) for one in series)))
        row = column = 0
        for block in blocks:
            tests[row : row + len(block), column : column + block.shape[1]] = block
            row, column = row + len(block), column + block.shape[1]
        return WeakForm(tests, np.concatenate(targets))

    @property
    def independent(self) -> int:
        """How many errors are independent: all, or as many as there are at most where they are no noise."""
        return min(len(self.target), self.most_independent or len(self.target))


def half_widths(series: Sequence[np.ndarray], order: int, settings: MotionSettings = MOTION) -> list[int]:
    """Half the widths of test functions in steps: the spectrum of the middle one ends where the data's turns
    into noise, the others are narrower and wider, one a quarter of the longest series: where a motion is
    slow, its spectrum ends before it has begun."""
    longest = max(series, key=len)
    wave = 2 * math.pi * corner(amplitudes(longest[:, None], periodic=False)) / len(longest)
    most = max(2, (len(longest) - 1) // 4)
    deviations = [settings.corner_deviations * factor / wave for factor in settings.widths]
    halves = {half_width(d, order, settings.min_half_width, most) for d in deviations}
    return sorted({*halves, min(max(len(longest) // 8, settings.min_half_width), most)})


def _test_functions(
    times: int, dt: float, halves: Sequence[int], order: int, most: int
) -> tuple[np.ndarray, np.ndarray]:
    """Weights of values and of rates in each integral, `(functions, times)`; the narrower, the more of them,
    and each of one size."""
    points = dt * np.arange(times)
    values, rates = [np.empty((0, times))], [np.empty((0, times))]
    total = sum(1 / h for h in halves if 2 * h < times)
    for half in halves:
        if 2 * half >= times:
            continue
        window = Window.over(points, half, order)
        count = max(1, min(times - 2 * half, round(most / half / total)))
        window = replace(window, centres=np.linspace(half * dt, (times - 1 - half) * dt, count))
        size = np.linalg.norm(window.weights(0), axis=1, keepdims=True)
        values.append(window.weights(0) / size)
        rates.append(window.weights(order) / size)
    return np.concatenate(values), np.concatenate(rates)


def _whitening(noise: np.ndarray) -> np.ndarray:
    """What makes conditions with errors `noise @ e` for independent e independent themselves (generalised
    least squares); combinations of conditions that say nothing new are left out."""
    size, vectors = np.linalg.eigh(noise @ noise.T)
    kept = size > FREE_IN_SQUARES * size[-1]
    return np.asarray((vectors[:, kept] / np.sqrt(size[kept])).T)
