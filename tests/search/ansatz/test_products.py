"""Products of powers and functions: sums, once logarithms are taken."""

import pytest

from eqlearn.search.ansatz.products import product_ansatzes, product_factors
from search_problems import error_of, problem_of


@pytest.mark.parametrize(
    ("formula", "variables"),
    [
        ("a**2.5*tanh(b)", ("a", "b")),
        ("a*exp(-b**2)", ("a", "b")),
        ("a*sin(b)/c", ("a", "b", "c")),
        ("sqrt(a + b)*c", ("a", "b", "c")),
    ],
)
def test_a_product_is_proposed_exactly(formula, variables):
    problem = problem_of(formula, variables)

    proposals = product_ansatzes(problem)

    assert min(error_of(ansatz, problem) for ansatz in proposals) < 1e-9


def test_factors_are_never_zero():
    problem = problem_of("a - b", ("a", "b"), low=-1.0, high=1.0)

    factors = product_factors(problem)

    assert factors
    assert all(bool((factor.value != 0).all()) for factor in factors)


def test_several_targets_have_no_products():
    assert product_ansatzes(problem_of(["a*b", "a"], ("a", "b"))) == []
