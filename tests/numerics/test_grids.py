"""Local polynomials are exact on polynomials, on even grids and others."""

import numpy as np
import pytest

from eqlearn.numerics.grids import SavitzkyGolay, local_polynomials


@pytest.mark.parametrize("order", [0, 1])
def test_a_window_is_exact_on_its_own_polynomials(order):
    times = np.arange(30.0)
    cubic = 2 - times + 0.3 * times**2 - 0.01 * times**3
    true = [cubic, -1 + 0.6 * times - 0.03 * times**2][order]

    np.testing.assert_allclose(SavitzkyGolay(5, 4).apply(cubic, order), true, atol=1e-8)


def test_slopes_on_an_uneven_grid_are_right():
    uneven = np.sort(np.random.default_rng(0).uniform(0, 10, 200))

    slope = local_polynomials(uneven, 1, 4) @ np.sin(uneven)

    assert np.abs(slope - np.cos(uneven))[10:-10].max() < 1e-3
    assert np.isfinite(slope).all()


def test_both_are_the_same_filter():
    noise = np.random.default_rng(1).normal(size=40)

    matrix = local_polynomials(np.arange(40.0), 1, 5, degree=4)

    np.testing.assert_allclose(matrix @ noise, SavitzkyGolay(5, 4).apply(noise, 1), atol=1e-10)
