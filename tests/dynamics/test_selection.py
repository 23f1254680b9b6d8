import numpy as np
import pytest
import sympy as sp

from eqlearn.dynamics.segments import Segments
from eqlearn.dynamics.selection import best_together, fitted_model, snapped, without_spare_terms
from eqlearn.symbolic.equation import Equation
from eqlearn.validation.trajectories import Trajectories
from moving import lorenz, series_of

WIND = ("-10.01*x + 9.99*y", "-1.001*x*z + 28.02*x - 0.999*y", "1.001*x*y - 2.665*z")


def parsed(texts, names="xyz"):
    return [Equation.parse(text, list(names)) for text in texts]


@pytest.fixture(scope="module")
def wind():
    """Pieces of a clean, chaotic motion."""
    trajectories = Trajectories.of(series_of(lorenz, [[-8, 8, 27]], 2, 0.01), 0.01, list("xyz"))
    return Segments.of(trajectories, "ode", 10, 15)


def damped(damping, noise):
    """Pieces of a damped oscillation."""
    series = series_of(lambda t, s: [s[1], -2 * s[0] - damping * s[1]], [[1, 0], [0, 1.5]], 12, 0.1, noise)
    return Segments.of(Trajectories.of(series, 0.1, ["x", "v"]), "ode", 20, 12)


def terms(equation):
    return sp.Add.make_args(sp.expand(equation.expr))


def test_a_term_below_the_rounding_of_the_data_is_not_kept(wind):
    with_speck = parsed([*WIND[:2], "1.001*x*y - 2.665*z + 0.000000001*x**2"])

    model = without_spare_terms(fitted_model(with_speck, wind))

    assert len(terms(model.equations[2])) == 2
    assert not model.equations[2].expr.has(sp.Symbol("x", real=True) ** 2)


def test_constants_of_a_clean_motion_become_the_exact_numbers(wind):
    model = snapped(fitted_model(parsed(WIND), wind))

    truth = parsed(["-10*x + 10*y", "-x*z + 28*x - y", "x*y - 8*z/3"])
    assert [sp.expand(a.expr - b.expr) for a, b in zip(model.equations, truth, strict=True)] == [0, 0, 0]


def test_a_longer_formula_never_replaces_an_exact_one(wind):
    true = parsed(WIND)
    longer = parsed(["-10*x + 10*y + 0.001*x*y*z - 0.002*sin(x)"])

    model = best_together([[true[0], *longer], [true[1]], [true[2]]], fitted_model(true, wind))

    assert len(terms(model.equations[0])) == 2


def test_a_right_equation_is_kept_while_those_of_other_states_are_wrong(wind):
    model = without_spare_terms(fitted_model(parsed([WIND[0], "1.5", "-0.5"]), wind))

    assert len(terms(model.equations[0])) == 2


def test_each_piece_of_a_systematic_misfit_tells_as_much_as_one_residual(wind):
    model = fitted_model(parsed(["1.5", "-0.5", "0.5"]), wind)

    pieces, times = wind.values.shape[:2]
    assert model.weight == pytest.approx(1 / (times - 1), rel=1)
    assert model.weight >= pieces / wind.rows


@pytest.mark.parametrize("damping", [0.302, 0.3142])
def test_noise_makes_no_pi_nor_e_of_a_constant(damping):
    law = parsed(["1.0*v", f"-2.0*x - {damping}*v"], ["x", "v"])

    model = snapped(fitted_model(law, damped(damping, 0.01)))

    assert not any(equation.expr.has(sp.pi, sp.E, sp.exp) for equation in model.equations)
    assert float(sp.N(-model.equations[1].expr.coeff(sp.Symbol("v", real=True)))) == pytest.approx(
        damping, rel=0.05
    )


def test_steps_are_divided_as_finely_as_a_clean_motion_deserves():
    model = fitted_model(parsed(["1.0*v", "-2.0*x - 0.3*v"], ["x", "v"]), damped(0.3, 0.0))

    assert np.all(model.fit.errors < 1e-7)


def test_no_term_is_left_out_when_the_time_is_over(wind):
    model = fitted_model(parsed([*WIND[:2], "1.001*x*y - 2.665*z + 0.000000001*x**2"]), wind)

    assert without_spare_terms(model, lambda: True) is model
