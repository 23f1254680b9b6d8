"""The paper's systems: exact solutions against an independent integrator, and how equations are judged."""

import numpy as np
import pytest
import torch
from scipy.integrate import solve_ivp

from eqlearn import CellShape, DynamicsSystem, EQLCell, Record
from eqlearn.errors import UnknownName
from eqlearn.paper.dynamics.data import KINEMATICS, OSCILLATOR, RELEASED_OSCILLATOR
from eqlearn.paper.dynamics.presets import DYNAMICS_PRESETS, find_preset, quick
from eqlearn.paper.dynamics.trials import compared, euler, present_equations
from eqlearn.symbolic.equation import Equation


@pytest.mark.parametrize("system", [KINEMATICS, OSCILLATOR, RELEASED_OSCILLATOR], ids=lambda s: s.name)
def test_solutions_are_those_of_an_independent_integrator(system):
    pairs = system.pairs(0, series=2)
    rates = [Equation.parse(system.rate[s], (*system.states, system.parameter)) for s in system.states]
    times = system.dt * np.arange(system.observed)

    for series, parameter in zip(
        pairs.observed.states.numpy(), pairs.observed.parameter.tolist(), strict=True
    ):

        def rate(_, y, parameter=parameter):
            return [float(r(np.array([[*y, parameter]]))[0]) for r in rates]

        found = solve_ivp(rate, (0, times[39]), series[0], "LSODA", times[:40], rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(series[:40], found.y.T, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("system", [KINEMATICS, OSCILLATOR], ids=lambda s: s.name)
def test_data_have_the_papers_sizes_and_ranges(system):
    pairs = system.pairs(1)

    assert pairs.observed.states.shape == (system.series, system.observed, 2)
    assert pairs.propagated.steps == system.horizon
    low, high = system.ranges[system.parameter]
    assert low <= pairs.observed.parameter.min()
    assert pairs.observed.parameter.max() <= high


def test_a_pair_shares_its_parameter_and_not_its_start():
    pairs = KINEMATICS.pairs(0)

    assert (pairs.observed.parameter == pairs.propagated.parameter).all()
    assert not (pairs.observed.states[:, 0] == pairs.propagated.states[:, 0]).any()


def test_a_seed_is_its_data():
    assert (KINEMATICS.pairs(2).observed.states == KINEMATICS.pairs(2).observed.states).all()


def test_the_truth_is_right():
    for state in OSCILLATOR.states:
        truth = Equation.parse(OSCILLATOR.truth[state], ("u", "v", "w2"))
        assert compared(truth, state, OSCILLATOR) == {
            "coefficient_error": 0, "missing": [], "spurious": [],
        }  # fmt: skip


def test_the_papers_spurious_term_is_seen():
    equation = Equation.parse("v - w2*u/10 - w2*v/200 + 0.0133*w2**2", ("u", "v", "w2"))

    assert compared(equation, "v", OSCILLATOR)["spurious"] == ["0.0133*w2**2 in v'"]


def test_the_next_order_is_not_spurious():
    equation = Equation.parse("v - w2*u/10 - w2*v/200 + 0.00017*u*w2**2", ("u", "v", "w2"))

    assert compared(equation, "v", OSCILLATOR)["spurious"] == []


def test_a_missing_term_is_an_error_of_all_of_it():
    judged = compared(Equation.parse("u + v/10", ("u", "v", "w2")), "u", OSCILLATOR)

    assert judged["coefficient_error"] == 1
    assert judged["missing"] == ["u*w2 in u'"]


def test_eulers_error_grows_with_time():
    errors = euler(OSCILLATOR, 0)["errors"]

    assert errors[0] == 0
    assert errors[-1] > errors[10] > 0


@pytest.mark.parametrize("name", DYNAMICS_PRESETS)
def test_every_preset_fits_its_series(name):
    preset = DYNAMICS_PRESETS[name]

    for phase in getattr(preset.settings, "schedule", ()):
        assert phase.horizon <= preset.system.horizon
    system, _, recipe = name.partition(" ")
    assert find_preset(system, recipe.replace(" ", "-")) is preset


def test_a_quick_preset_is_shorter():
    preset = DYNAMICS_PRESETS["oscillator paper half"]

    assert sum(p.steps for p in quick(preset).settings.schedule) < 2_000
    search = quick(DYNAMICS_PRESETS["oscillator modern"]).settings
    assert search.structures.warm_steps < 600
    assert sum(p.steps for p in search.distil) < 1_000


def test_an_unknown_preset_is_explained():
    with pytest.raises(UnknownName, match="kinematics modern"):
        find_preset("kinematics", "modern-l1")


@pytest.mark.parametrize(("weights", "count"), [(12, 2), (400, 0)])
def test_the_equations_of_the_leading_member_are_shown_once_they_are_short(weights, count):
    shape = CellShape(primitives="id", hidden_layers=1, form="residual", bias=True)
    cell = EQLCell(2, 1, shape=shape, dt=0.5, members=2, seed=0)
    record = Record(
        phase="made up",
        step=1,
        total_step=1,
        loss=torch.tensor([torch.nan, 1.0]),
        penalty=torch.zeros(2),
        weights_left=torch.tensor([12, weights]),
        alive=torch.tensor([False, True]),
        failures=(),
        lr=0.1,
        penalty_weight=0.0,
        seconds=0.0,
        model=DynamicsSystem(None, cell),
    )

    lines = present_equations(record, ["u", "v"])

    assert len(lines) == count
    y, z = torch.rand(2, 20), torch.rand(1, 20)
    for line, state, after in zip(lines, ("u'", "v'"), cell.member(1)(y, z), strict=False):
        name, _, formula = line.partition(" = ")
        told = Equation.parse(formula, ["u", "v", "z"])(torch.cat([y, z]).mT.numpy())
        assert name == state
        np.testing.assert_allclose(told, after.detach(), atol=5e-3)
