"""One step of a search: what it fits, what it keeps, and that it is the same wherever it runs."""

from dataclasses import replace

import pytest
import torch

from eqlearn.search.networks.structures import Level
from eqlearn.search.step import Memory, Step, StepResult, take_step
from eqlearn.search.strategies import STRATEGIES
from search_problems import problem_of


def test_a_strategy_s_law_comes_back_as_an_exact_network():
    problem = problem_of("2*a + 3*b - 1", ("a", "b"))

    result = take_step(Step(0, 0, STRATEGIES["linear"]), problem)

    assert result.method == "linear"
    assert result.exact >= 1
    assert result.fits[0].exact(problem.samples.rows)
    assert result.fits[0].weights == 3


def test_equal_steps_give_equal_results():
    problem = problem_of("sin(2*a)*b", ("a", "b"), rows=60)
    step = Step(9, 4, None, Level(1, 2, 1), members=8)

    first, again = take_step(step, problem), take_step(step, problem)

    assert first.method == "networks"
    assert [f.loss for f in first.fits] == [f.loss for f in again.fits]
    assert all(torch.equal(f.theta, g.theta) for f, g in zip(first.fits, again.fits, strict=True))


def test_a_step_without_time_counts_what_it_could_not_do():
    problem = problem_of("2*a", ("a",))
    step = Step(0, 0, STRATEGIES["elimination"])

    result = take_step(step, problem, lambda: True)

    assert result.fits == []
    assert result.failures == {"cut off by the clock": result.started}


def test_what_is_not_exact_and_not_small_is_left_by_an_exact_strategy():
    problem = problem_of("sin(3*a)*exp(b/3) + sqrt(a + b**3)", ("a", "b"))

    result = take_step(Step(0, 0, STRATEGIES["linear"]), problem)

    assert result.exact == 0
    assert all(fit.weights <= problem.settings.max_quick_weights for fit in result.fits)


def test_in_noise_what_is_not_small_is_kept():
    problem = problem_of("2*a*b + 3*b*c - a*c + a**2*b + c", ("a", "b", "c"), noise=0.01)
    step = Step(0, 0, STRATEGIES["subsets"])

    small, all_of_them = (take_step(step, replace(problem, noisy=noisy)).fits for noisy in (False, True))

    assert len(all_of_them) >= len(small)
    assert min(fit.loss for fit in all_of_them) < 2e-4


@pytest.mark.parametrize(
    ("name", "state"), [("affine", "noisy"), ("affine", "settled"), ("pairs", "settled")]
)
def test_what_the_values_can_not_bear_out_is_not_tried(name, state):
    problem = problem_of("b*exp(a) + 1", ("a", "b"))

    tried, left_out = (
        take_step(Step(0, 0, STRATEGIES[name]), p) for p in (problem, replace(problem, **{state: True}))
    )

    assert tried.started > 0
    assert left_out.started == 0


def test_a_journal_in_memory_gives_back_what_it_was_given():
    journal = Memory("data", 0)
    result = StepResult(3, "sums", [], 1, 0)

    journal.record(result)

    assert journal.recall(3) is result
    assert journal.recall(4) is None
