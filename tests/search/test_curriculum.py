"""What is tried when: strategies first, then networks, growing, within what a step may cost."""

import pytest

from eqlearn import Settings, errors
from eqlearn.search.curriculum import Curriculum
from eqlearn.search.networks.structures import Level
from eqlearn.search.step import Step, take_step
from search_problems import problem_of


def curriculum_of(settings=Settings(), hidden_layers=3, rows=200):  # noqa: B008
    features = problem_of("a*b", ("a", "b")).features
    return Curriculum(settings, hidden_layers, features, rows, 5)


def test_strategies_come_first_in_their_order():
    settings = Settings(strategies=("sums", "linear"))
    curriculum = curriculum_of(settings)

    assert [curriculum.step(n, ()).method for n in range(4)] == ["sums", "linear", "networks", "networks"]


def test_every_third_round_of_networks_grows_from_the_best():
    problem = problem_of("a*b", ("a", "b"), rows=60)
    parents = take_step(Step(0, 0, None, Level(1, 2, 1), members=8), problem).fits
    curriculum = curriculum_of(Settings(strategies=()))

    growing = [bool(curriculum.step(n, parents).parents) for n in range(9)]

    assert growing == [False, False, True] * 3


def test_the_first_rounds_run_alone_strategies_by_fours_and_islands_without_end():
    curriculum = curriculum_of()
    sizes, number = [], 0
    while (size := curriculum.generation(number)) is not None:
        sizes.append(size)
        number += size

    assert sizes[:5] == [1] * 5
    assert all(size == 4 for size in sizes[5:-1])
    assert number == len(curriculum.scheduled)
    endless = curriculum.steps(number, ())
    assert [next(endless).method for _ in range(20)] == ["evolution"] * 20


def test_an_island_comes_after_each_strategy_from_the_first_island_on():
    curriculum = curriculum_of()
    names = [strategy.name for strategy in curriculum.scheduled]
    first = names.index("evolution")

    assert names[first::2] == ["evolution"] * len(names[first::2])
    assert "evolution" not in names[first + 1 :: 2]
    assert names[: curriculum.settled_pass].count("evolution") == 3


def test_a_generation_holds_its_rounds_and_no_others():
    curriculum = curriculum_of()

    assert [step.number for step in curriculum.steps(5, ())] == [5, 6, 7, 8]


def test_lessons_are_no_deeper_than_allowed():
    deep = curriculum_of(hidden_layers=3)
    shallow = curriculum_of(hidden_layers=1)

    assert max(level.depth for level in deep.lessons) == 3
    assert {level.depth for level in shallow.lessons} == {1}


def test_long_tables_get_fewer_members():
    level = Level(2, 5, 2)

    assert curriculum_of(rows=100_000).members(level) < curriculum_of(rows=50).members(level) <= 24


def test_no_depth_and_no_level_are_refused():
    with pytest.raises(errors.InvalidArgument, match="hidden_layers"):
        curriculum_of(hidden_layers=0)
    with pytest.raises(errors.InvalidArgument, match="levels"):
        curriculum_of(Settings(levels=()))
