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


SPARSE = RNG.uniform(-2, 2, (60, 3))
a, b, c = SPARSE.T


@pytest.mark.parametrize(
    ("knows", "y"),
    [
        ({"even": "a"}, a**3 + b),
        ({"odd": "a"}, a**2 * c),
        ({"periodic": {"a": 0.7}}, np.exp(-a)),
        ({"positive": True}, a + c),
        ({"increasing": "b"}, np.sin(2 * b)),
        ({"increasing": "a"}, b - a**2),
        ({"through": {"a": 0, "b": 1, "c": 1, "y": 5}}, c),
        ({"limits": {"a": 1, "y": 9}}, a * b),
    ],
)
def test_rows_too_sparse_to_have_neighbours_contradict_by_a_polynomial(knows, y):
    table = Table(SPARSE, (y + 0.01 * RNG.normal(size=60))[:, None])

    with pytest.raises(InvalidArgument, match="the data contradict"):
        check_against_data(constraints_of(Knowledge(**knows), ("a", "b", "c")), table)


@pytest.mark.parametrize(
    ("knows", "y"),
    [
        ({"even": "a"}, np.abs(a) * b + c),
        ({"odd": "a"}, np.sin(2 * a) * c),
        ({"periodic": {"a": 1}}, np.sin(2 * np.pi * a) + b),
        ({"positive": True}, np.abs(a) * np.exp(b)),
        ({"increasing": "a"}, np.tanh(5 * a) + b * c),
        ({"through": {"a": 0, "y": 0}}, np.sign(a) * np.sqrt(np.abs(a)) * b),
        ({"limits": {"a": 0, "y": 1}}, np.exp(-(a**2)) + 0 * b),
    ],
)
@pytest.mark.parametrize("noise", [0, 0.02, 0.3])
def test_sparse_rows_that_agree_are_not_doubted(knows, y, noise):
    table = Table(SPARSE, (y + noise * y.std() * RNG.normal(size=60))[:, None])

    check_against_data(constraints_of(Knowledge(**knows), ("a", "b", "c")), table)


def test_few_rows_contradict_nothing():
    table = Table(X[:5], x[:5, None])

    check_against_data(constraints_of(Knowledge(positive=True), ("x", "z")), table)
