"""The units in which a law of a film's coordinate is shortest.

A film tells neither where its coordinate is zero nor in what it is measured. A law that holds a sine says
both: an angle is in radians. For a sum of powers, the unit is chosen in which the first term that tells the
unit at all has the factor one; a law of first powers only leaves it open, and keeps the coordinate's spread
as unit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import sympy as sp

from eqlearn.latent.film.rollout import Motion
from eqlearn.symbolic.equation import Equation
from eqlearn.symbolic.parametric import Constant


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
    structure, numbers = motion.structure, motion.numbers
    none = (False,) * len(numbers)
    if structure.scaled:
        return Canonical(_positive(motion), none)
    at = 0
    for term in structure.terms:
        assert term.degrees is not None
        power = sum(term.degrees) - 1
        # A term of several numbers has one of them made one only where a turn could bring the others to zero.
        if power and term.coefficients == 1 and numbers[at] != 0:
            unit = float(np.abs(numbers[at]) ** (-1 / power))
            flip = power % 2 == 1 and numbers[at] < 0 and structure.coordinates == 1
            exact = tuple(k == at for k in range(len(numbers)))
            return Canonical(in_unit(motion, -unit if flip else unit), exact)
        at += term.coefficients
    return Canonical(motion, none)


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
