"""An island keeps what is good, varies it in all ways without breaking it, and fits constants."""

from dataclasses import replace

import numpy as np
import pytest

from eqlearn.search.evolution.island import Island, bank_trees
from eqlearn.search.evolution.trees import EMPTY, Operations
from eqlearn.search.settings import IslandSettings
from eqlearn.search.subexpressions.bank import grown
from eqlearn.search.subexpressions.pairs import target_values
from search_problems import problem_of

SMALL = IslandSettings(members=60, entries=150, offered=80, fitted=8)


def island_of(formula, seed=0, settings=SMALL):
    problem = problem_of(formula, ("x1", "x2"))
    bank = grown(problem, settings.entries)
    scales = np.array(problem.features.scales)
    columns = problem.samples.x[: len(scales)].numpy() * scales[:, None]
    operations = Operations.of(problem.vocabulary, len(scales))
    rng = np.random.default_rng(seed)
    return Island(columns, target_values(problem, None), bank, operations, settings, rng), bank


@pytest.fixture(scope="module")
def island():
    made, _ = island_of("x1*sin(x2) + 0.3*x1**2")
    made.evolve()
    return made


def test_entries_of_a_bank_are_trees_with_their_values():
    island, bank = island_of("x1*x2")
    trees, fits = bank_trees(bank, island.operations, 30)
    assert fits.all()
    value, _ = trees.evaluate(island.X)
    assert np.allclose(value[0], bank.values, rtol=1e-10, atol=1e-12)


def test_every_member_is_whole_and_scaled_to_the_target(island):
    trees, error = island.population.trees, island.population.error
    assert (trees.below[:, 0] == trees.size).all()
    assert ((trees.code != EMPTY).sum(axis=1) == trees.size).all()
    value, _ = trees.evaluate(island.X)
    left = np.square(value[0] - island.y).sum(axis=1) / island.spread
    assert np.allclose(left, error, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("vary", ["_inserted", "_replaced", "_crossed", "_hoisted", "_swapped"])
def test_every_variation_gives_whole_trees_and_a_node_of_them(island, vary):
    made, places = getattr(island, vary)(island.population.trees)
    assert len(made) == len(places) > 0
    assert (made.below[:, 0] == made.size).all()
    assert (places < made.size).all()


def test_the_best_never_gets_worse():
    island, _ = island_of("x1*sin(x2) + 0.3*x1**2", seed=1)
    errors = [island.population.error.min()]
    for _ in range(4):
        island.evolve()
        errors.append(island.population.error.min())
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < errors[0]


def test_no_two_members_have_the_same_values(island):
    keys = {tuple(key) for key in island.population.key}
    assert len(keys) == len(island.population.error) <= SMALL.members


def test_constants_are_fitted():
    island, _ = island_of("x1*sin(1.37*x2 + 0.2)", settings=replace(SMALL, entries=400))
    trees = island.population.trees
    best = island.population.take(np.argsort(island.population.error)[:5])
    island.evolve()
    polished = island.rated(island.polished(best.trees, 20))
    assert polished.error.min() <= best.error.min() * (1 + 1e-9)
    assert len(trees) > 5
