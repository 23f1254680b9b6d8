"""Terms with constant coefficients and with splines, and what noise adds to their products."""

import numpy as np
import pytest

from eqlearn import InvalidArgument
from eqlearn.search.groups.views import Axis, CoefficientSettings, regression

AT = np.linspace(0, 1, 400)
RNG = np.random.default_rng(0)
CLEAN, NOISE = RNG.normal(size=(400, 2)), 0.3 * (1 + AT)


class Noisy:
    """Terms seen with noise of known size, which grows along the axis."""

    independent = 400.0
    seen = CLEAN + NOISE[:, None] * RNG.normal(size=(400, 2))
    target = CLEAN[:, 0] * (1 + AT)

    def blocks(self, terms, splines):
        return (self.seen[:, list(terms), None] * splines.design(AT)[:, None]).reshape(400, -1)

    def noise(self, terms):
        each = np.zeros((400, len(terms) + 1, len(terms) + 1))
        each[:, range(len(terms)), range(len(terms))] = NOISE[:, None] ** 2
        return each


def test_columns_are_the_terms_and_then_their_splines():
    splines = Axis("t", AT).splines(8, 3)

    made = regression(Noisy(), [0, 1], Axis("t", AT), splines)

    assert made.count == 2 + 2 * splines.count


def test_noise_that_grows_along_the_axis_does_not_bias_a_coefficient():
    splines = Axis("t", AT).splines(4, 1)
    made = regression(Noisy(), [0], Axis("t", AT), splines)

    fit = made.fitted(range(1, 1 + splines.count))

    plain = made.factor[:, 1:-1], made.factor[:, -1]
    biased = np.linalg.lstsq(*plain, rcond=None)[0] * made.scales[-1] / made.scales[1:-1]
    truth = 1 + np.linspace(0, 1, splines.count)
    assert np.abs(fit.coefficients - truth).max() < 0.2 < np.abs(biased - truth).max()


def test_points_of_a_periodic_axis_leave_the_seam_out():
    assert Axis("x", AT, 1.0).points(4).tolist() == [0, 0.25, 0.5, 0.75]
    assert Axis("x", AT).points(3).tolist() == [0, 0.5, 1]


def test_settings_that_cannot_be_are_refused():
    with pytest.raises(InvalidArgument, match="beam"):
        CoefficientSettings(beam=0)
