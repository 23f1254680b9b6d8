"""Simulation of fields by the method of lines: derivatives on a grid, time by scipy's integrators."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from scipy.integrate import solve_ivp
from torch import Tensor

from eqlearn.fields.settings import FIELDS, FieldSettings
from eqlearn.fields.terms import Names
from eqlearn.fields.weak import spectrum
from eqlearn.numerics.budget import never
from eqlearn.numerics.covariance import errors_from_slopes
from eqlearn.numerics.criteria import DIVERGED
from eqlearn.numerics.grids import local_polynomials, spectral
from eqlearn.numerics.least_squares import Rule, SquareRoot, levenberg_marquardt
from eqlearn.numerics.windows import corner
from eqlearn.symbolic.equation import Equation
from eqlearn.symbolic.parametric import Formula
from eqlearn.symbolic.varying import Varying
from eqlearn.validation.fields import Field


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
        self.constants = [f.constants for f in self.formulas]
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
            pairs = zip(self.formulas, self.constants, strict=True)
            found = np.stack([f(columns, c).reshape(self.grid.shape) for f, c in pairs])
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


def followed(
    lines: Lines, field: Field, noise: Sequence[float], settings: FieldSettings, stop: Callable[[], bool]
) -> tuple[np.ndarray, np.ndarray, float]:
    """Constants that fit all observations best, with standard errors, and the mean square that their motion
    misses, in units of the noise's, infinite where it diverges. The equations are simulated from sums of
    waves (of polynomials where an axis is not periodic), which are fitted too."""
    motion = _Motion(lines, field, tuple(noise), settings, stop)
    constants = np.concatenate(lines.constants)
    starts = [motion.first(e) for e in range(len(field.experiments))]
    point = torch.tensor(np.concatenate([constants, *starts]))[None]
    rule = Rule(settings.motion_steps, gain=settings.motion_gain)
    point, system = levenberg_marquardt(motion.linearise, point, rule, stop=stop)
    found = point[0, : len(constants)].numpy()
    own, beside = system.slopes if math.isfinite(float(system.loss)) else (np.empty(0), None)
    if beside is None or not (np.isfinite(own).all() and np.isfinite(beside).all()):
        return found, np.full(len(found), math.inf), math.inf
    left = [g - n @ np.linalg.lstsq(n, g, rcond=None)[0] for g, n in zip(own, beside, strict=True)]
    loss = float(system.loss)
    return found, errors_from_slopes(np.concatenate(left), max(loss, 1.0)), loss


@dataclass(eq=False)
class _Motion:
    """Simulations of equations as functions of their constants and of the starts of experiments."""

    lines: Lines
    field: Field
    noise: tuple[float, ...]
    settings: FieldSettings
    stop: Callable[[], bool]

    def __post_init__(self) -> None:
        most = self.settings.start_waves ** (1 / len(self.field.space))
        self.bases = []
        for place, axis in enumerate(self.field.space):
            points = self.field.axes[axis]
            waves = min(2 * corner(spectrum(self.field, place)), len(points) // 3, int(most / 2))
            self.bases.append(_waves(points, axis in self.field.periodic, self.field.length(axis), waves))
        floor = [self.settings.systematic_error * self.field.spreads[n] for n in self.field.names]
        self.spread = np.hypot(self.noise, floor).reshape(-1, *(1,) * len(self.field.shape))
        self.observed = [np.stack(list(one.values())).astype(np.float64) for one in self.field.experiments]
        self.stride = max(1, self.observed[0].size // self.settings.motion_points)
        self.sizes = np.cumsum([0, *(c.size for c in self.lines.constants)])

    def _mapped(self, start: np.ndarray, bases: Sequence[np.ndarray]) -> np.ndarray:
        for place, basis in enumerate(bases, 2):
            start = np.moveaxis(np.tensordot(basis, start, axes=(1, place)), 0, place)
        return start

    def first(self, experiment: int) -> np.ndarray:
        """The amplitudes of a start: of the first time, and for second order of the first slopes."""
        few, times = np.nan_to_num(self.observed[experiment][..., :5]), self.field.axes[self.field.time][:5]
        slopes = np.polyfit(times, few.reshape(-1, 5).T, 1)[0].reshape(few.shape[:-1])
        start = np.stack([few[..., 0], slopes][: self.lines.order])
        return self._mapped(start, [np.linalg.pinv(b) for b in self.bases]).ravel()

    def missed(self, experiment: int, constants: np.ndarray, amplitudes: np.ndarray) -> np.ndarray:
        """What a simulation misses of the observations, in units of the noise."""
        shape = (self.lines.order, len(self.field.names), *(b.shape[1] for b in self.bases))
        start, observed = self._mapped(amplitudes.reshape(shape), self.bases), self.observed[experiment]
        if not (np.isfinite(start).all() and np.isfinite(constants).all()):
            return np.full(-(-observed.size // self.stride), math.inf)
        self.lines.constants = np.split(constants, self.sizes[1:-1])
        values = simulated(self.lines, start, self.field.axes[self.field.time], self.stop)
        gaps = np.where(np.isnan(observed), 0.0, (values - observed) / self.spread)
        return np.asarray(gaps.ravel()[:: self.stride])

    def linearise(self, point: Tensor) -> SquareRoot:
        """What simulations miss at a point, and its slopes by differences."""
        constants, rest = np.split(point[0].numpy(), self.sizes[-1:])
        starts, step = rest.reshape(len(self.observed), -1), self.settings.motion_step
        residual = np.stack([self.missed(e, constants, one) for e, one in enumerate(starts)])

        def slopes() -> tuple[np.ndarray, np.ndarray]:
            own, beside = [], []
            for e, one in enumerate(starts):
                moves = step * np.maximum(np.abs(constants), step * np.abs(constants).max())
                own.append(
                    [(self.missed(e, constants + d, one) - residual[e]) / d.max() for d in np.diag(moves)]
                )
                waves = step * np.abs(starts).max() * np.eye(one.size)
                beside.append([(self.missed(e, constants, one + d) - residual[e]) / d.max() for d in waves])
            return np.swapaxes(own, 1, 2), np.swapaxes(beside, 1, 2)

        return SquareRoot(residual, slopes)


def _waves(points: np.ndarray, periodic: bool, length: float, waves: int) -> np.ndarray:
    """A constant and so many sines and cosines; for an axis that is not periodic as many polynomials."""
    if not periodic:
        low, high = points[0], points[-1]
        return np.polynomial.chebyshev.chebvander((2 * points - low - high) / (high - low), 2 * waves)
    angles = 2 * math.pi / length * (points - points[0])[:, None] * np.arange(1, waves + 1)
    return np.column_stack([np.ones(len(points)), np.cos(angles), np.sin(angles)])
