"""Samples at scattered places and times are put on a grid."""

import numpy as np
import pytest

from eqlearn import InvalidArgument, NotFinite, discover_pde
from eqlearn.fields.scattered import field_of_samples, is_scattered

GENERATOR = np.random.default_rng(0)
X, T = GENERATOR.uniform(0, 6, 3000), GENERATOR.uniform(0, 2, 3000)


def wave(x, t):
    modes = ((1, 1.0, 0.0), (2, 0.5, 1.0), (3, 0.4, 2.0))
    return sum(size * np.exp(-0.5 * k**2 * t) * np.sin(k * x + shift) for k, size, shift in modes)


def test_a_field_goes_through_its_samples():
    field = field_of_samples({"u": wave(X, T)}, {"x": X, "t": T})

    x, t = np.meshgrid(field.axes["x"], field.axes["t"], indexing="ij")
    inside = np.s_[3:-3, 3:-3]  # the corners have no samples beyond them
    assert np.abs(field.experiments[0]["u"] - wave(x, t))[inside].max() < 5e-3


def test_an_equation_is_found_from_scattered_samples():
    found = discover_pde({"u": wave(X, T)}, {"x": X, "t": T})

    assert found.equations[0].matches("0.5*u_xx", tolerance=0.01)


def test_a_grid_is_no_scatter():
    assert is_scattered({"u": X}, {"x": X, "t": T})
    assert not is_scattered({"u": np.zeros((5, 5))}, {"x": X[:5], "t": T[:5]})


def test_bad_samples_are_refused():
    with pytest.raises(InvalidArgument, match="give at least 100"):
        field_of_samples({"u": X[:9]}, {"x": X[:9], "t": T[:9]})
    with pytest.raises(InvalidArgument, match="the same x"):
        field_of_samples({"u": T}, {"x": 0 * X, "t": T})
    with pytest.raises(NotFinite, match="leave their rows out"):
        field_of_samples({"u": T * np.nan}, {"x": X, "t": T})
