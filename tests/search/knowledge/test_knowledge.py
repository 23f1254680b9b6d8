import json
import math

import pytest
from sklearn.base import clone

from eqlearn import EQLRegressor, Knowledge
from eqlearn.errors import EqlearnError
from eqlearn.search.knowledge.knowledge import Condition, conditions_of, read_knowledge


def test_one_name_is_as_good_as_several():
    assert Knowledge(even="x") == Knowledge(even=["x"])


def test_a_dictionary_is_as_good_as_the_object():
    assert read_knowledge({"even": "x", "positive": True}, ("x",)) == Knowledge(even="x", positive=True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"even": "x", "odd": "x"}, "even and odd in 'x'"),
        ({"increasing": "x", "decreasing": ["y", "x"]}, "increasing and decreasing in 'x'"),
        ({"even": "x", "increasing": "x"}, "even and monotone"),
        ({"periodic": {"x": 2}, "decreasing": "x"}, "periodic and monotone"),
        ({"odd": "x", "positive": True}, "both signs"),
        ({"periodic": {"x": 0}}, "positive period"),
        ({"periodic": {"x": "day"}}, "must hold numbers"),
        ({"periodic": "x"}, "dictionary"),
        ({"even": 3}, "names of columns"),
        ({"template": 3}, "formula as text"),
        ({"template": "f(x)", "start": "x"}, "together"),
        ({"prefer": {"sine": 2}}, "no operator: 'sine'; did you mean 'sin"),
        ({"prefer": {"sin": -1}}, "price"),
        ({"holds": "yes"}, "function of an equation"),
        ({"through": [1, 2]}, "dictionary"),
    ],
)
def test_what_contradicts_itself_is_refused(arguments, message):
    with pytest.raises(EqlearnError, match=message):
        Knowledge(**arguments)


@pytest.mark.parametrize(
    ("knows", "message"),
    [
        ({"even": "z"}, "names no column: 'z'"),
        ({"evn": "x"}, "has no 'evn'; did you mean 'even'"),
        ("even", "must be a Knowledge"),
    ],
)
def test_what_is_about_something_else_is_refused(knows, message):
    with pytest.raises(EqlearnError, match=message):
        read_knowledge(knows, ("x", "y"))


def test_the_name_that_is_no_columns_is_the_targets():
    assert conditions_of("through", [{"x": 0.0, "T": 2.0}], ("a", "x")) == (Condition(((1, 0.0),), 2.0),)


@pytest.mark.parametrize(
    ("argument", "places", "message"),
    [
        ("through", [{"x": 0.0}], "by one other name, the target"),
        ("through", [{"x": 0.0, "q": 1.0, "y": 2.0}], "by one other name"),
        ("through", [{"x": math.inf, "y": 2.0}], "must be finite"),
        ("limits", [{"x": 0.0, "a": 1.0, "y": 2.0}], "in one column each"),
        ("limits", [{"x": 0.0, "y": math.inf}], "must be finite"),
        ("through", [{"x": 0.0, "y": 1.0}, {"x": 0.0, "y": 2.0}], "at the same place"),
    ],
)
def test_points_that_are_none_are_refused(argument, places, message):
    with pytest.raises(EqlearnError, match=message):
        conditions_of(argument, places, ("a", "x"))


def test_what_was_said_is_plain_data():
    knows = Knowledge(even="x", limits={"x": math.inf, "y": 0})

    assert json.loads(json.dumps(knows.to_json())) == {"even": ["x"], "limits": [{"x": "inf", "y": 0.0}]}


def test_an_estimator_with_knowledge_can_be_cloned():
    model = EQLRegressor(knows=Knowledge(even="x"))

    assert clone(model).knows == model.knows
