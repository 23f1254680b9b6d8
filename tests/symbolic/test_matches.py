"""Whether two equations are the same function, however they are written."""

import pytest

from eqlearn.errors import InvalidArgument
from eqlearn.symbolic.equation import Equation


def made(text, variables=("x", "y")):
    return Equation.parse(text, variables)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("x + y", "y + x"),
        ("(x + y)**2", "x**2 + 2*x*y + y**2"),
        ("0.5*(1 + tanh(5*x))", "1/(1 + exp(-10*x))"),
        ("cos(x)", "sin(x + 1.5707963267948966)"),
        ("2", "2.0"),
        ("x**1.5", "x*sqrt(x)"),
    ],
)
def test_the_same_function_matches_in_any_form(left, right):
    assert made(left).matches(right)
    assert made(right).matches(made(left))


@pytest.mark.parametrize(
    ("left", "right"),
    [("x", "x + 1e-6"), ("x", "20*sin(0.05*x)"), ("x", "y"), ("sqrt(x)**2", "abs(x)"), ("log(x)", "x")],
)
def test_another_function_does_not_match(left, right):
    assert not made(left).matches(right)


def test_a_box_by_name_is_where_they_are_compared():
    assert not made("abs(x)").matches("x")
    assert made("abs(x)").matches("x", box={"x": (0.0, 2.0)})


def test_equations_without_a_common_domain_ask_for_a_box():
    with pytest.raises(InvalidArgument, match="box"):
        made("log(x - 100)").matches("log(x - 100)")


def test_variables_that_do_not_matter_do_not_matter():
    assert made("x + 0*y").matches(Equation.parse("x", ["x"]))
