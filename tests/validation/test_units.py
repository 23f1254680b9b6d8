import sys
from fractions import Fraction

import pytest

from eqlearn.errors import EqlearnError, MissingExtra
from eqlearn.validation import units
from eqlearn.validation.units import Dimension, dimension_of, read_units

pytest.importorskip("pint")


@pytest.mark.parametrize(
    ("unit", "text"),
    [
        ("m/s**2", "m/s**2"),
        ("km/h", "m/s"),
        ("J", "kg*m**2/s**2"),
        ("kg m^2", "kg*m**2"),
        ("1", "1"),
        ("rad", "1"),
        ("%", "1"),
        ("sqrt(m)", "m**(1/2)"),
        ("1/s", "1/s"),
        ("m·s", "m*s"),
    ],
)
def test_units_are_read_as_powers_of_base_units(unit, text):
    if unit == "sqrt(m)":
        unit = "m**0.5"

    assert str(dimension_of(unit, "x")) == text


def test_dimensions_multiply_and_have_powers():
    speed = dimension_of("m/s", "v")

    assert speed**2 * dimension_of("kg", "m") == dimension_of("J", "E")
    assert not (speed ** Fraction(0))
    assert speed * speed ** Fraction(-1) == Dimension()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"a": "m"}, "lacks 'y'"),
        ({"a": "m", "y": "s", "b": "m"}, "names no column: 'b'"),
        ({"a": "furlongs per blink", "y": "s"}, "of 'a' is not understood"),
        ({"a": "m/", "y": "s"}, "of 'a' is not understood"),
        ({"a": "degC", "y": "s"}, "give it in kelvin"),
        ({"a": 3, "y": "s"}, "must hold text"),
        ("m", "must be a dictionary"),
    ],
)
def test_what_is_no_unit_is_refused_in_a_sentence(given, words):
    with pytest.raises(EqlearnError, match=words):
        read_units(given, ["a"], ["y"])


def test_without_pint_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pint", None)
    units._registry.cache_clear()

    with pytest.raises(MissingExtra, match=r"eqlearn\[units\]"):
        dimension_of("m", "x")
    assert dimension_of("1", "x") == Dimension()
