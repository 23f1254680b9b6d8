"""White noise is measured, and its products are right on average."""

import numpy as np
import pytest

from eqlearn.numerics.noise import hermite, white_noise


def test_products_of_noisy_values_are_right_on_average():
    noisy = 0.7 + 0.5 * np.random.default_rng(0).normal(size=400_000)

    for power in (1, 2, 3, 4):
        assert hermite(noisy, power, 0.5).mean() == pytest.approx(0.7**power, abs=0.01)


@pytest.mark.parametrize("level", [1e-4, 0.3])
def test_noise_on_a_smooth_series_is_measured(level):
    times = np.linspace(0, 10, 2000)
    noisy = np.sin(3 * times) + level * np.random.default_rng(1).normal(size=2000)

    assert white_noise([noisy[:800], noisy[800:]], 8) == pytest.approx(level, rel=0.1)


def test_a_smooth_series_has_hardly_any():
    assert white_noise([np.sin(np.linspace(0, 10, 500))], 8) < 1e-10


def test_holes_are_left_out():
    noisy = np.random.default_rng(2).normal(size=(500, 3))
    noisy[100:110] = np.nan

    assert white_noise([noisy], 8) == pytest.approx(1.0, rel=0.1)
