"""Sums of few columns: the right ones, as networks that say the same."""

import numpy as np
import pytest

from eqlearn.search.ansatz.stepwise import stepwise_sums
from eqlearn.search.features import Features
from eqlearn.search.finish import Finisher
from eqlearn.search.settings import Reading
from eqlearn.validation.table import Table


def noisy_sum(rows=200, columns=10, outputs=1, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, columns))
    y = X[:, :outputs] * 5 + X[:, [3]] - 2 * X[:, [7]] + 4 + rng.normal(0, 0.5, (rows, outputs))
    return Table(X, y)


def ladder(table, most=12):
    return stepwise_sums(
        Features.of(table.X, table.y, logarithms=False, degree=1), table, Reading(max_terms=most)
    )


def candidates(table, most=12):
    features = Features.of(table.X, table.y, logarithms=False, degree=1)
    names = tuple(f"x{i}" for i in range(table.X.shape[1]))
    finisher = Finisher(features, names, table)
    return [
        finisher.candidate(fit, "stepwise", snap=False)
        for fit in stepwise_sums(features, table, Reading(max_terms=most))
    ]


def test_the_columns_that_matter_are_in_every_sum_that_is_offered():
    for candidate in candidates(noisy_sum()):
        assert {"x0", "x3", "x7"} <= {str(s) for s in candidate.equation.expr.free_symbols}


def test_each_sum_is_longer_and_fits_better_than_the_one_before():
    fits = ladder(noisy_sum())

    assert len(fits) > 1
    assert np.all(np.diff([fit.weights for fit in fits]) > 0)
    assert np.all(np.diff([fit.loss for fit in fits]) < 0)


def test_the_equation_is_the_least_squares_fit():
    table = noisy_sum(columns=3 + 5)
    candidate = candidates(table)[0]
    used = sorted(int(str(s)[1:]) for s in candidate.equation.expr.free_symbols)
    matrix = np.column_stack([table.X[:, used], np.ones(table.rows)])

    expected = matrix @ np.linalg.lstsq(matrix, table.y[:, 0], rcond=None)[0]

    np.testing.assert_allclose(candidate.equation(table.X), expected, rtol=1e-6, atol=1e-8)


def test_no_sum_is_longer_than_allowed():
    assert max(fit.weights for fit in ladder(noisy_sum(), most=4)) <= 5


def test_a_column_that_helps_only_together_with_another_is_found():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 10))
    X[:, 1] = X[:, 0] + 0.05 * rng.normal(size=200)
    y = 20 * (X[:, 1] - X[:, 0]) + X[:, 2] + 0.1 * rng.normal(size=200)

    shortest = candidates(Table(X, y[:, None]))[0]

    assert {str(s) for s in shortest.equation.expr.free_symbols} >= {"x0", "x1", "x2"}


def test_every_target_has_its_own_columns():
    found = candidates(noisy_sum(outputs=2))[0]

    first, second = ({str(s) for s in e.expr.free_symbols} for e in found.equations)
    assert "x0" in first - second
    assert "x1" in second - first


@pytest.mark.parametrize("column", [0, 5])
def test_constant_and_repeated_columns_are_left_out(column):
    table = noisy_sum()
    X = np.column_stack([table.X, np.ones(table.rows), table.X[:, column]])

    fits = ladder(Table(X, table.y))

    assert max(fit.weights for fit in fits) <= 11


def test_a_table_of_fewer_rows_than_columns_gives_short_sums():
    assert all(fit.weights <= 5 for fit in ladder(noisy_sum(rows=10, columns=12)))


def test_a_table_of_two_rows_gives_none():
    assert ladder(noisy_sum(rows=2)) == []
