import numpy as np
import pytest

from eqlearn.dynamics.forms import simulate
from eqlearn.dynamics.segments import Segments
from eqlearn.dynamics.shooting import VectorField, enough_substeps, shoot
from eqlearn.symbolic.equation import Equation
from eqlearn.symbolic.expressions import real_symbol
from eqlearn.validation.trajectories import Trajectories
from moving import lorenz, lotka_volterra, series_of

PREY = ("-0.4*u*v + 1.1*u", "0.1*u*v - 0.4*v")
WIND = ("-10.0*x + 10.0*y", "-1.0*x*z + 28.0*x - 1.0*y", "1.0*x*y - 2.6666666666666665*z")


def parsed(texts, names):
    return [Equation.parse(text, list(names)) for text in texts]


def changed(equations, factor):
    return [e.with_constants(np.array(e.constants) * factor) for e in equations]


def segments(system, starts, end, dt, names, steps, noise=0.0):
    trajectories = Trajectories.of(series_of(system, starts, end, dt, noise), dt, list(names))
    return Segments.of(trajectories, "ode", steps, 30)


def test_a_simulation_follows_scipy():
    true = series_of(lotka_volterra, [[10, 5]], 5, 0.05)[0]

    motion = simulate(parsed(PREY, "uv"), true[:1], 100, 0.05, "ode", substeps=8)

    np.testing.assert_allclose(motion[0], true, rtol=1e-6)


def test_a_simulation_that_diverges_is_nan_from_there_on():
    motion = simulate(parsed(["x**3"], "x"), np.array([[2.0]]), 20, 0.5, "ode")

    assert np.isfinite(motion[0, 0, 0])
    assert np.isnan(motion[0, -1, 0])


def test_latents_are_inputs_that_stay():
    equation = Equation.parse("z*x", ["x", "z"])

    motion = simulate([equation], np.array([[1.0], [1.0]]), 3, 1.0, "map", latents=np.array([[2.0], [3.0]]))

    np.testing.assert_allclose(motion[:, -1, 0], [8, 27])


@pytest.mark.parametrize("texts", [("0.7*sin(1.3*x) + y", "0.2*abs(x) - 1.5*exp(-0.5*y)"), ("x", "0.5")])
def test_slopes_are_those_of_finite_differences(texts):
    vector_field, h = VectorField(parsed(texts, "xy")), 1e-6
    at = np.random.default_rng(0).uniform(0.3, 2, size=(5, 2))

    _, slopes = vector_field.linearise(at, vector_field.start)

    for j in range(2 + len(vector_field.start)):
        low, high = [], []
        for sign, side in ((-1, low), (1, high)):
            states, constants = at.copy(), vector_field.start.copy()
            if j < 2:
                states[:, j] += sign * h
            else:
                constants[j - 2] += sign * h
            side.append(vector_field.linearise(states, constants)[0])
        np.testing.assert_allclose(slopes[:, :, j], (high[0] - low[0]) / (2 * h), atol=1e-8)


def test_constants_come_out_exact_from_a_clean_motion():
    pieces = segments(lotka_volterra, [[10, 5]], 10, 0.05, "uv", 10)
    vector_field = VectorField(changed(parsed(PREY, "uv"), 1.05))

    fit = shoot(vector_field, pieces, substeps=4, iterations=20)

    np.testing.assert_allclose(fit.values, VectorField(parsed(PREY, "uv")).start, rtol=1e-6)


def test_chaos_does_not_hinder_a_fit_of_short_pieces():
    pieces = segments(lorenz, [[-8, 8, 27]], 3, 0.01, "xyz", 10)
    vector_field = VectorField(changed(parsed(WIND, "xyz"), 1.03))

    fit = shoot(vector_field, pieces, substeps=2, iterations=20)

    np.testing.assert_allclose(fit.values, VectorField(parsed(WIND, "xyz")).start, rtol=1e-4)


def test_standard_errors_cover_the_truth_under_noise():
    pieces = segments(lotka_volterra, [[10, 5]], 20, 0.05, "uv", 40, noise=0.01)
    vector_field = VectorField(changed(parsed(PREY, "uv"), 1.02))

    fit = shoot(vector_field, pieces, iterations=20)

    off = (fit.values - VectorField(parsed(PREY, "uv")).start) / fit.standard_errors
    assert (np.abs(off) < 4).all()
    assert (fit.errors < 0.012).all()


def test_fixed_constants_stay():
    pieces = segments(lotka_volterra, [[10, 5]], 10, 0.05, "uv", 10)
    vector_field = VectorField(changed(parsed(PREY, "uv"), 1.05))
    fixed = np.array([True, False, False, True])

    fit = shoot(vector_field, pieces, fixed=fixed)

    np.testing.assert_array_equal(fit.values[fixed], vector_field.start[fixed])
    assert (fit.standard_errors[fixed] == 0).all()


def test_a_constant_that_another_makes_up_for_has_no_finite_error():
    series = [(1 - 0.5 * np.exp(-0.1 * np.arange(30)))[:, None]]
    pieces = Segments.of(Trajectories.of(series, 0.1, ["x"]), "ode", 10, 5)

    fit = shoot(VectorField(parsed(["(0.1*x + 0.5)*(0.2*x + 0.7)"], "x")), pieces)

    assert np.isinf(fit.standard_errors).any()


def test_a_law_that_diverges_is_not_finite_and_no_error():
    pieces = segments(lotka_volterra, [[10, 5]], 10, 0.05, "uv", 20)

    fit = shoot(VectorField(parsed(["9.0*u**4", "v"], "uv")), pieces)

    assert not fit.finite


def test_a_coarse_step_is_divided():
    pieces = segments(lorenz, [[-8, 8, 27]], 3, 0.05, "xyz", 5)
    equations = parsed(WIND, "xyz")

    assert enough_substeps(equations, pieces, 1e-9) > enough_substeps(equations, pieces, 1.0) == 1


def test_a_map_is_not_divided():
    pieces = Segments.of(Trajectories.of(np.array([[0.1], [0.3], [0.7]])), "map", 2, 5)

    assert enough_substeps(parsed(["3.5*x*(1 - x)"], "x"), pieces, 1e-9) == 1


def test_pieces_do_not_cross_from_one_series_to_another():
    trajectories = Trajectories.of([np.arange(7.0)[:, None], 100 + np.arange(12.0)[:, None]])

    pieces = Segments.of(trajectories, "map", 4, 99)

    assert (np.diff(pieces.values * pieces.scale, axis=1).round(9) == 1).all()


def test_a_short_series_does_not_shorten_the_pieces_of_the_others():
    long, short = np.arange(20.0)[:, None], np.arange(3.0)[:, None]

    pieces = Segments.of(Trajectories.of([long, short, long]), "map", 9, 99)

    assert pieces.values.shape[1] == 10


def test_a_law_that_diverges_in_coarse_steps_gets_finer_ones():
    t = np.arange(20.0)
    x = 1 / np.sqrt(1 + 40 * t)  # of dx/dt = -20 x³
    pieces = Segments.of(Trajectories.of([x[:, None]], 1.0, ["x"]), "ode", 10, 2)

    assert enough_substeps(parsed(["-20*x**3"], "x"), pieces, 1e-3) > 8


def test_a_law_that_diverges_however_fine_the_steps_is_not_divided():
    t = 0.1 * np.arange(20.0)
    pieces = Segments.of(Trajectories.of([np.cos(t)[:, None]], 0.1, ["x"]), "ode", 10, 2)

    assert enough_substeps(parsed(["1e6*x**3 + 1e6"], "x"), pieces, 1e-3) == 1


def test_the_slope_of_a_magnitude_that_may_not_be_real_is_found():
    vector_field = VectorField(parsed(["abs(sqrt(x)-1.5)"], "x"))

    value, slopes = vector_field.linearise(np.array([[4.0], [1.0]]), vector_field.start)

    np.testing.assert_allclose(value[:, 0], [0.5, 0.5])
    np.testing.assert_allclose(slopes[:, 0, 0], [0.25, -0.5])


def test_a_state_may_have_any_name():
    plain = Equation.parse("2.5*x", ["x"]).expr
    odd = VectorField([Equation(plain.xreplace({real_symbol("x"): real_symbol("c0 ")}), ["c0 "])])

    np.testing.assert_allclose(odd.linearise(np.array([[3.0]]), odd.start)[0], [[7.5]])
