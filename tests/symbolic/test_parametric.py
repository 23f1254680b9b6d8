"""A formula has the values of its expression, on arrays and to fifty digits, and slopes to be fitted by."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
import sympy as sp

from eqlearn.errors import InvalidArgument
from eqlearn.symbolic.equation import Equation
from eqlearn.symbolic.expressions import real_symbol
from eqlearn.symbolic.parametric import Formula, has_conditions

TEXTS = ["2.5*x**2 + sin(2*pi*y)", "x", "3.5", "exp(-0.5*x)/(1.5 + y**2)", "sqrt(2)*abs(x)**1.5", "x**y"]


def formula(text):
    return Formula(Equation.parse(text, ("x", "y")).expr, ("x", "y"))


@pytest.mark.parametrize("text", TEXTS)
def test_values_are_those_of_the_equation(text):
    points = np.random.default_rng(0).uniform(0.1, 2.0, (2, 9))

    values = formula(text)(points)

    np.testing.assert_allclose(values, Equation.parse(text, ("x", "y"))(points.T), rtol=1e-14)


@pytest.mark.parametrize("text", TEXTS)
def test_fifty_digits_agree_with_sympy(text):
    f = formula(text)
    point = np.array([0.7, 1.3])

    value = f.precisely(point, f.constants)

    exact = f.expr.subs({s: sp.Float({"x": 0.7, "y": 1.3}[s.name], 60) for s in f.expr.free_symbols})
    expected = sp.N(exact.xreplace({c: sp.Float(c, 60) for c in exact.atoms(sp.Float)}), 60)
    with mpmath.workdps(60):
        assert abs(value - mpmath.mpf(expected._mpf_)) < mpmath.mpf(10) ** -45


@pytest.mark.parametrize("text", TEXTS)
def test_constants_are_those_of_the_equation_in_its_order(text):
    assert tuple(formula(text).constants) == Equation.parse(text, ("x", "y")).constants


def test_many_sets_of_constants_are_evaluated_at_once():
    f = formula("2.5*x**2 + 1.5*y")
    points = np.random.default_rng(0).uniform(-1, 1, (2, 7))
    sets = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])

    values = f(points[:, None, :], sets[:, :, None])

    assert values.shape == (3, 7)
    np.testing.assert_array_equal(values[1], f(points, sets[:, 1]))


def test_values_that_are_not_real_are_nan():
    assert np.isnan(formula("log(x) + y")(np.array([[-1.0], [1.0]]))).all()
    assert mpmath.im(formula("log(x) + y").precisely(np.array([-1.0, 1.0]), np.array([]))) != 0


def test_new_constants_stand_where_the_old_ones_stood():
    f = formula("2.5*x**2 + sin(1.5*y)")
    moved = Formula(f.filled(2 * f.constants), f.variables)

    np.testing.assert_array_equal(moved.constants, 2 * f.constants)


def test_a_tower_of_exponentials_overflows_instead_of_hanging():
    with pytest.raises(OverflowError):
        formula("exp(exp(exp(x)))").precisely(np.array([20.0, 0.0]), np.array([]))


def test_functions_that_equations_lack_are_left_to_sympy():
    x = sp.Symbol("x", real=True)
    f = Formula(sp.Float(1.5) * sp.sign(x) + sp.Max(x, 0), ("x",))

    np.testing.assert_allclose(f(np.array([[-2.0, 3.0]]), np.array([2.0])), [-2.0, 5.0])
    assert f.precisely(np.array([3.0]), np.array([2.0])) == 5


def test_a_piecewise_has_conditions_and_a_maximum_has_none():
    x = sp.Symbol("x", real=True)

    assert has_conditions(x + sp.Piecewise((x, x > 0), (0, True)))
    assert not has_conditions(x + sp.Max(x, 0))


def test_a_formula_is_fitted_and_gives_an_equation_with_what_was_found():
    X = np.random.default_rng(0).uniform(0.5, 2, size=(50, 2))
    f = Formula.of(Equation.parse("1.5*x*exp(-0.5*y) + 0.1", ("x", "y")))

    fit = f.fit(X, 2.0 * X[:, 0] * np.exp(-0.7 * X[:, 1]) + 0.3)

    assert f.with_constants(fit.values).matches("2*x*exp(-0.7*y) + 0.3", tolerance=1e-12)
    assert fit.error < 1e-14


def test_a_weight_of_zero_hides_a_row_and_a_fixed_constant_stays():
    X, weight = np.random.default_rng(0).uniform(0.5, 2, size=(50, 1)), np.ones(50)
    y = 3.0 * X[:, 0] ** 2 + 1.5
    y[:5], weight[:5] = 1e3, 0.0
    f = Formula.of(Equation.parse("2.0*x**2.5 + 1.0", ("x",)))

    free = f.fit(X, y, weight, steps=60)
    held = f.fit(X, y, weight, fixed=np.array([False, True, False]), steps=60)

    np.testing.assert_allclose(sorted(free.values), [1.5, 2.0, 3.0], rtol=1e-10)
    assert held.values[1] == f.constants[1]
    assert held.standard_errors[1] == 0
    assert held.error > free.error


def test_slopes_by_variables_and_constants_are_those_of_finite_differences():
    f, h = formula("1.5*x**2*sin(0.7*y)"), 1e-6
    value, slopes = f.differentiated
    at = [1.2, 0.4, *f.constants]

    assert sorted(slopes) == [0, 1, 2, 3]
    for j, slope in slopes.items():
        low, high = ([v + side * h * (i == j) for i, v in enumerate(at)] for side in (-1, 1))
        difference = (value.evaluate(high) - value.evaluate(low)) / (2 * h)
        assert slope.evaluate(at) == pytest.approx(difference, rel=1e-7)


def test_a_function_without_slopes_can_not_be_fitted():
    f = Formula(sp.Float(1.5) * sp.Max(real_symbol("x"), 0), ("x",))

    with pytest.raises(InvalidArgument, match="no slopes"):
        f.fit(np.ones((3, 1)), np.ones(3))
