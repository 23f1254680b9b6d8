"""Exact numbers for fitted constants."""

import math
from fractions import Fraction

import numpy as np
import pytest
import sympy as sp
from hypothesis import given
from hypothesis import strategies as st

from eqlearn.errors import EqlearnError, InvalidArgument, NotFinite
from eqlearn.symbolic.equation import Equation
from eqlearn.symbolic.snap import MAX_DENOMINATOR, number_cost, simplest_fraction, snap_constant

ONES = np.ones((3, 2))


@pytest.mark.parametrize(
    "number",
    [
        sp.Integer(3),
        sp.Integer(-7),
        sp.Rational(1, 2),
        sp.Rational(-5, 24),
        sp.pi,
        2 * sp.pi,
        -sp.pi / 3,
        sp.pi**2 / 6,
        1 / (4 * sp.pi),
        sp.sqrt(2),
        sp.sqrt(2) / 2,
        -3 * sp.sqrt(5),
        1 / sp.sqrt(2 * sp.pi),
        sp.E,
        2 / sp.E,
        sp.Integer(299_792_458),
    ],
    ids=str,
)
@pytest.mark.parametrize("noise", [0.0, 1e-12, -1e-12])
def test_a_number_is_recognised_from_its_digits(number, noise):
    value = float(number) * (1 + noise)

    assert snap_constant(value, 1e-10 * abs(value)) == number


def test_the_simplest_number_within_reach_wins():
    assert snap_constant(0.34, 0.01) == sp.Rational(1, 3)
    assert snap_constant(3.0001, 0.01) == 3
    assert snap_constant(3.1415, 1e-3) == sp.pi
    assert snap_constant(1e-12, 1e-9) == 0


@pytest.mark.parametrize("value", [0.7234567, 9.80665, 6.62607015e-34, 1e300, -1e-300])
def test_a_number_that_is_not_simple_is_left_alone(value):
    assert snap_constant(value, 1e-12 * abs(value)) is None


def test_a_cost_limit_keeps_chance_out():
    assert snap_constant(0.7234, 1e-4) is not None
    assert snap_constant(0.7234, 1e-4, max_cost=8.0) is None


@given(st.floats(-1e6, 1e6), st.floats(1e-12, 1.0))
def test_what_is_found_lies_within_the_tolerance(value, tolerance):
    number = snap_constant(value, tolerance)

    if number is not None:
        assert abs(float(number) - value) <= tolerance * (1 + 1e-9) + 4 * math.ulp(value)


@given(st.integers(-500, 500), st.integers(1, MAX_DENOMINATOR))
def test_every_small_fraction_is_found_again(p, q):
    assert snap_constant(p / q, 0.0) == sp.Rational(p, q)


@given(st.floats(1e-3, 1e3), st.floats(1e-9, 1e-1))
def test_no_simpler_fraction_lies_in_the_interval(low, width):
    fraction = simplest_fraction(low, low + width)

    assert low <= fraction <= low + width
    for q in range(1, min(fraction.denominator, 200)):
        assert math.ceil(Fraction(low) * q) > Fraction(low + width) * q


@pytest.mark.parametrize(
    ("number", "bits"),
    [
        (sp.Integer(0), 0.0),
        (sp.Integer(1), 1.0),
        (sp.Integer(-3), 2.0),
        (sp.Rational(3, 4), 4.0),
        (sp.pi, 4.0),
        (sp.sqrt(3), 3.0),
    ],
    ids=str,
)
def test_the_cost_is_the_logarithm_of_one_plus_p_times_q(number, bits):
    assert number_cost(number) == pytest.approx(bits)


@pytest.mark.parametrize(("value", "simple"), [(9.9, 10), (0.325, sp.Rational(1, 3)), (3.15, sp.pi)])
def test_a_power_of_pi_is_not_preferred_to_a_plain_number_as_near(value, simple):
    tolerance = 0.03 * value

    assert snap_constant(value, tolerance if simple != sp.pi else 0.02) == simple


def test_a_longer_number_costs_more():
    costs = [number_cost(n) for n in (sp.pi, 2 * sp.pi, 2 * sp.pi / 3, 17 * sp.pi / 19)]

    assert costs == sorted(costs)


@pytest.mark.parametrize("number", [sp.Float(0.5), sp.Symbol("x"), sp.sin(1)], ids=str)
def test_only_exact_numbers_have_a_cost(number):
    with pytest.raises(InvalidArgument, match="exact"):
        number_cost(number)


@pytest.mark.parametrize(
    ("value", "tolerance", "error"),
    [
        (math.nan, 0.1, NotFinite),
        (math.inf, 0.1, NotFinite),
        (1.0, -1.0, InvalidArgument),
        (1.0, math.nan, ValueError),
    ],
)
def test_a_bad_value_or_tolerance_is_refused(value, tolerance, error):
    with pytest.raises(error, match="must be"):
        snap_constant(value, tolerance)


def test_an_equation_snaps_to_what_a_person_would_write():
    fitted = Equation.parse("0.5000000001*x**2.0000000001 + 6.283185307*y - 1.4142135624", ["x", "y"])

    assert fitted.snapped() == Equation.parse("x**2/2 + 2*pi*y - sqrt(2)", ["x", "y"])


def test_without_data_only_close_numbers_are_taken():
    fitted = Equation.parse("0.5003*x + 2.0000000001", ["x"])

    assert fitted.snapped() == Equation.parse("0.5003*x + 2", ["x"])


def rows(noise=0.0, n=400):
    generator = np.random.default_rng(0)
    X = generator.uniform(-2, 2, size=(n, 2))
    y = 0.5 * X[:, 0] ** 2 + np.sin(2 * np.pi * X[:, 1]) + noise * generator.normal(size=n)
    return X, y


def test_with_data_a_rough_constant_snaps_when_the_error_allows():
    X, y = rows(noise=0.1)
    rough = Equation.parse("0.501*x**2 + 0.999*sin(6.283*y)", ["x", "y"])

    snapped = rough.snapped(X, y)

    assert snapped == Equation.parse("x**2/2 + sin(2*pi*y)", ["x", "y"])


def test_with_data_no_snap_raises_the_error_beyond_the_bound():
    X, y = rows(noise=0.0)
    true = Equation.parse("0.5*x**2 + sin(6.283185307179586*y)", ["x", "y"])
    off = Equation.parse("0.5*x**2 + 1.004*sin(6.283185307179586*y)", ["x", "y"])

    snapped = off.snapped(X, off(X))

    assert 1.004 in snapped.constants
    assert true.snapped(X, y).error(X, y) <= 1e-12


@pytest.mark.parametrize("noise", [0.01, 0.3])
def test_the_error_after_snapping_is_within_the_stated_rise(noise):
    X, y = rows(noise)
    fitted = Equation.parse("0.497*x**2 + 1.003*sin(6.27*y) + 0.0113", ["x", "y"])

    snapped = fitted.snapped(X, y, rise=0.01)

    assert snapped.error(X, y) <= 1.01 * fitted.error(X, y) * (1 + 1e-12)


def test_standard_errors_say_how_far_a_constant_may_go():
    fitted = Equation.parse("0.498*x + 1.98*y", ["x", "y"])

    assert fitted.snapped(errors=[0.001, 0.0001]).constants == (1.98,)


def test_a_constant_within_its_error_of_zero_vanishes():
    fitted = Equation.parse("0.5003*x + 0.0002*y", ["x", "y"])

    assert str(fitted.snapped(errors=[1e-9, 1e-3])) == "0.5003*x"


def test_a_constant_does_not_vanish_below_a_fraction_line():
    fitted = Equation.parse("0.5003/(x + 0.0002*exp(y)) + 1/(0.0002*y)", ["x", "y"])

    snapped = fitted.snapped(errors=[1e-9, 1e-3, 1e-9])

    assert np.isfinite(snapped(np.array([[1.0, 1.0]]))).all()


def test_a_formula_with_a_distant_domain_is_snapped_too():
    fitted = Equation.parse("0.50000000001*log(x - 1000)", ["x"])

    assert fitted.snapped() == Equation.parse("log(x - 1000)/2", ["x"])


def test_snapping_leaves_the_equation_as_it_was():
    fitted = Equation.parse("0.50000000001*x", ["x"])

    fitted.snapped()

    assert fitted.constants == (0.50000000001,)


@pytest.mark.parametrize(
    "arguments",
    [
        {"X": np.ones((3, 1))},
        {"y": np.ones(3)},
        {"errors": [1.0, 2.0]},
        {"X": np.ones((3, 2)), "y": np.ones(3)},
    ],
)
def test_wrong_arguments_of_snapped_are_refused(arguments):
    with pytest.raises(EqlearnError, match="must"):
        Equation.parse("0.5*x", ["x"]).snapped(**arguments)


@pytest.mark.parametrize("error", [math.inf, math.nan])
def test_a_constant_that_others_make_up_for_stays(error):
    equation = Equation.parse("2.34567*exp(1.5432*x)", ["x"])

    assert equation.snapped(errors=[error, error]) == equation
