import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eqlearn.io.numerals import Numerals, nature


@pytest.mark.parametrize(
    ("fields", "decimal", "thousands"),
    [
        (["1.5", "2"], ".", ""),
        (["1,5", "2"], ",", ""),
        (["0,250"], ",", ""),  # no thousands begin with 0
        (["1.234,5"], ",", "."),
        (["1,234.5"], ".", ","),
        (["1,234,567"], ".", ","),
        (["1.234.567"], ",", "."),
        (["1,234", "3.5"], ".", ","),
        (["1.234", "3,5"], ",", "."),
        (["1 234,5"], ",", " "),
        (["1\u202f234,5"], ",", "\u202f"),
        (["1'234.5"], ".", "'"),
        (["1.234e3"], ".", ""),
        (["12.03.2024", "1,5"], ",", ""),  # dates tell nothing
        (["words", "", "7"], ".", ""),
    ],
)
def test_the_marks_are_told_from_the_fields(fields, decimal, thousands):
    told = Numerals.of(fields)

    assert (told.decimal, told.thousands) == (decimal, thousands)


def test_a_number_that_may_mean_two_is_not_guessed():
    told = Numerals.of(["1,234", "7"])

    assert told.value("1,234") is None
    assert told.doubtful == "1,234"


def test_between_semicolons_a_comma_is_decimal():
    assert Numerals.of(["1,234", "7"], comma=True).value("1,234") == 1.234


@pytest.mark.parametrize(
    ("numerals", "field", "value"),
    [
        (Numerals(",", "."), "1.234.567,8", 1234567.8),
        (Numerals(",", "."), "-1.234", -1234.0),
        (Numerals(",", "."), "3.14", None),  # no group of thousands has two digits
        (Numerals(",", "."), "0.123", None),
        (Numerals(".", ","), "1,23", None),
        (Numerals(",", ""), "3.14", None),
        (Numerals(".", " "), " 12 345.5 ", 12345.5),
        (Numerals(), "\u22121.5", -1.5),
        (Numerals(), "1e-3", 1e-3),
        (Numerals(), "1_000", None),
        (Numerals(), "12 kg", None),
    ],
)
def test_a_field_is_a_number_only_if_its_marks_are_in_their_places(numerals, field, value):
    assert numerals.value(field) == value


@pytest.mark.parametrize("field", ["", " ", "NA", "-", "#DIV/0!", "n.a."])
def test_what_stands_for_nothing_is_missing(field):
    assert math.isnan(Numerals().value(field))


@given(st.floats(-1e12, 1e12), st.sampled_from([(".", ","), (",", "."), (".", " "), (",", "'")]))
def test_a_number_written_in_any_of_the_ways_is_read_back(value, marks):
    decimal, thousands = marks
    text = f"{value:,.4f}".translate(str.maketrans(",.", thousands + decimal))

    told = Numerals.of([text, f"0{decimal}5"])

    assert told.value(text) == float(f"{value:.4f}")


@pytest.mark.parametrize(
    ("field", "kind"),
    [
        ("2024-01-03", "dates"),
        ("2024-01-03T10:20:30Z", "dates"),
        ("03.01.24", "dates"),
        ("1/3/2024 12:00", "dates"),
        ("12:30:05", "dates"),
        ("3 Jan 2024", "dates"),
        ("12.5 kg", "numbers with a unit"),
        ("5%", "numbers with a unit"),
        ("$1,200", "numbers with a unit"),
        ("Ulm", "text"),
        ("1.2.3", "text"),
    ],
)
def test_what_is_no_number_is_called_by_its_kind(field, kind):
    assert nature(field) == kind
