"""Derivatives of fields at the points of their grid: spectral where an axis is periodic, else by local
polynomials."""

from __future__ import annotations

import math

import numpy as np

from eqlearn.fields.terms import Jet, Order
from eqlearn.numerics.savitzky_golay import local_polynomials
from eqlearn.validation.fields import Field


class Jets:
    """Derivatives of a field at its points, each made once; `half` as for `differentiated`."""

    def __init__(self, field: Field, half: tuple[int, ...]) -> None:
        self.field, self.half = field, half
        self._known: dict[tuple[int, Jet], np.ndarray] = {}

    def __call__(self, experiment: int, jet: Jet) -> np.ndarray:
        if (experiment, jet) not in self._known:
            values = self.field.experiments[experiment][self.field.names[jet.field]]
            made = differentiated(self.field, values.astype(np.float64), jet.order, self.half)
            self._known[experiment, jet] = made
        return self._known[experiment, jet]


def differentiated(field: Field, values: np.ndarray, order: Order, half: tuple[int, ...]) -> np.ndarray:
    """The derivative of values `(space..., time)`; local polynomials are as wide as `half` windows along each
    axis, and smooth as far as they are wide."""
    for place, count in enumerate(order):
        axis = tuple(field.axes)[place]
        if axis in field.periodic and half[place] == 0:
            values = spectral(values, place, field.length(axis), count)
        elif count or half[place]:
            matrix = local_polynomials(field.axes[axis], count, max(half[place], count + 2))
            moved = np.moveaxis(values, place, 0)
            rest = matrix @ moved.reshape(len(moved), -1)
            values = np.moveaxis(rest.reshape(moved.shape), 0, place)
    return values


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
