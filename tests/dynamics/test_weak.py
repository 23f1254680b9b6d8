import numpy as np

from eqlearn.dynamics.weak import WeakForm, half_widths

DT = 0.02
TIMES = DT * np.arange(400)


def test_the_weak_form_holds_for_the_true_rate_to_rounding():
    x = np.exp(-0.5 * TIMES)

    weak = WeakForm.of([x], DT)

    np.testing.assert_allclose(weak.tests @ (-0.5 * x), weak.target, atol=1e-9 * np.abs(weak.target).max())


def test_of_second_order_it_holds_for_the_true_acceleration():
    x = np.cos(2 * TIMES)

    weak = WeakForm.of([x], DT, order=2)

    np.testing.assert_allclose(weak.tests @ (-4 * x), weak.target, atol=1e-7 * np.abs(weak.target).max())


def test_it_does_not_hold_for_another_rate():
    x = np.exp(-0.5 * TIMES)

    weak = WeakForm.of([x], DT)

    assert np.abs(weak.tests @ (-0.6 * x) - weak.target).max() > 0.05 * np.abs(weak.target).max()


def test_noise_in_the_states_becomes_independent_errors_of_one_size():
    rng, sigma = np.random.default_rng(0), 0.3 + np.abs(np.sin(TIMES))
    draws = [
        WeakForm.of([np.zeros(len(TIMES)) + sigma * rng.standard_normal(len(TIMES))], DT, [sigma]).target
        for _ in range(3)
    ]
    widths = half_widths([np.sin(TIMES)], 1)
    fixed = [WeakForm.of([np.sin(TIMES)], DT, [sigma]).target for _ in range(1)]

    assert widths
    assert len(fixed[0]) > 20
    for target in draws:
        assert 0.7 < np.sqrt((target**2).mean()) < 1.3


def test_series_do_not_meet():
    first, second = np.exp(-0.5 * TIMES), 7 + np.exp(-0.5 * TIMES[:200])

    weak = WeakForm.of([first, second], DT)
    rates = np.concatenate([-0.5 * first, -0.5 * (second - 7)])

    np.testing.assert_allclose(weak.tests @ rates, weak.target, atol=1e-8 * np.abs(weak.target).max())


def test_faster_motion_has_narrower_test_functions():
    slow, fast = np.sin(TIMES), np.sin(20 * TIMES)

    assert min(half_widths([fast], 1)) <= min(half_widths([slow], 1))
    assert max(half_widths([fast], 1)) == len(TIMES) // 8
