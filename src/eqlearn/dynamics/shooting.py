"""Constants of equations of motion, fitted through the motion: short simulations, each from a free start."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np
import sympy as sp

from eqlearn.dynamics.integrate import advance
from eqlearn.functions import NUMPY
from eqlearn.numerics.covariance import errors_from_slopes
from eqlearn.symbolic.equation import Equation
from eqlearn.symbolic.expressions import fill_constants, real_symbol
from eqlearn.symbolic.parametric import Parametric
from eqlearn.symbolic.tape import Tape, lower
from eqlearn.validation.trajectories import Trajectories

# Smaller moves, relative to the spread of a state or to a constant, are rounding.
ROUNDING = 1e-13


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

    @staticmethod
    def of(
        trajectories: Trajectories, form: str, steps: int, most: int, scale: np.ndarray | None = None
    ) -> Segments:
        """From `Trajectories.pieces`; the `scale` is the trajectories' own spread unless told."""
        scale = trajectories.spread if scale is None else scale
        return Segments(trajectories.pieces(steps, most) / scale, scale, trajectories.dt, form)

    @property
    def rows(self) -> int:
        """How many values of each state test the equations: all but those that the free starts use up."""
        series, steps = self.values.shape[:2]
        return int(series * (steps - 1))


class VectorField:
    """Equations of motion, one per state, as a function of states and constants with exact slopes."""

    def __init__(self, equations: Sequence[Equation]) -> None:
        self.formulas = [Parametric(equation) for equation in equations]
        self.start = np.concatenate([formula.start for formula in self.formulas])
        ends = np.cumsum([len(formula.start) for formula in self.formulas])
        self.places = [slice(e - len(f.start), e) for e, f in zip(ends, self.formulas, strict=True)]
        self._tapes = []
        for formula in self.formulas:
            constants = [_constant_symbol(i) for i in range(len(formula.start))]
            expr = fill_constants(formula.equation.expr, formula.holders, constants)
            self._tapes.append(_tapes(expr, formula.equation.variables, len(constants)))

    def equations(self, constants: Sequence[sp.Expr | float]) -> tuple[Equation, ...]:
        """The equations with these constants, numbers or exact expressions."""
        pairs = zip(self.formulas, self.places, strict=True)
        return tuple(formula.with_constants(list(constants[place])) for formula, place in pairs)

    def linearise(self, states: np.ndarray, constants: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Values `(rows, states)`, and their slopes by states and then constants, at such states."""
        rows, count = states.shape
        values, slopes = np.empty((rows, count)), np.zeros((rows, count, count + len(constants)))
        for k, ((value, by), place) in enumerate(zip(self._tapes, self.places, strict=True)):
            columns = [*states.T, *constants[place]]
            values[:, k] = value.run(NUMPY, columns, value.constants, np.float64)
            for j, slope in by.items():
                found = slope.run(NUMPY, columns, slope.constants, np.float64)
                slopes[:, k, j if j < count else j + place.start] = found
        return values, slopes


@cache
def _constant_symbol(place: int) -> sp.Symbol:
    return sp.Dummy(f"c{place}", real=True)  # which no column can be, whatever its name


@lru_cache(maxsize=1024)
def _tapes(expr: sp.Expr, variables: tuple[str, ...], constants: int) -> tuple[Tape, dict[int, Tape]]:
    """The value of a formula and its slopes that are not zero, by states and then constants."""
    symbols = [*map(real_symbol, variables), *map(_constant_symbol, range(constants))]
    # |g| of a g that SymPy can't prove real has slopes that it can't write in real functions.
    smooth = expr.replace(sp.Abs, lambda inner: sp.sqrt(inner**2))
    slopes = {
        j: sp.diff(smooth, symbol).replace(sp.sign, lambda inner: inner / sp.Abs(inner))
        for j, symbol in enumerate(symbols)
        if expr.has(symbol)
    }
    return lower(expr, symbols), {j: lower(slope, symbols) for j, slope in slopes.items() if slope != 0}


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
    c = (law.start if constants is None else constants).copy()
    free = np.arange(len(c)) if fixed is None else np.flatnonzero(~fixed)
    at = segments.values[:, 0].copy() if starts is None else starts.copy()
    state = _residual(law, segments, at, c, free, substeps)
    damping = 1e-6
    for _ in range(iterations):
        if not math.isfinite(state.square):
            break
        moves = _step(state, damping)
        trial = c.copy()
        trial[free] += moves[1]
        after = _residual(law, segments, at + moves[0], trial, free, substeps)
        if after.square < state.square:
            converged = state.square - after.square <= 1e-9 * state.square
            at, c, state, damping = at + moves[0], trial, after, max(damping / 10, 1e-12)
            if converged:
                break
        else:
            damping *= 30
            sizes = (1.0, np.abs(c[free]))
            rounding = all((np.abs(m) <= ROUNDING * s).all() for m, s in zip(moves, sizes, strict=True))
            if rounding or damping > 1e6:
                break
    return _fit(state, segments, at, c, free)


@dataclass(frozen=True, eq=False)
class _State:
    """Residuals `(pieces, times, states)` and their slopes by starts and by constants, as matrices."""

    residual: np.ndarray
    by_start: np.ndarray
    by_constant: np.ndarray
    square: float


def _residual(
    law: VectorField, segments: Segments, starts: np.ndarray, c: np.ndarray, free: np.ndarray, substeps: int
) -> _State:
    pieces, times, count = segments.values.shape
    residual = np.full(segments.values.shape, np.nan)
    slopes = np.zeros((pieces, times, count, count + len(c)))
    scale = segments.scale
    # The states, and beside each its slopes by the starts and the constants.
    at = np.zeros((pieces, count, 1 + count + len(c)))
    at[:, :, 0], at[:, :, 1 : 1 + count] = starts, np.eye(count)

    def rate(at: np.ndarray) -> np.ndarray:
        after = np.empty_like(at)
        value, by = law.linearise(at[:, :, 0] * scale, c)
        after[:, :, 0] = value / scale
        after[:, :, 1:] = (by[:, :, :count] * scale / scale[:, None]) @ at[:, :, 1:]
        after[:, :, 1 + count :] += by[:, :, count:] / scale[:, None]
        return after

    with np.errstate(all="ignore"):
        for step in range(times):
            residual[:, step] = at[:, :, 0] - segments.values[:, step]
            slopes[:, step] = at[:, :, 1:]
            if not np.isfinite(at[:, :, 0]).all() or step == times - 1:
                break
            at = advance(rate, at, segments.dt, segments.form, substeps)
        square = float((residual**2).sum())
    matrix = slopes.reshape(pieces, times * count, -1)
    return _State(
        residual, matrix[:, :, :count], matrix[:, :, count + free],
        square if np.isfinite(slopes).all() and math.isfinite(square) else math.inf,
    )  # fmt: skip


def _step(state: _State, damping: float) -> tuple[np.ndarray, np.ndarray]:
    """Moves of the starts and of the constants: starts are solved for in each piece, constants over all."""
    q, r = np.linalg.qr(state.by_start)
    residual = state.residual.reshape(len(q), -1, 1)
    left, slopes = _without(q, residual), _without(q, state.by_constant)
    count = slopes.shape[2]
    matrix = slopes.reshape(slopes.shape[0] * slopes.shape[1], count)
    scale = np.sqrt((matrix**2).sum(axis=0))
    scale[~(scale > 0)] = 1.0
    rows = np.vstack([matrix / scale, math.sqrt(damping) * np.eye(count)])
    right = np.concatenate([-left.reshape(-1), np.zeros(count)])
    move = np.linalg.lstsq(rows, right, rcond=None)[0] / scale
    remains = residual + state.by_constant @ move[:, None]
    return -np.linalg.solve(r, q.transpose(0, 2, 1) @ remains)[:, :, 0], move


def _without(q: np.ndarray, values: np.ndarray) -> np.ndarray:
    """What the starts can't make up for."""
    return np.asarray(values - q @ (q.transpose(0, 2, 1) @ values))


def _fit(
    state: _State, segments: Segments, starts: np.ndarray, c: np.ndarray, free: np.ndarray
) -> ShootingFit:
    pieces, times, count = segments.values.shape
    errors = np.zeros(len(c))
    if not math.isfinite(state.square):
        errors[free] = math.inf
        return ShootingFit(c, errors, starts, np.full(count, math.inf))
    matrix = _without(np.linalg.qr(state.by_start)[0], state.by_constant).reshape(
        pieces * times * count, len(free)
    )
    variance = state.square / max(1, segments.rows * count - len(free))
    errors[free] = errors_from_slopes(matrix, variance)
    rms = np.sqrt((state.residual**2).sum(axis=(0, 1)) / segments.rows)
    before, after = state.residual[:, :-1].ravel(), state.residual[:, 1:].ravel()
    size = math.sqrt(float(before @ before) * float(after @ after))
    return ShootingFit(c, errors, starts, rms, float(before @ after) / size if size > 0 else 0.0)
