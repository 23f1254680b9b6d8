"""What rows say against something that is thought to be known.

Two estimates stand for the law: the nearest row, and a polynomial, if it predicts rows that it was not fitted
to. A symmetry takes a row to a place where the law has the same value: if the estimates there differ by much
more than they err, the symmetry is not there; so it is with slopes, points and limits. Neighbours differ by
noise and by the law's own slope, so what is compared with errs on the side of silence.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations_with_replacement, product

import numpy as np
from scipy.spatial import cKDTree

from eqlearn.errors import InvalidArgument
from eqlearn.search.knowledge.constraints import Constraint, Monotone, Passes, Positive, Symmetry, Tends
from eqlearn.validation.table import Table, some_rows

# The values of a law at points, NaN where they are not known.
Law = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Doubt:
    """When rows contradict: from `min_rows` rows on, of which `rows` are looked at; where values differ by
    more than `times` what estimates err, for slopes in more than the `share` of rows, over the part `apart`
    of a column's range. A polynomial, in all columns or a sum of those in each, has at most `degree` and one
    term for `per_term` rows, and is trusted if rows left out miss it by at most the part `misses` of the
    target's spread."""

    min_rows: int = 8
    rows: int = 1000
    times: float = 5.0
    share: float = 0.15
    apart: float = 0.2
    degree: int = 8
    per_term: int = 3
    misses: float = 0.2


DOUBT = Doubt()


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of a table, with columns scaled to their ranges, and the target `(rows,)`."""

    X: np.ndarray
    y: np.ndarray

    @classmethod
    def of(cls, table: Table) -> Rows:
        some = some_rows(table.rows, DOUBT.rows)
        return cls(table.X[some], table.y[some, 0])

    @cached_property
    def ranges(self) -> np.ndarray:
        width = np.ptp(self.X, axis=0)
        return np.where(width > 0, width, 1.0)

    @cached_property
    def nearest(self) -> tuple[Law, float]:
        """The value of the nearest row, where it is as near as rows are to each other, and how much such
        values err, seldom more."""
        tree = cKDTree(self.X / self.ranges)
        away, index = tree.query(self.X / self.ranges, k=2)
        usual = max(float(np.quantile(away[:, 1], 0.9)), 1e-12)

        def law(points: np.ndarray) -> np.ndarray:
            far, row = tree.query(points / self.ranges)
            return np.where(far <= usual, self.y[row], np.nan)

        return law, float(np.quantile(np.abs(self.y - self.y[index[:, 1]]), 0.75))

    @cached_property
    def smooth(self) -> tuple[Law, float] | None:
        """The polynomial that predicts rows best that it is not fitted to, within the range of the data, and
        how much those rows miss it; none, if that is too much."""
        best, least = None, DOUBT.misses * float(self.y.std())
        low, high = self.X.min(axis=0), self.X.max(axis=0)
        for degree, sums in product(range(1, DOUBT.degree + 1), (True, False)):
            columns, most = self.X.shape[1], len(self.y) / DOUBT.per_term
            if (1 + columns * degree if sums else math.comb(columns + degree, degree)) > most:
                continue
            terms = self._terms(self.X, degree, sums)
            basis, triangle = np.linalg.qr(terms)
            kept = 1 - (basis**2).sum(axis=1)
            if np.abs(np.diag(triangle)).min() < 1e-9 * len(self.y) or kept.min() < 1e-6:
                continue
            missed = float(np.sqrt(np.mean(((self.y - basis @ (basis.T @ self.y)) / kept) ** 2)))
            if missed < least:
                best, least = (degree, sums, np.linalg.solve(triangle, basis.T @ self.y)), missed
        if best is None:
            return None

        def law(points: np.ndarray) -> np.ndarray:
            inside = ((points >= low) & (points <= high)).all(axis=1)
            return np.where(inside, self._terms(points, *best[:2]) @ best[2], np.nan)

        return law, least

    def _terms(self, points: np.ndarray, degree: int, sums: bool) -> np.ndarray:
        scaled, every = 2 * (points - self.X.min(axis=0)) / self.ranges - 1, range(points.shape[1])
        if sums:
            return np.column_stack([np.ones(len(points)), *(scaled**d for d in range(1, degree + 1))])
        return np.stack([scaled[:, list(c)].prod(axis=1) for d in range(degree + 1)
                         for c in combinations_with_replacement(every, d)], axis=1)  # fmt: skip

    def against(self, constraint: Constraint) -> bool:
        """Whether the rows contradict a constraint."""
        if len(self.y) < DOUBT.min_rows:
            return False
        return any(self._contradicts(constraint, *law) for law in (self.nearest, self.smooth) if law)

    def _contradicts(self, constraint: Constraint, law: Law, error: float) -> bool:
        slack = DOUBT.times * error + 1e-9 * float(np.abs(self.y).max())
        if isinstance(constraint, Positive):
            return bool((self.y < -slack).any())
        if isinstance(constraint, Symmetry):
            off = _known(law(self.X) - constraint.sign * law(constraint.moved(self.X)))
            return len(off) >= DOUBT.min_rows and float(np.quantile(np.abs(off), 0.75)) > slack
        if isinstance(constraint, Monotone):
            step = DOUBT.apart * self.ranges * (np.arange(len(self.ranges)) == constraint.column)
            rises = constraint.sign * _known(law(self.X + step) - law(self.X))
            return len(rises) >= DOUBT.min_rows and float(np.mean(rises < -slack)) > DOUBT.share
        if not isinstance(constraint, (Passes, Tends)):
            return False
        places = self.X.copy()
        for column, place in constraint.condition.where:
            places[:, column] = place
        off = np.abs(_known(law(places[np.isfinite(places).all(axis=1)])) - constraint.condition.value)
        return bool(len(off) and (off > 2 * slack).all())


def _known(values: np.ndarray) -> np.ndarray:
    return np.asarray(values[np.isfinite(values)])


def check_against_data(constraints: tuple[Constraint, ...], table: Table) -> None:
    """Refuses constraints that the rows contradict."""
    rows = Rows.of(table)
    for constraint in constraints:
        if rows.against(constraint):
            raise InvalidArgument(f"the data contradict {constraint.name}; leave it out")
