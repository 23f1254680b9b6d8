"""Splines sum to one, are smooth, and go around where there is a period."""

import numpy as np
import pytest

from eqlearn.numerics.splines import Splines

POINTS = np.linspace(-1, 3, 201)


@pytest.mark.parametrize("period", [None, 4.0])
def test_splines_sum_to_one(period):
    splines = Splines.over(POINTS, 11, 5, period)

    assert splines.design(POINTS).shape == (201, splines.count)
    np.testing.assert_allclose(splines.design(POINTS).sum(axis=1), 1.0)


@pytest.mark.parametrize("period", [None, 4.0])
def test_slopes_are_those_of_the_values(period):
    splines, step = Splines.over(POINTS, 11, 5, period), 1e-5
    inside = POINTS[5:-5]

    slopes = (splines.design(inside + step) - splines.design(inside - step)) / (2 * step)

    np.testing.assert_allclose(splines.design(inside, 1), slopes, atol=1e-6)


def test_one_spline_is_a_column_of_the_design():
    splines = Splines.over(POINTS, 9, 3)

    np.testing.assert_allclose(splines(POINTS, 4, 1), splines.design(POINTS, 1)[:, 4])


def test_periodic_splines_meet_at_the_seam():
    splines = Splines.over(POINTS, 8, 3, 4.0)

    for order in (0, 1, 2):
        np.testing.assert_allclose(
            splines.design(np.array([-1.0]), order), splines.design(np.array([3.0 - 1e-12]), order), atol=1e-9
        )
