"""Constraints on a law: symmetries, signs, points and limits, each asked of an equation."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol, runtime_checkable

import numpy as np

from eqlearn.errors import InvalidArgument
from eqlearn.search.knowledge.knowledge import Condition, Knowledge, conditions_of
from eqlearn.symbolic.equation import Equation
from eqlearn.symbolic.parametric import Formula
from eqlearn.validation.table import Table, some_rows


@dataclass(frozen=True)
class Asking:
    """How closely constraints are asked: two values are the `same` if they differ by rounding, relative to
    the target's spread; `near` is what fits reach, `near_limit` what is asked of a limit far out.

    At most so many `rows` are asked, as many `points` scattered over their range, `steps` along a column;
    `others` stand for all values of columns that a condition leaves open. Limits at infinity are imposed so
    `far` out, in ranges, that even 1/√x is at its limit, those at a number so `close`, in parts of a range,
    and asked at the distances `farther`.
    """

    same: float = 1e-7
    near: float = 1e-6
    near_limit: float = 1e-2
    rows: int = 300
    points: int = 300
    steps: int = 40
    others: int = 12
    far: float = 1e24
    close: float = 1e8
    farther: tuple[float, ...] = (1e4, 1e8, 1e12)


ASKING = Asking()


@dataclass(frozen=True, eq=False)
class Survey:
    """Where equations are asked: rows, and points scattered over the range of the data, all `(n, in)`."""

    points: np.ndarray
    low: np.ndarray
    high: np.ndarray
    spread: float

    @classmethod
    def of(cls, table: Table) -> Survey:
        """The survey of a table with one target."""
        low, high = table.X.min(axis=0), table.X.max(axis=0)
        scattered = np.random.default_rng(0).uniform(low, high, (ASKING.points, len(low)))
        points = np.vstack([table.X[some_rows(table.rows, ASKING.rows)], scattered])
        return cls(points, low, high, float(table.y.std()) or float(np.abs(table.y).max()) or 1.0)

    @property
    def ranges(self) -> np.ndarray:
        return np.where(self.high > self.low, self.high - self.low, 1.0)

    def others(self) -> np.ndarray:
        """A few points that stand for all values of columns that are not named."""
        return self.points[:: max(1, len(self.points) // ASKING.others)][: ASKING.others].copy()


@runtime_checkable
class Constraint(Protocol):
    """Something that a law is known to have."""

    @property
    def name(self) -> str:
        """What it is called in messages."""

    def holds(self, equation: Equation, survey: Survey) -> bool: ...

    def pins(self, survey: Survey) -> tuple[np.ndarray, np.ndarray]:
        """Inputs and values that its constants have to be fitted to, whatever the data say."""


class _Unpinned:
    def pins(self, survey: Survey) -> tuple[np.ndarray, np.ndarray]:
        return np.empty((0, survey.points.shape[1])), np.empty(0)


@dataclass(frozen=True)
class Symmetry(_Unpinned):
    """The law has the same value, or with `sign` -1 the opposite one, where a column is mirrored, or moved by
    a `period`."""

    name: str
    column: int
    sign: float = 1.0
    period: float | None = None

    def moved(self, points: np.ndarray) -> np.ndarray:
        """The points that have the same value, or the opposite one."""
        other = points.copy()
        other[:, self.column] = (
            -other[:, self.column] if self.period is None else other[:, self.column] + self.period
        )
        return other

    def holds(self, equation: Equation, survey: Survey) -> bool:
        here, there = equation(survey.points), self.sign * equation(self.moved(survey.points))
        finite = np.isfinite(here)
        if not np.array_equal(finite, np.isfinite(there)):
            return False
        size = survey.spread + np.abs(here[finite])
        return bool((np.abs(here[finite] - there[finite]) <= ASKING.same * size).all())


@dataclass(frozen=True)
class Positive(_Unpinned):
    """The law is nowhere negative within the range of the data."""

    name: str = "`positive`"

    def holds(self, equation: Equation, survey: Survey) -> bool:
        values = equation(survey.points)
        return not bool((values < 0).any())


@dataclass(frozen=True)
class Monotone(_Unpinned):
    """The law goes up along a column, or with `sign` -1 down, within the range of the data."""

    name: str
    column: int
    sign: float

    def holds(self, equation: Equation, survey: Survey) -> bool:
        steps = np.linspace(survey.low[self.column], survey.high[self.column], ASKING.steps)
        lines = np.repeat(survey.points[:: ASKING.others, None, :], ASKING.steps, axis=1)
        lines[:, :, self.column] = steps
        values = equation(lines.reshape(-1, lines.shape[2])).reshape(len(lines), ASKING.steps)
        with np.errstate(all="ignore"):
            rises = self.sign * np.diff(values, axis=1)
        # Through a pole a law goes the wrong way at infinite speed.
        return not bool((rises < -ASKING.same * survey.spread).any())


@dataclass(frozen=True)
class Passes:
    """The law has a value at a point, or wherever some columns have some values."""

    name: str
    condition: Condition

    def pins(self, survey: Survey) -> tuple[np.ndarray, np.ndarray]:
        named = len(self.condition.where) == survey.points.shape[1]
        points = survey.others()[:1] if named else survey.others()
        for column, value in self.condition.where:
            points[:, column] = value
        return points, np.full(len(points), self.condition.value)

    def holds(self, equation: Equation, survey: Survey) -> bool:
        points, values = self.pins(survey)
        return bool(
            (np.abs(equation(points) - values) <= ASKING.near * (survey.spread + np.abs(values))).all()
        )


@dataclass(frozen=True)
class Tends:
    """The law tends to a value as a column goes to infinity, or to a number from where the data are."""

    name: str
    condition: Condition

    def near(self, survey: Survey, farther: float) -> np.ndarray:
        """Points that are far out, or near the place of the limit, on the sides where there are data."""
        ((column, place),) = self.condition.where
        points, size = survey.others(), survey.ranges[column]
        if math.isinf(place):
            points[:, column] = math.copysign(farther * size, place)
            return points
        sides = [
            d
            for d, there in ((1.0, survey.high[column] > place), (-1.0, survey.low[column] < place))
            if there
        ]
        each = [points.copy() for _ in sides]
        for some, side in zip(each, sides, strict=True):
            some[:, column] = place + side * size / farther
        return np.vstack(each)

    def pins(self, survey: Survey) -> tuple[np.ndarray, np.ndarray]:
        points = self.near(survey, ASKING.far if math.isinf(self.condition.where[0][1]) else ASKING.close)
        return points, np.full(len(points), self.condition.value)

    def holds(self, equation: Equation, survey: Survey) -> bool:
        away = [self._away(equation, self.near(survey, farther), survey) for farther in ASKING.farther]
        return away[-1] <= ASKING.near_limit and all(a >= b - ASKING.same for a, b in pairwise(away))

    def _away(self, equation: Equation, points: np.ndarray, survey: Survey) -> float:
        """How far the law is from its limit at the worst of the points, in spreads, to fifty digits."""
        formula, most, roughly = Formula.of(equation), 0.0, equation(points)
        for point, value in zip(points, roughly, strict=True):
            # What is too large for any digits, as in exp(-x**2), float64 takes for infinite.
            with contextlib.suppress(OverflowError, ZeroDivisionError, ValueError):
                value = formula.precisely(point, formula.constants)
            away = float(abs(value - self.condition.value)) / survey.spread
            most = max(most, math.inf if math.isnan(away) else away)
        return most


def constraints_of(knows: Knowledge, columns: Sequence[str]) -> tuple[Constraint, ...]:
    """What is known about columns of these names, as constraints."""
    places = {name: place for place, name in enumerate(columns)}
    found: list[Constraint] = []
    found += [Symmetry(f"`even` in {name!r}", places[name]) for name in knows.even]
    found += [Symmetry(f"`odd` in {name!r}", places[name], -1.0) for name in knows.odd]
    found += [Symmetry(f"`periodic` in {n!r}", places[n], 1.0, p) for n, p in knows.periodic.items()]
    found += [Positive()] if knows.positive else []
    found += [Monotone(f"`increasing` in {name!r}", places[name], 1.0) for name in knows.increasing]
    found += [Monotone(f"`decreasing` in {name!r}", places[name], -1.0) for name in knows.decreasing]
    points = conditions_of("through", knows.through, columns)
    limits = conditions_of("limits", knows.limits, columns)
    for condition in (*points, *limits):
        _check_condition(condition, knows, columns)
    found += [Passes(f"`through` {_told(c, columns)}", c) for c in points]
    return (*found, *(Tends(f"`limits` {_told(c, columns)}", c) for c in limits))


def _told(condition: Condition, columns: Sequence[str]) -> str:
    where = ", ".join(f"{columns[column]} = {value:g}" for column, value in condition.where)
    return f"({where}: {condition.value:g})"


def _check_condition(condition: Condition, knows: Knowledge, columns: Sequence[str]) -> None:
    """Refuses values that signs and symmetries rule out."""
    if knows.positive and condition.value < 0:
        raise InvalidArgument(f"the value {condition.value:g} of a point or limit is not `positive`")
    for column, place in condition.where:
        name = columns[column]
        if name in knows.odd and place == 0 and condition.value != 0:
            raise InvalidArgument(f"a law that is `odd` in {name!r} is 0 at 0, not {condition.value:g}")
        if name in knows.periodic and math.isinf(place):
            raise InvalidArgument(f"a law that is `periodic` in {name!r} has no limit there")
