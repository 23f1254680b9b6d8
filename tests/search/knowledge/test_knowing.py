import math

import numpy as np
import pytest

from eqlearn import EQLRegressor, InvalidArgument, Knowledge, Settings, discover
from eqlearn.search.knowledge.constraints import Survey, constraints_of
from eqlearn.search.knowledge.knowing import knowingly
from eqlearn.validation.table import Table

QUICK = Settings(networks=False, strategies=("linear", "rational", "profiled", "pairs"))
RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, (100, 1))
P = RNG.uniform(0.1, 4, (80, 1))
x, p = X[:, 0], P[:, 0]
NOISE = RNG.normal(size=100)


@pytest.mark.parametrize(
    ("X", "y", "knows"),
    [
        (X, np.exp(-(x**2)) + 0.05 * NOISE, {"even": "x", "positive": True}),
        (X, np.sin(2 * x) + 0.1 * NOISE, {"odd": "x"}),
        (X, 2 + np.sin(np.pi * x + 0.5) + 0.1 * NOISE, {"periodic": {"x": 2}}),
        (X, 2 * x + 1 + 0.3 * NOISE, {"through": {"x": 0.25, "y": 1.5}, "increasing": "x"}),
        (
            P,
            5 + 2 * np.exp(-1.3 * p) + 0.05 * NOISE[:80],
            {"limits": {"x": math.inf, "y": 5}, "decreasing": "x"},
        ),
    ],
)
def test_all_that_is_delivered_agrees_with_what_is_known_in_noise(X, y, knows):
    found = discover(X, y, knows=knows, settings=QUICK)

    survey = Survey.of(Table(X, y[:, None]))
    for constraint in constraints_of(Knowledge(**knows), ("x",)):
        assert all(constraint.holds(candidate.equation, survey) for candidate in found.front)
    assert found.best.training_error < 0.5


def test_knowledge_finds_what_noise_hides():
    y = 2 * x**2 + 0.3 * x * 0 + 0.4 * NOISE

    found = discover(X, y, knows={"even": "x", "through": {"x": 0, "y": 0}}, settings=QUICK)

    assert found.best.equation.matches("2*x**2", tolerance=0.1)


def test_a_guess_is_improved():
    found = discover(P, 2.5 * p**1.5 + 0.3 * np.sin(5 * p), knows={"start": "k*x**1.4"}, settings=QUICK)

    assert found.exact
    assert found.best.equation.matches("2.5*x**1.5 + 0.3*sin(5*x)", box=(0.1, 4))


def test_a_template_is_filled():
    rows = RNG.uniform(0.5, 3, (150, 3))
    y = (rows[:, 0] * rows[:, 1] + 1) * np.exp(-rows[:, 2])

    found = discover(
        rows, y, variables=["a", "b", "c"], knows={"template": "y = f(a, b) * exp(-g(c))"}, settings=QUICK
    )

    assert found.exact
    assert found.best.equation.matches("(a*b + 1)*exp(-c)", box=(0.5, 3))


def test_a_dear_operator_is_avoided():
    y = np.sin(x) + 0.3 * NOISE

    usual = discover(X, y, settings=QUICK, restarts=30)
    dear = discover(X, y, settings=QUICK, restarts=30, knows={"prefer": {"sin": 50, "cos": 50}})

    assert "sin" in str(usual.best)
    assert "sin" not in str(dear.best)


def test_a_function_of_ones_own_decides_too():
    found = discover(X, np.sin(2 * x), settings=QUICK, knows={"holds": lambda e: "sin" not in str(e)})

    assert "sin" not in str(found.front)


def test_without_knowledge_nothing_changes():
    y = np.cos(x) + x + 0.1 * NOISE

    plain, told = (discover(X, y, settings=QUICK, restarts=20, knows=k) for k in (None, {}))

    assert str(plain.best) == str(told.best)
    assert plain.best.description_length == told.best.description_length


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"knows": {"even": "x"}}, "the data contradict `even` in 'x'"),
        ({"knows": {"even": "z"}}, "names no column"),
        ({"knows": {"odd": "x"}, "y_error": 0.1}, "`knows` can't be used with `y_error`"),
        ({"knows": {"odd": "x"}, "groups": [1, 2] * 50}, "can't be used with `knows`"),
        ({"knows": {"template": "f(q)"}}, "no column"),
        ({"knows": {"holds": lambda e: False}}, "no formula was found that agrees with `holds`"),
    ],
)
def test_what_can_not_be_used_is_refused_in_a_sentence(options, message):
    with pytest.raises(InvalidArgument, match=message):
        discover(X, x**3 + x, settings=QUICK, **options)


def test_several_targets_are_refused():
    with pytest.raises(InvalidArgument, match="one target at a time"):
        knowingly(
            discover, {"X": X, "y": np.hstack([X, X]), "sample_weight": None, "variables": None, "knows": {}}
        )


def test_an_estimator_knows_it_too():
    model = EQLRegressor(knows=Knowledge(even="x0"), settings=QUICK, restarts=10)

    with pytest.raises(InvalidArgument, match="names no column: 'x0'"):
        model.fit(X, x**2)
    assert str(model.set_params(knows={"even": "x"}).fit(X, x**2).equation_) == "x**2"
