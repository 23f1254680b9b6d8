"""Sums in a span, seen through one more operation."""

import numpy as np
import pytest

from eqlearn.search.settings import Settings
from eqlearn.search.subexpressions.bank_settings import BankSettings, Span
from eqlearn.search.subexpressions.spans import span_ansatzes, wide_span_ansatzes
from search_problems import error_of, problem_of

POLYNOMIALS = Span(0, 300, 120, monomials=60, max_terms=16)
SOME = Settings(bank=BankSettings(spans=(Span(8, 8_000, 24), POLYNOMIALS)))
SPANS = (Span(8, 200, 24), Span(0, 50, 120, monomials=30))
FEW = Settings(bank=BankSettings(entries=200, spans=SPANS, wide_spans=SPANS))


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


@pytest.mark.parametrize("formula", ["(x + y + x**3)*(y**2 - y)", "exp(0.1*x**3*y - 0.2*x*y**2 + y)/x"])
def test_polynomials_of_high_degree_are_in_the_last_span(formula):
    problem = problem_of(formula, ["x", "y"], settings=SOME)

    assert nearest(span_ansatzes(problem), problem) < 1e-7


def test_noise_is_no_law():
    problem = problem_of("sin(37*x*y**2) + cos(51*x**3)", ["x", "y"], settings=SOME)

    assert span_ansatzes(problem) == []


@pytest.mark.parametrize("propose", [span_ansatzes, wide_span_ansatzes])
def test_several_targets_and_a_stop_give_nothing(propose):
    assert propose(problem_of(["x", "x*x"], ["x"])) == []
    assert propose(problem_of("sin(9*x)*y", ["x", "y"]), stop=lambda: True) == []


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("propose", [span_ansatzes, wide_span_ansatzes])
@pytest.mark.parametrize("formula", ["0*x + 2", "1/(x - 1.0001)", "exp(50*x)", "1e-200*x"])
def test_odd_targets_are_no_error(propose, formula):
    assert isinstance(propose(problem_of(formula, ["x"], settings=FEW)), list)
