"""Constants of equations of motion, fitted through the motion: short simulations, each from a free start."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import sympy as sp
import torch

from eqlearn.dynamics.forms import find_form
from eqlearn.dynamics.segments import Segments
from eqlearn.numerics.budget import never
from eqlearn.numerics.covariance import errors_from_slopes
from eqlearn.numerics.criteria import MOTION_ROUNDING, MOTION_TOLERANCE
from eqlearn.numerics.least_squares import Rule, SquareRoot, levenberg_marquardt
from eqlearn.symbolic.equation import Equation
from eqlearn.symbolic.expressions import real_symbol
from eqlearn.symbolic.parametric import Formula


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

    def values(self, points: np.ndarray, constants: np.ndarray) -> np.ndarray:
        """Values `(rows, states)` at points `(rows, states and inputs)`."""
        found = np.empty((len(points), len(self.formulas)))
        for k, value in enumerate(self._compiled[0](*points.T, *constants)):
            found[:, k] = value
        return found

    def linearise(self, points: np.ndarray, constants: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Values `(rows, states)`, and their slopes by states and then constants, at such points."""
        count = len(self.formulas)
        _, both, places = self._compiled
        found = both(*points.T, *constants)
        values, slopes = (
            np.empty((len(points), count)),
            np.zeros((len(points), count, count + len(constants))),
        )
        for k in range(count):
            values[:, k] = found[k]
        for (k, j), slope in zip(places, found[count:], strict=True):
            slopes[:, k, j] = slope
        return values, slopes

    @cached_property
    def _compiled(self) -> tuple[Callable[..., Any], Callable[..., Any], list[tuple[int, int]]]:
        """What computes the values, the values and all slopes that are not zero, and where these belong: all
        at once, each common part once."""
        variables = [real_symbol(name) for name in self.formulas[0].variables]
        constants = [sp.Dummy(f"c{i}", real=True) for i in range(len(self.start))]
        values = [f.filled(constants[p]) for f, p in zip(self.formulas, self.places, strict=True)]
        # |g| of a g that SymPy can't prove real has slopes that it can't write in real functions.
        smooth = [value.replace(sp.Abs, lambda inner: sp.sqrt(inner**2)) for value in values]
        slopes, places = [], []
        for k, value in enumerate(smooth):
            for j, symbol in enumerate([*variables[: len(values)], *constants]):
                slope = sp.diff(value, symbol) if value.has(symbol) else sp.S.Zero
                if slope != 0:
                    slopes.append(slope.replace(sp.sign, lambda inner: inner / sp.Abs(inner)))
                    places.append((k, j))
        symbols, modules = [*variables, *constants], ["scipy", "numpy"]
        alone = sp.lambdify(symbols, values, modules, cse=True)
        return alone, sp.lambdify(symbols, [*values, *slopes], modules, cse=True), places


@dataclass(frozen=True, eq=False)
class ShootingFit:
    """Values of the constants, their standard errors, and those of each once the later ones are known; the
    pieces' starts, each state's root-mean-square residual in units of its spread, and the autocorrelation of
    the residuals from one time to the next."""

    values: np.ndarray
    standard_errors: np.ndarray
    errors_in_turn: np.ndarray
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
    substeps: float | int = 1,
    iterations: int = 12,
    gain: float = 1e-9,
    stop: Callable[[], bool] = never,
) -> ShootingFit:
    """Fits all constants and the start of every piece to the observed states, by Levenberg-Marquardt.

    Starts meet only their own piece, so they are eliminated piece by piece and the system solved is as small
    as there are constants. The `fixed` constants stay where they are, with error zero. A step that lowers the
    sum of squares by a smaller share than `gain` is the last.
    """
    c = torch.tensor(law.start if constants is None else constants)
    at = torch.tensor(segments.values[:, 0] if starts is None else starts)
    held = torch.zeros(len(c), dtype=torch.bool) if fixed is None else torch.tensor(fixed)
    point, system = levenberg_marquardt(
        lambda point: _linearised(law, segments, point[0].numpy(), substeps),
        torch.cat([c, at.flatten()])[None],
        Rule(iterations, up=30.0, least=1e-12, gain=gain, rounding=MOTION_ROUNDING),
        fixed=torch.cat([held, torch.zeros(at.numel(), dtype=torch.bool)])[None],
        units=torch.cat([torch.zeros_like(c), torch.ones(at.numel())])[None],
        stop=stop,
    )
    c, at = point[0, : len(c)], point[0, len(c) :].view(at.shape)
    return _fit(system, segments, at.numpy(), c.numpy(), (~held).numpy())


def _linearised(law: VectorField, segments: Segments, point: np.ndarray, substeps: float | int) -> SquareRoot:
    """The residuals of the simulation of each piece, with slopes by the constants and by the piece's start;
    not finite if a slope is not."""
    pieces, times, count = segments.values.shape
    c, starts = np.split(point, [len(law.start)])
    motion = flow(law, segments, c, starts.reshape(pieces, count), substeps, slopes=True)
    residual, slopes = motion[..., 0] - segments.values, motion[..., 1:]
    counts = segments.balance * (np.ones(count) if segments.weights is None else segments.weights)
    residual, slopes = residual * counts, slopes * counts[..., None]
    if not np.isfinite(slopes).all():
        residual[:] = np.nan
    matrix = slopes.reshape(pieces, times * count, -1)
    return SquareRoot(residual.reshape(pieces, -1), lambda: (matrix[..., count:], matrix[..., :count]))


def flow(
    law: VectorField,
    segments: Segments,
    constants: np.ndarray,
    starts: np.ndarray,
    substeps: float | int,
    *,
    slopes: bool = False,
) -> np.ndarray:
    """The motion of each piece from its start `(pieces, states)`, as `(pieces, times, states, 1)`, and with
    `slopes` beside each value its slopes by the starts and the constants; all in units of the spread.

    A step of time is divided into `substeps`; below 1, the integrator takes so many steps at once, and values
    in between are those of the cubic that has the values and the rates at both ends (Hermite).
    """
    pieces, times, count = segments.values.shape
    form, scale = find_form(segments.form), segments.scale
    driven, stride = segments.drive is not None, max(1, round(1 / substeps))
    width = 1 + count + len(constants) if slopes else 1
    # In the user's units; inputs are functions of time, which is then the last state.
    at = np.zeros((pieces, count + driven, width))
    at[:, :count, 0] = starts * scale
    if slopes:
        at[:, :count, 1 : 1 + count] = np.diag(scale)
    motion = np.full((pieces, times, count, width), np.nan)
    motion[:, 0] = at[:, :count]

    def rate(at: np.ndarray) -> np.ndarray:
        after = np.zeros_like(at) if driven else np.empty_like(at)
        points = at[:, :count, 0]
        if segments.drive is not None:
            points = np.concatenate([points, segments.drive(at[:, count, 0])], axis=1)
            after[:, count, 0] = 1.0 if form.continuous else at[:, count, 0] + segments.dt
        if not slopes:
            after[:, :count, 0] = law.values(points, constants)
            return after
        after[:, :count, 0], by = law.linearise(points, constants)
        after[:, :count, 1:] = by[:, :, :count] @ at[:, :count, 1:]
        after[:, :count, 1 + count :] += by[:, :, count:]
        return after

    with np.errstate(all="ignore"):
        for first in range(0, times - 1, stride):
            last = min(first + stride, times - 1)
            time = segments.times(first, last)
            step = time if isinstance(time, float) else time[:, None, None]
            before, at = at, form.step(rate, at, step, max(1, round(substeps)))
            motion[:, last] = at[:, :count]
            if last > first + 1:
                cubic = _hermite(before, at, rate(before), rate(at), step)
                for between in range(first + 1, last):
                    share = np.reshape(segments.times(first, between) / np.asarray(time), (-1, 1, 1))
                    motion[:, between] = cubic(share)[:, :count]
            if not np.isfinite(at[:, :count, 0]).all():
                break
        motion /= scale[:, None]
    return motion


def _hermite(
    before: np.ndarray, after: np.ndarray, leaving: np.ndarray, arriving: np.ndarray, step: np.ndarray | float
) -> Callable[[np.ndarray], np.ndarray]:
    """The cubic with these values and rates at both ends of a step, by the share of the step."""
    return lambda s: np.asarray(
        (1 + 2 * s) * (1 - s) ** 2 * before + s * s * (3 - 2 * s) * after
        + step * s * (1 - s) * ((1 - s) * leaving - s * arriving)
    )  # fmt: skip


def _fit(
    system: SquareRoot, segments: Segments, starts: np.ndarray, c: np.ndarray, free: np.ndarray
) -> ShootingFit:
    count, errors = segments.values.shape[2], np.zeros(len(c))
    if not math.isfinite(float(system.loss)):
        errors[free] = math.inf
        return ShootingFit(c, errors, errors, starts, np.full(count, math.inf))
    residual = system.residual.reshape(segments.values.shape)
    observed = segments.rows * int(segments.seen.sum())
    variance = float((residual**2).sum()) / max(1, observed - int(free.sum()))
    slopes, in_turn = system.followed[:, free], errors.copy()
    errors[free] = errors_from_slopes(slopes, variance)
    if len(slopes) >= slopes.shape[1]:
        turned = np.abs(np.diag(np.linalg.qr(slopes, mode="r")))
        in_turn[free] = math.sqrt(variance) / np.maximum(turned, 1e-300)
    rms = np.sqrt((residual**2).sum(axis=(0, 1)) / segments.rows) / segments.balance
    before, after = residual[:, :-1].ravel(), residual[:, 1:].ravel()
    size = math.sqrt(float(before @ before) * float(after @ after))
    return ShootingFit(c, errors, in_turn, starts, rms, float(before @ after) / size if size > 0 else 0.0)


def enough_substeps(equations: Sequence[Equation], segments: Segments, errors: np.ndarray | float) -> float:
    """How often a step must be divided for a simulation's own error to vanish behind these `errors` of the
    states, below 1 if several steps may be taken at once; 1 if it diverges however fine the steps are.

    The error is what finer steps change in a few of them from each observed time on, added up along a piece:
    so all times are looked at together.
    """
    if not find_form(segments.form).continuous:
        return 1.0
    law, settings = VectorField(equations), segments.settings
    enough = np.maximum(MOTION_TOLERANCE, settings.below_noise * np.asarray(errors))
    substeps = 1.0 / settings.max_stride if enough.min() > settings.coarse else 1.0
    short = segments.cut(settings.max_stride if substeps < 1 else 1)
    # What needs finer steps over so long a time is not worth its simulation.
    times = segments.values.shape[1]
    finest = min(settings.max_substeps, max(1, settings.max_piece_steps // times))
    starts, steps = short.values[:, 0], short.values.shape[1] - 1
    coarse = flow(law, short, law.start, starts, substeps)
    while substeps < finest:
        fine = flow(law, short, law.start, starts, 2 * substeps)
        with np.errstate(all="ignore"):
            gaps = np.abs(fine - coarse)[..., 0].max(axis=1)
        gaps[~np.isfinite(gaps)] = np.inf
        every = gaps.reshape(len(segments.values), -1, len(law.formulas)).mean(axis=1)
        if (every * (times - 1) / steps <= enough).all():
            break
        substeps, coarse = 2 * substeps, fine
    return substeps if np.isfinite(coarse).all() else 1.0
