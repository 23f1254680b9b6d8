"""The library: few atoms found among many, in sums and in products, in any units."""

import numpy as np
import pytest

from eqlearn import Settings, discover
from eqlearn.nn.primitives import lookup
from eqlearn.search.ansatz.library import homogeneous, parity
from eqlearn.symbolic.equation import Equation
from eqlearn.verify.judge import judge


@pytest.mark.parametrize(
    ("name", "expected"), [("log", True), ("sqrt", True), ("inv", True), ("sin1", False), ("exp", False)]
)
def test_a_factor_of_the_argument_comes_out_of_powers_and_logarithms_only(name, expected):
    assert homogeneous(lookup(name)) is expected


@pytest.mark.parametrize(("name", "expected"), [("cos", True), ("tanh", True), ("exp", False)])
def test_a_sign_of_the_argument_comes_out_of_odd_and_even_functions_only(name, expected):
    assert parity(lookup(name)) is expected


@pytest.mark.parametrize(
    ("formula", "variables", "low", "high"),
    [
        ("3*a+b**2-sin(2*c)", ("a", "b", "c"), 0.5, 2.0),
        ("exp(x)*cos(2*y)+1", ("x", "y"), -1.0, 1.0),
        ("a*b/sqrt(c**2-b**2)", ("a", "b", "c"), 1.0, 2.0),
        ("log(x+1)+log(x**2+1)", ("x",), 0.0, 2.0),
    ],
)
def test_sums_and_products_of_functions_are_found_from_few_rows(formula, variables, low, high):
    rng = np.random.default_rng(1)
    X = rng.uniform(low, high, size=(40, len(variables)))
    if "c" in variables and "sqrt" in formula:
        X[:, 2] += 1.5
    truth = Equation.parse(formula, variables)

    found = discover(X, truth(X), variables=variables)

    box = {name: (X[:, i].min(), X[:, i].max()) for i, name in enumerate(variables)}
    assert judge(found.best.equation, truth, box).at_least("symbolic")


def test_only_the_primitives_that_were_asked_for_appear():
    rng = np.random.default_rng(1)
    X = rng.uniform(0.5, 2.0, size=(40, 2))
    y = np.sin(X[:, 0]) * np.cos(X[:, 1])

    found = discover(X, y, primitives="id square mul", hidden_layers=2, restarts=60)

    assert not any(e.expr.atoms(*_functions()) for c in found.front for e in c.equations)


def test_an_empty_dictionary_is_no_obstacle():
    X = np.random.default_rng(1).uniform(-1, 1, size=(40, 1))

    found = discover(X, np.sin(3 * X[:, 0]), primitives="id", hidden_layers=1, restarts=20)

    assert np.isfinite(found.best.training_error)


def _functions():
    import sympy as sp

    return sp.sin, sp.cos, sp.exp, sp.log


def test_rows_of_hardly_any_weight_do_not_hide_a_product():
    rng = np.random.default_rng(0)
    X = rng.uniform(0.5, 2.0, (120, 2))
    y = X[:, 0] * (1 + np.exp(X[:, 1]))
    weight = np.ones(120)
    wrong = rng.choice(120, 12, replace=False)
    y[wrong] *= 3
    weight[wrong] = 1e-12

    settings = Settings(strategies=("products",))
    found = discover(X, y, sample_weight=weight, variables=("x", "y"), restarts=1, settings=settings)

    truth = Equation.parse("x*(1+exp(y))", ["x", "y"])
    assert judge(found.best.equation, truth, dict.fromkeys("xy", (0.5, 2.0))).tier == "exact"
