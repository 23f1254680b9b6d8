"""Formulas from an island of trees: what a round of evolution proposes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from eqlearn.numerics.budget import never
from eqlearn.numerics.criteria import EXACT_LOSS
from eqlearn.search.ansatz.layout import Ansatz, Sum
from eqlearn.search.ansatz.terms import Terms, few_terms, holds, orthonormal
from eqlearn.search.evolution.closing import Closing
from eqlearn.search.evolution.island import Island, Rated
from eqlearn.search.evolution.trees import Operations, Trees
from eqlearn.search.problem import Problem, remembered
from eqlearn.search.subexpressions.bank import Bank, exact_ground, grown, is_for_banks
from eqlearn.search.subexpressions.pairs import in_seen_units, target_values


@dataclass(frozen=True, eq=False)
class Ground:
    """What all islands of a kind have in common."""

    columns: np.ndarray
    y: np.ndarray
    bank: Bank
    operations: Operations
    closing: Closing | None = None  # no node has an exact law in values that hold noise
    beside: Terms | None = None  # what stands beside each tree in a sum

    @classmethod
    def of(cls, problem: Problem, stop: Callable[[], bool], rows: int | None) -> Ground:
        """On so many rows, or all."""
        settings, scales = problem.settings.island, problem.features.scales
        some = problem if rows is None else problem.thinned(rows)
        columns = some.samples.x[: len(scales)].numpy() * np.array(scales)[:, None]
        operations = Operations.of(problem.vocabulary, len(scales))
        return cls(columns, target_values(some, None), grown(some, settings.entries, stop), operations)


@remembered(1)  # of the search that is under way
def _alone(problem: Problem, stop: Callable[[], bool]) -> Ground:
    """That of islands whose trees are all of a law."""
    settings = problem.settings.island
    if problem.noisy:
        return Ground.of(problem, stop, None)
    few, exact = exact_ground(problem, stop)
    closing = Closing(few, exact, target_values(few, None), settings.closing_terms)
    return replace(Ground.of(problem, stop, settings.rows), closing=closing)


@remembered(1)
def _summed(problem: Problem, stop: Callable[[], bool]) -> Ground:
    """That of islands whose trees stand beside a sum of the simplest subexpressions."""
    settings = problem.settings.island
    ground = Ground.of(problem, stop, settings.rows_beside)
    simplest = grown(problem.thinned(settings.rows_beside), settings.beside, stop, exact=True)
    most = min(len(simplest), len(ground.y) // 4)
    return replace(ground, beside=simplest.terms(*range(most)))


def evolved_ansatzes(
    problem: Problem, island: int, seed: int, stop: Callable[[], bool] = never
) -> list[Ansatz]:
    """The best formulas of each length that an island comes to; islands with other numbers are others. Of
    exact values, every second island looks for what is missing beside a sum of simple terms."""
    if not is_for_banks(problem) or stop():
        return []
    settings = problem.settings.island
    rng, number = np.random.default_rng([seed, island]), island
    ground = None
    if not problem.noisy:
        number, odd = divmod(island, 2)
        ground = _summed(problem, stop) if odd else None
    ground = ground or _alone(problem, stop)
    span = None if ground.beside is None else _with_one(ground.beside.values)
    place = Island(ground.columns, ground.y, ground.bank, ground.operations, settings, rng, span)
    y = target_values(problem, None)
    left = settings.generations * luby(number + 1)
    while left > 0 and not stop():
        new = place.evolve()
        whole = [law for law in _whole(place, ground, new) if holds(law, problem, y)]
        if whole:
            return [in_seen_units(Ansatz(None, law), problem) for law in whole[: settings.kept]]
        left -= 1
        if float(place.population.error.min()) < EXACT_LOSS:
            left = min(left, settings.shortening)  # what is exact may yet be said in fewer words
    if ground.beside is not None:
        return []  # such sums are many terms long, if they are not exact
    last = settings.noisy_last if problem.noisy else settings.last
    chosen = _front(place.population, last)
    trees = place.polished(chosen.trees, settings.last_steps) if len(chosen.trees) else chosen.trees
    scales = problem.features.scales
    return [in_seen_units(Ansatz(None, trees.term(i, scales)), problem) for i in range(len(trees))]


def _whole(place: Island, ground: Ground, new: Trees) -> Iterator[Sum]:
    """Exact laws that the new trees of an island lead to."""
    if ground.closing is not None:
        yield from ground.closing.laws(new)
    if ground.beside is None or not len(place.population.error):
        return
    best = int(place.population.error.argmin())
    if place.population.error[best] < place.settings.nearly:
        trees = place.polished(place.population.trees.take([best]), place.settings.last_steps)
        tree = Terms(trees.evaluate(ground.columns)[0][0], (partial(trees.term, 0, ground.bank.scales),))
        terms = ground.beside + tree
        factors = few_terms(terms.values, ground.y, place.settings.closing_terms)
        if factors is not None:
            yield terms.total(factors)


def _with_one(values: np.ndarray) -> np.ndarray:
    """An orthonormal basis of these values and a constant."""
    return orthonormal(np.concatenate([np.ones((1, values.shape[1])), values]))


def _front(rated: Rated, most: int) -> Rated:
    """The best trees at each of a range of prices of length."""
    error = np.log(np.maximum(rated.error, EXACT_LOSS))
    prices = np.geomspace(0.01, 10.0, 8 * most)[:, None]
    best = np.argmin(error + prices * rated.trees.length, axis=1)
    chosen = dict.fromkeys(best.tolist())
    if len(chosen) > most:
        chosen = dict.fromkeys(
            np.array(list(chosen))[np.linspace(0, len(chosen) - 1, most).round().astype(int)]
        )
    return rated.take(np.array(list(chosen), dtype=int))


def luby(number: int) -> int:
    """How long the runs of a search with restarts should be when nothing is known: 1, 1, 2, 1, 1, 2, 4, ...
    (Luby, Sinclair & Zuckerman 1993)."""
    power = 1
    while power - 1 < number:
        power *= 2
    return power // 2 if number == power - 1 else luby(number - power // 2 + 1)
