import numpy as np

from eqlearn.dynamics.derivatives import choose_window, noise_level, smooth
from moving import lorenz, series_of


def relative_error(rates, states):
    rates, states = np.concatenate(rates), np.concatenate(states)
    true = np.array([lorenz(0, s) for s in states])
    return (rates - true).std(axis=0) / true.std(axis=0)


def test_rates_of_a_clean_series_are_those_of_the_system():
    series = series_of(lorenz, [[-8, 8, 27]], 4, 0.01)

    states, rates = smooth(series, 0.01)

    assert (relative_error(rates, states) < 1e-4).all()


def test_rates_of_a_noisy_series_are_far_better_than_differences():
    noisy = series_of(lorenz, [[-8, 8, 27]], 4, 0.01, noise=0.01)
    differences = [(one[2:] - one[:-2]) / 0.02 for one in noisy]

    states, rates = smooth(noisy, 0.01)

    assert (relative_error(rates, states) < relative_error(differences, [noisy[0][1:-1]]) / 3).all()


def test_noise_is_measured():
    noisy = series_of(lorenz, [[-8, 8, 27]], 4, 0.01, noise=0.02)
    spread = series_of(lorenz, [[-8, 8, 27]], 4, 0.01)[0].std(axis=0)

    np.testing.assert_allclose(noise_level(noisy) / spread, 0.02, rtol=0.25)


def test_more_noise_asks_for_a_wider_window():
    halves = [
        choose_window([series_of(lorenz, [[-8, 8, 27]], 4, 0.01, noise)[0][:, 0]]).half
        for noise in (0.0, 0.1)
    ]

    assert halves[0] < halves[1]


def test_smoothing_leaves_the_motion_where_a_window_is_as_long_as_the_series():
    clean = series_of(lorenz, [[2, 3, 18]], 10, 0.02)[0][:, 1]

    for seed in range(5):
        noise = 0.1 * clean.std() * np.random.default_rng(seed).standard_normal(len(clean))
        off = choose_window([clean + noise]).apply(clean + noise, 0) - clean
        assert off.std() < 0.7 * noise.std()
