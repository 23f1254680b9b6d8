"""Motions as they are observed: at any times, with holes, driven, and seen by their positions alone."""

import numpy as np
import pytest
import sympy as sp
from scipy.integrate import solve_ivp

from eqlearn.dynamics.discover import discover_dynamics
from eqlearn.dynamics.forms import find_form
from eqlearn.dynamics.hidden import discover_hidden
from eqlearn.dynamics.prepared import Prepared
from eqlearn.dynamics.resampled import evenly
from eqlearn.dynamics.segments import Segments, interpolated
from eqlearn.dynamics.settings import MOTION
from eqlearn.errors import InvalidArgument
from eqlearn.validation.observed import read_observed

STEP = 0.05
EVEN = STEP * np.arange(160)
RNG = np.random.default_rng(0)
UNEVEN = np.unique(RNG.uniform(0, 8, 160).round(6))
QUICK = {"primitives": "id mul sin1", "hidden_layers": 2, "restarts": 10}


def swinging(times, force=lambda t: 0.0):
    def rates(t, y):
        return [y[1], -2 * np.sin(y[0]) - 0.3 * y[1] + force(t)]

    return solve_ivp(rates, (0, times[-1]), [2.0, 0.0], t_eval=times, rtol=1e-10, atol=1e-12).y.T


def assert_law(equation, text):
    names = {s.name: s for s in equation.expr.free_symbols}
    off = sp.expand(sp.sympify(text, names) - equation.expr)
    assert max(abs(float(c)) for c in off.as_coefficients_dict().values()) < 1e-3, equation


def test_times_may_be_uneven():
    found = discover_dynamics(swinging(UNEVEN), times=UNEVEN, names=["x", "v"], **QUICK)

    assert_law(found.equations[1], "-2*sin(x) - 0.3*v")


def test_values_may_be_missing():
    holes = swinging(EVEN)
    holes[RNG.random(holes.shape) < 0.1] = np.nan

    found = discover_dynamics(holes, dt=STEP, names=["x", "v"], **QUICK)

    assert_law(found.equations[1], "-2*sin(x) - 0.3*v")


def test_a_force_that_is_known_is_an_input():
    force = np.sin(1.3 * EVEN)
    motion = swinging(EVEN, lambda t: np.sin(1.3 * t))

    found = discover_dynamics(
        np.column_stack([motion, force]), dt=STEP, names=["x", "v", "u"], inputs=["u"], **QUICK
    )

    assert_law(found.equations[1], "-2*sin(x) - 0.3*v + u")
    again = found.simulate(motion[0], len(EVEN) - 1, inputs=force[:, None])
    np.testing.assert_allclose(again, motion, atol=1e-4)
    with pytest.raises(InvalidArgument, match="`inputs` must hold u at 160 times"):
        found.simulate(motion[0], len(EVEN) - 1)


def test_positions_alone_show_an_acceleration():
    found = discover_dynamics(swinging(EVEN)[:, :1], dt=STEP, names=["x"], order=2, **QUICK)

    assert found.targets == ("dx/dt", "d²x/dt²")
    assert_law(found.equations[1], "-2*sin(x) - 0.3*dx")
    np.testing.assert_allclose(found.simulate([2.0, 0.0], 159), swinging(EVEN), atol=1e-3)


@pytest.mark.parametrize("options", [{"order": 2}, {"inputs": ["v"]}, {"times": EVEN}])
def test_hidden_parameters_refuse_what_they_do_not_know(options):
    with pytest.raises(InvalidArgument, match="hidden parameters are found in series at even steps"):
        discover_hidden([swinging(EVEN)] * 5, dt=STEP, names=["x", "v"], **options)


def observed(series, times, **options):
    return read_observed(series, None, ["x", "v"], times=times, continuous=True, fewest=7, **options)


def test_exact_values_at_uneven_times_are_interpolated_exactly():
    (stretch,) = evenly(observed(swinging(UNEVEN), UNEVEN), 7, MOTION)

    true = swinging(stretch.times + 0.0)
    np.testing.assert_allclose(stretch.states[1:-1], true[1:-1], atol=2e-3)


def test_a_long_gap_cuts_a_series():
    kept = (EVEN < 2) | (EVEN > 4)

    stretches = evenly(observed(swinging(EVEN)[kept], EVEN[kept]), 7, MOTION)

    assert [round(float(s.times[0]), 6) for s in stretches] == [0.0, 4.05]


def test_what_is_missing_counts_nothing():
    holes = swinging(EVEN)
    holes[3, 0] = np.nan

    pieces = Segments.of(observed(holes, EVEN), "ode", 10, 99)

    assert pieces.weights[0, 3].tolist() == [0.0, 1.0]
    assert np.isfinite(pieces.values).all()


def test_noise_in_proportion_to_a_state_is_seen():
    x = np.exp(-EVEN)[:, None] * (1 + 0.05 * RNG.standard_normal((160, 1)))
    read = read_observed(x, STEP, ["x"], continuous=True, fewest=7)

    weights = Prepared.of(read, find_form("ode"), MOTION).weights[0][:, 0]

    assert weights[0] < 0.1 * weights[-1]


def test_equal_noise_counts_equally():
    x = 1 + np.sin(EVEN)[:, None] + 0.05 * RNG.standard_normal((160, 1))
    read = read_observed(x, STEP, ["x"], continuous=True, fewest=7)

    weights = Prepared.of(read, find_form("ode"), MOTION).weights[0]

    assert np.ptp(weights) < 1e-9


def test_an_input_that_jumps_is_interpolated_by_straight_lines():
    steps = np.where(EVEN < 4, 0.0, 1.0)[:, None]

    curve = interpolated(EVEN, steps)(np.linspace(0, 7.9, 500))

    assert curve.min() >= 0
    assert curve.max() <= 1


def test_one_state_may_be_noisy_and_another_clean():
    motion = swinging(EVEN)
    motion[:, 0] += 0.01 * np.random.default_rng(3).normal(size=len(motion))

    prepared = Prepared.of(
        read_observed(motion, STEP, ["x", "v"], continuous=True, fewest=7), find_form("ode"), MOTION
    )

    assert prepared.noise[0] > 100 * prepared.noise[1]
    assert all(np.isfinite(form.tests).all() and form.independent > 10 for form in prepared.weak)
    assert all(np.isfinite(weights).all() for weights in prepared.weights)
