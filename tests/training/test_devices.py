"""No tensor is left behind when a model moves: on the device `meta`, which refuses to compute with others."""

import pytest
import torch

from eqlearn.latent.motion.cells import CellShape, EQLCell
from eqlearn.latent.motion.series import EncoderShape, SeriesEncoder
from eqlearn.latent.motion.system import DynamicsSystem, Pairs, PropagationLoss
from eqlearn.nn.eql import EQL
from eqlearn.nn.penalties import sparsity
from eqlearn.training.direct import MeanSquaredError
from eqlearn.training.optimisers import RMSPropTF1
from eqlearn.training.schedule import Phase
from eqlearn.validation.trajectories import Trajectories

PHASE = Phase(name="only", steps=1, lr=1e-2, horizon=3)


def step(model, loss, penalty):
    """One step of training, but for the look at whether the loss is finite, which `meta` can't answer."""
    optimiser = RMSPropTF1(model.parameters())
    (loss + sparsity(model, penalty)).sum().backward()
    optimiser.step()
    slots = [slot for state in optimiser.state.values() for slot in state.values()]
    return [*model.parameters(), *model.buffers(), *(p.grad for p in model.parameters()), *slots]


@pytest.mark.parametrize("penalty", ["half", "l1", "l0"])
@pytest.mark.parametrize("members", [None, 3])
def test_a_network_trains_where_it_is(members, penalty):
    net = EQL(2, 1, members=members, skip=True, bias=True, gates=penalty == "l0", seed=0)
    x = torch.randn(2, 20)
    net.propagate(x).sum().backward()  # buffers of the processor are there now
    net.zero_grad()
    net, x = net.to("meta"), x.to("meta")
    loss = MeanSquaredError(x.mT, torch.zeros(20, 1, device="meta"))(net)

    assert {t.device.type for t in step(net, loss, penalty)} == {"meta"}
    assert net.eval()(x.mT).device.type == "meta"


@pytest.mark.parametrize("batch", [None, 4])
def test_a_dynamical_system_trains_where_it_is(batch):
    series = Trajectories(torch.randn(6, 12, 2, dtype=torch.float64), 0.1, ("u", "v"))
    encoder = SeriesEncoder(2, 12, 1, shape=EncoderShape(padding="same", affine=True), members=2)
    system = DynamicsSystem(encoder, EQLCell(2, 1, shape=CellShape(constant_input=True), members=2, seed=0))
    loss = PropagationLoss(Pairs(series, series), batch=batch).to("meta")
    loss.step = torch.zeros((), dtype=torch.int64)  # which numbers are drawn is decided on the processor

    found = step(system.to("meta"), loss(system, PHASE), "half")

    assert {t.device.type for t in found} == {"meta"}
