"""The units in which a law of a film's coordinate is shortest.

A film tells neither where its coordinate is zero nor in what it is measured. A law that holds a sine says
both: an angle is in radians. For a sum of powers, the unit is chosen in which the first term that tells the
unit at all has the factor one; a law of first powers only leaves it open, and keeps the coordinate's spread
as unit. Nor does it tell directions in a plane: they are the law's own, where it has any.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import sympy as sp

from eqlearn.latent.film.rollout import Motion
from eqlearn.symbolic.equation import Equation
from eqlearn.symbolic.parametric import Constant

# Directions that are nearly one are no axes.
WORST = 20.0


@dataclass(frozen=True, eq=False)
class Canonical:
    """A motion in its canonical units; `exact` says which of its numbers are one by choice of the unit."""

    motion: Motion
    exact: tuple[bool, ...]

    @property
    def equations(self) -> tuple[Equation, ...]:
        """The law: what each coordinate's rate of change, or acceleration, is."""
        count = self.motion.structure.coordinates
        return self.motion.structure.equations(self._numbers)[-count:]

    @property
    def system(self) -> tuple[Equation, ...]:
        """What each state changes by, the velocities' part included."""
        return self.motion.structure.equations(self._numbers)

    @property
    def constants(self) -> tuple[Constant, ...]:
        """Each fitted number and its standard error."""
        both = zip(self.motion.numbers, self.motion.number_errors, self.exact, strict=True)
        return tuple(Constant(float(n), float(e)) for n, e, exact in both if not exact)

    @property
    def _numbers(self) -> list[sp.Expr | float]:
        both = zip(self.motion.numbers, self.exact, strict=True)
        return [sp.Integer(round(float(n))) if exact else float(n) for n, exact in both]


def canonical(motion: Motion) -> Canonical:
    """The same motion, with its coordinate in the unit that its law is shortest in."""
    motion, zero = _on_axes(motion)
    structure, numbers = motion.structure, motion.numbers
    if structure.scaled:
        return Canonical(_positive(motion), tuple(zero.tolist()))
    at = 0
    for term in structure.terms:
        assert term.degrees is not None
        power, end = sum(term.degrees) - 1, at + term.coefficients
        left = [k for k in range(at, end) if not zero[k] and numbers[k] != 0]
        if power and len(left) == 1:
            unit = float(np.abs(numbers[left[0]]) ** (-1 / power))
            flip = power % 2 == 1 and numbers[left[0]] < 0 and structure.coordinates == 1
            exact = tuple(bool(z) or k == left[0] for k, z in enumerate(zero))
            return Canonical(in_unit(motion, -unit if flip else unit), exact)
        at = end
    return Canonical(motion, tuple(zero.tolist()))


def _on_axes(motion: Motion) -> tuple[Motion, np.ndarray]:
    """Coordinates of a plane along the law's own axes, and which numbers are zero there: a constant pull is
    along the last one, and springs are along the directions in which they swing by themselves, if all other
    terms are the same in every direction.

    Standard errors are carried over as if numbers were independent.
    """
    structure, numbers = motion.structure, motion.numbers
    zero = np.zeros(len(numbers), dtype=bool)
    turning = [k for k, term in enumerate(structure.terms) if term.dropped]
    if len(turning) != 1:
        return motion, zero
    term = structure.terms[turning[0]]
    at = sum(t.coefficients for t in structure.terms[: turning[0]])
    if term.name == "1":
        pull = numbers[at : at + 2]
        if structure.key - {"1", "v", "|v|v"} or not pull.any():
            return motion, zero
        along = pull / np.linalg.norm(pull)
        axes = np.array([[along[1], along[0]], [-along[0], along[1]]])
        into = np.linalg.inv(axes)
    else:
        rates, axes = np.linalg.eig(numbers[at : at + 4].reshape(2, 2))
        if structure.key - {"Kq", "v"} or np.iscomplexobj(rates) or np.linalg.cond(axes) > WORST:
            return motion, zero
        axes = axes[:, np.argsort(-np.abs(rates))]
        into = np.kron(np.linalg.inv(axes), axes.T)
    count = len(into)
    changed, errors = numbers.copy(), motion.number_errors.copy()
    changed[at : at + count] = into @ numbers[at : at + count]
    errors[at : at + count] = np.sqrt(into**2 @ motion.number_errors[at : at + count] ** 2)
    zero[[at + k for k in term.dropped]] = True
    changed[zero] = errors[zero] = 0.0
    halves = np.split(motion.starts, structure.order, axis=1)
    starts = np.concatenate([half @ np.linalg.inv(axes).T for half in halves], axis=1)
    return replace(motion, numbers=changed, number_errors=errors, starts=starts, axes=axes), zero


def in_unit(motion: Motion, unit: float) -> Motion:
    """The coordinate measured in `unit` of what it was; a negative one turns it round."""
    factors = np.concatenate([
        np.full(term.coefficients, unit ** (sum(term.degrees) - 1) if term.degrees else 1.0)
        for term in motion.structure.terms
    ])  # fmt: skip
    return replace(
        motion, numbers=motion.numbers * factors, number_errors=motion.number_errors * np.abs(factors),
        scale=motion.scale * unit, starts=motion.starts / unit,
    )  # fmt: skip


def _positive(motion: Motion) -> Motion:
    """A coordinate that grows with the film's, and an angle that is zero where a pendulum hangs, where this
    makes no difference to the law."""
    key, states = motion.structure.key, motion.starts.copy()
    if "sin" in key and key <= {"sin", "1", "v", "|v|v", "v3", "v2"}:
        place = [t.name for t in motion.structure.terms].index("sin")
        if motion.numbers[place] > 0:
            numbers = motion.numbers.copy()
            numbers[place] *= -1
            states[:, 0] -= math.pi
            motion = replace(
                motion, numbers=numbers, shift=motion.shift + math.pi * motion.scale, starts=states
            )
    if motion.scale < 0 and key <= {"sin", "tanh", "q", "q3", "v", "|v|v", "v3", "q2v"}:
        return replace(motion, scale=-motion.scale, starts=-motion.starts)
    return motion
