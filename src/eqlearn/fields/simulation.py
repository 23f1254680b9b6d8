"""Simulation of fields by the method of lines: derivatives on a grid, time by scipy's integrators."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.integrate import solve_ivp

from eqlearn.fields.settings import FIELDS, FieldSettings
from eqlearn.fields.terms import Names
from eqlearn.numerics.budget import never
from eqlearn.numerics.criteria import DIVERGED
from eqlearn.numerics.grids import local_polynomials, spectral
from eqlearn.symbolic.equation import Equation
from eqlearn.symbolic.parametric import Formula
from eqlearn.symbolic.varying import Varying


@dataclass(frozen=True)
class Grid:
    """Coordinates along the axes of space, and which axes are periodic, of what length."""

    axes: Mapping[str, np.ndarray]
    periods: Mapping[str, float]

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(len(a) for a in self.axes.values())


class Lines:
    """Equations of fields on a grid as ordinary differential equations, one for each point.

    Along axes that are not periodic, the values at the ends keep the rates they are given, or stay as they
    are.
    """

    def __init__(
        self,
        equations: Sequence[Equation],
        names: Names,
        grid: Grid,
        order: int,
        settings: FieldSettings = FIELDS,
        varying: Varying | None = None,
    ) -> None:
        self.formulas = [Formula.of(e) for e in equations]
        self.names, self.grid, self.order, self.settings = names, grid, order, settings
        self.varying = varying
        self.variables = tuple(equations[0].variables)

    @cached_property
    def _matrices(self) -> dict[tuple[str, int], np.ndarray]:
        return {}

    def _derivative(self, values: np.ndarray, place: int, count: int) -> np.ndarray:
        axis = list(self.grid.axes)[place]
        if axis in self.grid.periods:
            return spectral(values, place, self.grid.periods[axis], count)
        if (axis, count) not in self._matrices:
            half = max(self.settings.stencil, (count + 3) // 2)
            points = self.grid.axes[axis]
            self._matrices[axis, count] = local_polynomials(points, count, half, degree=2 * half).toarray()
        return np.moveaxis(np.tensordot(self._matrices[axis, count], values, axes=(1, place)), 0, place)

    def columns(self, time: float, fields: np.ndarray, rates: np.ndarray | None) -> np.ndarray:
        """The values of all variables at all points, `(variables, points)`; `fields` is `(fields, *grid)`."""
        columns = []
        for name in self.variables:
            jet = self.names.read(name)
            if self.varying is not None and name in self.varying.names:
                along = self._along(str(self.varying.parameter), time)
                coefficient = self.varying.interpolated(along)[..., self.varying.names.index(name)]
                columns.append(np.broadcast_to(coefficient, self.grid.shape).ravel())
            elif jet is None and name == self.names.axes[-1]:
                columns.append(np.full(math.prod(self.grid.shape), time))
            elif jet is None:
                columns.append(np.broadcast_to(self._along(name, time), self.grid.shape).ravel())
            else:
                values = fields[jet.field] if jet.order[-1] == 0 or rates is None else rates[jet.field]
                for place, count in enumerate(jet.order[:-1]):
                    values = self._derivative(values, place, count) if count else values
                columns.append(values.ravel())
        return np.stack(columns) if columns else np.empty((0, math.prod(self.grid.shape)))

    def _along(self, axis: str, time: float) -> np.ndarray:
        """Coordinates along an axis of space in the shape of the grid, or the time."""
        if axis not in self.grid.axes:
            return np.array(time)
        shape = [-1 if name == axis else 1 for name in self.grid.axes]
        return np.asarray(self.grid.axes[axis]).reshape(shape)

    def rates(self, time: float, state: np.ndarray) -> np.ndarray:
        """How fast a state `(values,)` changes: fields, and for second order their rates after them."""
        count = len(self.formulas)
        shape = (self.order, count, *self.grid.shape)
        parts = state.reshape(shape)
        columns = self.columns(time, parts[0], parts[1] if self.order == 2 else None)
        with np.errstate(all="ignore"):
            found = np.stack([f(columns).reshape(self.grid.shape) for f in self.formulas])
        for place, axis in enumerate(self.grid.axes):
            if axis not in self.grid.periods:
                ends = (slice(None),) * (1 + place) + ([0, -1],)
                found[ends] = 0.0
        return (found if self.order == 1 else np.stack([parts[1], found])).ravel()


def simulated(
    lines: Lines, start: np.ndarray, times: np.ndarray, stop: Callable[[], bool] = never
) -> np.ndarray:
    """Fields over time `(fields, *grid, times)` from a start `(order, fields, *grid)`; NaN from where they
    diverge on, or where `stop()` ended it."""
    count, shape = start.shape[1], start.shape[2:]
    limit = DIVERGED * max(float(np.abs(start).max()), 1e-300)
    found = np.full((count, *shape, len(times)), np.nan)
    found[..., 0] = start[0]

    def rates(time: float, state: np.ndarray) -> np.ndarray:
        if stop() or not np.abs(state).max() < limit:
            raise _Diverged
        return lines.rates(time, state)

    # A grid of more values has no dense Jacobian: it is integrated explicitly.
    method = "LSODA" if start.size <= lines.settings.max_implicit else "RK45"
    tolerance = lines.settings.tolerance
    scale = max(float(np.abs(start).max()), 1e-300)
    state, at = start.ravel(), 0
    # In pieces, so that what was reached before a divergence is kept.
    for piece in np.array_split(np.arange(1, len(times)), min(len(times) - 1, 10)):
        try:
            answer = solve_ivp(
                rates, (times[at], times[piece[-1]]), state, method=method, t_eval=times[piece],
                rtol=tolerance, atol=tolerance * scale,
            )  # fmt: skip
        except _Diverged:
            break
        if not answer.success or answer.y.shape[1] < len(piece) or not np.isfinite(answer.y).all():
            break
        values = answer.y.reshape(*start.shape, len(piece))
        found[..., piece] = values[0]
        state, at = answer.y[:, -1], int(piece[-1])
    return found


class _Diverged(Exception):
    pass
