"""Laws with a number outside a function of a sum: found by trial of the number, exact after the fit."""

import numpy as np
import pytest
import torch

from eqlearn import Equation, discover, judge
from eqlearn.search.ansatz.linear import allowed_banks, linear_ansatzes, solved
from eqlearn.search.settings import SCIENCE
from search_problems import error_of, problem_of


def search(formula, function, low=0.5, high=3.0, primitives=SCIENCE):
    """What a search finds in this function of two columns, the way it came, and the verdict."""
    X = np.random.default_rng(0).uniform(low, high, size=(150, 2))
    best = discover(X, function(*X.T), variables=("x", "y"), primitives=primitives, seconds=20.0).best
    truth = Equation.parse(formula, ("x", "y"))
    return best.method, judge(best.equation, truth, dict.fromkeys("xy", (low, high))).tier


@pytest.mark.parametrize(
    ("formula", "function"),
    [
        ("5*log(3 + x*y + x)", lambda x, y: 5 * np.log(3 + x * y + x)),
        ("-0.3*log(1 + x + 2*y)", lambda x, y: -0.3 * np.log(1 + x + 2 * y)),
        ("2.5*x**0.7*y**(-0.3) + 1.2", lambda x, y: 2.5 * x**0.7 * y**-0.3 + 1.2),
        ("7 - 2*exp(-x*y/3)", lambda x, y: 7 - 2 * np.exp(-x * y / 3)),
    ],
)
def test_a_number_outside_a_function_is_found(formula, function):
    assert search(formula, function) == ("profiled", "exact")


def test_bounded_functions_are_undone_in_the_user_s_units():
    assert search("tanh(x*y + x)", lambda x, y: np.tanh(x * y + x), -1.0, 1.0) == ("linear", "exact")


def test_an_arcsine_is_found_where_it_is_asked_for():
    _, tier = search(
        "asin(x/(2*y))", lambda x, y: np.arcsin(x / (2 * y)), 1.0, 1.9, primitives=f"{SCIENCE} asin"
    )

    assert tier == "exact"


@pytest.mark.parametrize("formula", ["2*a - b/3 + 1", "a**2*b + b**3", "exp(2*a - b)", "1/sqrt(a + 2*b)"])
def test_exact_sums_are_proposed_for_the_target_and_its_transforms(formula):
    problem = problem_of(formula, ("a", "b"))

    proposals = list(linear_ansatzes(problem))

    assert min(error_of(ansatz, problem) for ansatz in proposals) < 1e-9


def test_banks_are_no_deeper_than_the_layers_below():
    problem = problem_of("a*b", ("a", "b"))

    assert max(map(len, allowed_banks(problem, 3))) < max(map(len, allowed_banks(problem, 0)))
    assert [0, 1] in allowed_banks(problem, 3)


def test_too_few_rows_prove_nothing():
    problem = problem_of("sin(9*a)*b", ("a", "b"), rows=4)

    assert solved(problem, list(range(6)), problem.samples.y[0]) == (False, None)
    assert solved(problem, [0], torch.full((4,), torch.nan).double()) == (False, None)
