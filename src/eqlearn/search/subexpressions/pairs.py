"""All pairs of subexpressions at once, through Gram matrices, for the target and its transforms.

What is linear given a pair of entries (a sum, a product with offsets, a quotient with offsets) is decided for
all pairs by a few matrix products.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from eqlearn.numerics.budget import never
from eqlearn.numerics.criteria import NO_COEFFICIENT, NO_TERM, PARALLEL, match_score
from eqlearn.search.ansatz.layout import Ansatz, Sum, Unit
from eqlearn.search.ansatz.target_transform import TargetTransform
from eqlearn.search.ansatz.terms import least_squares_sum
from eqlearn.search.problem import Problem
from eqlearn.search.subexpressions.bank import Bank, grown, is_for_banks


@dataclass(frozen=True)
class Combination:
    """A formula for a target, and the part of the target's deviation (a root-mean-square) that it leaves."""

    ansatz: Ansatz
    error: float


class Pairs:
    """What is the same for every target in all pairs of entries.

    For entries f and g about their mean, a·f·g + b·f + c·g + d holds sums, products and products with offsets
    of both.
    """

    def __init__(self, normed: np.ndarray) -> None:
        self.one = self.two = normed
        squares, others = self.one**2, self.two**2
        inner = self.one @ self.two.T
        product = squares @ others.T - inner**2 / normed.shape[1]
        by_one, by_two = squares @ self.two.T, self.one @ others.T
        alike = 1 - inner**2 < PARALLEL
        self.inner, self.scale = inner, np.where(alike, 0.0, 1 / np.where(alike, 1.0, 1 - inner**2))
        self.first = (by_one - inner * by_two) * self.scale
        self.second = (by_two - inner * by_one) * self.scale
        own = np.arange(min(self.one.shape[0], self.two.shape[0]))
        self.own = (own, own)
        self.first[self.own], self.second[self.own] = by_one[self.own], 0.0
        rest = product - self.first * by_one - self.second * by_two
        idle = (rest < PARALLEL * product) | alike
        idle[self.own] = rest[self.own] < PARALLEL * product[self.own]
        self.gain = np.where(idle, 0.0, 1 / np.where(idle, 1.0, rest))

    def bilinear(self, y: np.ndarray, most: int) -> list[tuple[float, int, int]]:
        """The pairs that explain most of a target about its mean, of length one: what is left, and which."""
        one, two = self.one @ y, self.two @ y
        cross = (self.one * y) @ self.two.T
        cross -= self.first * one[:, None]
        cross -= self.second * two
        cross *= cross
        cross *= self.gain
        sums = (one**2)[:, None] + two**2 - 2 * self.inner * one[:, None] * two
        sums *= self.scale
        sums[self.own] = one[self.own[0]] ** 2
        cross += sums
        return self._best(cross, most) + self._best(sums, most)

    def quotients(self, y: np.ndarray, most: int) -> list[tuple[float, int, int]]:
        """The same of (a·f + b·g + d)/(g + c): linear once it reads y·g = a·f + b·g + d - c·y."""
        one, fine = _without(self.one, y)
        two, also = _without(self.two, y)
        aim = self.one * y
        aim -= aim.mean(axis=1, keepdims=True)
        aim -= np.outer(aim @ y, y)
        size = (aim * aim).sum(axis=1)
        inner, along = one @ two.T, np.einsum("ij,ij->i", one, aim)
        cross = aim @ two.T
        bad = (1 - inner**2 < PARALLEL) | ~fine[:, None] | ~also | (size < PARALLEL)[:, None]
        explained = cross**2 - 2 * inner * cross * along[:, None] + (along**2)[:, None]
        explained /= np.where(bad, 1.0, 1 - inner**2) * np.where(size < PARALLEL, 1.0, size)[:, None]
        explained[bad] = 0.0
        return self._best(explained, most, ordered=True)

    @staticmethod
    def _best(explained: np.ndarray, most: int, ordered: bool = False) -> list[tuple[float, int, int]]:
        flat = explained.ravel()
        count = min(2 * most, flat.size)
        best = np.argpartition(flat, flat.size - count)[flat.size - count :]
        found: dict[tuple[int, int], tuple[float, int, int]] = {}
        for place in best[np.argsort(-flat[best])]:
            i, j = divmod(int(place), explained.shape[1])
            key = (i, j) if ordered else (min(i, j), max(i, j))
            found.setdefault(key, (1 - float(flat[place]), i, j))
        return list(found.values())[:most]


def _without(values: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Directions with the target's taken out, of length one, and which are anything then."""
    rest = values - np.outer(values @ y, y)
    size = np.linalg.norm(rest, axis=1)
    fine = size**2 > PARALLEL
    return rest / np.where(fine, size, 1.0)[:, None], fine


@np.errstate(all="ignore")
def pair_ansatzes(problem: Problem, stop: Callable[[], bool] = never) -> list[Ansatz]:
    """The best sums, products and quotients of two subexpressions, for the target and its transforms."""
    settings = problem.settings.bank
    some = problem.thinned(settings.rows)
    bank = grown(some, settings.small, stop) if is_for_banks(problem) else None
    if bank is None or stop() or len(bank) < 2:
        return []
    pairs, kept = Pairs(bank.normed), settings.kept
    found: list[Combination] = []
    for transform, whole in zip(some.targets, problem.targets, strict=True):
        y = target_values(some, transform)
        about = y - y.mean()
        square = float(about @ about)
        if stop() or not square > 0 or float(np.square(about).max()) > settings.max_one_row * square:
            continue
        direction = about / np.sqrt(square)
        found += [_sum(some, bank, i, j, y, whole) for _, i, j in pairs.bilinear(direction, kept)]
        if some.vocabulary.named("div") is not None:
            found += [_quotient(some, bank, j, i, y, whole) for _, i, j in pairs.quotients(direction, kept)]
    exact = [c for c in found if c.error < NO_TERM]
    best = sorted(exact or found, key=lambda c: c.error)[: 2 * kept]
    laws = [c.ansatz for c in best]
    if not exact:
        laws += [replace(law, readout=_shifted(law.readout)) for law in laws]
    return [in_seen_units(law, problem) for law in laws]


def _sum(
    problem: Problem, bank: Bank, i: int, j: int, y: np.ndarray, whole: TargetTransform | None
) -> Combination:
    """The best of a·f·g + b·f + c·g + d with some of its terms."""
    f, g = bank.values[i], bank.values[j]
    terms, columns = ([bank.term(i)], [f]) if i == j else ([bank.term(i), bank.term(j)], [f, g])
    times = problem.vocabulary.named("mul")
    if times is not None:
        terms.append(Sum.of(Unit(times, (bank.term(i), bank.term(j)))))
        columns.append(f * g)
    chosen, factors, error = _best_subset(columns, y)
    total = Sum(constant=factors[-1])
    for place, factor in zip(chosen, factors, strict=False):
        total = total + terms[place] * factor
    return Combination(Ansatz(whole, total), error)


def _best_subset(columns: list[np.ndarray], y: np.ndarray) -> tuple[tuple[int, ...], list[float], float]:
    """The columns, up to three, whose sum with a constant scores best: their places, factors (the constant
    last), and the deviation that is left."""
    best: tuple[float, tuple[int, ...], list[float], float] | None = None
    for count in range(1, len(columns) + 1):
        for places in combinations(range(len(columns)), count):
            factors, error = least_squares_sum([columns[k] for k in places], y)
            score = match_score(error**2, len(y), count)
            if best is None or score < best[0]:
                best = (score, places, factors, error)
    assert best is not None
    return best[1:]


def _quotient(
    problem: Problem, bank: Bank, i: int, j: int, y: np.ndarray, whole: TargetTransform | None
) -> Combination:
    """(a·f + b·g + d)/(g + c), without the numbers that are rounding."""
    over = problem.vocabulary.named("div")
    assert over is not None
    f, g = bank.values[i], bank.values[j]
    columns = [f, g, -y]
    factors, _ = least_squares_sum(columns, y * g)
    a, b, c, d = (
        0.0 if abs(factor) * size < NO_COEFFICIENT * np.abs(y * g).max() else factor
        for factor, size in zip(factors, [*(np.abs(v).max() for v in columns), 1.0], strict=True)
    )
    above = bank.term(i) * a + bank.term(j) * b + Sum(constant=d)
    below = bank.term(j) + Sum(constant=c)
    left = (a * f + b * g + d) / (g + c) - y
    error = float(np.linalg.norm(left) / np.linalg.norm(y - y.mean()))
    return Combination(
        Ansatz(whole, Sum.of(Unit(over, (above, below)))), error if np.isfinite(error) else np.inf
    )


def _shifted(term: Sum) -> Sum:
    """The formula with something added to the argument of every function, for a fit to move: a phase, or the
    distance from a pole."""
    units = []
    for unit, factor in term.units:
        arguments = tuple(_shifted(a) for a in unit.arguments)
        if unit.primitive.arity == 1 and not arguments[0].constant:
            arguments = (arguments[0] + Sum(constant=1e-3),)
        units.append((Unit(unit.primitive, arguments), factor))
    return replace(term, units=tuple(units))


def target_values(problem: Problem, transform: TargetTransform | None) -> np.ndarray:
    """The target in the user's units, or what a transform makes of it."""
    if transform is None:
        return problem.samples.y[0].numpy() * problem.features.outputs[0]
    return transform.target[0].numpy()


def in_seen_units(ansatz: Ansatz, problem: Problem) -> Ansatz:
    """The ansatz in the units that a search sees."""
    transform = ansatz.transform
    unit = problem.features.outputs[0] if transform is None else transform.scale
    return Ansatz(transform, ansatz.readout * (1 / unit))
