import numpy as np
import pytest

from eqlearn.errors import InvalidFile, NotNumbers
from eqlearn.io.tables import read_measurements

ROWS = [(0.5, 1.25), (1.0, 1500.5), (2.0, 3.5), (3.0, 12345.0), (4.5, -7.0), (5.0, 8.125)]


@pytest.fixture
def write(tmp_path):
    def write(text, name="data.csv"):
        path = tmp_path / name
        path.write_bytes(text.encode())
        return path

    return write


def written(between, decimal, thousands, quote=""):
    def number(value):
        text = f"{value:,.3f}".translate({ord(","): thousands, ord("."): decimal})
        return f"{quote}{text}{quote}"

    return [between.join(map(number, row)) for row in ROWS]


@pytest.mark.parametrize(
    ("between", "decimal", "thousands", "quote"),
    [
        (";", ",", ".", ""),
        (";", ",", "", ""),
        (";", ",", "\u00a0", ""),
        (";", ",", " ", ""),
        (";", ".", ",", ""),
        ("\t", ",", ".", ""),
        (",", ".", ",", '"'),
        (",", ",", ".", '"'),
        (",", ".", "", ""),
        (",", ".", "'", ""),
    ],
)
def test_the_same_numbers_are_read_however_a_spreadsheet_writes_them(
    write, between, decimal, thousands, quote
):
    text = "\r\n".join([f"a{between}y", *written(between, decimal, thousands, quote)])

    read = read_measurements(write(text), ["y"])

    np.testing.assert_array_equal(np.column_stack([read.X, read.y]), ROWS)


@pytest.mark.parametrize("units", ["m;s", "[m];(s)", "m;", "m;-", "°C;m/s²"])
def test_a_line_of_units_is_no_row(write, units):
    read = read_measurements(write("\n".join(["a;y", units, *written(";", ",", "")])), ["y"])

    assert len(read.X) == len(ROWS)
    assert read.units["a"] == units.split(";")[0].strip("[]")
    assert any("holds units" in note for note in read.notes)


def test_a_number_without_unit_may_stand_as_one_in_a_line_of_units(write):
    text = "a,b,y\nm,1,s\n" + "".join(f"{i},{i * i},{i + 3}\n" for i in range(6))

    assert read_measurements(write(text), ["y"]).units == {"a": "m", "y": "s"}


@pytest.mark.parametrize("first", ["1,oops", "oops,2", "NA,2"])
def test_a_stray_word_in_the_first_row_is_no_line_of_units(write, first):
    text = f"a,y\n{first}\n" + "".join(f"{i},{i * i}\n" for i in range(1, 7))

    with pytest.raises(ValueError, match=r"line 2|missing"):
        read_measurements(write(text), ["y"])


def test_columns_without_name_and_value_are_left_out(write):
    text = "a;y;;\n" + "".join(f"{i};{i * i};;\n" for i in range(6))

    assert read_measurements(write(text), ["y"]).inputs == ("a",)


def test_a_last_separator_is_no_field(write):
    text = "a;y\n" + "".join(f"{i};{i * i};\n" for i in range(6))

    assert read_measurements(write(text), ["y"]).X.shape == (6, 1)


def test_a_column_without_a_value_is_left_out_and_said_so(write):
    text = "a,b,note,y\n" + "".join(f"{i},{i % 3},,{i * i + 1}\n" for i in range(6))

    read = read_measurements(write(text), ["y"])

    assert read.inputs == ("a", "b")
    assert read.notes == ("column 'note' is empty and left out",)


def test_an_empty_column_that_was_asked_for_is_refused(write):
    text = "a,note,y\n" + "".join(f"{i},,{i * i + 1}\n" for i in range(6))

    with pytest.raises(ValueError, match=r"'note' .* holds no value at all"):
        read_measurements(write(text), ["y"], inputs=["a", "note"])


def test_a_spreadsheets_separator_line_is_obeyed(write):
    text = "sep=|\na|y\n" + "".join(f"{i}|{i * i}\n" for i in range(6))

    assert read_measurements(write(text), ["y"]).X.shape == (6, 1)


def test_comments_above_the_names_are_skipped(write):
    text = "# made by hand\n# twice\na,y\n" + "".join(f"{i},{i * i}\n" for i in range(6))

    assert read_measurements(write(text), ["y"]).X.shape == (6, 1)


def test_all_columns_that_hold_no_numbers_are_named_at_once(write):
    text = "day,site,a,y\n" + "".join(f"2024-01-0{i},Ulm,{i},{i * i}\n" for i in range(1, 8))

    with pytest.raises(NotNumbers) as refusal:
        read_measurements(write(text), ["y"])

    assert set(refusal.value.columns) == {"day", "site"}
    for word in ("'day' dates", "'site' text", "line 2", "`ignore`"):
        assert word in str(refusal.value)


@pytest.mark.parametrize(
    ("field", "words"),
    [("2024-01-03", "a date"), ("12.5 kg", "write the unit into the column's name"), ("1,2,3,4", "mend it")],
)
def test_a_field_that_is_no_number_is_told_what_to_do(write, field, words):
    text = "a;y\n" + "".join(f"{i};{i * i}\n" for i in range(6)) + f"{field};1\n"

    with pytest.raises(InvalidFile, match=words):
        read_measurements(write(text), ["y"])


def test_a_doubtful_number_is_refused_with_both_readings(write):
    text = "a,y\n" + "".join(f'"{i},234",{i * i}\n' for i in range(1, 7))

    with pytest.raises(InvalidFile, match=r"may be 1234 or 1\.234"):
        read_measurements(write(text), ["y"])


def test_a_mark_that_breaks_the_rule_far_below_is_refused_not_misread(write):
    text = "a;y\n" + "".join(f"{i},5;{i * i}\n" for i in range(1000)) + "3.14;1\n"

    with pytest.raises(InvalidFile, match="line 1002"):
        read_measurements(write(text), ["y"])
