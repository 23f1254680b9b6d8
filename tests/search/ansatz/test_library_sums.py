"""Functions times powers of other columns, beside a polynomial; and products no deeper than need be."""

import numpy as np
import pytest

from eqlearn import Equation, discover, judge
from eqlearn.search.ansatz.library_sums import sum_ansatzes
from search_problems import error_of, problem_of

LAWS = {
    "q*(E + B*v*sin(t))": lambda q, E, B, v, t: q * (E + B * v * np.sin(t)),
    "n*(1 + p*E*cos(t)/T)": lambda n, p, E, t, T: n * (1 + p * E * np.cos(t) / T),
    "a + b + 2*sqrt(a*b)*cos(d)": lambda a, b, d: a + b + 2 * np.sqrt(a * b) * np.cos(d),
    "r - cos(t)/r": lambda r, t: r - np.cos(t) / r,
}


@pytest.mark.parametrize("formula", LAWS)
def test_a_function_times_powers_of_other_columns_is_found(formula):
    function = LAWS[formula]
    names = function.__code__.co_varnames
    X = np.random.default_rng(0).uniform(1, 4, size=(300, len(names)))

    best = discover(X, function(*X.T), variables=names, seconds=60.0).best

    truth = Equation.parse(formula, names)
    assert judge(best.equation, truth, dict.fromkeys(names, (1.0, 4.0))).tier == "exact"


@pytest.mark.slow
def test_a_quotient_of_three_factors_fits_into_three_layers():
    X = np.random.default_rng(0).uniform(1, 5, size=(300, 3))
    a, n, t = X.T
    y = a * np.sin(n * t / 2) ** 2 / np.sin(t / 2) ** 2

    best = discover(X, y, variables=("a", "n", "t"), seconds=60.0).best

    assert best.method == "products"
    truth = Equation.parse("a*sin(n*t/2)**2/sin(t/2)**2", ("a", "n", "t"))
    assert judge(best.equation, truth, dict.fromkeys("ant", (1.0, 5.0))).tier == "exact"


@pytest.mark.parametrize("formula", ["sin(2*a) + 3*b", "exp(-a) + tanh(b)", "a*cos(b) + a**2"])
def test_sums_of_library_functions_are_proposed_exactly(formula):
    problem = problem_of(formula, ("a", "b"))

    assert min(error_of(ansatz, problem) for ansatz in sum_ansatzes(problem)) < 1e-9


def test_several_targets_have_no_common_terms():
    assert sum_ansatzes(problem_of(["a*b", "a"], ("a", "b"))) == []
