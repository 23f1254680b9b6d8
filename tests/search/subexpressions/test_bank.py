"""The bank of subexpressions: what it holds, each once, and that formulas have the values they stand for."""

import numpy as np
import pytest

from eqlearn.search.subexpressions.bank import grown
from search_problems import problem_of


@pytest.fixture(scope="module")
def problem():
    return problem_of("x*y", ["x", "y"], rows=100)


@pytest.fixture(scope="module")
def bank(problem):
    return grown(problem, 600)


def test_formulas_have_the_values_of_their_entries(problem, bank):
    for entry in range(0, len(bank), 7):
        value = bank.term(entry).value(problem.samples.x).numpy()
        np.testing.assert_allclose(value, bank.values[entry], rtol=1e-9, atol=1e-12)


def test_the_simplest_come_first_and_the_columns_are_among_them(bank):
    assert (np.diff(bank.costs) >= 0).all()
    assert [bank.made[place][0] for place in bank.places[:2]] == ["column", "column"]
    assert len(bank) == 600


def test_no_two_entries_are_multiples_of_each_other_with_an_offset(bank):
    alike = np.abs(bank.normed @ bank.normed.T) > 1 - 1e-13
    assert alike.sum() == len(bank)


@pytest.mark.parametrize(
    "formula",
    [
        "x + y",
        "x/y",
        "sin(x)",
        "exp(-y)",
        "sqrt(x)",
        "log(x*y)",
        "sin(x + y)",
        "x**2*y",
        "tanh(x)/y",
        "exp(2*x)",
    ],
)
def test_short_formulas_are_in_it(problem, formula):
    from eqlearn.symbolic.equation import Equation

    bank = grown(problem, 3_000)
    X = problem.samples.x[:2].numpy().T * np.array(problem.features.scales)
    value = Equation.parse(formula, ["x", "y"])(X)
    about = value - value.mean()

    assert np.abs(bank.normed @ about).max() == pytest.approx(np.linalg.norm(about), rel=1e-12)


def test_functions_that_a_user_left_out_are_not_in_it(problem):
    from dataclasses import replace

    from eqlearn.nn.primitives import parse_set
    from eqlearn.search.networks.structures import Vocabulary

    few = grown(replace(problem, vocabulary=Vocabulary.of(parse_set("square mul"))), 200)
    names = {how if isinstance(how, str) else how.name for how, *_ in few.made}

    assert names == {"column", "+", "-", "square", "mul"}


def test_a_stop_ends_the_growth(problem):
    assert len(grown(problem, 5_000, stop=lambda: True)) < 50


def test_products_of_columns_lead_where_they_are_asked_for(problem):
    led = grown(problem, 100, monomials=20)

    x, y = problem.samples.x[:2].numpy() * np.array(problem.features.scales)[:, None]
    powers = [(i, degree - i) for degree in range(1, 6) for i in range(degree + 1)]
    products = np.array([x**i * y**j for i, j in powers])
    products -= products.mean(axis=1, keepdims=True)
    products /= np.linalg.norm(products, axis=1, keepdims=True)
    assert led.led == len(powers) == 20
    np.testing.assert_allclose(np.abs(led.normed[:20] @ products.T).max(axis=1), 1.0)
    assert len(led) == 100


def test_numbers_of_exact_entries_are_such_as_stand_in_formulas(problem):
    numbers = {abs(factor) for _, _, factor, _ in grown(problem, 3_000, exact=True).made}

    assert numbers <= {1.0, *problem.settings.bank.factors}
    assert len({abs(factor) for _, _, factor, _ in grown(problem, 3_000).made}) > 20
