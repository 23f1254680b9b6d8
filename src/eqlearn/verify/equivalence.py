"""Whether a formula is identical to a truth once its constants move within an allowance."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import mpmath
import numpy as np
import sympy as sp

from eqlearn.errors import InvalidArgument
from eqlearn.numerics.budget import Deadline
from eqlearn.symbolic.parametric import DIGITS, Formula

Box: TypeAlias = Mapping[str, tuple[float, float]]


@dataclass(frozen=True)
class Rules:
    """Where formulas are compared and when they count as identical.

    Numbers of points on the training box (`near`), on a box `reach` times as wide (`wide`) and on each of the
    `far_reaches` (`afar`); deviations below `identical`, far away `identical_afar`, are rounding. Constants
    are moved on about `fitted_points` points in at most `steps` evaluations.
    """

    seed: int = 2019
    near: int = 256
    wide: int = 1024
    afar: int = 256
    reach: float = 4.0
    far_reaches: tuple[float, ...] = (4e2, 4e4)
    identical: float = 1e-8
    identical_afar: float = 1e-6
    steps: int = 100
    fitted_points: int = 400


RULES = Rules()


@dataclass(frozen=True, eq=False)
class EvaluationPoints:
    """Points, the values of the truth there, and the scale of relative deviations.

    The scale is the distance of the truth from its median on the training box, at least the typical distance:
    so a zero of the truth demands nothing impossible, and a large constant term hides nothing.
    """

    truth: Formula
    points: np.ndarray
    values: np.ndarray
    scale: np.ndarray

    def some(self, keep: Any) -> EvaluationPoints:
        """A selection of the points."""
        return EvaluationPoints(self.truth, self.points[:, keep], self.values[keep], self.scale[keep])

    def __len__(self) -> int:
        return len(self.values)


@dataclass(frozen=True, eq=False)
class EvaluationSets:
    """Where to compare with a truth: on the training box (`near`), also on one four times as wide (`wide`),
    and on much wider ones (`afar`, None if the truth is not real there)."""

    near: EvaluationPoints
    wide: EvaluationPoints
    afar: EvaluationPoints | None

    @property
    def variables(self) -> tuple[str, ...]:
        return self.wide.truth.variables

    @staticmethod
    def of(truth: Formula, box: Box) -> EvaluationSets:
        rng = np.random.default_rng(RULES.seed)
        near = _draw(box, 1.0, RULES.near, rng)
        near = near[:, np.isfinite(truth(near))]
        if near.shape[1] < RULES.near // 4:
            raise InvalidArgument(
                f"the truth is real and finite at only {near.shape[1]} of {RULES.near} points of `box`; "
                "give the ranges from which its data were drawn"
            )
        outside = _followed(truth, _draw(box, RULES.reach, 4 * RULES.wide, rng), box)
        evaluation = _measured(truth, near, outside[:, : RULES.wide])
        steady = _steady(evaluation, 1e-9, rng)
        steady[: near.shape[1]] = True
        return EvaluationSets(
            evaluation.some(slice(0, near.shape[1])), evaluation.some(steady), _afar(truth, near, box, rng)
        )


def _draw(box: Box, factor: float, rows: int, rng: np.random.Generator) -> np.ndarray:
    low, high = np.array(list(box.values()), dtype=float).T[:, :, None]
    unit = rng.uniform(-1.0, 1.0, (len(box), rows))
    return np.asarray((low + high) / 2 + factor * (high - low) / 2 * unit)


def _followed(truth: Formula, points: np.ndarray, box: Box) -> np.ndarray:
    """The points at which the truth is real, finite and on the branch of the training box."""
    low, high = np.array(list(box.values()), dtype=float).T[:, :, None]
    if any(not power.exp.is_Integer for power in truth.expr.atoms(sp.Pow)) or truth.expr.has(sp.Abs):
        # A root of a square has a corner at zero, on whose other side is another branch.
        points = points[:, ~(((low >= 0) & (points < 0)) | ((high <= 0) & (points > 0))).any(axis=0)]
    values = truth(points)
    points = points[:, np.isfinite(values)]
    if not np.isnan(values).any():
        return points
    # Beyond a stretch without real values lies another branch: sqrt(p/rho) is real at p, rho < 0 as well, but
    # sqrt(p)/sqrt(rho), which is the same on data with p, rho > 0, is not. So the path along each variable,
    # from the training box to the point, must stay real; it is sampled more densely about zero, where such
    # stretches usually lie.
    start = np.clip(points, low, high)
    real = np.ones(points.shape[1], dtype=bool)
    for k, (here, there) in enumerate(zip(start, points, strict=True)):
        steps = here + np.linspace(0.0, 1.0, 17)[1:, None] * (there - here)
        about_zero = here * np.array([0.5, 0.1, 0.01, -0.01, -0.1, -0.5])[:, None]
        walk = np.concatenate([steps, np.clip(about_zero, np.minimum(here, there), np.maximum(here, there))])
        paths = np.repeat(start[:, None, :], len(walk), axis=1)
        paths[k] = walk
        real &= ~np.isnan(truth(paths)).any(axis=0)
    return points[:, real]


def _afar(truth: Formula, near: np.ndarray, box: Box, rng: np.random.Generator) -> EvaluationPoints | None:
    points = np.concatenate([_draw(box, reach, RULES.afar, rng) for reach in RULES.far_reaches], axis=1)
    evaluation = _measured(truth, near, _followed(truth, points, box))
    steady = _steady(evaluation, 1e-7, rng)
    steady[: near.shape[1]] = False
    return evaluation.some(steady) if steady.sum() >= RULES.afar // 8 else None


def _measured(truth: Formula, near: np.ndarray, outside: np.ndarray) -> EvaluationPoints:
    points = np.concatenate([near, outside], axis=1)
    values = truth(points)
    inside = values[: near.shape[1]]
    distance = np.abs(values - np.median(inside))
    largest = float(np.abs(inside).max())
    typical = float(np.median(distance[: len(inside)]))
    if distance[: len(inside)].max() <= 1e-12 * largest:
        typical = largest  # a constant
    # Constants have 16 digits, of which 9 can't be demanded below a millionth of the largest value.
    floor = max(typical, 1e-6 * largest) or 1.0
    return EvaluationPoints(truth, points, values, np.maximum(distance, floor))


def _steady(evaluation: EvaluationPoints, tolerance: float, rng: np.random.Generator) -> np.ndarray:
    # Where rounding the arguments changes the truth itself (near a pole, or thousands of periods away), no
    # formula with rounded constants can agree with it.
    nudge = 1.0 + 1e-13 * rng.choice([-1.0, 1.0], evaluation.points.shape)
    with np.errstate(all="ignore"):
        change = np.abs(evaluation.truth(evaluation.points * nudge) - evaluation.values) / evaluation.scale
    return np.asarray(change <= tolerance)


@dataclass(frozen=True)
class Comparison:
    """How close a formula comes to the truth; without a `flaw` it is the truth."""

    flaw: str = ""
    deviation: float = math.inf
    moved: float = 0.0


def compare(
    formula: Formula, allowance: np.ndarray, evaluations: EvaluationSets, clock: Deadline
) -> Comparison:
    """Moves the constants, each within its allowance, to bring the formula closest to the truth."""
    best, constants = math.inf, formula.constants
    for witness in _witnesses(formula, allowance, evaluations, clock):
        found = deviation(formula, witness, evaluations.wide, RULES.identical, clock)
        if found < best:
            best, constants = found, witness
        if best < 1e-12:
            break
    change = np.abs(constants - formula.constants)
    with np.errstate(divide="ignore"):
        moved = float(np.max(change[change > 0] / np.abs(formula.constants[change > 0]), initial=0.0))
    if math.isinf(best):
        return Comparison("not real and finite everywhere the truth is", best, moved)
    if not best < RULES.identical:
        return Comparison(f"deviates by {best:.2g} with its constants moved as far as allowed", best, moved)
    if evaluations.afar is not None and not _holds_afar(
        formula, constants, evaluations.wide, evaluations.afar, clock
    ):
        return Comparison(
            "near the truth on the box, but a different function: it departs far away", best, moved
        )
    return Comparison("", best, moved)


def deviation(
    formula: Formula, constants: np.ndarray, evaluation: EvaluationPoints, tolerance: float, clock: Deadline
) -> float:
    """The largest relative deviation from the truth; infinite where the formula is not real and finite.

    Points that miss the tolerance in float64, perhaps by cancellation or overflow, are tried in high
    precision, unless half of all points miss it with finite values.
    """
    clock.check()
    with np.errstate(all="ignore"):
        found = np.abs(formula(evaluation.points, constants) - evaluation.values) / evaluation.scale
    found = np.where(np.isfinite(found), found, np.inf)
    missed = np.flatnonzero(found >= tolerance)
    if np.isfinite(found[missed]).sum() < len(evaluation) / 2:
        for index in missed[np.argsort(-found[missed], kind="stable")]:
            clock.check()
            found[index] = _precise_deviation(formula, constants, evaluation, int(index))
            if found[index] >= tolerance:
                break
    return float(found.max(initial=0.0))


def _precise_deviation(
    formula: Formula, constants: np.ndarray, evaluation: EvaluationPoints, index: int
) -> float:
    point = evaluation.points[:, index]
    with mpmath.workdps(DIGITS):
        try:
            truth = evaluation.truth.precisely(point, evaluation.truth.constants)
            difference = formula.precisely(point, constants) - truth
        except (ArithmeticError, ValueError):  # a pole, or an overflow that no precision removes
            return math.inf
        real = mpmath.im(difference) == 0 and mpmath.isfinite(difference)
        return float(abs(difference) / float(evaluation.scale[index])) if real else math.inf


def _witnesses(
    formula: Formula, allowance: np.ndarray, evaluations: EvaluationSets, clock: Deadline
) -> Iterator[np.ndarray]:
    """Sets of constants within the allowance; one that makes the formula the truth is a proof."""
    if (allowance > 0).any():
        # On the training box first, where a slightly wrong frequency is not yet out of phase by a period.
        constants = formula.constants
        for evaluation in (evaluations.near, evaluations.wide):
            constants = _moved(formula, constants, allowance, evaluation, clock)
            yield constants
            # x**2.0000000001 has no value at negative x; x**2.0 has.
            rounded = np.array([float(f"{c:.9g}") for c in constants])
            yield np.clip(rounded, formula.constants - allowance, formula.constants + allowance)
    yield formula.constants


def _moved(
    formula: Formula, start: np.ndarray, allowance: np.ndarray, evaluation: EvaluationPoints, clock: Deadline
) -> np.ndarray:
    """Bounded least squares over the constants, in units of their allowances."""
    from scipy.optimize import least_squares

    free = allowance > 0
    centre, reach, step = formula.constants, allowance[free], 1e-3
    evaluation = evaluation.some(slice(None, None, 1 + len(evaluation) // RULES.fitted_points))
    seen = evaluation.some(np.isfinite(formula(evaluation.points, start)))
    if len(seen) == 0:
        return start

    def constants(u: np.ndarray) -> np.ndarray:
        moved = np.array(np.broadcast_to(centre, (*u.shape[:-1], len(centre))))
        moved[..., free] += reach * u
        return moved

    def residual(u: np.ndarray) -> np.ndarray:
        clock.check()
        with np.errstate(all="ignore"):
            difference = (formula(seen.points, constants(u)) - seen.values) / seen.scale
        return np.asarray(np.nan_to_num(difference, nan=1e6, posinf=1e6, neginf=-1e6))

    def slope(u: np.ndarray) -> np.ndarray:
        nudges = step * np.eye(len(u))
        both = np.concatenate([constants(u + nudges), constants(u - nudges)])
        with np.errstate(all="ignore"):
            ahead, behind = np.split(formula(seen.points[:, None, :], both.T[:, :, None]), 2)
            central = (ahead - behind) / (2 * step * seen.scale)
        return np.asarray(np.nan_to_num(central, nan=0.0, posinf=0.0, neginf=0.0).T)

    u = np.clip((start - centre)[free] / reach, -1.0, 1.0)
    found = least_squares(
        residual, u, slope, (-1.0, 1.0), ftol=1e-6, xtol=1e-15, gtol=1e-15, max_nfev=RULES.steps
    )
    return constants(found.x)


def _holds_afar(
    formula: Formula, constants: np.ndarray, wide: EvaluationPoints, afar: EvaluationPoints, clock: Deadline
) -> bool:
    """Whether the identity also holds far outside the box, unlike that of x and A·sin(x/A)."""
    tolerance = RULES.identical_afar
    if deviation(formula, constants, afar, tolerance, clock) < tolerance:
        return True
    # Residual terms of a fit, negligible on the box, may grow without bound outside it.
    terms = [Formula(t, formula.variables) for t in sp.Add.make_args(formula.filled(constants))]
    kept = [t.expr for t in terms if not np.all(np.abs(t(wide.points)) < 1e-9 * wide.scale)]
    if len(kept) == len(terms):
        return False
    clean = Formula(sp.Add(*kept), formula.variables)
    return deviation(clean, clean.constants, afar, tolerance, clock) < tolerance
