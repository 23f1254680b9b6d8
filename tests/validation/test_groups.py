"""Groups as users give them: any labels, and what is refused."""

import numpy as np
import pandas as pd
import pytest

from eqlearn.errors import InvalidArgument, UnknownName
from eqlearn.validation.groups import find_codes, find_column, read_groups, read_levels, taken_apart


@pytest.mark.parametrize(
    "labels",
    [
        ["b", "a", "b", "a"],
        np.array([2, 1, 2, 1]),
        np.array([2.0, 1.0, 2.0, 1.0]),
        pd.Series(["b", "a", "b", "a"], dtype="category"),
        np.array([[2], [1], [2], [1]]),
        [True, False, True, False],
    ],
)
def test_labels_of_any_kind_are_sorted_and_counted(labels):
    groups = read_groups(labels, 4)

    assert groups.codes.tolist() == [1, 0, 1, 0]
    assert groups.sizes.tolist() == [2, 2]
    assert groups.name == "group"


def test_a_series_names_its_groups():
    assert read_groups(pd.Series([1, 1, 2, 2], name="sample"), 4).name == "sample"


def test_a_column_of_labels_is_taken_out_of_a_frame():
    frame = pd.DataFrame({"x": [1.0, 2.0], "sample": ["a", "b"], "year": [1, 2]})

    named, labels = taken_apart(frame, "sample")
    text, _ = taken_apart(frame, frame["sample"])
    numbers, _ = taken_apart(frame, frame["year"])

    assert list(named) == list(text) == ["x", "year"]
    assert labels.tolist() == ["a", "b"]
    assert list(numbers) == ["x", "sample", "year"]  # may be a variable as well
    assert taken_apart(frame, "patient")[0] is frame
    assert taken_apart(np.zeros((2, 1)), "sample")[1] == "sample"


def test_whole_floats_are_the_same_labels_as_integers():
    groups = read_groups(np.array([1.0, 1.0, 2.0, 2.0]), 4)

    assert groups.labels == (1, 2)
    assert find_codes([2, 1], groups.labels, 2).tolist() == [1, 0]


@pytest.mark.parametrize("missing", [None, np.nan, "", pd.NA, pd.NaT])
def test_missing_labels_are_counted_in_the_message(missing):
    labels = np.array(["a", "a", missing, "b", "b"], dtype=object)

    with pytest.raises(InvalidArgument, match=r"`groups` has no label in 1 row, the first of them row 2"):
        read_groups(labels, 5)


def test_measurements_given_as_groups_by_accident_are_refused():
    numbers = np.random.default_rng(0).normal(size=40)

    with pytest.raises(InvalidArgument, match=r"40 different numbers in 40 rows.*column of `X`"):
        read_groups(numbers, 40)


def test_a_label_for_every_row_is_refused():
    with pytest.raises(InvalidArgument, match="several rows each"):
        read_groups([f"row{i}" for i in range(10)], 10)


def test_one_group_is_refused():
    with pytest.raises(InvalidArgument, match="one group only, 'a'"):
        read_groups(["a"] * 5, 5)


def test_another_number_of_rows_is_refused():
    with pytest.raises(InvalidArgument, match=r"each of the 5 rows, got shape \(4,\)"):
        read_groups(["a", "a", "b", "b"], 5)


def test_numbers_that_differ_by_rounding_are_no_two_groups():
    with pytest.raises(InvalidArgument, match=r"0\.3 and 0\.30000000000000004, which differ by rounding"):
        read_groups([0.3, 0.3, 0.1 + 0.2, 0.1 + 0.2, 1.0, 1.0], 6)


def test_an_unknown_group_is_named_with_the_nearest():
    with pytest.raises(UnknownName, match=r"'steel2'.*did you mean 'steel'; with `new_group`"):
        find_codes(["steel", "steel2"], ("steel", "brass"), 2)


def test_a_column_is_found_by_name_or_place():
    assert find_column("t", ["x", "t"]) == 1
    assert find_column(0, ["x", "t"]) == 0
    with pytest.raises(UnknownName, match="did you mean 'time'"):
        find_column("tme", ["x", "time"])
    for place in (2, True):
        with pytest.raises(InvalidArgument, match="name or the place"):
            find_column(place, ["x", "t"])
    with pytest.raises(InvalidArgument, match="another column"):
        find_column("t", ["t"])


def test_equal_values_are_a_level_and_scattered_ones_are_binned():
    levels = read_levels(np.repeat([1.5, 0.5], 20), "t", 12, 60)
    binned = read_levels(np.linspace(0, 1, 240), "t", 12, 60)

    assert levels.labels == (0.5, 1.5)
    assert binned.count == 10
    assert binned.sizes.min() >= 20
    assert list(binned.labels) == sorted(binned.labels)
