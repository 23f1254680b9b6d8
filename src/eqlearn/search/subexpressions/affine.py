"""Laws that are affine in a subexpression: p + h·q with sums of products of columns, for all h of a bank.

What is linear given h takes one small least-squares problem an entry, all of them in one batch. Where no one
entry makes a law whole, those that stand out beside a polynomial of high degree, which takes up what is
smooth, are kept, and a quotient is looked for beside each: what is left over becomes the next target.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property, partial

import numpy as np

from eqlearn.numerics.budget import never
from eqlearn.numerics.criteria import EXACT_AFFINE, NO_TERM, NULL_SINGULAR, credible
from eqlearn.search.ansatz.layout import Ansatz, Sum, Unit
from eqlearn.search.ansatz.terms import ONE, Algebra, Terms, few_terms, holds, least_squares_sum, orthonormal
from eqlearn.search.problem import Problem
from eqlearn.search.subexpressions.bank import Bank, exact_ground, is_for_banks
from eqlearn.search.subexpressions.bank_settings import AffineSettings
from eqlearn.search.subexpressions.pairs import in_seen_units, target_values


class Entries:
    """The entries of a bank and, after them, their inverses, where one may divide; with what is carried by
    each."""

    def __init__(self, bank: Bank, algebra: Algebra) -> None:
        self.bank, self.algebra = bank, algebra
        self.values = bank.values
        if algebra.over is not None:
            with np.errstate(all="ignore"):
                self.values = np.concatenate([bank.values, 1 / bank.values])

    def simplest(self, count: int) -> np.ndarray:
        """The places of the simplest and of their inverses."""
        few = np.arange(min(count, len(self.bank)))
        return np.concatenate([few, few + len(self.bank)]) if len(self.values) > len(self.bank) else few

    def cost(self, place: int) -> float:
        return float(self.bank.costs[place % len(self.bank)])

    def carried(self, terms: Terms, place: int) -> Terms:
        """Each of the terms times an entry, or over it."""
        written = tuple(partial(self._written, place, factor) for factor in terms.written)
        return Terms(terms.values * self.values[place], written)

    def _written(self, place: int, factor: Callable[[], Sum]) -> Sum:
        entry, above = self.bank.term(place % len(self.bank)), factor()
        if place >= len(self.bank):
            return self.algebra.quotient(above, entry)
        if above == ONE:
            return entry
        assert self.algebra.times is not None
        return Sum.of(Unit(self.algebra.times, (above, entry)))


@np.errstate(all="ignore")
def affine_ansatzes(problem: Problem, stop: Callable[[], bool] = never) -> list[Ansatz]:
    """Exact laws that are affine in a subexpression, for the target and its transforms."""
    if not is_for_banks(problem):
        return []
    settings = problem.settings.affine
    some, bank = exact_ground(problem, stop)
    algebra = Algebra(some)
    entries = Entries(bank, algebra)
    if not len(entries.values):  # as where all inputs are constant
        return []
    targets = [
        (target_values(some, t), whole) for t, whole in zip(some.targets, problem.targets, strict=True)
    ]
    targets = [(y, whole) for y, whole in targets if y.std() > 0]
    found: list[tuple[float, Ansatz]] = []
    beside = _Beside(np.array([y for y, _ in targets]), entries, settings)
    for place, (y, whole) in enumerate(targets):
        if stop() or found:
            break
        laws = _laws(place, beside, stop)
        found += [(cost, Ansatz(whole, law)) for cost, law in laws if holds(law, some, y)]
    found.sort(key=lambda pair: pair[0])
    return [in_seen_units(ansatz, problem) for _, ansatz in found[: settings.kept]]


@np.errstate(all="ignore")
def left_beside(Y: np.ndarray, outside: np.ndarray, inside: np.ndarray, entries: np.ndarray) -> np.ndarray:
    """The part of the variance of targets `(targets, rows)` that p + h·q leaves for each of the entries h
    `(entries, rows)`, with p a sum of `outside` `(terms, rows)` and a constant, q a sum of `inside`, as
    `(targets, entries)`."""
    basis = orthonormal(np.concatenate([np.ones((1, Y.shape[1])), outside]))
    rest = Y - (Y @ basis) @ basis.T
    total = np.square(Y - Y.mean(axis=1, keepdims=True)).sum(axis=1)
    squares = np.square(rest).sum(axis=1)
    found, places = np.empty((len(Y), len(entries))), range(len(inside))
    size = max(1, 200_000 // (len(inside) * Y.shape[1]))  # what fits into a processor's cache
    for begin in range(0, len(entries), size):
        made = entries[begin : begin + size, None] * inside
        made /= np.sqrt(np.einsum("nkr,nkr->nk", made, made))[..., None]
        made -= (made @ basis) @ basis.T
        lengths = np.einsum("nkr,nkr->nk", made, made)
        made *= np.where(lengths > NULL_SINGULAR, 1 / np.sqrt(lengths), 0.0)[..., None]
        gram, along = made @ made.transpose(0, 2, 1), made @ rest.T
        gram[:, places, places] = 1 + 1e-13  # or terms that are alike would make it singular
        bad = ~np.isfinite(gram).all(axis=(1, 2)) | ~np.isfinite(along).all(axis=(1, 2))
        gram[bad], along[bad] = np.eye(len(inside)), 0.0
        explained = np.einsum("nkt,nkt->tn", along, np.linalg.solve(gram, along))
        found[:, begin : begin + size] = (squares[:, None] - explained) / total[:, None]
    return found


class _Beside:
    """What is common to all targets: for every entry, what the sums beside and before it leave of each."""

    def __init__(self, Y: np.ndarray, entries: Entries, settings: AffineSettings) -> None:
        self.Y, self.entries, self.settings, algebra = Y, entries, settings, entries.algebra
        self.outside, self.smooth = algebra.monomials(settings.outside), algebra.monomials(settings.smooth)
        # Without products, an entry stands alone.
        self.lines, self.simple = (
            algebra.simple(1 if algebra.times is None else n) for n in (1 + len(algebra.X), settings.inside)
        )

    @cached_property
    def of_lines(self) -> np.ndarray:
        return left_beside(self.Y, self.outside.values, self.lines.values, self.entries.values)

    @cached_property
    def of_simple(self) -> np.ndarray:
        few = self.entries.values[self.entries.simplest(self.settings.simplest)]
        return left_beside(self.Y, self.outside.values, self.simple.values, few)

    def exact_passes(self) -> Iterator[tuple[Terms, np.ndarray, np.ndarray]]:
        """What is carried by which entries, and what that leaves of each target."""
        yield self.lines, np.arange(len(self.entries.values)), self.of_lines
        yield self.simple, self.entries.simplest(self.settings.simplest), self.of_simple

    @cached_property
    def of_smooth(self) -> np.ndarray:
        return left_beside(self.Y, self.smooth.values, self.lines.values, self.entries.values)


def _laws(target: int, beside: _Beside, stop: Callable[[], bool]) -> Iterator[tuple[float, Sum]]:
    y, entries, settings, algebra = beside.Y[target], beside.entries, beside.settings, beside.entries.algebra
    for inside, places, left in beside.exact_passes():
        exact = places[left[target] < EXACT_AFFINE]
        # Where many entries do, polynomials beside anything do, and none tells anything.
        found = False
        for place in exact.tolist() if len(exact) <= 4 * settings.kept else ():
            terms = beside.outside + entries.carried(inside, place)
            for law in _whole(terms, y, entries.cost(place), settings):
                found = True
                yield law
        if found or stop():
            return
    rest = beside.of_smooth[target]
    order = np.argsort(rest)
    usual = rest[order[min(settings.beams, len(order) - 1)]]
    for place in order[: settings.beams].tolist():
        if stop() or rest[place] > settings.gap * usual:
            return
        terms = entries.carried(beside.lines, place)
        terms = terms.take(_that_matter(terms, beside.smooth, y, settings))
        quotient = _quotient_beside(terms, y, algebra)
        if quotient is not None:
            yield from _whole(algebra.columns + terms + quotient, y, entries.cost(place), settings)


def _whole(terms: Terms, y: np.ndarray, cost: float, settings: AffineSettings) -> Iterator[tuple[float, Sum]]:
    """The sum of few of the terms that is the target, if there is one, with what it costs."""
    factors = few_terms(terms.values, y, settings.max_terms)
    if factors is not None:
        yield cost, terms.total(factors)


def _that_matter(terms: Terms, beside: Terms, y: np.ndarray, settings: AffineSettings) -> list[int]:
    """Which of the terms have a part in a sum with others."""
    factors, _ = least_squares_sum([*terms.values, *beside.values], y)
    parts = np.abs(factors[: len(terms)]) * terms.values.std(axis=1)
    kept: list[int] = np.flatnonzero(parts > settings.part * y.std()).tolist()
    return kept


def _quotient_beside(terms: Terms, y: np.ndarray, algebra: Algebra) -> Terms | None:
    """One and the columns over the straight line that makes a target a sum of such quotients, of terms and of
    columns: all of it is linear once it is multiplied by the divisor."""
    lines = algebra.lines
    blocks = [lines.values, y * lines.values]
    blocks += [v * lines.values for v in (*terms.values, *algebra.X)]
    matrix = np.concatenate(blocks)
    unit = matrix / np.linalg.norm(matrix, axis=1, keepdims=True)
    kept = list({np.round(row, 9).tobytes(): i for i, row in reversed(list(enumerate(unit)))}.values())
    if algebra.over is None or not credible(len(kept), len(y)):
        return None
    _, singular, right = np.linalg.svd(unit[kept].T, full_matrices=False)
    if not singular[-1] < NULL_SINGULAR * singular[0]:
        return None
    vector = np.zeros(len(matrix))
    vector[kept] = right[-1]
    count = len(lines)
    divisor = vector[count : 2 * count] / np.linalg.norm(matrix[count : 2 * count], axis=1)
    sizes = np.abs(divisor) * np.abs(lines.values).max(axis=1)
    divisor = np.where(sizes > NO_TERM * sizes.max(), divisor, 0.0)
    if not divisor[1:].any() or not np.abs(divisor @ lines.values).min() > 0:
        return None
    divisor = divisor / divisor[np.argmax(sizes)]
    below = lines.total({place: float(divisor[place]) for place in np.flatnonzero(divisor).tolist()})
    written = tuple(partial(_over, algebra, top, below) for top in lines.written)
    return Terms(lines.values / (divisor @ lines.values), written)


def _over(algebra: Algebra, above: Callable[[], Sum], below: Sum) -> Sum:
    return algebra.quotient(above(), below)
