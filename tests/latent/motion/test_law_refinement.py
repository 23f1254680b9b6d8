"""Laws refined through their rollout: exact data lead back to the exact law, whatever the gauge."""

import numpy as np
import pytest
import torch

from eqlearn.errors import InvalidArgument
from eqlearn.latent.gauge import Gauge, fit_gauge
from eqlearn.latent.motion.cells import rollout
from eqlearn.latent.motion.finish import finish, simulated
from eqlearn.latent.motion.law import Law
from eqlearn.latent.motion.refine import Propagation, eliminate_terms, refine
from eqlearn.paper.dynamics.data import KINEMATICS, OSCILLATOR
from eqlearn.symbolic.expressions import real_symbol
from eqlearn.validation.trajectories import Trajectories

u, v, z = (real_symbol(name) for name in "uvz")
QUADRATIC = [1, u, v, z, u**2, u * v, u * z, v**2, v * z, z**2]


def dense(seed=0, dt=1.0) -> Law:
    """A law of all terms up to second order, near that of kinematics but far from sparse."""
    rng = np.random.default_rng(seed)
    noise = [sum(0.01 * c * m for c, m in zip(rng.normal(size=10), QUADRATIC, strict=True)) for _ in "uv"]
    return Law.of([1.0 * v + 0.6 * z + noise[0], 1.2 * z + noise[1]], ("u", "v"), ("z",), dt=dt)


def test_a_law_steps_as_its_equations_say():
    law = dense(dt=0.3)
    y, at = torch.rand(2, 4, dtype=torch.float64), torch.rand(1, 4, dtype=torch.float64)

    stepped = law(y, at)

    table = {"u": y[0].numpy(), "v": y[1].numpy(), "z": at[0].numpy()}
    for row, equation in zip(stepped.numpy(), law.equations(), strict=True):
        np.testing.assert_allclose(row, equation(table), rtol=1e-12)


def test_terms_with_functions_step_as_their_equations_say():
    import sympy as sp

    law = Law.of([v, -z * sp.sin(sp.Float(1.5) * u)], ("u", "v"), ("z",), form="ode", dt=0.1)
    y, at = torch.rand(2, 4, dtype=torch.float64), torch.rand(1, 4, dtype=torch.float64)

    table = {"u": y[0].numpy(), "v": y[1].numpy(), "z": at[0].numpy()}
    np.testing.assert_allclose(law.rate(y, at)[1].numpy(), law.equations()[1](table), rtol=1e-12)


def test_slopes_are_those_of_finite_differences():
    pairs = KINEMATICS.pairs(0, series=4)
    problem, law = Propagation.of(pairs.propagated), dense()
    theta, at = law.coefficients[law.active], torch.rand(1, 4, dtype=torch.float64)

    by_theta, by_z = problem.slopes(law, theta, at)

    nudge = torch.zeros_like(theta)
    nudge[3] = 1e-6
    expected = (problem.residual(law, theta + nudge, at) - problem.residual(law, theta - nudge, at)) / 2e-6
    torch.testing.assert_close(by_theta[3], expected, atol=1e-5, rtol=1e-5)
    expected = (problem.residual(law, theta, at + 1e-6) - problem.residual(law, theta, at - 1e-6)) / 2e-6
    torch.testing.assert_close(by_z[0], expected, atol=1e-5, rtol=1e-5)


def test_finishing_leads_from_a_dense_law_to_the_textbook():
    pairs = KINEMATICS.pairs(0, series=40)
    start = 0.8 * pairs.observed.parameter[None] + 0.1 + 0.02 * torch.sin(9 * pairs.observed.parameter[None])

    fit = finish(dense(), start, pairs.propagated)

    first, second = fit.law.equations()
    assert first.matches("u + v + z/2", tolerance=1e-7)
    assert second.matches("v + z", tolerance=1e-7)
    assert abs(fit_gauge(fit.latent[0], pairs.observed.parameter).correlation) > 1 - 1e-9


def test_refinement_finds_the_latent_of_every_series():
    pairs = OSCILLATOR.pairs(0, series=30)
    w2 = pairs.observed.parameter
    law = Law.of([v - 0.05 * z * u, -z * u - 0.05 * z * v], ("u", "v"), ("z",), dt=0.1)

    fit = refine(law, (w2 + 0.1 * torch.cos(20 * w2))[None], Propagation.of(pairs.propagated))

    assert abs(fit_gauge(fit.latent[0], w2).correlation) > 0.99999


def test_a_law_without_latents_is_refined_too():
    start = torch.rand(20, 2, dtype=torch.float64)
    truth = Law.of([1.0 * v, -0.5 * u], ("u", "v"), (), dt=0.1)
    none = torch.zeros(0, 20, dtype=torch.float64)
    from eqlearn.validation.trajectories import Trajectories

    states = torch.cat([start.mT[None], rollout(truth, start.mT, none, 10)]).permute(2, 0, 1)
    problem = Propagation.of(Trajectories(states, 0.1, ("u", "v")))
    wide = Law.of([0.9 * v + 0.1 * u, -0.4 * u + 0.1 * v + 0.1 * u * v], ("u", "v"), (), dt=0.1)

    fit = eliminate_terms(refine(wide, none, problem), problem)

    assert [str(e) for e in fit.law.equations()] == [str(e) for e in truth.equations()]


def test_a_regauged_law_moves_the_same_states():
    law, gauge = dense(), Gauge(-0.4, 0.3)
    y, at = torch.rand(2, 4, dtype=torch.float64), torch.rand(1, 4, dtype=torch.float64)

    torch.testing.assert_close(law.regauged([gauge])(y, gauge.parameter(at)), law(y, at))


def test_the_next_order_starts_all_but_absent():
    law = Law.of([1.0 * v, -z * u], ("u", "v"), ("z",), dt=0.1)
    y, at = torch.rand(2, 4, dtype=torch.float64), torch.rand(1, 4, dtype=torch.float64)

    wider = law.next_order()

    # v and z*v, and z*u, the change of v in time; -z*u and z**2*u, and z*v.
    assert wider.terms == 6
    assert Law.of([1.0 * v, -z * u], ("u", "v"), ("z",), form="ode").next_order().terms == 4
    torch.testing.assert_close(wider(y, at), law(y, at), atol=1e-7, rtol=1e-7)


def test_simulated_series_obey_the_law_and_stay_in_range():
    pairs = OSCILLATOR.pairs(0, series=30)
    law = Law.of([v - 0.05 * z * u, -z * u - 0.05 * z * v], ("u", "v"), ("z",), dt=0.1)

    series, latent = simulated(law, pairs.observed.parameter[None], pairs.observed, 50, seed=1)

    torch.testing.assert_close(law(series[:, 0].mT, latent.mT), series[:, 1].mT)
    assert (series.abs() <= 1.2 * pairs.observed.states.abs().amax(dim=(0, 1))).all()


def test_simulated_latents_reach_to_the_ends_of_the_observed_ones():
    pairs = OSCILLATOR.pairs(0, series=30)
    law, w2 = Law.of([1.0 * v, -z * u], ("u", "v"), ("z",), dt=0.01), pairs.observed.parameter

    _, latent = simulated(law, w2[None], pairs.observed, 300, seed=1)

    assert w2.min() <= latent.min() < w2.min() + 0.1 * (w2.max() - w2.min())
    assert w2.max() >= latent.max() > w2.max() - 0.1 * (w2.max() - w2.min())
    assert float(latent.std()) == pytest.approx(float(w2.std()), rel=0.15)


def test_laws_for_other_states_are_refused():
    with pytest.raises(InvalidArgument, match="one for each"):
        Law.of([v], ("u", "v"), ("z",))


def logistic(series, dt, steps=10):
    """Growth towards 2 at rates of its own for each series, in closed form."""
    draw = torch.Generator().manual_seed(0)
    first, rate = (
        a + (b - a) * torch.rand(series, 1, generator=draw, dtype=torch.float64)
        for a, b in ((0.2, 3.0), (0.5, 2.0))
    )
    t = dt * torch.arange(steps + 1, dtype=torch.float64)
    states = 2 / (1 + (2 / first - 1) * torch.exp(-rate * t))
    return Trajectories(states[:, :, None], dt, ("n",), rate[:, 0])


def test_terms_and_digits_that_follow_the_integrator_are_not_left_standing():
    n, z = real_symbol("n"), real_symbol("z")
    seen = logistic(200, 0.2)
    rates = seen.parameter[None]
    begun = 1.01 * n * z - 0.51 * n**2 * z + 1e-4 * n**3 * z + 1e-4 * n
    law = Law.of([begun], ["n"], ["z"], form="ode", dt=0.2)

    fit = finish(law, rates + 0.05 * torch.sin(7 * rates), seen, orders=0)

    assert fit.loss < fit.floor < 1e-9  # the error of the integrator, which constants could follow
    assert fit.law.terms == 2
    assert str(fit.law.equations()[0].snapped(tolerance=1e-12)) == "-n**2*z/2 + n*z"


def test_numbers_that_are_not_simple_stay_as_they_were_fitted():
    n, z = real_symbol("n"), real_symbol("z")
    seen = logistic(20, 0.1)
    slower = Trajectories(seen.states * 1.2345678, 0.1, ("n",), seen.parameter)
    law = Law.of([1.0 * n * z - 0.4 * n**2 * z], ["n"], ["z"], form="ode", dt=0.1)

    fit = finish(law, seen.parameter[None], slower, orders=0)

    assert fit.law.equations()[0].matches(f"n*z - {0.5 / 1.2345678}*n**2*z", tolerance=1e-5)
    assert -float(fit.law.coefficients.min()) == pytest.approx(0.5 / 1.2345678, rel=1e-5)
