"""Leaving rows out by leverage, and the price of a structure."""

import math

import numpy as np
import pytest
import sympy as sp

from eqlearn.search.candidate import leave_one_out, structure_cost
from eqlearn.symbolic.equation import Equation
from eqlearn.symbolic.parametric import Formula


def fitted(text, X, y, variables=("x",), weight=None):
    formula = Formula.of(Equation.parse(text, variables))
    return formula.with_constants(list(formula.fit(X, y, weight).values))


def left_out(text, X, y, weight=None):
    """The slow way: one fit for each row."""
    missed = []
    for row in range(len(y)):
        others = np.arange(len(y)) != row
        equation = fitted(text, X[others], y[others], weight=None if weight is None else weight[others])
        missed.append(equation(X[row : row + 1])[0] - y[row])
    return np.array(missed)


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 2, (30, 1))
    return X, np.exp(0.5 * X[:, 0]) + rng.normal(0, 0.1, 30)


def test_for_a_sum_it_is_what_as_many_fits_would_find(table):
    X, y = table

    missed = leave_one_out(fitted("1.0*x + 1.0", X, y), X, y)

    np.testing.assert_allclose(missed, left_out("1.0*x + 1.0", X, y), rtol=1e-6)


def test_for_a_bent_formula_it_is_nearly_that(table):
    X, y = table

    missed = leave_one_out(fitted("1.0*exp(0.4*x)", X, y), X, y)

    np.testing.assert_allclose(missed, left_out("1.0*exp(0.4*x)", X, y), atol=0.02)


def test_weighted_rows_are_left_out_of_a_weighted_fit(table):
    X, y = table
    weight = np.linspace(0.5, 2.0, len(y))

    missed = leave_one_out(fitted("1.0*x + 1.0", X, y, weight=weight), X, y, weight)

    expected = left_out("1.0*x + 1.0", X, y, weight) * np.sqrt(weight / weight.mean())
    np.testing.assert_allclose(missed, expected, rtol=1e-5)


def test_a_row_that_alone_fixes_a_constant_is_far_from_foretold():
    X = np.array([[0.0], [0.0], [0.0], [1.0]])
    y = np.array([0.0, 0.1, -0.1, 5.0])

    missed = leave_one_out(Equation.parse("4.9*x", ("x",)), X, y)

    assert abs(missed[3]) > 50


def test_a_formula_without_constants_is_missed_by_its_residual(table):
    X, y = table

    np.testing.assert_array_equal(leave_one_out(Equation.parse("x", ("x",)), X, y), X[:, 0] - y)


def test_a_formula_that_is_not_finite_foretells_nothing(table):
    X, y = table

    assert np.isinf(leave_one_out(Equation.parse("1.5*log(x - 1)", ("x",)), X, y)).all()


def cost(text, columns=10):
    return structure_cost(Equation.parse(text, [f"x{i}" for i in range(columns)]).expr, columns)


def test_a_sum_of_columns_costs_about_the_choice_among_such_sums():
    text = " + ".join(f"{i + 2}.5*x{i}" for i in range(4)) + " + 1.5"

    assert math.log(math.comb(10, 4)) < cost(text) < math.log(math.comb(10, 4)) + 4 * math.log(2) + 1


def test_products_cost_more_than_columns_and_functions_more_than_products():
    assert cost("1.5*x0") < cost("1.5*x0*x1") < cost("1.5*sin(x0)*x1")


def test_the_same_formula_costs_more_where_there_are_more_columns():
    assert cost("1.5*x0 + x1", 2) < cost("1.5*x0 + x1", 30)


def test_a_number_costs_nothing():
    assert structure_cost(sp.Float(1.5), 3) == 0
