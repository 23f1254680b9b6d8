import pytest

from eqlearn import Equation, unit_of
from eqlearn.errors import InvalidArgument
from eqlearn.symbolic.dimensions import formula_dimension
from eqlearn.validation.units import dimension_of

pytest.importorskip("pint")
UNITS = {"x": "m", "v": "m/s", "t": "s", "m": "kg", "a": "1", "g": "m/s**2"}


def parsed(text):
    return Equation.parse(text, tuple(UNITS))


@pytest.mark.parametrize(
    ("formula", "unit"),
    [
        ("x + v*t", "m"),
        ("m*v**2/2 + m*g*x", "kg*m**2/s**2"),
        ("2*pi*sqrt(x/g)", "s"),
        ("x*exp(-v*t/x)", "m"),
        ("abs(x - v*t)", "m"),
        ("a**a", "1"),
        ("v/sqrt(1 - v**2/(g*x))", "m/s"),
        ("3.7*x**1.5/sqrt(x)", "m"),
        ("sin(a) + 1.5", "1"),
    ],
)
def test_the_unit_of_a_right_formula_is_told(formula, unit):
    assert unit_of(parsed(formula), UNITS) == unit


@pytest.mark.parametrize(
    ("formula", "words"),
    [
        ("x + v", "`x` is m, and that of `v` is m/s|`v` is m/s, and that of `x` is m"),
        ("m*sin(t)", r"in `sin\(t\)` the argument `t` has the unit s"),
        ("x*exp(v*t + 1)", r"in `t\*v \+ 1`"),
        ("x**a", "the argument `x` has the unit m"),
        ("x + 1.5", "`x` is m, and that of `1.5` is 1"),
    ],
)
def test_a_wrong_formula_names_the_part_that_is_wrong(formula, words):
    with pytest.raises(InvalidArgument, match=words):
        unit_of(parsed(formula), UNITS)


def test_a_missing_unit_is_named():
    with pytest.raises(InvalidArgument, match="lacks 'v'"):
        unit_of(Equation.parse("x + v", ("x", "v")), {"x": "m"})


def test_free_constants_take_the_units_that_are_needed():
    known = {name: dimension_of(unit, name) for name, unit in UNITS.items()}

    _, numbers = formula_dimension(
        parsed("3.5*t**2 + 7.25*exp(-0.5*x)"), known, free_constants=True, target=dimension_of("m", "y")
    )

    assert {size: str(d) for size, d in numbers.items()} == {3.5: "m/s**2", 7.25: "m", 0.5: "1/m"}


@pytest.mark.parametrize("formula", ["x + v", "sin(t)", "exp(x) + 2.5*v"])
def test_free_constants_do_not_mend_what_has_none(formula):
    known = {name: dimension_of(unit, name) for name, unit in UNITS.items()}

    with pytest.raises(InvalidArgument):
        formula_dimension(parsed(formula), known, free_constants=True, target=dimension_of("m", "y"))
