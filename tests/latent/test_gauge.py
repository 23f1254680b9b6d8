"""Gauge fixing on constructed cases: the truth is known, z is a shifted and scaled copy of it."""

import numpy as np
import pytest
import torch
from scipy.stats import linregress

from eqlearn.errors import InvalidArgument, NotFinite
from eqlearn.latent.gauge import Gauge, canonical_gauge, fit_gauge, rewritten, without_small
from eqlearn.symbolic.equation import Equation

A = torch.linspace(-1, 1, 41, dtype=torch.float64)
W2 = torch.linspace(0.1, 1, 41, dtype=torch.float64)


def hidden(texts, gauge, states=("u", "v"), parameter="a"):
    """The equations in a true parameter, as a model with that gauge would have them in its z."""
    back = Gauge(1 / gauge.scale, -gauge.shift / gauge.scale)
    return [rewritten(Equation.parse(t, [*states, parameter]), back, parameter, "z") for t in texts]


@pytest.mark.parametrize(("scale", "shift"), [(-0.884, -0.091), (3.0, 0.5), (-0.01, 20.0)])
def test_a_line_through_shifted_and_scaled_values_is_found(scale, shift):
    gauge = fit_gauge((A - shift) / scale, A)

    assert gauge.scale == pytest.approx(scale)
    assert gauge.shift == pytest.approx(shift)
    assert abs(gauge.correlation) == pytest.approx(1)


def test_the_correlation_is_that_of_numpy():
    z = A + 0.1 * torch.sin(7 * A)

    assert fit_gauge(z, A**3).correlation == pytest.approx(np.corrcoef(z, A**3)[0, 1])


def test_parameter_and_latent_are_inverse():
    gauge = Gauge(-0.3, 2.0)

    torch.testing.assert_close(gauge.latent(gauge.parameter(A)), A)


def test_an_equation_rewritten_in_the_parameter_has_the_same_values():
    gauge = Gauge(-0.884, -0.091)
    equation = Equation.parse("u + v - 0.442*z - 0.0455", ["u", "v", "z"])
    table = {"u": np.array([0.3, -2.0]), "v": np.array([1.0, 0.1]), "z": np.array([0.7, -0.4])}

    again = rewritten(equation, gauge, "z", "a")

    np.testing.assert_allclose(again({**table, "a": gauge.parameter(table["z"])}), equation(table))


@pytest.mark.parametrize(("scale", "shift"), [(-0.884, -0.091), (0.25, 0.7)])
def test_the_canonical_gauge_of_perfect_kinematics_prints_the_textbook(scale, shift):
    equations = hidden(["u + v + a/2", "v + a"], Gauge(scale, shift))

    gauge = canonical_gauge(equations, "z", (A - shift) / scale, states=("u", "v"))
    shown = [rewritten(e, gauge, "z", "a") for e in equations]

    sign = 1 if gauge.scale * scale > 0 else -1
    assert sign == 1
    assert shown[0].matches("u + v + a/2")
    assert shown[1].matches("v + a")


def test_the_canonical_gauge_of_an_oscillator_is_its_positive_stiffness():
    texts = ["u + v/10 - w*u/200 - w*v/6000", "v - w*u/10 - w*v/200"]
    equations = hidden(texts, Gauge(-0.927, 0.464), parameter="w")

    gauge = canonical_gauge(equations, "z", (W2 - 0.464) / -0.927, states=("u", "v"), dt=0.1)

    assert gauge.scale == pytest.approx(-0.927, rel=1e-6)
    assert gauge.shift == pytest.approx(0.464, rel=1e-6)


def test_the_canonical_gauge_of_a_rate_of_change_is_found_too():
    equations = hidden(["v", "-2*w*sin(u)"], Gauge(4.0, -1.0), parameter="w")

    gauge = canonical_gauge(equations, "z", (W2 + 1) / 4, states=("u", "v"), form="ode")

    assert gauge.parameter((W2 + 1) / 4).allclose(2 * W2)


def test_a_latent_inside_a_sine_keeps_its_gauge():
    equations = [Equation.parse("u + sin(z*v)", ["u", "v", "z"]), Equation.parse("v", ["u", "v", "z"])]

    assert canonical_gauge(equations, "z", A, states=("u", "v")) == Gauge(1.0, 0.0)


def test_equations_without_the_latent_keep_its_gauge():
    equations = [Equation.parse("u + v", ["u", "v", "z"]), Equation.parse("v", ["u", "v", "z"])]

    assert canonical_gauge(equations, "z", A, states=("u", "v")) == Gauge(1.0, 0.0)


def test_terms_too_small_to_be_read_are_left_out():
    sample = {"u": np.linspace(-1, 1, 9), "a": np.linspace(-1, 1, 9)}

    assert str(without_small(Equation.parse("u + a + 1e-5*u*a", ["u", "a"]), sample, 1e-3)) == "a + u"


def test_a_small_step_is_compared_with_the_change_only():
    sample = {"u": np.linspace(-1, 1, 9), "a": np.linspace(-1, 1, 9)}
    equation = Equation.parse("u + 1e-5*a", ["u", "a"])

    assert without_small(equation, sample, 1e-3, beside="u") == equation


def test_a_latent_that_never_moves_is_explained():
    with pytest.raises(InvalidArgument, match="same in all series"):
        fit_gauge(torch.zeros(41, dtype=torch.float64), A)


def test_a_latent_that_is_not_finite_is_explained():
    with pytest.raises(NotFinite, match="finite"):
        fit_gauge(A / 0, A)


def test_a_gauge_of_scale_zero_is_refused():
    with pytest.raises(InvalidArgument, match="scale"):
        Gauge(0.0, 1.0)


def test_a_latent_of_another_name_is_refused():
    with pytest.raises(InvalidArgument, match="'z'"):
        rewritten(Equation.parse("u", ["u"]), Gauge(1.0, 0.0), "z", "a")


def test_a_noisy_line_is_that_of_scipy():
    z = torch.linspace(3.0, 4.0, 20, dtype=torch.float64)
    parameter = 2 * z + torch.sin(40 * z)

    gauge, line = fit_gauge(z, parameter), linregress(z.numpy(), parameter.numpy())

    found = [gauge.scale, gauge.shift, gauge.correlation]
    np.testing.assert_allclose(found, [line.slope, line.intercept, line.rvalue], rtol=1e-12)
