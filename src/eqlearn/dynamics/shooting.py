"""Constants of equations of motion, fitted through the motion: short simulations, each from a free start."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import sympy as sp
import torch

from eqlearn.dynamics.forms import find_form, simulate
from eqlearn.dynamics.settings import MOTION, MotionSettings
from eqlearn.functions import NUMPY
from eqlearn.numerics.covariance import errors_from_slopes
from eqlearn.numerics.criteria import MOTION_ROUNDING, MOTION_TOLERANCE
from eqlearn.numerics.least_squares import Rule, SquareRoot, levenberg_marquardt
from eqlearn.symbolic.equation import Equation
from eqlearn.symbolic.parametric import Formula
from eqlearn.validation.trajectories import Trajectories


@dataclass(frozen=True, eq=False)
class Segments:
    """Pieces of series, all of one length, `(pieces, times, states)`, in units of each state's spread.

    They are the data of a least-squares problem rather than `Trajectories`: scaled, and of equations of one
    `form`.
    """

    values: np.ndarray
    scale: np.ndarray
    dt: float
    form: str
    settings: MotionSettings = MOTION

    @staticmethod
    def of(
        trajectories: Trajectories,
        form: str,
        steps: int,
        most: int,
        scale: np.ndarray | None = None,
        settings: MotionSettings = MOTION,
    ) -> Segments:
        """From `Trajectories.pieces`; the `scale` is the trajectories' own spread by default."""
        scale = trajectories.spread if scale is None else scale
        return Segments(trajectories.pieces(steps, most) / scale, scale, trajectories.dt, form, settings)

    @property
    def rows(self) -> int:
        """How many values of each state test the equations: all but those that the free starts use up."""
        series, steps = self.values.shape[:2]
        return int(series * (steps - 1))


class VectorField:
    """Equations of motion, one per state, as a function of states and constants with exact slopes."""

    def __init__(self, equations: Sequence[Equation]) -> None:
        self.formulas = [Formula.of(equation) for equation in equations]
        self.start = np.concatenate([formula.constants for formula in self.formulas])
        ends = np.cumsum([len(formula.constants) for formula in self.formulas])
        self.places = [slice(e - len(f.constants), e) for e, f in zip(ends, self.formulas, strict=True)]

    def equations(self, constants: Sequence[sp.Expr | float]) -> tuple[Equation, ...]:
        """The equations with these constants, numbers or exact expressions."""
        pairs = zip(self.formulas, self.places, strict=True)
        return tuple(formula.with_constants(constants[place]) for formula, place in pairs)

    def linearise(self, states: np.ndarray, constants: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Values `(rows, states)`, and their slopes by states and then constants, at such states."""
        rows, count = states.shape
        values, slopes = np.empty((rows, count)), np.zeros((rows, count, count + len(constants)))
        for k, (formula, place) in enumerate(zip(self.formulas, self.places, strict=True)):
            value, by = formula.differentiated
            columns = [*states.T, *constants[place]]
            values[:, k] = value.run(NUMPY, columns, value.constants, np.float64)
            for j, slope in by.items():
                found = slope.run(NUMPY, columns, slope.constants, np.float64)
                slopes[:, k, j if j < count else j + place.start] = found
        return values, slopes


@dataclass(frozen=True, eq=False)
class ShootingFit:
    """Values of the constants and their standard errors, the pieces' starts, each state's root-mean-square
    residual in units of its spread, and the autocorrelation of the residuals from one time to the next."""

    values: np.ndarray
    standard_errors: np.ndarray
    starts: np.ndarray
    errors: np.ndarray
    correlation: float = 0.0

    @property
    def finite(self) -> bool:
        return bool(np.isfinite(self.errors).all())


def shoot(
    law: VectorField,
    segments: Segments,
    constants: np.ndarray | None = None,
    *,
    fixed: np.ndarray | None = None,
    starts: np.ndarray | None = None,
    substeps: int = 1,
    iterations: int = 12,
) -> ShootingFit:
    """Fits all constants and the start of every piece to the observed states, by Levenberg-Marquardt.

    Starts meet only their own piece, so they are eliminated piece by piece and the system solved is as small
    as there are constants. The `fixed` constants stay where they are, with error zero.
    """
    c = torch.tensor(law.start if constants is None else constants)
    at = torch.tensor(segments.values[:, 0] if starts is None else starts)
    held = torch.zeros(len(c), dtype=torch.bool) if fixed is None else torch.tensor(fixed)
    point, system = levenberg_marquardt(
        lambda point: _linearised(law, segments, point[0].numpy(), substeps),
        torch.cat([c, at.flatten()])[None],
        Rule(iterations, up=30.0, least=1e-12, gain=1e-9, rounding=MOTION_ROUNDING),
        fixed=torch.cat([held, torch.zeros(at.numel(), dtype=torch.bool)])[None],
        units=torch.cat([torch.zeros_like(c), torch.ones(at.numel())])[None],
    )
    c, at = point[0, : len(c)], point[0, len(c) :].view(at.shape)
    return _fit(system, segments, at.numpy(), c.numpy(), (~held).numpy())


def _linearised(law: VectorField, segments: Segments, point: np.ndarray, substeps: int) -> SquareRoot:
    """The residuals of the simulation of each piece, with slopes by the constants and by the piece's start;
    not finite if a slope is not."""
    pieces, times, count = segments.values.shape
    c, starts = np.split(point, [len(law.start)])
    residual = np.full(segments.values.shape, np.nan)
    slopes = np.zeros((pieces, times, count, count + len(c)))
    scale = segments.scale
    # The states, and beside each its slopes by the starts and the constants.
    at = np.zeros((pieces, count, 1 + count + len(c)))
    at[:, :, 0], at[:, :, 1 : 1 + count] = starts.reshape(pieces, count), np.eye(count)

    def rate(at: np.ndarray) -> np.ndarray:
        after = np.empty_like(at)
        value, by = law.linearise(at[:, :, 0] * scale, c)
        after[:, :, 0] = value / scale
        after[:, :, 1:] = (by[:, :, :count] * scale / scale[:, None]) @ at[:, :, 1:]
        after[:, :, 1 + count :] += by[:, :, count:] / scale[:, None]
        return after

    advance = find_form(segments.form).step
    with np.errstate(all="ignore"):
        for step in range(times):
            residual[:, step] = at[:, :, 0] - segments.values[:, step]
            slopes[:, step] = at[:, :, 1:]
            if not np.isfinite(at[:, :, 0]).all() or step == times - 1:
                break
            at = advance(rate, at, segments.dt, substeps)
    if not np.isfinite(slopes).all():
        residual[:] = np.nan
    matrix = slopes.reshape(pieces, times * count, -1)
    return SquareRoot(residual.reshape(pieces, -1), lambda: (matrix[..., count:], matrix[..., :count]))


def _fit(
    system: SquareRoot, segments: Segments, starts: np.ndarray, c: np.ndarray, free: np.ndarray
) -> ShootingFit:
    count, errors = segments.values.shape[2], np.zeros(len(c))
    if not math.isfinite(float(system.loss)):
        errors[free] = math.inf
        return ShootingFit(c, errors, starts, np.full(count, math.inf))
    residual = system.residual.reshape(segments.values.shape)
    variance = float((residual**2).sum()) / max(1, segments.rows * count - int(free.sum()))
    errors[free] = errors_from_slopes(system.followed[:, free], variance)
    rms = np.sqrt((residual**2).sum(axis=(0, 1)) / segments.rows)
    before, after = residual[:, :-1].ravel(), residual[:, 1:].ravel()
    size = math.sqrt(float(before @ before) * float(after @ after))
    return ShootingFit(c, errors, starts, rms, float(before @ after) / size if size > 0 else 0.0)


def enough_substeps(equations: Sequence[Equation], segments: Segments, noise: float) -> int:
    """How often a step must be divided for a simulation's own error to vanish behind the noise; not at all
    if it diverges however fine the steps are."""
    form = find_form(segments.form)
    if not form.continuous:
        return 1
    some = segments.values[:: max(1, len(segments.values) // 8)]
    start, steps = some[:, 0] * segments.scale, some.shape[1] - 1
    substeps = 1
    coarse = simulate(equations, start, steps, segments.dt, form.name, substeps=substeps)
    while substeps < segments.settings.max_substeps:
        fine = simulate(equations, start, steps, segments.dt, form.name, substeps=2 * substeps)
        with np.errstate(all="ignore"):
            gaps = np.abs(fine - coarse) / segments.scale
        if np.isfinite(gaps).all() and gaps.max(initial=0.0) <= max(
            MOTION_TOLERANCE, segments.settings.below_noise * noise
        ):
            break
        substeps, coarse = 2 * substeps, fine
    return substeps if np.isfinite(coarse).all() else 1
