"""Cells, rollouts and systems: against hand-written loops, their own symbols, and each other."""

import numpy as np
import pytest
import sympy as sp
import torch

from eqlearn.dynamics.forms import STEPPERS
from eqlearn.errors import InvalidArgument, UnknownName
from eqlearn.latent.motion.cells import CellShape, EQLCell, Unrolled, rollout
from eqlearn.nn.sparse import prune_
from eqlearn.paper.baselines import ReLUCell
from eqlearn.symbolic.equation import Equation
from eqlearn.symbolic.expressions import real_symbol

SMALL = CellShape(primitives="id square mul", hidden_layers=1, bias=True, skip=True)


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def drawn(*shape, seed=0):
    return torch.rand(*shape, generator=generator(seed), dtype=torch.float64) - 0.5


def cell(**changes) -> EQLCell:
    shape = CellShape(**({**vars(SMALL)} | {k: v for k, v in changes.items() if k in vars(SMALL)}))
    rest = {k: v for k, v in changes.items() if k not in vars(SMALL)}
    return EQLCell(2, 1, shape=shape, **({"seed": 0, "dt": 0.1} | rest)).double()


FORMS = [("map", "rk4"), ("residual", "rk4"), *(("ode", name) for name in STEPPERS)]


@pytest.mark.parametrize(("form", "stepper"), FORMS)
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("constant_input", [False, True])
def test_tensors_and_symbols_make_the_same_step(form, stepper, shared, constant_input):
    one = cell(
        form=form, stepper=stepper, shared=shared, constant_input=constant_input,
        scales=torch.tensor([3.0, 0.5]),
    ).eval()  # fmt: skip
    y, z = drawn(2, 3), drawn(1, 3, seed=1)

    stepped = one(y, z).detach()

    # At numbers the symbolic step stays small, even through the four nested laws of RK4.
    for column, point in zip(stepped.mT.tolist(), torch.cat([y, z]).mT.tolist(), strict=True):
        exact = [float(e) for e in one.symbolic([sp.Float(x, 17) for x in point])]
        np.testing.assert_allclose(column, exact, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("form", ["map", "residual"])
def test_equations_read_out_of_a_cell_make_its_step(form):
    one, y, z = cell(form=form).eval(), drawn(2, 5), drawn(1, 5, seed=1)
    table = {"u": y[0].numpy(), "v": y[1].numpy(), "z": z[0].numpy()}

    equations = Equation.read_all(one, ["u", "v", "z"], simplify=False)

    for row, equation in zip(one(y, z).detach().numpy(), equations, strict=True):
        np.testing.assert_allclose(row, equation(table), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("form", "stepper"), FORMS)
@pytest.mark.parametrize("constant_input", [False, True])
def test_the_right_hand_side_reads_as_the_law_whatever_the_stepper(form, stepper, constant_input):
    one = cell(
        form=form, stepper=stepper, constant_input=constant_input, scales=torch.tensor([3.0, 0.5])
    ).eval()  # fmt: skip
    y, z = drawn(2, 5), drawn(1, 5, seed=1)
    table = {"u": y[0].numpy(), "v": y[1].numpy(), "z": z[0].numpy()}

    equations = Equation.read_all(one.right_hand_side, ["u", "v", "z"])

    for row, equation in zip(one.law(y, z).detach().numpy(), equations, strict=True):
        np.testing.assert_allclose(row, equation(table), rtol=1e-9, atol=1e-12)


def test_the_right_hand_side_of_an_oscillator_reads_as_its_equations():
    one = cell(form="ode", primitives="mul", bias=False)
    position, velocity = one.equations
    with torch.no_grad():
        for weights in one.parameters():
            weights.zero_()
        position.readout.raw[0, 2] = 1.0  # after the product come the inputs u, v, z
        velocity.layers[0].linear.raw[:, [0, 2]] = torch.eye(2).double()
        velocity.readout.raw[0, 0] = -1.0

    assert [str(e) for e in Equation.read_all(one.right_hand_side, ["u", "v", "z"])] == ["v", "-u*z"]


def test_the_right_hand_side_computes_the_law():
    one, y, z = cell(form="ode"), drawn(2, 5), drawn(1, 5, seed=1)

    assert torch.equal(one.right_hand_side(y, z), one.law(y, z))


def test_one_member_of_a_population_has_a_right_hand_side_to_read():
    many = EQLCell(2, 1, shape=SMALL, members=3, seed=4).double().eval()

    read = Equation.read_all(many.right_hand_side, ["u", "v", "z"], member=1)

    assert read == Equation.read_all(many.member(1).right_hand_side, ["u", "v", "z"])


def test_states_have_networks_of_their_own_unless_shared():
    assert len(cell().equations) == 2
    assert len(cell(shared=True).equations) == 1


def test_a_residual_is_eulers_step_of_the_same_law():
    y, z = drawn(2, 5), drawn(1, 5, seed=1)
    one = cell(form="residual")

    torch.testing.assert_close(one(y, z), y + 0.1 * one.law(y, z))


@pytest.mark.parametrize(("stepper", "order"), [("euler", 1), ("midpoint", 2), ("rk4", 4)])
def test_steppers_have_their_order(stepper, order):
    def error(dt):
        y = torch.ones(1, 1, dtype=torch.float64)
        for _ in range(round(1 / dt)):
            y = STEPPERS[stepper](lambda at: -at, y, dt)
        return abs(float(y) - np.exp(-1))

    assert np.log2(error(0.1) / error(0.05)) == pytest.approx(order, abs=0.3)


def test_a_rollout_is_the_loop_written_by_hand():
    one, y, z = cell(form="residual"), drawn(2, 5), drawn(1, 5, seed=1)

    states, by_hand = rollout(one, y, z, 4), []
    for _ in range(4):
        y = one(y, z)
        by_hand.append(y)

    torch.testing.assert_close(states, torch.stack(by_hand))


def test_the_gradient_through_a_long_rollout_is_that_of_finite_differences():
    one, y, z = cell(form="residual"), drawn(2, 3), drawn(1, 3, seed=1)

    assert torch.autograd.gradcheck(lambda at: rollout(one, y, at, 60)[-1], (z.requires_grad_(),))


def test_a_rollout_of_no_steps_is_refused():
    with pytest.raises(InvalidArgument, match="`steps`"):
        rollout(cell(), drawn(2, 3), drawn(1, 3), 0)


def test_members_step_as_they_would_alone():
    many = EQLCell(2, 1, shape=SMALL, members=3, seed=4).double().eval()
    y, z = drawn(3, 2, 5), drawn(3, 1, 5, seed=1)

    together = many(y, z)

    for i in range(3):
        torch.testing.assert_close(together[i], many.member(i)(y[i], z[i]))


def test_members_start_as_they_would_alone():
    many, alone = (EQLCell(2, 1, shape=SMALL, members=n, seed=s) for n, s in ((3, 4), (1, 6)))

    for mine, other in zip(many.member(2).parameters(), alone.member(0).parameters(), strict=True):
        assert torch.equal(mine, other)


def test_a_cell_without_latents_steps():
    one = EQLCell(2, 0, shape=SMALL, seed=0).double()

    assert one(drawn(2, 5), drawn(0, 5)).shape == (2, 5)


def test_wrong_numbers_of_variables_are_refused():
    with pytest.raises(InvalidArgument, match="2 variables"):
        cell().law_symbolic([real_symbol("u"), sp.S.One])


def test_unknown_forms_and_steppers_are_refused():
    with pytest.raises(UnknownName, match="rk4"):
        CellShape(stepper="rk5")


def test_a_cell_of_no_states_is_refused():
    with pytest.raises(InvalidArgument, match="1 state or more"):
        EQLCell(0, 1)


def test_the_twin_uses_one_network_at_every_step():
    twin = ReLUCell(2, 1, form="residual", dt=0.1, seed=0).double()

    assert sum(1 for m in twin.modules() if isinstance(m, torch.nn.Linear)) == 3
    assert rollout(twin, drawn(2, 4), drawn(1, 4), 7).shape == (7, 2, 4)


def test_the_twin_leaves_the_users_random_state_alone():
    before = torch.get_rng_state()
    ReLUCell(2, 1, seed=3)

    assert torch.equal(before, torch.get_rng_state())


UNROLLED = [{}, {"form": "residual", "skip": True, "bias": True}, {"shared": True, "constant_input": True}]


def step_by_step(cell, y, z, steps):
    states = []
    for _ in range(steps):
        y = cell(y, z)
        states.append(y)
    return torch.stack(states, dim=-3)


def made(members, **options):
    torch.manual_seed(0)
    scales, shape = torch.tensor([1.3, 0.8]), CellShape(init="released-systems", **options)
    cell = EQLCell(2, 1, shape=shape, members=members, seed=1, scales=scales, dt=0.1).double()
    prune_(cell, below=0.02)
    lead = () if members is None else (members,)
    y, z = (0.3 * torch.randn(*lead, n, 16, dtype=torch.float64) for n in (2, 1))
    return cell, y.requires_grad_(), z.requires_grad_()


@pytest.mark.parametrize("options", UNROLLED)
@pytest.mark.parametrize("members", [None, 1, 3])
def test_a_rollout_on_arrays_is_the_cell_applied_again_and_again(members, options):
    cell, y, z = made(members, **options)
    inputs = [y, z, *cell.parameters()]

    found, expected = rollout(cell, y, z, 4), step_by_step(cell, y, z, 4)

    assert Unrolled.of(cell, y, z, 4) is not None
    torch.testing.assert_close(found, expected)
    weights = torch.randn_like(expected)
    theirs = torch.autograd.grad((expected * weights).sum(), inputs)
    torch.testing.assert_close(torch.autograd.grad((found * weights).sum(), inputs), theirs)


def test_a_rollout_has_second_derivatives_and_may_be_gone_through_twice():
    cell, y, z = made(None)
    total = rollout(cell, y, z, 3).square().sum()
    first = torch.autograd.grad(total, z, retain_graph=True)
    rollout(cell, y, z, 3).sum().backward()

    second = torch.autograd.grad(total, z, create_graph=True)

    torch.testing.assert_close(second, first)
    (curvature,) = torch.autograd.grad(second[0].sum(), z)
    (slope,) = torch.autograd.grad(step_by_step(cell, y, z, 3).square().sum(), z, create_graph=True)
    torch.testing.assert_close(curvature, torch.autograd.grad(slope.sum(), z)[0])


@pytest.mark.parametrize("options", [{"form": "ode"}, {"gates": True}, {"given": {"x0": "x1"}}])
def test_a_cell_that_is_more_than_its_networks_is_applied_step_by_step(options):
    cell, y, z = made(None, **options)

    assert Unrolled.of(cell, y, z, 3) is None
    assert rollout(cell, y, z, 3).shape == (3, 2, 16)


def test_a_hook_on_a_cell_sees_each_step():
    cell, y, z = made(None)
    seen = []
    cell.register_forward_hook(lambda *call: seen.append(call))

    rollout(cell, y, z, 3)

    assert len(seen) == 3
