"""Noise is taken for noise, and structure is not."""

import numpy as np
import pytest

from eqlearn.numerics.residuals import looks_like_noise, noise_seen


def columns(rows=300, count=3, seed=0):
    return np.random.default_rng(seed).uniform(-1, 2, size=(rows, count))


@pytest.mark.parametrize("rows", [60, 100, 2000])
@pytest.mark.parametrize("tails", ["normal", "uniform"])
def test_noise_looks_like_noise_nearly_always(rows, tails):
    rng = np.random.default_rng(1)
    drawn = [getattr(rng, tails)(size=rows) for _ in range(200)]

    said = [looks_like_noise(columns(rows), left - left.mean()) for left in drawn]

    assert sum(said) >= 190


@pytest.mark.parametrize(
    "left",
    [
        lambda x: x[:, 0] ** 3,
        lambda x: x[:, 0] * x[:, 1],
        lambda x: np.sin(4 * x[:, 2]),
        lambda x: np.abs(x[:, 1]),
    ],
)
def test_structure_in_twice_as_much_noise_is_seen(left):
    x = columns(400)
    values = left(x) - left(x).mean()

    noisy = values + 2 * values.std() * np.random.default_rng(2).normal(size=len(x))

    assert not looks_like_noise(x, values)
    assert not looks_like_noise(x, noisy)


def test_nothing_left_is_no_noise():
    assert not looks_like_noise(columns(), np.zeros(300))


def test_columns_that_do_not_vary_say_nothing():
    x = np.column_stack([columns(), np.ones(300)])

    assert looks_like_noise(x, np.random.default_rng(3).normal(size=300))
    assert not looks_like_noise(x, x[:, 0] ** 2)


SMOOTH = [
    lambda x: np.exp(x[:, 0]) / (3 + x[:, 1]),
    lambda x: np.sin(2 * x[:, 0]) * x[:, 1] + x[:, 1] ** 2,
    lambda x: np.sqrt(2 + x[:, 0]) * np.log(3 + x[:, 1]),
]


@pytest.mark.parametrize("law", SMOOTH)
@pytest.mark.parametrize("level", [0.01, 0.1])
def test_noise_shows_before_there_is_a_law(law, level):
    x = columns(500, 2)
    exact = law(x)

    noisy = exact + level * exact.std() * np.random.default_rng(4).normal(size=len(x))

    assert noise_seen(x, noisy) == pytest.approx(level, rel=0.2)


@pytest.mark.parametrize("law", SMOOTH)
def test_exact_values_show_none(law):
    x = columns(500, 2)

    assert noise_seen(x, law(x)) == 0


def test_values_that_are_all_the_same_show_none():
    assert noise_seen(columns(200, 2), np.full(200, 3.7)) == 0


@pytest.mark.parametrize(("rows", "count"), [(5, 1), (8, 40), (30, 30)])
def test_few_rows_show_nothing_and_break_nothing(rows, count):
    x = columns(rows, count)

    assert noise_seen(x, x[:, 0]) is None
    assert noise_seen(np.ones((rows, count)), x[:, 0]) is None


def test_of_few_rows_nothing_is_said_to_be_noise():
    x = np.linspace(-2, 2, 10)[:, None]

    assert not looks_like_noise(x, np.random.default_rng(0).normal(size=10))


def test_a_few_large_residuals_do_not_hide_what_the_others_have_in_common():
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, size=(400, 3))
    heavy = rng.standard_t(1.5, size=400)

    assert looks_like_noise(x, heavy)
    assert not looks_like_noise(x, heavy + 3 * x[:, 1])
