from dataclasses import replace

import numpy as np
import pytest
import sympy as sp

from eqlearn.dynamics.forms import find_form
from eqlearn.dynamics.library import Term
from eqlearn.dynamics.prepared import Prepared
from eqlearn.dynamics.segments import Segments
from eqlearn.dynamics.selection import fitted_model, snapped
from eqlearn.dynamics.settings import MOTION
from eqlearn.dynamics.sums import SumOfTerms
from eqlearn.numerics.budget import never
from eqlearn.symbolic.equation import Equation
from eqlearn.symbolic.snap import simple_number
from eqlearn.validation.trajectories import Trajectories
from moving import lorenz, series_of


def parsed(*texts, names):
    return [Equation.parse(text, list(names)) for text in texts]


def spring(noise, seed=0):
    """A damped spring, with so much noise in the position and a tenth of it in the velocity."""
    (clean,) = series_of(lambda t, s: [s[1], -2 * s[0] - 0.3 * s[1]], [[1, 0]], 12, 0.04)
    rng = np.random.default_rng(seed)
    return Trajectories.of(
        [clean + noise * np.array([1, 0.1]) * rng.normal(size=clean.shape)], 0.04, ["x", "v"]
    )


def prepared(trajectories):
    return Prepared.of(trajectories, find_form("ode"), MOTION)


def test_a_chaotic_motion_in_noise_is_followed_once_pieces_grow():
    series = series_of(lorenz, [[2, 3, 18]], 5.12, 0.02, noise=0.1)
    noisy = prepared(Trajectories.of(series, 0.02, list("xyz")))
    law = parsed("9.5*(y - x)", "26.5*x - 1.0*x*z - 0.9*y", "1.0*x*y - 2.5*z", names="xyz")

    grown = noisy.grown(fitted_model(law, noisy.segments(31, 40)), never)

    assert len(grown.segments.values) == 1
    assert grown.fit.errors == pytest.approx(0.1, rel=0.15)


def test_pieces_stay_as_short_as_a_wrong_law_can_follow():
    noisy = prepared(spring(0.02))
    model = fitted_model(parsed("1.0*v", "-1.9*x", names="xv"), noisy.segments(31, 40))

    assert noisy.grown(model, never).segments.values.shape[1] < 256
    assert noisy.grown(model, lambda: True) is model


def test_states_weigh_by_their_noise():
    noisy = prepared(spring(0.2))
    law, segments = parsed("1.0*v", "-2.0*x - 0.3*v", names="xv"), noisy.segments(31, 40)
    weighed, alike = (fitted_model(law, s) for s in (segments, replace(segments, balance=1.0)))

    assert segments.balance[1] > 3 * segments.balance[0]
    assert (weighed.fit.standard_errors < 0.8 * alike.fit.standard_errors).all()
    assert weighed.fit.errors == pytest.approx(noisy.noise, rel=0.1)


def test_coefficients_near_one_are_tried_as_one_where_there_is_noise():
    some = SumOfTerms((Term((0, 1)), Term((1, 0))), (1.03, -0.3), 0.1, 0.0)

    noisy = [str(e) for e in prepared(spring(0.05)).written([some])]
    clean = [str(e) for e in prepared(spring(0.0)).written([some])]

    assert noisy == ["1.03*v - 0.3*x", "v - 0.3*x"]
    assert clean == ["1.03*v - 0.3*x"]


def test_a_fraction_near_a_constant_in_noise_is_no_evidence():
    (series,) = series_of(lambda t, s: [s[1], -2.1 * s[0] - 0.43 * s[1]], [[1, 0]], 12, 0.04, noise=0.02)
    pieces = Segments.of(Trajectories.of([series], 0.04, ["x", "v"]), "ode", 150, 2)
    model = snapped(fitted_model(parsed("1.0*v", "-2.1*x - 0.43*v", names="xv"), pieces))

    assert model.equations[0].expr == sp.Symbol("v", real=True)
    assert len(model.equations[1].constants) == 2
    assert simple_number(0.4284, 0.0005) == sp.Rational(3, 7)
    assert simple_number(0.4284, 0.0005, 3.0) is None
    assert simple_number(1.004, 0.002, 3.0) == 1


def test_constants_that_make_up_for_each_other_do_not_shorten_a_law():
    (series,) = series_of(lambda t, s: [9.8 - 0.002 * s[0] ** 2], [[40.0]], 10, 0.02, noise=0.05)
    noisy = prepared(Trajectories.of([series], 0.02, ["x"]))
    square, power, bent = (
        fitted_model(parsed(law, names="x"), noisy.segments(255, 40))
        for law in ("9.8 - 0.0021*x**2", "9.8 - 0.0021*x**1.99", "12.1 - 1.8*exp(0.028*x)")
    )

    assert power.formula_length > square.formula_length + 3
    assert bent.formula_length > square.formula_length + 3
    assert (power.fit.errors_in_turn <= power.fit.standard_errors * (1 + 1e-9)).all()
