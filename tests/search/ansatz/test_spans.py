"""Sums in a span, seen through one more operation; functions of any two subexpressions."""

import numpy as np
import pytest

from eqlearn.search.ansatz.spans import deep_ansatzes, span_ansatzes
from eqlearn.search.settings import BankSettings, Settings
from search_problems import error_of, problem_of

SOME = Settings(bank=BankSettings(spans=((8, 12_000, 24), (30, 1000, 64))))
FEW = Settings(bank=BankSettings(many=200, wide=60, small=60, simple=5, spans=((8, 200, 24), (30, 200, 64))))


def nearest(proposed, problem):
    errors = (error_of(ansatz, problem) for ansatz in proposed)
    return min((e for e in errors if np.isfinite(e)), default=np.inf)


@pytest.mark.parametrize(
    "formula",
    [
        "x**2*(x + sqrt(y))**2", "cos(sin(y**2))/(x + 0.648)", "(x - tanh(y))*(exp(x) + y)",
        "x/y + sqrt(2*x + 3*y)", "x*y/(1 + 0.3*exp(y))", "log(x + 2*y - 0.5)*sin(x*y)",
    ],
)  # fmt: skip
def test_a_sum_and_one_more_operation(formula):
    problem = problem_of(formula, ["x", "y"], settings=SOME)

    assert nearest(span_ansatzes(problem), problem) < 1e-7


@pytest.mark.parametrize("formula", ["x/y - tanh(0.05*x*y*y)", "tanh((y - x)**3)*(x + 2*y)"])
def test_a_subexpression_is_met_in_the_middle(formula):
    problem = problem_of(formula, ["x", "y"], settings=SOME)

    assert nearest(span_ansatzes(problem), problem) < 1e-7


@pytest.mark.parametrize(
    "formula", ["exp(tanh(1/(x*y)))", "sin((exp(y) + x)/x)", "x*sin(x*y + x) + 0.7*x", "sqrt(x*y + x)/y"]
)
def test_functions_of_two_subexpressions(formula):
    problem = problem_of(formula, ["x", "y"], settings=SOME)

    assert nearest(deep_ansatzes(problem), problem) < 1e-7


def test_noise_is_no_law():
    problem = problem_of("sin(37*x*y**2) + cos(51*x**3)", ["x", "y"], settings=SOME)

    assert span_ansatzes(problem) == deep_ansatzes(problem) == []


@pytest.mark.parametrize("propose", [span_ansatzes, deep_ansatzes])
def test_several_targets_and_a_stop_give_nothing(propose):
    assert propose(problem_of(["x", "x*x"], ["x"])) == []
    assert propose(problem_of("sin(9*x)*y", ["x", "y"]), stop=lambda: True) == []


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("propose", [span_ansatzes, deep_ansatzes])
@pytest.mark.parametrize("formula", ["0*x + 2", "1/(x - 1.0001)", "exp(50*x)", "1e-200*x"])
def test_odd_targets_are_no_error(propose, formula):
    assert isinstance(propose(problem_of(formula, ["x"], settings=FEW)), list)
