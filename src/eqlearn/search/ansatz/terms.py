"""Sums of few terms: values with a way to write each, and which few of them have the values of a target."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import combinations_with_replacement, permutations

import numpy as np

from eqlearn.nn.primitives import Primitive
from eqlearn.numerics.criteria import NEGLIGIBLE, NO_COEFFICIENT, NO_TERM, NULL_SINGULAR
from eqlearn.search.ansatz.layout import Sum, Unit
from eqlearn.search.ansatz.target_transform import undone
from eqlearn.search.problem import Problem
from eqlearn.search.settings import MAX_DEGREE

ONE = Sum(constant=1.0)
CONSTANT = -1  # its place among the factors of a sum


@dataclass(frozen=True, eq=False)
class Terms:
    """Values `(terms, rows)` and how each is written, which is worked out only for those that are chosen."""

    values: np.ndarray
    written: tuple[Callable[[], Sum], ...]

    @staticmethod
    def of(pairs: Iterable[tuple[np.ndarray, Callable[[], Sum]]], rows: int) -> Terms:
        """Those of the pairs of values and formulas that are finite."""
        kept = [(value, written) for value, written in pairs if np.isfinite(value).all()]
        values = np.array([value for value, _ in kept]).reshape(len(kept), rows)
        return Terms(values, tuple(written for _, written in kept))

    def __add__(self, other: Terms) -> Terms:
        return Terms(np.concatenate([self.values, other.values]), self.written + other.written)

    def __len__(self) -> int:
        return len(self.written)

    def take(self, places: list[int]) -> Terms:
        """Some of the terms."""
        return Terms(self.values[places], tuple(self.written[place] for place in places))

    def total(self, factors: Mapping[int, float]) -> Sum:
        """The sum with these factors, by their places."""
        total = Sum(constant=factors.get(CONSTANT, 0.0))
        for place, factor in factors.items():
            if place != CONSTANT:
                total = total + self.written[place]() * factor
        return total


class Algebra:
    """Products and quotients of columns as terms, on the rows of a problem."""

    def __init__(self, problem: Problem) -> None:
        self.scales = problem.features.scales
        self.X = problem.samples.x[: len(self.scales)].numpy() * np.array(self.scales)[:, None]
        self.times, self.over = (problem.vocabulary.named(name) for name in ("mul", "div"))
        self.rows = self.X.shape[1]

    @property
    def columns(self) -> Terms:
        return self.monomials(len(self.scales))

    @property
    def lines(self) -> Terms:
        """One and the columns."""
        return self.simple(1 + len(self.scales))

    def product(self, places: tuple[int, ...]) -> Sum:
        """A product of columns, by halves, so that it is not deep."""
        if len(places) == 1:
            return Sum(((places[0], self.scales[places[0]]),))
        half = len(places) // 2
        assert self.times is not None
        return Sum.of(Unit(self.times, (self.product(places[:half]), self.product(places[half:]))))

    def quotient(self, above: Sum, below: Sum) -> Sum:
        """One formula over another."""
        assert self.over is not None
        return Sum.of(Unit(self.over, (above, below)))

    def monomials(self, most: int) -> Terms:
        """Products of columns of all degrees of which there are at most that many; columns in any case."""
        chosen: list[tuple[int, ...]] = [(i,) for i in range(len(self.scales))]
        for degree in range(2, MAX_DEGREE + 1 if self.times is not None else 2):
            more = list(combinations_with_replacement(range(len(self.scales)), degree))
            if len(chosen) + len(more) > most:
                break
            chosen += more
        return Terms.of(
            ((np.prod(self.X[list(m)], axis=0), partial(self.product, m)) for m in chosen), self.rows
        )

    @np.errstate(all="ignore")
    def simple(self, most: int) -> Terms:
        """One, the columns, their inverses, products and quotients of two, as far as there is room."""
        count, X = range(len(self.scales)), self.X
        kinds = [[(X[i], partial(self.product, (i,))) for i in count]]
        if self.over is not None:
            kinds.append([(1 / X[i], partial(self._over, ONE, i)) for i in count])
        if self.times is not None:
            pairs = combinations_with_replacement(count, 2)
            kinds.append([(X[i] * X[j], partial(self.product, (i, j))) for i, j in pairs])
        if self.over is not None:
            both = permutations(count, 2)
            kinds.append([(X[i] / X[j], partial(self._over, self.product((i,)), j)) for i, j in both])
        found = Terms(np.ones((1, self.rows)), (lambda: ONE,))
        for kind in kinds:
            more = Terms.of(kind, self.rows)
            if len(found) + len(more) > most:
                break
            found += more
        return found

    def _over(self, above: Sum, column: int) -> Sum:
        return self.quotient(above, self.product((column,)))


def least_squares_sum(columns: list[np.ndarray], y: np.ndarray) -> tuple[list[float], float]:
    """Least squares with a constant, the last of the factors, and the deviation that is left."""
    matrix = np.stack([*columns, np.ones(len(y))], axis=1)
    sizes = np.linalg.norm(matrix, axis=0)
    factors = np.linalg.lstsq(matrix / sizes, y, rcond=1e-14)[0] / sizes
    left = y - matrix @ factors
    # A constant that is rounding is none.
    if abs(factors[-1]) < NO_COEFFICIENT * np.abs(matrix * factors).max():
        factors[-1] = 0.0
    spread = float(np.linalg.norm(y - y.mean()))
    error = float(np.linalg.norm(left)) / spread if spread > 0 else np.inf
    return factors.tolist(), error if np.isfinite(error) else np.inf


def few_terms(values: np.ndarray, target: np.ndarray, max_terms: int) -> dict[int, float] | None:
    """The factors, by their places, of the few of `(terms, rows)` whose sum is a target to rounding; none if
    it needs more than `max_terms`."""
    factors, error = least_squares_sum(list(values), target)
    if not error < NEGLIGIBLE:
        return None
    sizes = np.abs(factors[:-1]) * np.abs(values).max(axis=1)
    places = np.flatnonzero(sizes > NO_TERM * sizes.max()).tolist()
    if len(places) > 2 * max_terms:
        return None
    # A dependent term shares its part with others: one at a time, as long as it holds.
    while len(places) > 1:
        fewer = [(least_squares_sum([values[q] for q in places if q != k], target)[1], k) for k in places]
        least, gone = min(fewer)
        if least > max(NEGLIGIBLE, 3 * error):
            break
        places.remove(gone)
    factors, error = least_squares_sum([values[k] for k in places], target)
    if error > NEGLIGIBLE or len(places) > max_terms:
        return None
    return dict(zip([*places, CONSTANT], factors, strict=True))


def orthonormal(vectors: np.ndarray) -> np.ndarray:
    """Orthonormal columns that span these vectors, as far as they differ by more than rounding."""
    left, sizes, _ = np.linalg.svd(
        (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).T, full_matrices=False
    )
    return np.asarray(left[:, sizes > NULL_SINGULAR * sizes[0]])


def undone_rows(unit: Primitive | None, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What a unit has these values at, NaN in each row of those it can't have; and the sign before it."""
    signs = np.ones(len(values))
    if unit is None:
        return values, signs
    if unit.name in ("exp", "sqrt", "square"):
        signs = np.where((values <= 0).all(axis=1), -1.0, 1.0)
    values = values * signs[:, None]
    return undone(unit, values, principal=True), signs


def holds(law: Sum, problem: Problem, y: np.ndarray) -> bool:
    """Whether a law has a target's values to rounding, not only those of what an operation made of them."""
    left = np.linalg.norm(law.value(problem.samples.x).numpy() - y)
    return bool(left < NEGLIGIBLE * np.linalg.norm(y - y.mean()))
