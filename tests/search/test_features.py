"""Screening: no column that matters is lost, and few others stay."""

import numpy as np
import pytest
from scipy.stats import rankdata

from eqlearn.search.features import _ranks, screen
from eqlearn.search.settings import Screening

FEW, LEAST = Screening().max_unscreened, Screening().min_columns

LAWS = {
    "a product": lambda a, b, c: a * b * c,
    "a quotient": lambda a, b, c: a * b / c,
    "a sum": lambda a, b, c: 3 * a + b**2 - np.sin(2 * c),
    "waves": lambda a, b, c: np.sin(6 * a) + np.cos(4 * b * c),
    "one large term": lambda a, b, c: 0.3 * np.cos(5 * a) * b + c**4,
}


def wide_table(low, rows=400, columns=30, seed=0):
    rng = np.random.default_rng(seed)
    return rng.uniform(low, 2 + low / 2, (rows, columns)), rng


@pytest.mark.parametrize("low", [-2.0, 0.5])
@pytest.mark.parametrize("law", ["a product", "a quotient", "a sum", "one large term"])
def test_columns_that_matter_are_kept(law, low):
    X, _ = wide_table(low)
    y = LAWS[law](X[:, 4], X[:, 17], X[:, 25])

    assert {4, 17, 25} <= set(screen(X, y[:, None], 36))


def test_waves_are_seen_without_a_linear_part():
    X, _ = wide_table(-1.0)
    y = LAWS["waves"](X[:, 4], X[:, 17], X[:, 25])

    assert {4, 17, 25} <= set(screen(X, y[:, None], 36))


def test_noise_does_not_hide_a_column():
    X, rng = wide_table(-1.0)
    y = LAWS["a sum"](X[:, 4], X[:, 17], X[:, 25])
    y = y + rng.normal(0, 0.3 * y.std(), len(y))

    assert {4, 17, 25} <= set(screen(X, y[:, None], 36))


def test_most_columns_of_pure_noise_are_left_out():
    X, rng = wide_table(-1.0)

    assert len(screen(X, rng.normal(size=(len(X), 1)), 36)) <= LEAST + 2


def test_all_columns_that_matter_are_kept_however_many():
    X, _ = wide_table(-1.0)

    assert set(range(15)) <= set(screen(X, X[:, :15].sum(axis=1, keepdims=True), 36))


def test_a_column_that_matters_to_one_target_only_is_kept():
    X, _ = wide_table(-1.0)

    assert {4, 17} <= set(screen(X, np.stack([X[:, 4] ** 2, X[:, 17]], axis=1), 36))


def test_a_narrow_table_is_seen_whole():
    X, rng = wide_table(-1.0, columns=FEW)

    assert screen(X, rng.normal(size=(len(X), 1)), 36) == tuple(range(FEW))


@pytest.mark.parametrize("rows", [2, 20])
def test_few_rows_constant_columns_and_a_constant_target_do_no_harm(rows):
    X, _ = wide_table(-1.0, rows=rows)
    X[:, 3] = 7.0

    assert len(screen(X, np.full((rows, 1), 2.0), 36)) >= LEAST


def test_ranks_are_those_of_scipy_also_of_equal_values():
    values = np.random.default_rng(0).integers(0, 9, size=40).astype(float)

    np.testing.assert_array_equal(_ranks(values), rankdata(values, method="ordinal") - 1)
