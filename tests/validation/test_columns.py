"""Equations on data: arrays, tensors, dictionaries and data frames; what is refused."""

import warnings

import numpy as np
import pandas as pd
import pytest
import torch

from eqlearn.errors import EqlearnError, InvalidArgument
from eqlearn.symbolic.equation import Equation

X = np.random.default_rng(0).uniform(-2, 2, size=(50, 2))


def made(text, variables=("x", "y")):
    return Equation.parse(text, variables)


def test_values_are_float64_one_per_row():
    values = made("x + 2*y")(X.astype(np.float32))

    assert values.dtype == np.float64
    assert values.shape == (50,)


def test_a_constant_is_repeated_for_every_row():
    assert made("2.5")(X).tolist() == [2.5] * 50


def test_one_variable_takes_one_dimension():
    assert Equation.parse("x**2", ["x"])([1, 2, 3]).tolist() == [1.0, 4.0, 9.0]


def test_no_rows_give_no_values():
    assert made("x + y")(np.empty((0, 2))).shape == (0,)


def test_a_data_frame_is_asked_by_name():
    frame = pd.DataFrame({"other": 0.0, "y": X[:, 1], "x": X[:, 0]})

    assert np.array_equal(made("x - 2*y")(frame), made("x - 2*y")(X))


def test_tensors_and_dictionaries_are_data_too():
    equation = made("x - 2*y")
    tensor = torch.tensor(X, requires_grad=True)

    assert np.array_equal(equation(tensor), equation(X))
    assert np.array_equal(equation({"y": X[:, 1], "x": X[:, 0]}), equation(X))


def test_outside_the_domain_there_is_no_value_and_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        values = Equation.parse("log(x) + 1/x + sqrt(x)", ["x"])([-1.0, 0.0, 4.0])

    assert np.isfinite(values).tolist() == [False, False, True]


def test_the_callers_data_are_left_alone():
    before = X.copy()

    made("x**2 + y")(X)

    assert np.array_equal(X, before)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (np.zeros((3, 3)), "shape"),
        (np.zeros(3), "shape"),
        (np.zeros((2, 2, 2)), "shape"),
        (3.0, "shape"),
        ([["a", "b"]], "numbers"),
        (np.zeros((2, 2), dtype=complex), "real"),
        (pd.DataFrame({"x": [1.0], "why": [2.0]}), "'y'; did you mean 'why'"),
        (pd.DataFrame({"x": [1.0], "y": ["a"]}), "column 'y'"),
        (pd.DataFrame([[1.0, 2.0, 3.0]], columns=["x", "y", "y"]), "column 'y'"),
        ({"x": [1.0, 2.0], "y": [1.0]}, "column 'y'"),
    ],
)
def test_data_of_the_wrong_shape_or_kind_are_refused(data, message):
    with pytest.raises(EqlearnError, match=message):
        made("x + y")(data)


def test_the_error_is_the_root_mean_square():
    assert made("x").error(X, X[:, 0] + 2.0) == pytest.approx(2.0)


def test_a_target_of_another_length_is_refused():
    with pytest.raises(InvalidArgument, match="50 rows"):
        made("x").error(X, np.zeros(49))


def test_columns_may_be_named_by_numbers():
    frame = pd.DataFrame(X)

    np.testing.assert_array_equal(made("`0` - `1`", ("0", "1"))(frame), X[:, 0] - X[:, 1])


def test_an_equation_without_variables_has_a_value_for_every_row():
    assert made("2.5", ())({"x": np.zeros(4)}).tolist() == [2.5] * 4
    assert made("2", ()).matches(made("2", ("x",)))


def test_complex_numbers_are_refused():
    with pytest.raises(EqlearnError, match="must hold real numbers, got complex ones"):
        made("x + y")(X + 1j)
