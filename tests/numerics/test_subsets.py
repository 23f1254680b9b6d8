"""The best sums of few columns are found, and noise in the columns does not bias them."""

import numpy as np

from eqlearn.numerics.subsets import Regression, sparse_path

RNG = np.random.default_rng(0)
MATRIX = RNG.standard_normal((80, 30))
# Columns that are nearly alike, as powers of one state are.
MATRIX[:, 10:] += 2 * MATRIX[:, :1]


def best(regression, size, beam=24, **options):
    path = sparse_path(regression, size, beam, **options)
    return regression.fitted(next(p for p in path if len(p) == size))


def test_the_columns_of_an_exact_sum_are_found():
    target = MATRIX[:, [3, 12, 17, 25]] @ [1.0, -2.0, 0.5, 3.0]

    found = best(Regression.of(MATRIX, target), 4)

    assert found.places == (3, 12, 17, 25)
    assert found.loss < 1e-20
    np.testing.assert_allclose(found.coefficients, [1.0, -2.0, 0.5, 3.0])


def test_elimination_alone_finds_the_columns_of_an_exact_sum():
    target = MATRIX[:, 11] - MATRIX[:, 12] + 0.01 * MATRIX[:, 5]

    found = best(Regression.of(MATRIX, target), 3, sweeps=0, starts=[range(30)])

    assert found.places == (5, 11, 12)


def test_all_pairs_beside_given_columns_are_seen():
    target = MATRIX[:, 11] - MATRIX[:, 12]
    regression = Regression.of(MATRIX, target)

    assert best(regression, 2, beam=1, sweeps=0, beside=[()]).places == (11, 12)
    target = target + 0.01 * MATRIX[:, 5] + MATRIX[:, 7]
    regression = Regression.of(MATRIX, target)
    assert best(regression, 4, beam=1, sweeps=0, beside=[(5, 7)]).places == (5, 7, 11, 12)
    assert not any(len(p) == 4 for p in sparse_path(regression, 4, 1, sweeps=0, beside=[(5, 99)]))


def test_what_sums_are_said_to_leave_is_what_they_leave():
    regression = Regression.of(MATRIX, MATRIX[:, [3, 12]] @ [1.0, -2.0] + RNG.standard_normal(80))

    path = sparse_path(regression, 4, 6, beside=[(), (3,), (5, 6)], starts=[range(20)])

    assert {len(p) for p in path} == {0, 1, 2, 3, 4}
    for places, left in path.items():
        np.testing.assert_allclose(regression.fitted(places).loss, left, rtol=1e-6)


def test_few_rows_are_kept_as_they_are():
    few = Regression.of(MATRIX[:20], MATRIX[:20, 3])

    assert few.factor.shape == (20, 31)
    assert best(few, 1).places == (3,)


def test_coefficients_are_in_the_units_of_the_columns():
    target = MATRIX[:, [1, 2]] @ [100.0, 1e-3]

    found = Regression.of(MATRIX * 1e4, target).fitted((1, 2))

    np.testing.assert_allclose(found.coefficients, [1e-2, 1e-7], rtol=1e-9)


def test_a_column_that_is_not_finite_is_never_chosen():
    broken = MATRIX.copy()
    broken[0, 3] = np.nan
    target = MATRIX[:, 3] + 0.1 * MATRIX[:, 4]

    assert all(3 not in places for places in sparse_path(Regression.of(broken, target), 4, 8))


def test_noise_in_a_column_does_not_bias_its_coefficient():
    rng = np.random.default_rng(3)
    true, error = rng.standard_normal((4000, 2)), 0.5 * rng.standard_normal((4000, 2))
    target = true @ [1.0, -2.0]
    noise = np.diag([1000.0, 1000.0, 0.0])  # rows times the square of the deviation

    plain = Regression.of(true + error, target).fitted((0, 1))
    corrected = Regression.of(true + error, target, noise, 4000.0).fitted((0, 1))

    assert np.abs(plain.coefficients - [1.0, -2.0]).max() > 0.1
    np.testing.assert_allclose(corrected.coefficients, [1.0, -2.0], atol=0.08)
    assert corrected.misfit < 0.1 * corrected.loss


def test_columns_that_are_mostly_noise_are_not_tried():
    noise = np.diag([*[0.0] * 5, 75.0, *[0.0] * 25])

    regression = Regression.of(MATRIX, MATRIX[:, 5], noise, min_signal=0.3)

    assert 5 not in regression.usable


def test_some_coefficients_can_be_held():
    regression = Regression.of(MATRIX, MATRIX[:, [1, 2]] @ [2.0, 3.0])

    found = regression.refitted((1, 2), np.array([2.1, 2.9]), {0: 2.0})

    np.testing.assert_allclose(found, [2.0, 3.0], rtol=1e-8)


def test_a_part_of_the_columns_has_the_same_sums():
    target = MATRIX[:, [3, 12]] @ [1.0, -2.0]
    with_nothing = np.column_stack([MATRIX, np.zeros(80)])

    part = Regression.of(with_nothing, target).part([12, 30, 3])

    assert part.usable.tolist() == [0, 2]
    np.testing.assert_allclose(part.fitted([0, 2]).coefficients, [-2.0, 1.0])
