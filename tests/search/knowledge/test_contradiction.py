import numpy as np
import pytest

from eqlearn import InvalidArgument, Knowledge
from eqlearn.search.knowledge.constraints import constraints_of
from eqlearn.search.knowledge.contradiction import check_against_data
from eqlearn.validation.table import Table

RNG = np.random.default_rng(0)
X = np.stack([RNG.uniform(-2, 2, 300), RNG.uniform(1, 3, 300)], axis=1)
x, z = X.T
NOISE = 0.05 * RNG.normal(size=300)


def check(knows, y):
    check_against_data(constraints_of(Knowledge(**knows), ("x", "z")), Table(X, y[:, None]))


@pytest.mark.parametrize(
    ("knows", "y"),
    [
        ({"even": "x"}, x**3 * z),
        ({"odd": "x"}, z + x**2),
        ({"periodic": {"x": 0.7}}, 5 * x + NOISE),
        ({"positive": True}, x + NOISE),
        ({"increasing": "x"}, -x * z),
        ({"decreasing": "x"}, 3 * x**2 - z),
        ({"through": {"x": 0, "y": 9}}, x * z + NOISE),
        ({"limits": {"x": 0, "y": 9}}, x * z + NOISE),
    ],
)
def test_data_that_say_otherwise_are_a_reason_to_refuse(knows, y):
    with pytest.raises(InvalidArgument, match="the data contradict"):
        check(knows, y)


@pytest.mark.parametrize(
    ("knows", "y"),
    [
        ({"even": "x"}, np.abs(x) ** 1.5 * z + NOISE),
        ({"odd": "x"}, np.sin(3 * x) / z + NOISE),
        ({"periodic": {"x": 0.7}}, np.sin(2 * np.pi * x / 0.7) + NOISE),
        ({"positive": True}, x**2 * z + NOISE),
        ({"increasing": "x"}, np.tanh(9 * x) + NOISE),
        ({"decreasing": "z"}, 1 / z + NOISE),
        ({"through": {"x": 0, "y": 0}}, x * z + NOISE),
        ({"limits": {"x": np.inf, "y": 50}}, x * z + NOISE),
    ],
)
def test_data_that_agree_in_noise_are_not_doubted(knows, y):
    check(knows, y)


def test_few_rows_contradict_nothing():
    table = Table(X[:5], x[:5, None])

    check_against_data(constraints_of(Knowledge(positive=True), ("x", "z")), table)
