"""Islands come to laws that no form was offered for; the same island comes to the same ones."""

from dataclasses import replace

from eqlearn.search.evolution.evolve import evolved_ansatzes, luby
from eqlearn.search.settings import IslandSettings, Settings
from search_problems import error_of, problem_of

SMALL = Settings(island=IslandSettings(members=60, entries=200, offered=100, generations=8, fitted=6))
MEDIUM = Settings(island=IslandSettings(members=150, entries=600, offered=300, generations=15, fitted=12))


def test_some_island_of_eight_finds_a_law():
    problem = replace(problem_of("x1 + tanh(2.3*x1*x2 + 1.4)", ("x1", "x2")), settings=MEDIUM)
    proposed = (a for island in range(8) for a in evolved_ansatzes(problem, island, 0))
    assert any(error_of(a, problem) < 1e-10 for a in proposed)


def test_the_same_island_gives_the_same_formulas():
    problem = replace(problem_of("x1*tanh(x1 + 1.7*x2)", ("x1", "x2"), rows=60), settings=SMALL)
    once, again, other = (evolved_ansatzes(problem, island, 3) for island in (0, 0, 1))
    assert once == again
    assert once != other


def test_a_clock_that_has_run_out_ends_it_at_once():
    problem = replace(problem_of("x1*tanh(x1 + 1.7*x2)", ("x1", "x2"), rows=60), settings=SMALL)
    assert evolved_ansatzes(problem, 0, 0, lambda: True) == []


def test_runs_are_as_long_as_luby_says():
    assert [luby(n) for n in range(1, 16)] == [1, 1, 2, 1, 1, 2, 4, 1, 1, 2, 1, 1, 2, 4, 8]
