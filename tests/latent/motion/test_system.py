"""Systems of encoder and cell: losses, members, and what is found by gradients."""

import math

import pytest
import torch

from eqlearn.errors import InvalidArgument
from eqlearn.latent.motion.cells import CellShape, EQLCell
from eqlearn.latent.motion.find import DynamicsSettings, train_dynamics
from eqlearn.latent.motion.series import EncoderShape, SeriesEncoder
from eqlearn.latent.motion.system import DynamicsSystem, Pairs, PropagationLoss
from eqlearn.paper.dynamics.data import KINEMATICS
from eqlearn.training.loop import train
from eqlearn.training.schedule import Phase

PAIRS = KINEMATICS.pairs(0, series=16)
CELL = CellShape(primitives="id mul", hidden_layers=1, form="residual", skip=True, bias=True)
TINY = EncoderShape(filters=4, stride=5)


def system(members=None, seed=0) -> DynamicsSystem:
    scales = PAIRS.observed.scales.float()
    return DynamicsSystem(
        SeriesEncoder(2, 100, 1, shape=TINY, scales=scales, members=members, seed=seed),
        EQLCell(2, 1, shape=CELL, members=members, seed=seed),
    )


def phase(**changes) -> Phase:
    return Phase(**({"name": "only", "steps": 6, "lr": 1e-3, "horizon": 3} | changes))


def test_the_loss_is_that_of_a_loop_written_by_hand():
    model = system().eval()
    expected, y = [], PAIRS.propagated.states[:, 0].float().mT
    z = model.latent(PAIRS.observed.states.float())
    for step in range(1, 4):
        y = model.cell(y, z)
        expected.append((y.mT - PAIRS.propagated.states[:, step].float()).square())

    loss = PropagationLoss(PAIRS)(model, phase())

    torch.testing.assert_close(loss, torch.stack(expected).mean())


def test_batches_depend_on_seed_and_step_alone():
    first, second = (PropagationLoss(PAIRS, batch=4, seed=3) for _ in range(2))
    torch.manual_seed(1)

    for _ in range(3):
        assert torch.equal(first._draw(2)[1], second._draw(2)[1])


def test_a_resumed_run_is_the_same_run():
    whole, part = system(), system()
    losses = [PropagationLoss(PAIRS, batch=4, seed=3) for _ in range(2)]
    list(train(whole, losses[0], [phase()], penalty="half"))
    started = train(part, losses[1], [phase()], record_every=3)
    next(started)
    state = started.state()
    again = system(seed=9)
    list(train(again, PropagationLoss(PAIRS, batch=4, seed=3), [phase()], record_every=3, resume=state))

    for mine, other in zip(whole.parameters(), again.parameters(), strict=True):
        assert torch.equal(mine, other)


def test_one_member_that_diverges_leaves_the_others_untouched():
    broken, healthy = system(members=3), system(members=3)
    with torch.no_grad():
        broken.cell.equations[0].readout.raw[1] = math.inf
    for model in (broken, healthy):
        run = train(model, PropagationLoss(PAIRS), [phase()])
        list(run)

    assert not torch.isfinite(broken.cell.equations[0].readout.raw[1]).all()
    for mine, other in zip(broken.parameters(), healthy.parameters(), strict=True):
        assert torch.equal(mine[0], other[0])
        assert torch.equal(mine[2], other[2])


def test_a_horizon_beyond_the_series_is_explained():
    with pytest.raises(InvalidArgument, match="series of 5 steps"):
        PropagationLoss(PAIRS)(system(), phase(horizon=6))


def test_pairs_must_be_as_many():
    with pytest.raises(InvalidArgument, match="give pairs"):
        Pairs(PAIRS.observed, KINEMATICS.pairs(0, series=5).propagated)


def test_what_is_found_predicts_from_the_encoders_latent():
    settings = DynamicsSettings(
        encoder=TINY, cell=CELL, optimiser=torch.optim.Adam, scaling="state", members=2,
        schedule=(phase(steps=3),),
    )  # fmt: skip

    found = train_dynamics(PAIRS, settings)
    states = found.predict(PAIRS.observed.states, PAIRS.propagated.states[:, 0], 4)

    assert states.shape == (16, 5, 2)
    torch.testing.assert_close(states[:, 0], PAIRS.propagated.states[:, 0])
    one = found.step(states[:, 0].mT, found.latent(PAIRS.observed.states)).detach()
    torch.testing.assert_close(one.mT, states[:, 1])


class Means(torch.nn.Module):
    """An encoder without anything that the package's own have."""

    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(1))

    def forward(self, x):
        return x.mean(dim=(1, 2))[:, None] * self.scale


def test_an_encoder_without_members_is_common_to_all_members_of_the_cell():
    model = DynamicsSystem(Means(), EQLCell(2, 1, shape=CELL, members=3, seed=0)).double().eval()
    observed, initial = PAIRS.observed.states, PAIRS.propagated.states[:, 0]

    together = model(observed, initial, 4)

    assert together.shape == (3, 4, 2, 16)
    for i in range(3):
        torch.testing.assert_close(together[i], model.member(i)(observed, initial, 4))
    with pytest.raises(InvalidArgument, match="no member 3 among 3"):
        model.member(3)


def test_a_system_without_latents_has_members_too():
    model = DynamicsSystem(None, EQLCell(2, 0, shape=CELL, members=2, seed=0)).eval()

    assert model(PAIRS.observed.states.float(), PAIRS.propagated.states[:, 0].float(), 3).shape == (
        2,
        3,
        2,
        16,
    )
    assert model.member(1).cell.members is None


def test_a_system_without_members_is_its_only_one():
    model = DynamicsSystem(Means(), EQLCell(2, 1, shape=CELL, seed=0))

    assert model.member(0).cell.members is None
    with pytest.raises(InvalidArgument, match="no member 1 among 1"):
        model.member(1)


def test_unequal_members_are_explained():
    model = DynamicsSystem(system(members=2).encoder, EQLCell(2, 1, shape=CELL, members=3, seed=0))

    with pytest.raises(InvalidArgument, match=r"mixes parts of \[2, 3\] `members`"):
        model.member(0)
