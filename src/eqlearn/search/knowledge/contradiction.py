"""What rows say against something that is thought to be known: each row is compared with its neighbours.

A symmetry takes a row to a place where the law has the same value. If that place has rows near it, and their
values differ much more than those of neighbours do, the symmetry is not there. Neighbours differ by noise and
by the law's own slope, so what is compared with errs on the side of silence. Where rows are too sparse to
have near ones, a polynomial stands for the law, if it predicts rows that it was not fitted to.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations_with_replacement

import numpy as np
from scipy.spatial import cKDTree

from eqlearn.errors import InvalidArgument
from eqlearn.search.knowledge.constraints import Constraint, Monotone, Passes, Positive, Symmetry, Tends
from eqlearn.validation.table import Table, some_rows


@dataclass(frozen=True)
class Doubt:
    """When rows contradict: from `min_rows` rows on, of which `rows` are looked at; where values differ by
    more than `times` those of neighbours, for slopes in more than the `share` of rows. Slopes are asked
    over at least the part `apart` of a column's range, points of rows as near as the part `near`. A
    polynomial has one term for so many rows (`per_term`), and is trusted if rows left out miss it by at most
    the part `misses` of the target's spread."""

    min_rows: int = 8
    rows: int = 1000
    times: float = 5.0
    share: float = 0.15
    apart: float = 0.2
    near: float = 0.1
    nearest: int = 3
    per_term: int = 3
    misses: float = 0.2


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of a table by their neighbours: columns scaled to their ranges, and the target `(rows,)`."""

    X: np.ndarray
    y: np.ndarray
    doubt: Doubt

    @classmethod
    def of(cls, table: Table, doubt: Doubt) -> Rows:
        some = some_rows(table.rows, doubt.rows)
        return cls(table.X[some], table.y[some, 0], doubt)

    @cached_property
    def ranges(self) -> np.ndarray:
        width = np.ptp(self.X, axis=0)
        return np.where(width > 0, width, 1.0)

    @cached_property
    def tree(self) -> cKDTree:
        return cKDTree(self.X / self.ranges)

    @cached_property
    def nearest(self) -> tuple[np.ndarray, np.ndarray]:
        """How far each row's nearest other is, and how much their values differ."""
        away, index = self.tree.query(self.X / self.ranges, k=2)
        return away[:, 1], np.abs(self.y - self.y[index[:, 1]])

    @cached_property
    def rough(self) -> float:
        """How much neighbours differ, seldom more."""
        return float(np.quantile(self.nearest[1], 0.75))

    @cached_property
    def smooth(self) -> tuple[np.ndarray, int, float] | None:
        """The polynomial that predicts rows best that it is not fitted to: its coefficients and degree, and
        how much those rows miss it; none, if that is too much."""
        best, least = None, np.ptp(self.y) * self.doubt.misses / 4  # of a spread that is even, about
        for degree in range(1, 7):
            terms = self._terms(self.X, degree)
            if terms.shape[1] * self.doubt.per_term > len(self.y):
                break
            basis, triangle = np.linalg.qr(terms)
            kept = 1 - (basis**2).sum(axis=1)
            if np.abs(np.diag(triangle)).min() < 1e-9 * len(self.y) or kept.min() < 1e-6:
                break
            fit = basis.T @ self.y
            missed = float(np.sqrt(np.mean(((self.y - basis @ fit) / kept) ** 2)))
            if missed < least:
                best, least = (np.linalg.solve(triangle, fit), degree, missed), missed
        return best

    def _terms(self, points: np.ndarray, degree: int) -> np.ndarray:
        scaled = 2 * (points - self.X.min(axis=0)) / self.ranges - 1
        every = range(points.shape[1])
        return np.stack([scaled[:, list(c)].prod(axis=1) for d in range(degree + 1)
                         for c in combinations_with_replacement(every, d)], axis=1)  # fmt: skip

    def smoothly_against(self, constraint: Constraint) -> bool:
        """Whether the polynomial contradicts a constraint within the range of the data."""
        if self.smooth is None:
            return False
        numbers, degree, missed = self.smooth
        slack = self.doubt.times * missed + 1e-9 * float(np.abs(self.y).max())
        low, high = self.X.min(axis=0), self.X.max(axis=0)

        def law(points: np.ndarray) -> np.ndarray:
            return np.asarray(self._terms(points, degree) @ numbers)

        def inside(points: np.ndarray) -> np.ndarray:
            return np.asarray(((points >= low) & (points <= high)).all(axis=1))

        if isinstance(constraint, Positive):
            return bool((self.y < -slack).any())
        if isinstance(constraint, Symmetry):
            moved = constraint.moved(self.X)
            off = (law(self.X) - constraint.sign * law(moved))[inside(moved)]
            return len(off) >= self.doubt.min_rows and float(np.sqrt(np.mean(off**2))) > slack
        if isinstance(constraint, Monotone):
            step = self.doubt.apart * self.ranges * (np.arange(len(low)) == constraint.column)
            rise = (law(self.X + step) - law(self.X))[inside(self.X + step)]
            return bool(len(rise)) and float(np.mean(constraint.sign * rise < -slack)) > self.doubt.share
        if not isinstance(constraint, (Passes, Tends)):
            return False
        places = self.X.copy()
        for column, place in constraint.condition.where:
            places[:, column] = place
        within = inside(places)
        return bool(within.any()) and bool(
            (np.abs(law(places[within]) - constraint.condition.value) > 2 * slack).all()
        )

    def against(self, constraint: Constraint) -> bool:
        """Whether the rows contradict a constraint."""
        if len(self.y) < self.doubt.min_rows:
            return False
        if self.smoothly_against(constraint):
            return True
        if isinstance(constraint, Symmetry):
            return self._asymmetric(constraint)
        if isinstance(constraint, Positive):
            return bool((self.y < -self.doubt.times * self.rough).any())
        if isinstance(constraint, Monotone):
            return self._turning(constraint)
        return isinstance(constraint, (Passes, Tends)) and self._elsewhere(constraint)

    def _asymmetric(self, symmetry: Symmetry) -> bool:
        away, index = self.tree.query(symmetry.moved(self.X) / self.ranges)
        usual = np.quantile(self.nearest[0], 0.9)
        there = away <= max(usual, 1e-12)
        if there.sum() < self.doubt.min_rows:
            return False
        differs = np.abs(self.y - symmetry.sign * self.y[index])[there]
        slack = max(float(np.median(self.nearest[1])), 1e-9 * float(np.abs(self.y).max()))
        return float(np.median(differs)) > self.doubt.times * slack

    def _turning(self, monotone: Monotone) -> bool:
        """Whether too many pairs of rows that differ in the column, hardly in others, go the wrong way."""
        k, x = monotone.column, self.X[:, monotone.column] / self.ranges[monotone.column]
        others = np.delete(self.X / self.ranges, k, axis=1)
        rng = np.random.default_rng(0)
        wrong = asked = 0
        for row in range(len(x)):
            beyond = np.flatnonzero(x > x[row] + self.doubt.apart)
            if not len(beyond):
                continue
            away = ((others[beyond] - others[row]) ** 2).sum(axis=1)
            partner = beyond[np.argmin(away + 1e-9 * rng.random(len(beyond)))]
            asked += 1
            wrong += monotone.sign * (self.y[partner] - self.y[row]) < -self.doubt.times * self.rough
        return asked >= self.doubt.min_rows and bool(wrong > self.doubt.share * asked)

    def _elsewhere(self, constraint: Passes | Tends) -> bool:
        columns, places = zip(*constraint.condition.where, strict=True)
        if not np.isfinite(places).all():
            return False
        away = np.abs((self.X[:, columns] - np.array(places)) / self.ranges[list(columns)]).max(axis=1)
        nearest = np.argsort(away)[: self.doubt.nearest]
        if away[nearest].max() > self.doubt.near:
            return False
        # A row that far away may differ as much more as neighbours that far apart would.
        usual = max(float(np.median(self.nearest[0])), 1e-12)
        slack = self.doubt.times * self.rough * np.maximum(1.0, away[nearest] / usual)
        return bool((np.abs(self.y[nearest] - constraint.condition.value) > slack).all())


def check_against_data(
    constraints: tuple[Constraint, ...],
    table: Table,
    doubt: Doubt = Doubt(),  # noqa: B008
) -> None:
    """Refuses constraints that the rows contradict."""
    rows = Rows.of(table, doubt)
    for constraint in constraints:
        if rows.against(constraint):
            raise InvalidArgument(f"the data contradict {constraint.name}; leave it out")
