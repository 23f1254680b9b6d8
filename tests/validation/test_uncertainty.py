import numpy as np
import pytest

from eqlearn.errors import InvalidArgument
from eqlearn.validation.table import Table, arrange
from eqlearn.validation.uncertainty import read_uncertainty

TABLE = Table(np.ones((6, 2)), np.ones((6, 1)))


@pytest.mark.parametrize(
    ("y_error", "x_error", "x"),
    [
        (0.5, None, [0, 0]),
        (np.full(6, 0.5), {"b": 2.0}, [0, 2]),
        (np.full((6, 1), 0.5), [1, 2], [1, 2]),
        ([0.5] * 6, np.tile([1.0, 2.0], (6, 1)), [1, 2]),
        (0.5, {"a": np.full(6, 1.0), "b": 2}, [1, 2]),
    ],
)
def test_every_form_gives_a_number_for_every_value(y_error, x_error, x):
    read = read_uncertainty(y_error, x_error, TABLE, ("a", "b"))

    np.testing.assert_array_equal(read.y, np.full((6, 1), 0.5))
    np.testing.assert_array_equal(read.x, np.tile(x, (6, 1)))


@pytest.mark.parametrize(
    ("y_error", "x_error", "words"),
    [
        (None, 0.1, "`x_error` needs `y_error`"),
        (-1, None, "none negative"),
        (np.nan, None, "finite"),
        (0, None, "must be positive in every row"),
        (0, {"a": [0, 1, 1, 1, 1, 1]}, "must be positive in every row"),
        ([1, 2], None, "one for each of the 6 rows"),
        (1, 0.1, "which column"),
        (1, {"aa": 0.1}, "did you mean 'a'"),
        (1, {"a": [1, 2]}, "6 rows"),
        ("much", None, "numbers only"),
    ],
)
def test_what_is_no_standard_deviation_is_refused(y_error, x_error, words):
    with pytest.raises(InvalidArgument, match=words):
        read_uncertainty(y_error, x_error, TABLE, ("a", "b"))


def test_weights_and_errors_are_not_given_together():
    with pytest.raises(InvalidArgument, match="leave `sample_weight` out"):
        read_uncertainty(1, None, Table(TABLE.X, TABLE.y, np.ones(6)), ("a", "b"))


def test_errors_stay_with_their_rows_when_a_table_is_sorted():
    X = np.array([[3.0], [1.0], [2.0]])
    errors = read_uncertainty(X[:, 0] / 10, None, Table(X, X), ("a",))

    table = arrange(X, X[:, 0], None, errors)

    np.testing.assert_array_equal(table.errors.y[:, 0], table.X[:, 0] / 10)
