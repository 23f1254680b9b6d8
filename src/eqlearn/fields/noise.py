"""The noise of fields: how large it is, and products of noisy fields that are right on average."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from eqlearn.validation.fields import Field

HIGHEST_DIFFERENCE = 8


def noise_levels(field: Field) -> dict[str, float]:
    """The standard deviation of each field's noise, at most: the smallest root mean square of differences of
    any order along any axis with even steps, in units of what white noise of deviation 1 has there."""
    return {name: min(_level(field, name, place) for place in _even(field)) for name in field.names}


def _even(field: Field) -> list[int]:
    places = [k for k, axis in enumerate(field.axes) if field.even(axis)]
    return places or list(range(len(field.axes)))


def _level(field: Field, name: str, place: int) -> float:
    levels = []
    for order in range(1, min(HIGHEST_DIFFERENCE, field.shape[place] - 2) + 1):
        squares = [
            np.nanmean(np.square(np.diff(one[name].astype(np.float64), order, axis=place)))
            for one in field.experiments
        ]
        levels.append(math.sqrt(float(np.mean(squares)) / math.comb(2 * order, order)))
    return min(levels)


def hermite(values: np.ndarray, power: int, noise: float) -> np.ndarray:
    """The power of a field whose noise is white and of this deviation, right on average: the Hermite
    polynomial u² - σ², u³ - 3σ²u, ..."""
    before, now = np.zeros_like(values), np.ones_like(values)
    for n in range(power):
        before, now = now, values * now - n * noise**2 * before
    return now


def product(values: Sequence[np.ndarray], powers: Sequence[int], noise: Sequence[float]) -> np.ndarray:
    """The product of powers of fields with independent noise, right on average."""
    found = np.ones_like(values[0])
    for value, power, level in zip(values, powers, noise, strict=True):
        if power:
            found = found * hermite(value, power, level)
    return found
