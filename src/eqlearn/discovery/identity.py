"""Whether a formula becomes identical to a truth when its constants move within an allowance."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass

import mpmath
import numpy as np
import sympy as sp

from eqlearn.discovery.formula import DIGITS, Formula
from eqlearn.discovery.ground import Ground, Survey

IDENTICAL, IDENTICAL_AFAR = 1e-8, 1e-6
MOST_STEPS, MOST_POINTS = 100, 400


@dataclass(frozen=True)
class Clock:
    """The moment at which a search for an identity gives up."""

    end: float

    @staticmethod
    def of(seconds: float) -> Clock:
        return Clock(time.monotonic() + seconds)

    def check(self) -> None:
        if time.monotonic() > self.end:
            raise TimeoutError


@dataclass(frozen=True)
class Comparison:
    """How close a formula comes to the truth; without a `flaw` it is the truth."""

    flaw: str = ""
    deviation: float = math.inf
    moved: float = 0.0


def compare(formula: Formula, allowance: np.ndarray, survey: Survey, clock: Clock) -> Comparison:
    """Moves the constants, each by no more than its allowance, to where the formula is nearest the truth."""
    best, constants = math.inf, formula.constants
    for witness in _witnesses(formula, allowance, survey, clock):
        found = deviation(formula, witness, survey.wide, IDENTICAL, clock)
        if found < best:
            best, constants = found, witness
        if best < 1e-12:
            break
    change = np.abs(constants - formula.constants)
    with np.errstate(divide="ignore"):
        moved = float(np.max(change[change > 0] / np.abs(formula.constants[change > 0]), initial=0.0))
    if math.isinf(best):
        return Comparison("not real and finite everywhere the truth is", best, moved)
    if not best < IDENTICAL:
        return Comparison(f"deviates by {best:.2g} with its constants moved as far as allowed", best, moved)
    if survey.afar is not None and not _holds_afar(formula, constants, survey.wide, survey.afar, clock):
        return Comparison(
            "near the truth on the box, but a different function: it departs far away", best, moved
        )
    return Comparison("", best, moved)


def deviation(
    formula: Formula, constants: np.ndarray, ground: Ground, tolerance: float, clock: Clock
) -> float:
    """The largest relative deviation from the truth; infinite where the formula is not real and finite.

    Points that miss the tolerance in float64 are tried in high precision, unless most of them do with finite
    values: the formula may only have cancelled or overflowed there.
    """
    clock.check()
    with np.errstate(all="ignore"):
        found = np.abs(formula(ground.points, constants) - ground.values) / ground.scale
    found = np.where(np.isfinite(found), found, np.inf)
    missed = np.flatnonzero(found >= tolerance)
    if np.isfinite(found[missed]).sum() < len(ground) / 2:
        for index in missed[np.argsort(-found[missed], kind="stable")]:
            clock.check()
            found[index] = _precise_deviation(formula, constants, ground, int(index))
            if found[index] >= tolerance:
                break
    return float(found.max(initial=0.0))


def _precise_deviation(formula: Formula, constants: np.ndarray, ground: Ground, index: int) -> float:
    point = ground.points[:, index]
    with mpmath.workdps(DIGITS):
        try:
            truth = ground.truth.precisely(point, ground.truth.constants)
            difference = formula.precisely(point, constants) - truth
        except (ArithmeticError, ValueError):  # a pole, or an overflow that no precision removes
            return math.inf
        real = mpmath.im(difference) == 0 and mpmath.isfinite(difference)
        return float(abs(difference) / float(ground.scale[index])) if real else math.inf


def _witnesses(formula: Formula, allowance: np.ndarray, survey: Survey, clock: Clock) -> Iterator[np.ndarray]:
    """Constants within the allowance; if one set of them makes the formula the truth, that is proof."""
    if (allowance > 0).any():
        # On the training box first: there a frequency that is a little off is not yet a period out of step.
        constants = formula.constants
        for ground in (survey.near, survey.wide):
            constants = _moved(formula, constants, allowance, ground, clock)
            yield constants
            # x**2.0000000001 has no value at negative x; x**2.0 has.
            rounded = np.array([float(f"{c:.9g}") for c in constants])
            yield np.clip(rounded, formula.constants - allowance, formula.constants + allowance)
    yield formula.constants


def _moved(
    formula: Formula, start: np.ndarray, allowance: np.ndarray, ground: Ground, clock: Clock
) -> np.ndarray:
    """Bounded least squares over the constants, in units of their allowances."""
    from scipy.optimize import least_squares

    free = allowance > 0
    centre, reach, step = formula.constants, allowance[free], 1e-3
    ground = ground.some(slice(None, None, 1 + len(ground) // MOST_POINTS))
    seen = ground.some(np.isfinite(formula(ground.points, start)))
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
        residual, u, slope, (-1.0, 1.0), ftol=1e-6, xtol=1e-15, gtol=1e-15, max_nfev=MOST_STEPS
    )
    return constants(found.x)


def _holds_afar(formula: Formula, constants: np.ndarray, wide: Ground, afar: Ground, clock: Clock) -> bool:
    """Whether the identity goes on far outside the box, as that of x and A·sin(x/A) does not."""
    if deviation(formula, constants, afar, IDENTICAL_AFAR, clock) < IDENTICAL_AFAR:
        return True
    # The dust of a fit, nothing on the box, may still grow beyond all bounds outside it.
    terms = [Formula(t, formula.variables) for t in sp.Add.make_args(formula.with_constants(constants))]
    kept = [t.expr for t in terms if not np.all(np.abs(t(wide.points)) < 1e-9 * wide.scale)]
    if len(kept) == len(terms):
        return False
    clean = Formula(sp.Add(*kept), formula.variables)
    return deviation(clean, clean.constants, afar, IDENTICAL_AFAR, clock) < IDENTICAL_AFAR
