"""Equations of motion whose coefficients are functions of an input, such as the time."""

import numpy as np
import pytest

from eqlearn import discover_dynamics
from eqlearn.dynamics.library import columns, library
from eqlearn.dynamics.settings import MOTION
from eqlearn.dynamics.varying import VaryingMotion, varying_equation
from eqlearn.dynamics.weak import WeakForm
from eqlearn.errors import UnknownName
from eqlearn.numerics.budget import Deadline
from eqlearn.numerics.splines import Splines

DT = 0.03
T = DT * np.arange(200)
# dx/dt = (0.6 + 0.4*cos(2*t))*x has x = exp(0.6*t + 0.2*sin(2*t)), times any start.
GROWTH = np.exp(0.6 * T + 0.2 * np.sin(2 * T))
SERIES = [np.column_stack([start * GROWTH, T]) for start in (0.1, 0.3)]
ALLOWED = frozenset({"id", "mul", "square"})


def weak_of(series):
    return WeakForm.of([one[:, 0] for one in series], DT)


def searched(end):
    states, weak = np.concatenate(SERIES), weak_of(SERIES)
    options = {"primitives": "id cos", "seed": 0, "end": end}
    return varying_equation(weak, states, ("x", "t"), 1, ALLOWED, 4, MOTION, **options)


def test_a_coefficient_that_follows_the_time_has_its_formula():
    found = searched(Deadline(np.inf))

    assert found.matches("0.6*x + 0.4*cos(2*t)*x", tolerance=1e-3)


def test_without_a_formula_there_is_no_equation():
    found = searched(Deadline(0.0))

    assert found is None


def test_splines_that_sum_to_one_give_the_terms_themselves():
    states = np.concatenate(SERIES)
    terms = library(states[:, :1], ALLOWED, 2)
    view = VaryingMotion(weak_of(SERIES), columns(terms, states[:, :1]), states[:, 1])

    blocks = view.blocks(range(len(terms)), Splines.over(T, 8, 3))

    summed = blocks.reshape(len(blocks), len(terms), -1).sum(axis=2)
    np.testing.assert_allclose(summed, view.weak.tests @ view.columns, atol=1e-9 * np.abs(summed).max())


def test_only_an_input_may_vary_the_coefficients():
    with pytest.raises(UnknownName, match="input"):
        discover_dynamics(SERIES, dt=DT, names=["x", "t"], inputs=["t"], varies="x")


@pytest.mark.slow
@pytest.mark.parametrize("noise", [0.0, 0.01])
def test_the_whole_search_keeps_the_law(noise):
    rng = np.random.default_rng(0)
    noisy = [one + noise * np.array([one[:, 0].std(), 0]) * rng.normal(size=one.shape) for one in SERIES]

    found = discover_dynamics(noisy, dt=DT, names=["x", "t"], inputs=["t"], varies="t")

    assert found.equations[0].matches("0.6*x + 0.4*cos(2*t)*x", tolerance=0.1 if noise else 1e-3)
