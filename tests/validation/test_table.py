"""Rows arranged: order and repetition do not matter, weights of other kinds stay weights."""

import numpy as np
import pytest

from eqlearn.errors import InvalidArgument, WrongType
from eqlearn.validation.table import arrange, read_table


def table(rows=6):
    rng = np.random.default_rng(0)
    return rng.normal(size=(rows, 2)), rng.normal(size=rows)


def equal(first, second):
    np.testing.assert_array_equal(first.X, second.X)
    np.testing.assert_array_equal(first.y, second.y)
    if first.weight is None or second.weight is None:
        return first.weight is second.weight
    return np.array_equal(first.weight, second.weight)


def test_a_shuffled_table_is_arranged_as_the_table_itself():
    X, y = table()
    order = [3, 1, 5, 0, 4, 2]

    assert equal(arrange(X, y, None), arrange(X[order], y[order], None))


def test_whole_numbers_count_rows():
    X, y = table()
    counts = np.array([1.0, 3.0, 0.0, 2.0, 1.0, 1.0])

    repeated = arrange(X.repeat(counts.astype(int), axis=0), y.repeat(counts.astype(int)), None)

    assert equal(arrange(X, y, counts), repeated)


def test_rows_of_weight_zero_are_left_out():
    X, y = table()

    assert arrange(X, y, np.array([0.5, 0, 0, 0.5, 0.5, 0])).rows == 3


@pytest.mark.parametrize("weight", [np.full(6, 0.5), np.full(6, 1e6), np.array([1, 1, 1, 1, 1, 2.5])])
def test_other_weights_move_with_their_rows(weight):
    X, y = table()

    arranged = arrange(X, y, weight)

    pairs = {(x0, w) for x0, w in zip(X[:, 0], weight, strict=True)}
    assert {(x0, w) for x0, w in zip(arranged.X[:, 0], arranged.weight, strict=True)} == pairs


def test_targets_become_columns():
    X, y = table()

    assert arrange(X, y, None).y.shape == (6, 1)


def test_nothing_of_the_callers_is_changed():
    X, y = table()
    before = X.copy(), y.copy()

    arrange(X, y, np.arange(6.0))

    np.testing.assert_array_equal(X, before[0])
    np.testing.assert_array_equal(y, before[1])


@pytest.mark.parametrize(("X", "y"), [([1e200, 2e200], [1.0, 2.0]), ([1.0, 2.0], [1e-200, 2e-200])])
def test_values_whose_squares_can_not_be_held_are_refused(X, y):
    with pytest.raises(InvalidArgument, match="in another unit"):
        read_table(np.array(X)[:, None], np.array(y))


def test_dates_are_refused():
    dates = np.array(["2020-01-01", "2020-01-02"], dtype="datetime64[D]")[:, None]

    with pytest.raises(WrongType, match="`X` holds dates or times"):
        read_table(dates, np.ones(2))
