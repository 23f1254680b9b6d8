"""Laws that are given: beside learned ones in a cell, on tensors and symbols, and kept through the finish."""

from dataclasses import replace

import numpy as np
import pytest
import sympy as sp
import torch

from eqlearn.errors import EqlearnError, InvalidArgument, InvalidExpression, UnknownName, WrongType
from eqlearn.latent.gauge import Gauge, fit_gauge
from eqlearn.latent.motion.cells import CellShape, EQLCell, rollout
from eqlearn.latent.motion.find import DynamicsSettings, train_dynamics
from eqlearn.latent.motion.finish import finish
from eqlearn.latent.motion.law import Law
from eqlearn.latent.motion.refine import Propagation, refine
from eqlearn.latent.motion.series import EncoderShape
from eqlearn.latent.settings import DynamicsSearch
from eqlearn.paper.dynamics.data import KINEMATICS
from eqlearn.symbolic.equation import Equation
from eqlearn.symbolic.expressions import real_symbol
from eqlearn.training.schedule import Phase
from eqlearn.validation.trajectories import Trajectories
from moving import QUICK

NAMES = ["x", "v", "z"]
x, v, z = (real_symbol(name) for name in NAMES)
SMALL = CellShape(primitives="id square mul", hidden_layers=1, bias=True, skip=True, form="ode")


def drawn(*shape, seed=0):
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) - 0.5


def cell(given, members=None, **changes) -> EQLCell:
    shape, scales = replace(SMALL, given=given, **changes), torch.tensor([3.0, 0.5])
    return EQLCell(
        2, 1, shape=shape, dt=0.1, scales=scales, names=["x", "v"], members=members, seed=0
    ).double()


FORMULAS = [
    "v", "0", "1.5", "v - 0.1*x + sin(2.5*z)", Equation.parse("3*x*v", ["v", "x"]),
    Equation.parse("0.3*exp(-0.7*x)", ["x"]).torch(),
]  # fmt: skip


@pytest.mark.parametrize("formula", FORMULAS)
@pytest.mark.parametrize("form", ["map", "residual", "ode"])
@pytest.mark.parametrize("shared", [False, True])
def test_tensors_and_symbols_make_the_same_step(formula, form, shared):
    one = cell({"x": formula}, form=form, shared=shared).eval()
    y, at = drawn(2, 3), drawn(1, 3, seed=1)

    stepped = one(y, at).detach()

    for column, point in zip(stepped.mT.tolist(), torch.cat([y, at]).mT.tolist(), strict=True):
        exact = [float(e) for e in one.symbolic([sp.Float(number, 17) for number in point])]
        np.testing.assert_allclose(column, exact, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("formula", FORMULAS)
def test_a_given_law_reads_as_it_was_given(formula):
    one = cell({"v": formula})

    read = Equation.read_all(one.right_hand_side, NAMES)[1]

    expected = formula if isinstance(formula, str) else str(Equation(formula.expr, formula.variables))
    assert read.matches(expected, tolerance=1e-12)


def test_digits_of_a_held_law_survive_single_precision():
    one = EQLCell(2, 1, shape=replace(SMALL, given={"x": "0.1*v"}), names=["x", "v"], members=2, seed=0)

    alone = one.float().member(1).double()

    assert Equation.read_all(alone.right_hand_side, NAMES)[0].constants == (0.1,)
    assert torch.equal(alone.law(drawn(2, 3), drawn(1, 3))[0], 0.1 * drawn(2, 3)[1])


def test_only_the_other_laws_are_learned():
    assert len(cell({"x": "v"}).equations) == 1
    assert cell({"x": "v"}, shared=True).equations[0].out_features == 1
    assert len(cell({"x": "v", "v": "-z*x"}).equations) == 0
    assert [p.shape for p in cell({"x": "v", "v": "-z*x"}).parameters()] == []


def test_without_given_laws_a_cell_is_what_it_was():
    plain = EQLCell(2, 1, shape=SMALL, dt=0.1, scales=torch.tensor([3.0, 0.5]), seed=0).double()

    assert torch.equal(cell({})(drawn(2, 4), drawn(1, 4)), plain(drawn(2, 4), drawn(1, 4)))
    assert list(plain.state_dict()) == list(cell({}).state_dict())


@pytest.mark.parametrize("formula", ["v", "2.5", Equation.parse("1.5*v - 0.3*z", NAMES).torch()])
def test_members_step_as_they_would_alone(formula):
    many = cell({"x": formula}, members=3).eval()
    if many.given[0].constants is not None:
        with torch.no_grad():
            many.given[0].constants.mul_(torch.tensor([[1.0], [2.0], [3.0]]))
    y, at = drawn(3, 2, 5), drawn(3, 1, 5, seed=1)

    together = many(y, at)

    for i in range(3):
        torch.testing.assert_close(together[i], many.member(i)(y[i], at[i]))


def test_trained_constants_get_a_gradient_and_held_ones_have_none():
    one = cell({"x": Equation.parse("1.5*v", NAMES).torch(), "v": "-2.0*x"})

    one(drawn(2, 5), drawn(1, 5)).square().sum().backward()

    assert [tuple(p.shape) for p in one.parameters()] == [(1,)]
    assert float(one.given[0].constants.grad.abs()) > 0


def test_a_cell_has_its_own_copy_of_trained_constants():
    module = Equation.parse("1.5*v", NAMES).torch()
    first, second = cell({"x": module}), cell({"x": module})

    with torch.no_grad():
        first.given[0].constants.zero_()

    assert second.given[0].constants.tolist() == module.constants.tolist() == [1.5]


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(
    ("given", "kind", "words"),
    [
        ({"y": "v"}, UnknownName, "no state named 'y'"),
        ({"z": "v"}, UnknownName, "no state named 'z'"),
        ({"x": "w"}, InvalidExpression, r"`given\['x'\]`: 'w' at place 0 is not a variable"),
        ({"x": "v = 2"}, InvalidExpression, r"`given\['x'\]`: .* right-hand side only"),
        ({"x": "log(-1)"}, EqlearnError, r"`given\['x'\]`"),
        ({"x": Equation.parse("w + v", ["v", "w"])}, InvalidArgument, r"`given\['x'\]` has a variable 'w'"),
        ({"x": 3.0}, WrongType, r"`given\['x'\]` must be a text such as"),
        ({"x": torch.nn.Linear(1, 1)}, WrongType, r"`given\['x'\]` must be a text such as"),
        ([("x", "v")], WrongType, "`given` must hold a formula for the name of each state"),
        ("v", WrongType, "`given` must hold a formula for the name of each state"),
    ],
)  # fmt: skip
def test_what_is_no_law_of_a_state_is_refused(given, kind, words):
    with pytest.raises(kind, match=words):
        cell(given)


def test_names_must_be_as_many_as_states():
    with pytest.raises(InvalidArgument, match="1 `names` for 2 states"):
        EQLCell(2, 1, names=["x"])


# --- laws ------------------------------------------------------------------------------------------------

HELD = [Equation.parse(text, NAMES).expr for text in ("v - 0.25*sin(1.5*x)", "-x*z + 0.1*v")]


def law(**given) -> Law:
    return Law.of(HELD, ("x", "v"), ("z",), form="ode", dt=0.1, **given)


@pytest.mark.parametrize("given", [{"held": (0,)}, {"tied": (0,)}, {"held": (0, 1)}, {"tied": (0, 1)}])
def test_a_law_with_given_parts_moves_as_one_without(given):
    y, at = drawn(2, 4), drawn(1, 4, seed=1)

    torch.testing.assert_close(law(**given)(y, at), law()(y, at))


def test_what_is_held_is_neither_fitted_nor_thinned_nor_widened():
    one = law(held=(0,))

    assert one.free.sum() == 2
    assert len(one.inner) == 0
    assert one.keeping(torch.zeros_like(one.active)).equations()[0].expr == HELD[0]
    assert one.next_order().equations()[0].expr == HELD[0]
    assert one.regauged([Gauge(2.0, 1.0)]).equations()[0].expr == HELD[0]
    assert one.compact().equations()[0].expr == HELD[0]


def test_of_what_is_tied_the_constants_alone_are_fitted():
    one = law(tied=(0,))

    assert one.free.sum() == 2
    assert len(one.inner) == 2
    assert one.keeping(torch.zeros_like(one.active)).equations()[0].expr == HELD[0]


def test_a_given_law_sets_the_units_of_its_latents():
    assert law(held=(0,)).known == frozenset()
    assert law(held=(1,)).known == law(tied=(1,)).known == {"z"}
    assert law(held=(1,)).regauged([Gauge(2.0, 1.0)]).equations()[1].expr == HELD[1]


STIFFNESS = 0.5 + 1.5 * torch.linspace(0, 1, 40, dtype=torch.float64)


def springs(truth: Law, count=40, steps=25, seed=0) -> Trajectories:
    start = 2 * drawn(2, count, seed=seed)
    states = torch.cat([start[None], rollout(truth, start, STIFFNESS[None, :count], steps)])
    return Trajectories(states.permute(2, 0, 1), truth.dt, ("x", "v"), STIFFNESS[:count])


SPRING = Law.of([1.0 * v, -z * x], ("x", "v"), ("z",), form="ode", dt=0.1)


def test_all_held_the_latents_alone_are_fitted():
    one = Law.of([1.0 * v, -z * x], ("x", "v"), ("z",), form="ode", dt=0.1, held=(0, 1))

    fit = refine(one, torch.ones(1, 40, dtype=torch.float64), Propagation.of(springs(SPRING)))

    torch.testing.assert_close(fit.latent[0], STIFFNESS, atol=1e-6, rtol=1e-6)


def test_finishing_fits_the_constants_of_a_tied_law_and_leaves_its_form():
    damped = Law.of([1.0 * v, -z * x - 0.3 * v**3], ("x", "v"), ("z",), form="ode", dt=0.1)
    start = Law.of(
        [v, -z * x - sp.Float(0.1) * v**3], ("x", "v"), ("z",), form="ode", dt=0.1, held=(0,), tied=(1,)
    )

    fit = finish(start, STIFFNESS[None] + 0.05, springs(damped))

    assert [e.constants for e in fit.law.equations()] == [(), pytest.approx((-0.3,), rel=1e-6)]
    torch.testing.assert_close(fit.latent[0], STIFFNESS, atol=1e-5, rtol=1e-5)


# --- trained -----------------------------------------------------------------------------------------------

PAIRS = KINEMATICS.pairs(3, series=60)
SETTINGS = DynamicsSearch(
    form="residual", primitives="id mul", structures=QUICK,
    distil=(Phase(name="distil", steps=60, lr=3e-3, decay="cosine"),),
)  # fmt: skip
DENSE = torch.nn.Sequential(
    torch.nn.Flatten(), torch.nn.Linear(200, 24), torch.nn.Tanh(), torch.nn.Linear(24, 1)
)


def found_with(given, encoder=None, form="residual"):
    return train_dynamics(PAIRS, replace(SETTINGS, given=given, form=form), encoder=encoder, seed=3)


def gauge_of(found) -> Gauge:
    """How the encoder's latent relates to the true acceleration."""
    return fit_gauge(found.latent(PAIRS.observed.states)[0], PAIRS.observed.parameter)


@pytest.mark.slow
def test_with_the_rate_of_a_position_given_the_rate_of_the_velocity_is_found():
    found = found_with({"u": "v"}, form="ode")

    assert str(found.equations[0]) == str(found.canonical[0]) == "v"
    assert found.canonical[1].matches("z", tolerance=1e-6)
    assert abs(gauge_of(found).correlation) > 0.97


@pytest.mark.parametrize("encoder", [None, DENSE])
def test_a_latent_in_a_given_law_is_learned_in_its_units(encoder):
    found = found_with({"u": "v + 2*z"}, encoder)

    assert str(found.equations[0]) == str(found.canonical[0])
    assert found.equations[0].matches("u + v + 2*z", tolerance=1e-12)
    assert found.equations[1].matches("v + 4*z", tolerance=1e-6)
    assert gauge_of(found).scale == pytest.approx(4, rel=0.1)
    assert gauge_of(found).shift == pytest.approx(0, abs=0.1)


def test_with_all_laws_given_the_encoder_alone_is_trained():
    found = found_with({"u": "v + z/2", "v": "z"})

    assert found.equations[0].matches("u + v + z/2", tolerance=1e-12)
    assert found.equations[1].matches("v + z", tolerance=1e-12)
    torch.testing.assert_close(found.refined.latent[0], PAIRS.observed.parameter, atol=1e-6, rtol=1e-6)
    assert gauge_of(found).scale == pytest.approx(1, rel=0.1)


def test_constants_of_a_given_law_are_trained_and_made_exact():
    found = found_with({"v": Equation.parse("0.8*z", ["z"]).torch(), "u": "v + z/2"})

    assert found.equations[1].matches("v + z", tolerance=1e-6)


def test_as_trained_a_given_law_is_there_too():
    settings = DynamicsSettings(
        encoder=EncoderShape(stride=5), optimiser=torch.optim.Adam, scaling="time",
        cell=CellShape(primitives="id mul", hidden_layers=1, form="ode", given={"u": "v"}),
        schedule=(Phase(name="brief", steps=2, lr=1e-2, horizon=1),),
    )  # fmt: skip

    found = train_dynamics(PAIRS, settings, seed=3)

    assert str(found.equations[0]) == "v"
