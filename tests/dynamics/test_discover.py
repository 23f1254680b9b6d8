import numpy as np
import pytest
import sympy as sp

from eqlearn.dynamics.discover import discover_dynamics
from eqlearn.dynamics.forms import FORMS
from eqlearn.dynamics.settings import MOTION, MotionSettings
from eqlearn.errors import InvalidArgument, UnknownName, WrongType
from eqlearn.symbolic.equation import Equation
from eqlearn.validation.trajectories import Trajectories
from moving import damped, lorenz, lotka_volterra, series_of

LORENZ = ("10*y - 10*x", "28*x - x*z - y", "x*y - 8*z/3")
PREY = ("1.1*u - 0.4*u*v", "0.1*u*v - 0.4*v")
DAMPED = ("v", "-2*x - 0.3*v")
# What is enough for these, and quick.
SMALL = {"primitives": "id square mul", "hidden_layers": 1, "restarts": 30}


def coefficients(equation):
    """By monomial."""
    return {m: float(c) for m, c in sp.expand(equation.expr).as_coefficients_dict().items()}


def assert_same_terms(found, texts, tolerance):
    for equation, text in zip(found.equations, texts, strict=True):
        mine, true = (
            coefficients(_merged(equation)),
            coefficients(_merged(Equation.parse(text, equation.variables))),
        )
        assert set(mine) == set(true)
        for monomial, value in true.items():
            assert mine[monomial] == pytest.approx(value, rel=tolerance)


def _merged(equation):
    """With numbers only, so that SymPy counts them as coefficients."""
    return Equation(sp.nsimplify(sp.N(sp.expand(equation.expr), 15), rational=True), equation.variables)


@pytest.fixture(scope="module")
def watched():
    """What was found, and what was told on the way."""
    told, series = [], series_of(damped, [[1, 0]], 6, 0.05)
    return discover_dynamics(series, dt=0.05, names=["x", "v"], progress=told.append, **SMALL), told


@pytest.fixture(scope="module")
def oscillator(watched):
    return watched[0]


def test_a_damped_oscillator_is_found_exactly(oscillator):
    assert_same_terms(oscillator, DAMPED, 1e-4)


def test_a_clean_motion_is_called_exact(oscillator):
    assert oscillator.found.best.exact
    assert oscillator.found.ended == "exact"


def test_equations_are_of_rates(oscillator):
    assert str(oscillator).splitlines()[0] == "dx/dt = v"


def test_the_front_holds_the_choice(oscillator):
    assert any(candidate is oscillator.found.best for candidate in oscillator.found.front)


def test_what_was_found_can_be_simulated(oscillator):
    true = series_of(damped, [[0.3, -1]], 10, 0.05)[0]

    np.testing.assert_allclose(oscillator.simulate([0.3, -1], 200), true, atol=1e-4)


def test_a_start_of_another_size_is_refused(oscillator):
    with pytest.raises(InvalidArgument, match="`start` must hold 2 states"):
        oscillator.simulate([1.0], 5)


@pytest.mark.slow
def test_noise_of_one_per_cent_leaves_the_terms_of_a_damped_oscillator():
    noisy = series_of(damped, [[1, 0], [0, 1.5]], 10, 0.05, noise=0.01)

    found = discover_dynamics(noisy, dt=0.05, names=["x", "v"], **SMALL)

    assert_same_terms(found, DAMPED, 0.05)


def test_a_chaotic_map_is_found_exactly():
    x = [0.2]
    for _ in range(60):
        x.append(3.7 * x[-1] * (1 - x[-1]))

    found = discover_dynamics(np.array(x)[:, None], "map", names=["x"], **SMALL)

    assert found.targets == ("x'",)
    assert_same_terms(found, ["3.7*x - 3.7*x**2"], 1e-6)


def test_series_may_have_unequal_lengths():
    first, second = series_of(damped, [[1, 0], [0, 1.5]], 6, 0.05)

    found = discover_dynamics([first, second[:50]], dt=0.05, names=["x", "v"], **SMALL)

    assert_same_terms(found, DAMPED, 1e-4)


def test_the_same_seed_gives_the_same_equations(oscillator):
    again = discover_dynamics(series_of(damped, [[1, 0]], 6, 0.05), dt=0.05, names=["x", "v"], **SMALL)

    assert again.equations == oscillator.equations


def test_progress_is_told_of_all_states_together(watched):
    _, told = watched

    assert len(told[-1].best.equations) == 2
    assert [p.restarts for p in told] == sorted(p.restarts for p in told)


@pytest.mark.slow
def test_progress_is_told_of_all_states_where_one_of_them_is_searched():
    told, t = [], 0.05 * np.arange(200)
    damped_wave = np.exp(-0.1 * t + 2j * t)
    rounded = np.round(np.stack([damped_wave.real, (damped_wave * (-0.1 + 2j)).real], axis=1), 5)

    discover_dynamics(rounded, dt=0.05, names=["x", "v"], progress=told.append, **SMALL | {"restarts": 1})

    assert told[-1].restarts > 0
    assert {len(p.best.equations) for p in told} == {2}


def test_the_table_of_a_map_is_each_state_and_the_next():
    X, y = FORMS["map"].table(
        Trajectories.of([np.arange(4.0)[:, None], np.arange(7.0, 9.0)[:, None]]), MOTION
    )

    np.testing.assert_array_equal(np.hstack([X, y]), [[0, 1], [1, 2], [2, 3], [7, 8]])


def test_names_of_targets_say_the_form():
    assert [FORMS[form].label("u") for form in ("ode", "map")] == ["du/dt", "u'"]


def test_an_unknown_form_is_refused():
    with pytest.raises(UnknownName, match="no `form` of dynamics named 'pde'"):
        discover_dynamics(np.random.default_rng(0).normal(size=(9, 1)), "pde")


def test_a_series_too_short_for_a_rate_is_explained():
    with pytest.raises(InvalidArgument, match="series 0 has 4 times, too few to tell a rate of change"):
        discover_dynamics(np.arange(8.0).reshape(4, 2), "ode", dt=0.1)


def test_rates_of_change_are_not_sought_without_a_step_of_time():
    with pytest.raises(InvalidArgument, match="`dt`, the step of time, is not given"):
        discover_dynamics(series_of(damped, [[1, 0]], 6, 0.05), names=["x", "v"])


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    ("system", "starts", "end", "dt", "names", "truth"),
    [
        (lorenz, [[-8, 8, 27], [5, -5, 20]], 10, 0.01, "xyz", LORENZ),
        (lotka_volterra, [[10, 5], [4, 8]], 20, 0.05, "uv", PREY),
    ],
)
@pytest.mark.parametrize(("noise", "tolerance"), [(0.0, 1e-3), (0.01, 0.02)])
def test_systems_of_the_literature_are_found_term_by_term(
    system, starts, end, dt, names, truth, noise, tolerance
):
    series = series_of(system, starts, end, dt, noise)

    found = discover_dynamics(series, dt=dt, names=list(names), seconds=180)

    assert_same_terms(found, truth, tolerance)


def test_an_exact_map_is_kept_however_few_its_steps():
    t = 0.05 * np.arange(60)
    turn = np.column_stack([np.cos(t), -np.sin(t)])

    found = discover_dynamics([turn], "map", names=["x", "v"], restarts=3)

    np.testing.assert_allclose(found.simulate([1.0, 0.0], 59), turn, atol=1e-9)
    assert found.found.exact


def test_settings_are_obeyed_and_checked(monkeypatch):
    (series,) = series_of(damped, [[1.0, 0.0]], 6.0, 0.1)
    few = MotionSettings(rate_rows=25, short_steps=6)

    found = discover_dynamics([series], dt=0.1, names=["x", "v"], restarts=1, settings=few)

    assert len(found.rows[0]) == 25
    assert found.horizon == 6


@pytest.mark.usefixtures("unchecked_types")
def test_settings_of_another_kind_are_refused():
    with pytest.raises(WrongType, match="MotionSettings"):
        discover_dynamics([np.zeros((9, 1))], dt=0.1, settings=3)
