import math

import numpy as np
import pytest

from eqlearn import Equation, InvalidArgument, Knowledge
from eqlearn.search.knowledge.constraints import Survey, constraints_of
from eqlearn.validation.table import Table

RNG = np.random.default_rng(1)
X = np.stack([RNG.uniform(-2, 2, 60), RNG.uniform(1, 3, 60)], axis=1)
SURVEY = Survey.of(Table(X, X[:, :1] * X[:, 1:]))
INF = math.inf


@pytest.mark.parametrize(
    ("knows", "right", "wrong"),
    [
        ({"even": "x"}, "x**2*z + cos(x) + abs(x)", "x**2 + 0.001*x"),
        ({"even": "x"}, "z", "sqrt(x + 2)"),
        ({"odd": "x"}, "z*sin(x) + x**3 + x*abs(x)", "x + 0.001"),
        ({"periodic": {"x": 0.5}}, "z*sin(4*pi*x)**2 + 1", "sin(12.5*x)"),
        ({"positive": True}, "x**2 + z", "x**2 + z - 1.5"),
        ({"increasing": "x"}, "x**3 + z", "x**2"),
        ({"decreasing": "z"}, "1/z - x", "z*x"),
        ({"decreasing": "x"}, "-x", "1/x"),
        ({"through": {"x": 0, "y": 2}}, "2 + x*z", "2 + x + z"),
        ({"through": {"x": 1, "z": 2, "y": 5}}, "x + 2*z", "x + z"),
        ({"limits": {"x": INF, "y": 0}}, "z*exp(-x)", "z*exp(-x) + 0.1*z"),
        ({"limits": {"x": INF, "y": 0}}, "exp(-x**2)", "exp(x**2)"),
        ({"limits": {"x": INF, "y": 1}}, "1/(1 + exp(-x))", "1/(1 + exp(x))"),
        ({"limits": {"x": -INF, "y": 0}}, "1/(1 + exp(-x))", "1/x + 1e-9*x"),
        ({"limits": {"x": 0, "y": 1}}, "sin(x)/x", "cos(x)/x"),
        ({"limits": {"z": INF, "y": 0}}, "x/sqrt(z)", "sin(z)"),
    ],
)
def test_a_constraint_tells_right_from_wrong(knows, right, wrong):
    (constraint,) = constraints_of(Knowledge(**knows), ("x", "z"))

    assert constraint.holds(Equation.parse(right, ("x", "z")), SURVEY)
    assert not constraint.holds(Equation.parse(wrong, ("x", "z")), SURVEY)


@pytest.mark.parametrize(
    "knows",
    [
        {"positive": True, "through": {"x": 0, "y": -1}},
        {"odd": "x", "through": {"x": 0, "y": 1}},
        {"periodic": {"x": 1}, "limits": {"x": INF, "y": 1}},
    ],
)
def test_points_that_signs_and_symmetries_rule_out_are_refused(knows):
    with pytest.raises(InvalidArgument, match=r"positive|odd|periodic"):
        constraints_of(Knowledge(**knows), ("x", "z"))


def test_a_point_holds_whatever_the_columns_are_that_it_does_not_name():
    (constraint,) = constraints_of(Knowledge(through={"x": 0, "y": 3}), ("x", "z"))

    points, values = constraint.pins(SURVEY)

    assert (points[:, 0] == 0).all()
    assert len(set(points[:, 1])) > 5
    assert (values == 3).all()
