import math

import numpy as np
import pytest

from eqlearn import EQLRegressor, InvalidArgument, Knowledge, Settings, discover
from eqlearn.search.knowledge.constraints import Survey, constraints_of
from eqlearn.search.knowledge.knowing import knowingly
from eqlearn.validation.table import Table

QUICK = Settings(networks=False, strategies=("linear", "rational", "profiled", "pairs"))
LINEAR = Settings(networks=False, strategies=("linear",))
PROFILED = Settings(networks=False, strategies=("linear", "profiled"))
PAIRS = Settings(networks=False, strategies=("linear", "pairs"))
RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, (100, 1))
P = RNG.uniform(0.1, 4, (80, 1))
x, p = X[:, 0], P[:, 0]
NOISE = RNG.normal(size=100)


@pytest.mark.parametrize(
    ("X", "y", "knows", "settings"),
    [
        (X, 2 * x + 1 + 0.3 * NOISE, {"through": {"x": 0.25, "y": 1.5}, "increasing": "x"}, LINEAR),
        *(
            pytest.param(*each, PAIRS, marks=pytest.mark.slow)
            for each in [
                (X, np.exp(-(x**2)) + 0.05 * NOISE, {"even": "x", "positive": True}),
                (X, np.sin(2 * x) + 0.1 * NOISE, {"odd": "x"}),
                (X, 2 + np.sin(np.pi * x + 0.5) + 0.1 * NOISE, {"periodic": {"x": 2}}),
                (
                    P,
                    5 + 2 * np.exp(-1.3 * p) + 0.05 * NOISE[:80],
                    {"limits": {"x": math.inf, "y": 5}, "decreasing": "x"},
                ),
            ]
        ),
    ],
)
def test_all_that_is_delivered_agrees_with_what_is_known_in_noise(X, y, knows, settings):
    found = discover(X, y, knows=knows, settings=settings)

    survey = Survey.of(Table(X, y[:, None]))
    for constraint in constraints_of(Knowledge(**knows), ("x",)):
        assert all(constraint.holds(candidate.equation, survey) for candidate in found.front)
    assert found.best.training_error < 0.5


@pytest.mark.slow
def test_a_term_that_noise_lets_in_is_kept_out_by_a_symmetry():
    y = 2 * x**2 + 0.1 * x + 0.4 * NOISE
    sums = Settings(networks=False, strategies=("linear", "elimination"))

    free, even = (discover(X, y, knows=knows, settings=sums) for knows in (None, {"even": "x"}))

    assert any(c.equation(np.array([1.0])) != c.equation(np.array([-1.0])) for c in free.front)
    assert all(c.equation(np.array([1.0])) == c.equation(np.array([-1.0])) for c in even.front)
    assert even.best.training_error < 0.2


@pytest.mark.slow
def test_a_guess_is_improved():
    found = discover(P, 2.5 * p**1.5 + 0.3 * np.sin(5 * p), knows={"start": "k*x**1.4"}, settings=QUICK)

    assert found.exact
    assert found.best.equation.matches("2.5*x**1.5 + 0.3*sin(5*x)", box=(0.1, 4))


@pytest.mark.slow
def test_a_template_is_filled():
    rows = RNG.uniform(0.5, 3, (150, 3))
    y = (rows[:, 0] * rows[:, 1] + 1) * np.exp(-rows[:, 2])

    found = discover(
        rows, y, variables=["a", "b", "c"], knows={"template": "y = f(a, b) * exp(-g(c))"}, settings=QUICK
    )

    assert found.exact
    assert found.best.equation.matches("(a*b + 1)*exp(-c)", box=(0.5, 3))


@pytest.mark.slow
def test_a_dear_operator_is_avoided():
    y = np.exp(p / 2) + 0.1 * NOISE[:80]

    usual = discover(P, y, settings=PROFILED)
    dear = discover(P, y, settings=PROFILED, knows={"prefer": {"exp": 50}})

    assert "exp" in str(usual.best)
    assert "exp" not in str(dear.best)


def test_a_function_of_ones_own_decides_too():
    usual = discover(P, 2 * p**2, settings=LINEAR)
    found = discover(P, 2 * p**2, settings=LINEAR, knows={"holds": lambda e: "x**2" not in str(e)})

    assert "x**2" in str(usual.best)
    assert found.front
    assert not any("x**2" in str(candidate) for candidate in found.front)


def test_without_knowledge_nothing_changes():
    y = x**2 + x + 0.1 * NOISE

    plain, told = (discover(X, y, settings=LINEAR, knows=k) for k in (None, Knowledge()))

    assert str(plain.front) == str(told.front)


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
        discover(X, x**3 + x, settings=LINEAR, **options)


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
