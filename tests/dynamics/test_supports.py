import numpy as np

from eqlearn.dynamics.settings import MotionSettings
from eqlearn.dynamics.supports import Regression, Support, sparse_path

RNG = np.random.default_rng(0)
MATRIX = RNG.standard_normal((80, 30))
# Columns that are nearly alike, as powers of one state are.
MATRIX[:, 10:] += 2 * MATRIX[:, :1]


def best(path, size):
    return min((s for s in path if len(s.places) == size), key=lambda s: s.loss)


def test_the_columns_of_an_exact_sum_are_found():
    target = MATRIX[:, [3, 12, 17, 25]] @ [1.0, -2.0, 0.5, 3.0]

    found = best(sparse_path(Regression(MATRIX, target)), 4)

    assert found.places == (3, 12, 17, 25)
    assert found.loss < 1e-20


def test_elimination_finds_what_growing_alone_does_not():
    target = MATRIX[:, 11] - MATRIX[:, 12] + 0.01 * MATRIX[:, 5]
    narrow = MotionSettings(beam=1, max_terms=3)

    found = best(sparse_path(Regression(MATRIX, target), [range(30)], narrow), 3)

    assert found.places == (5, 11, 12)


def test_coefficients_are_in_the_units_of_the_columns():
    target = MATRIX[:, [1, 2]] @ [100.0, 1e-3]

    factors, _ = Regression(MATRIX * 1e4, target).fit((1, 2))

    np.testing.assert_allclose(factors, [1e-2, 1e-7], rtol=1e-9)


def test_in_noise_the_true_columns_have_the_best_score():
    target = MATRIX[:, [3, 12]] @ [1.0, -2.0] + 0.3 * RNG.standard_normal(80)
    regression = Regression(MATRIX, target)

    found = min(sparse_path(regression), key=lambda s: s.score(regression.rows))

    assert found.places == (3, 12)


def test_a_column_that_is_not_finite_is_never_chosen():
    broken = MATRIX.copy()
    broken[0, 3] = np.nan
    target = MATRIX[:, 3] + 0.1 * MATRIX[:, 4]

    assert all(3 not in s.places for s in sparse_path(Regression(broken, target)))


def test_constants_inside_cost_as_well():
    assert Support((1,), 0.1).score(50, inside=1) > Support((1,), 0.1).score(50)
