"""Tables of constants that vary."""

import json

import numpy as np
import pytest

from eqlearn import Equation, Varying
from eqlearn.errors import InvalidArgument, InvalidFile, UnknownName

EQUATION = Equation.parse("c1[sample]*x + 2.5", ["x", "c1[sample]"])


def made(**changes):
    parts = {
        "group": "sample", "labels": ("a", "b"), "names": ("c1[sample]",), "values": np.array([[1.0], [3.0]]),
        "standard_errors": np.array([[0.1], [np.inf]]), "population": np.array([[2.0], [1.0]]), "noise": 0.1,
    }  # fmt: skip
    return Varying(**{**parts, **changes})


def test_names_with_a_group_need_no_backticks():
    assert str(EQUATION) == "c1[sample]*x + 2.5"
    assert Equation.from_json(EQUATION.to_json()) == EQUATION
    assert EQUATION.latex() == r"c_{1}[\mathrm{sample}] x + 2.5"


def test_rows_get_the_constants_of_their_group():
    varying = made()

    inputs = varying.inputs([[1.0], [2.0]], EQUATION, ["b", "a"])

    assert inputs.tolist() == [[1.0, 3.0], [2.0, 1.0]]
    assert EQUATION(inputs).tolist() == [5.5, 4.5]
    assert str(varying.equation_of(EQUATION, "b")) == "3.0*x + 2.5"


def test_groups_are_asked_for_and_unknown_ones_refused():
    with pytest.raises(InvalidArgument, match="give `groups`, one label a row"):
        made().inputs([[1.0]], EQUATION, None)
    with pytest.raises(UnknownName, match="'c', which was not fitted"):
        made().inputs([[1.0]], EQUATION, ["c"])


def test_a_table_is_one_row_a_group():
    frame = made().frame()

    assert frame.columns.tolist() == ["sample", "c1[sample]", "c1[sample] standard error"]
    assert frame["sample"].tolist() == ["a", "b"]


def test_tables_are_read_back_from_json():
    varying = made(parameter="t", at=np.array([0.5, 1.5]))

    again = Varying.from_json(json.loads(json.dumps(varying.to_json())))

    assert again.labels == varying.labels
    np.testing.assert_array_equal(again.values, varying.values)
    assert np.isnan(again.standard_errors[1, 0])
    assert again.interpolated(np.array([1.0])).tolist() == [[2.0]]


@pytest.mark.parametrize(
    "damage", [{"values": [[1.0]]}, {"names": []}, {"labels": [["a"], "b"]}, {"at": "x"}]
)
def test_damaged_tables_are_refused(damage):
    with pytest.raises(InvalidFile, match="varying constants"):
        Varying.from_json({**made().to_json(), **damage})
