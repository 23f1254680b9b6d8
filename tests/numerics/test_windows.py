"""Test functions: integrals by parts, widths from the spectrum."""

import numpy as np
import pytest

from eqlearn.numerics.windows import Window, amplitudes, bump, corner, half_width

TIMES = np.linspace(0, 5, 301)


@pytest.mark.parametrize("order", [1, 2])
def test_weights_integrate_the_derivative_by_parts(order):
    window = Window.over(TIMES, 30, order)
    true = {1: 2 * np.cos(2 * TIMES), 2: -4 * np.sin(2 * TIMES)}[order]

    by_parts, direct = window.weights(order) @ np.sin(2 * TIMES), window.weights(0) @ true

    np.testing.assert_allclose(by_parts, direct, atol=1e-8 * np.abs(direct).max())


def test_a_period_is_gone_around():
    places = np.linspace(0, 1, 64, endpoint=False)
    window = Window.over(places, 12, 1, period=1.0)

    direct = window.weights(0) @ (2 * np.pi * np.cos(2 * np.pi * places))

    assert window.centres[0] == 0.0
    np.testing.assert_allclose(window.weights(1) @ np.sin(2 * np.pi * places), direct, atol=1e-7)


def test_derivatives_of_a_bump_are_those_of_its_polynomial():
    s = np.linspace(-0.99, 0.99, 41)
    whole = np.polynomial.Polynomial([1, 0, -1]) ** 6

    for order in range(4):
        np.testing.assert_allclose(bump(s, 6, order), whole.deriv(order)(s), atol=1e-9)
    assert bump(np.array([1.0, 2.0]), 6, 1).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("periods", [3, 20])
def test_the_spectrum_of_a_wave_in_noise_ends_above_its_frequency(periods):
    noise = 0.02 * np.random.default_rng(1).standard_normal(400)
    wave = np.sin(2 * np.pi * periods * np.arange(400) / 400) + noise

    assert periods <= corner(amplitudes(wave[:, None], periodic=False)) <= periods + 30


def test_long_spectra_have_a_corner_soon():
    modulus = np.where(np.arange(40_000) < 300, 50.0, 1.0)

    assert 250 < corner(modulus) < 350


def test_nothing_has_no_spectrum():
    assert corner(np.zeros(100)) == 1


def test_a_wider_spectrum_asks_for_narrower_bumps_within_bounds():
    halves = [half_width(deviation, 1, 6, 100) for deviation in (0.1, 4.0, 8.0, 1e3)]

    assert halves[0] == 6
    assert halves == sorted(halves)
    assert halves[-1] == 100
