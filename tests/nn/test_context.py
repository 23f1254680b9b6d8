"""One equation whose constants differ: members that share their structure, weights that follow a context."""

import numpy as np
import pytest
import sympy as sp
import torch

from eqlearn import EQL, L0, Equation, Group, InvalidArgument, Phase, prune_, settle_, train
from eqlearn.nn.context import ContextWeights
from eqlearn.nn.penalties import sparsity

TIMES = torch.linspace(-1, 1, 5)[:, None]
X = torch.linspace(-2, 2, 20).expand(5, 20)[..., None]
QUICK = (
    Phase(name="fit", steps=300, lr=2e-2),
    Phase(name="sparsify", steps=300, lr=1e-2, penalty=1e-3, prune_below=0.05),
)


def test_weights_follow_the_context():
    network = EQL(1, 1, "id*2 square", 1, context=1, seed=0)

    y = network(X, TIMES)

    assert y.shape == (5, 20, 1)
    for k in (0, 3):
        torch.testing.assert_close(network.at(TIMES[k])(X[k]), y[k])


def test_the_network_of_one_context_has_its_equation():
    network = EQL(1, 1, "id square", 1, context=1, seed=0).double()

    equation = Equation.read(network.at(TIMES[4].double()), ["x"])

    expected = network(X.double(), TIMES.double())[4, :, 0].detach()
    np.testing.assert_allclose(equation(X[4].double().numpy()), expected, rtol=1e-6)


def test_a_law_whose_factor_is_the_time_is_learned():
    network = EQL(1, 1, "id square", 1, context=1, context_units=(16,), seed=1)
    target = (1 + TIMES[:, None]) * X

    losses = [
        float(record.loss)
        for record in train(
            network, lambda m, phase: (m(X, TIMES) - target).square().mean(), QUICK, penalty=Group(),
            optimiser=torch.optim.Adam, record_every=100,
        )
    ]  # fmt: skip

    assert losses[-1] < 1e-3 * losses[0] + 1e-2


def test_a_weight_that_any_context_needs_is_kept():
    network = EQL(1, 1, "id square", 1, context=1, seed=0)
    network(X, TIMES)
    layer = network.readout
    layer.moved = torch.zeros(5, 1, 2)
    layer.moved[3, 0, 1] = 4.0
    with torch.no_grad():
        layer.raw.zero_()

    prune_(network, below=0.1)

    assert layer.mask.tolist() == [[False, True]]


def test_members_that_share_are_pruned_together():
    network = EQL(2, 1, "id", 1, members=3, shared=True, gates=True, seed=0)
    layer = network.linears[0]
    with torch.no_grad():
        layer.gate.log_alpha.fill_(5.0)
        layer.raw.copy_(torch.tensor([[[0.5, 0.0]], [[0.0, 0.0]], [[0.7, 0.01]]]))

    prune_(network, below=0.1)

    assert layer.mask.tolist() == [[[True, False]]] * 3
    assert layer.gate.log_alpha.shape == (1, 1, 2)


def test_members_that_share_have_one_penalty_of_gates_each():
    network = EQL(2, 1, "id", 1, members=3, shared=True, gates=True, seed=0)

    cost = sparsity(network, L0())

    assert cost.shape == (3,)
    torch.testing.assert_close(cost, cost[:1].expand(3))


def test_a_member_of_those_that_share_is_itself():
    network = EQL(2, 1, "id*2 mul", 1, members=3, shared=True, gates=True, seed=0).eval()
    x = torch.randn(7, 2, generator=torch.Generator().manual_seed(0))

    torch.testing.assert_close(network.member(2)(x), network(x)[2])
    settle_(network)
    torch.testing.assert_close(network.member(2)(x), network(x)[2])


def test_group_penalties_take_contexts_for_members():
    network = EQL(1, 1, "id", 1, context=1, seed=0)
    network(X, TIMES)

    assert sparsity(network, Group()).shape == ()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"shared": True}, "`shared` is for a network with `members`"),
        ({"members": 2, "context": 1}, "not both"),
        ({"context": 0}, "context"),
    ],
)
def test_options_that_contradict_each_other_are_refused(options, words):
    with pytest.raises(InvalidArgument, match=words):
        EQL(1, 1, "id", 1, seed=0, **options)


def test_a_context_is_asked_for_and_checked():
    network = EQL(1, 1, "id", 1, context=2, seed=0)
    pairs = torch.zeros(5, 2)

    with pytest.raises(InvalidArgument, match="needed there"):
        network(X)
    with pytest.raises(InvalidArgument, match=r"must be \(contexts, 2\)"):
        network(X, TIMES)
    with pytest.raises(InvalidArgument, match="contexts, rows"):
        network(X[:3], pairs)
    with pytest.raises(InvalidArgument, match="`context` is for a network"):
        EQL(1, 1, "id", 1, seed=0)(X, TIMES)
    with pytest.raises(InvalidArgument, match="at\\(context\\)"):
        network.symbolic([sp.Symbol("x")])
    with pytest.raises(InvalidArgument, match="no `context`"):
        EQL(1, 1, "id", 1, seed=0).at(TIMES[0])


def test_a_seed_gives_the_same_small_network():
    first, second = (EQL(1, 1, "id", 1, context=1, seed=3) for _ in range(2))

    assert isinstance(first.context, ContextWeights)
    for a, b in zip(first.parameters(), second.parameters(), strict=True):
        assert torch.equal(a, b)
