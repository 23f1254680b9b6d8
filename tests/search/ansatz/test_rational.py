"""Quotients of polynomials: found exactly where they are, and nowhere else."""

import numpy as np
import pytest
import torch

from eqlearn import discover
from eqlearn.search.ansatz.rational import best_quotient
from eqlearn.symbolic.equation import Equation
from eqlearn.verify.judge import judge


def powers(x, degree):
    return torch.stack([x**d for d in range(1, degree + 1)])


def banks(degree):
    return [list(range(d)) for d in range(1, degree + 1)]


def test_the_simplest_exact_quotient_is_found():
    x = torch.linspace(-1, 1, 30, dtype=torch.float64)

    found = best_quotient(powers(x, 4), (1 + x**2) / (2 - x), banks(4))

    assert found.error < 1e-24
    ratio = found.denominator.constant
    assert dict(found.numerator.inputs)[1] == pytest.approx(ratio / 2)
    assert {place for place, _ in found.denominator.inputs} == {0}


def test_a_smooth_function_is_no_exact_quotient():
    x = torch.linspace(-1, 1, 30, dtype=torch.float64)

    found = best_quotient(powers(x, 2), torch.exp(x), banks(2))

    assert found is None or found.error > 1e-20


def test_a_pole_among_the_data_is_believed_only_of_an_exact_quotient():
    x = torch.linspace(-1, 1, 30, dtype=torch.float64)

    exact = best_quotient(powers(x, 2), 1 / x, banks(2))
    rough = best_quotient(powers(x, 1), 1 / x + x**2, banks(1))

    assert exact.error < 1e-24
    assert rough is None


def test_seven_spectral_lines_are_enough_for_a_quotient_of_squares():
    n = np.arange(3.0, 10.0)
    lines = np.round(364.6 * n**2 / (n**2 - 4), 3)

    found = discover(n[:, None], lines, variables=["n"], restarts=8)

    # Far beyond the lines, and not misled by a longer formula that is nearer to their last digit.
    assert found.best.equation(np.array([[40.0]])) == pytest.approx(364.6 * 1600 / 1596, rel=1e-5)


def test_too_few_rows_give_nothing():
    x = torch.linspace(-1, 1, 4, dtype=torch.float64)

    assert best_quotient(powers(x, 2), x / (2 + x), banks(2)) is None


@pytest.mark.parametrize(
    ("formula", "variables", "low", "high"),
    [
        ("n**2/(n**2-4)", ("n",), 3.0, 9.0),
        ("(u+v)/(1+u*v/c**2)", ("u", "v", "c"), 1.0, 3.0),
        ("f*d/(d-f)", ("f", "d"), 1.0, 2.0),
    ],
)
def test_laws_with_a_division_are_found(formula, variables, low, high):
    rng = np.random.default_rng(0)
    X = rng.uniform(low, high, size=(100, len(variables)))
    if formula.startswith("f"):
        X[:, 1] += 1.5
    truth = Equation.parse(formula, variables)

    found = discover(X, truth(X), variables=variables)

    box = {name: (X[:, i].min(), X[:, i].max()) for i, name in enumerate(variables)}
    assert found.exact
    assert judge(found.best.equation, truth, box).at_least("symbolic")
