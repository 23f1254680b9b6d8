"""Formulas from an island of trees: what a round of evolution proposes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from eqlearn.numerics.budget import never
from eqlearn.numerics.criteria import EXACT_LOSS
from eqlearn.search.ansatz.layout import Ansatz
from eqlearn.search.ansatz.terms import holds
from eqlearn.search.evolution.closing import Closing
from eqlearn.search.evolution.island import Island, Rated
from eqlearn.search.evolution.trees import Operations
from eqlearn.search.problem import Problem, remembered
from eqlearn.search.subexpressions.bank import Bank, exact_ground, grown, is_for_banks
from eqlearn.search.subexpressions.pairs import in_seen_units, target_values


@dataclass(frozen=True, eq=False)
class Ground:
    """What all islands of a problem have in common."""

    columns: np.ndarray
    y: np.ndarray
    bank: Bank
    operations: Operations
    closing: Closing | None  # no node has an exact law in values that hold noise

    @classmethod
    def of(cls, problem: Problem, stop: Callable[[], bool]) -> Ground:
        settings, scales = problem.settings.island, problem.features.scales
        some = problem if problem.noisy else problem.thinned(settings.rows)
        columns = some.samples.x[: len(scales)].numpy() * np.array(scales)[:, None]
        bank = grown(some, settings.entries, stop)
        closing = None
        if not problem.noisy:
            few, exact = exact_ground(problem, stop)
            closing = Closing(few, exact, target_values(few, None), settings.closing_terms)
        operations = Operations.of(problem.vocabulary, len(scales))
        return cls(columns, target_values(some, None), bank, operations, closing)


_ground = remembered(1)(Ground.of)  # of the search that is under way


def evolved_ansatzes(
    problem: Problem, island: int, seed: int, stop: Callable[[], bool] = never
) -> list[Ansatz]:
    """The best formulas of each length that an island comes to; islands with other numbers are others."""
    if not is_for_banks(problem) or stop():
        return []
    settings, ground = problem.settings.island, _ground(problem, stop)
    rng = np.random.default_rng([seed, island])
    place = Island(ground.columns, ground.y, ground.bank, ground.operations, settings, rng)
    y = target_values(problem, None)
    left = settings.generations * luby(island + 1)
    while left > 0 and not stop():
        new = place.evolve()
        laws = () if ground.closing is None else ground.closing.laws(new)
        whole = [law for law in laws if holds(law, problem, y)]
        if whole:
            return [in_seen_units(Ansatz(None, law), problem) for law in whole[: settings.kept]]
        left -= 1
        if float(place.population.error.min()) < EXACT_LOSS:
            left = min(left, settings.shortening)  # what is exact may yet be said in fewer words
    last = settings.noisy_last if problem.noisy else settings.last
    chosen = _front(place.population, last)
    trees = place.polished(chosen.trees, settings.last_steps) if len(chosen.trees) else chosen.trees
    scales = problem.features.scales
    return [in_seen_units(Ansatz(None, trees.term(i, scales)), problem) for i in range(len(trees))]


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
