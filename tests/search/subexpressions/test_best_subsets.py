"""Sums of few subexpressions are found in noise, and too few rows are left alone."""

from dataclasses import replace

import pytest

from eqlearn.search.subexpressions.best_subsets import subset_ansatzes
from search_problems import deviation_of, error_of, problem_of


@pytest.mark.parametrize(
    ("law", "names"),
    [("x**2 + sin(2*y)", ("x", "y")), ("2*a/b - 3*c", ("a", "b", "c")), ("3*x*y - exp(y)", ("x", "y"))],
)
def test_a_sum_of_few_subexpressions_is_proposed(law, names):
    problem = problem_of(law, names)

    assert min(error_of(ansatz, problem) for ansatz in subset_ansatzes(problem)) < 1e-6


def test_in_noise_the_law_is_among_the_proposals():
    problem = problem_of("x**2 + y", ("x", "y"), noise=0.1)

    proposals = list(subset_ansatzes(problem))

    assert min(float(deviation_of(a, problem).std()) for a in proposals) < 0.11
    assert min(len(a.readout.inputs) + len(a.readout.units) for a in proposals) == 2


@pytest.mark.parametrize(
    ("law", "names", "low"),
    [
        ("exp(-a**2 - b)", ("a", "b"), 0.0),
        ("exp(-a/b)*c", ("a", "b", "c"), 0.3),
        ("tanh(a*b - c)", "abc", -1.0),
    ],
)
def test_a_function_of_a_sum_is_found_where_noise_leaves_some_rows_without_a_value(law, names, low):
    problem = replace(problem_of(law, tuple(names), low=low, high=2.0, noise=0.02), noisy=True)
    spread = float(problem.samples.y.std())

    best = min(float(deviation_of(a, problem).std()) for a in subset_ansatzes(problem))

    assert best < 0.022 * spread  # the noise, and little more


def test_few_rows_and_a_time_that_is_up_give_nothing():
    assert list(subset_ansatzes(problem_of("x**2 + y", ("x", "y"), rows=15))) == []
    assert list(subset_ansatzes(problem_of("x**2 + y", ("x", "y")), lambda: True)) == []
