"""The sparse linear map: what is pruned is zero, for good."""

import math

import pytest
import sympy as sp
import torch
from torch import nn

from eqlearn.errors import InvalidArgument, NotFinite
from eqlearn.nn.eql import EQL
from eqlearn.nn.sparse import SparseLinear, prune_, sparse_layers, weights_left

OPTIMISERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, weight_decay=0.1),
    "nesterov": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, nesterov=True),
    "adam": lambda p: torch.optim.Adam(p, lr=0.05, weight_decay=0.1),
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.05),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=0.05, momentum=0.9, weight_decay=0.1),
}


def layer(members: int | None = None, gates: bool = False) -> SparseLinear:
    made = SparseLinear(3, 4, members=members, gates=gates)
    nn.init.normal_(made.raw, generator=torch.Generator().manual_seed(0))
    return made


def half_pruned(gates: bool = False) -> SparseLinear:
    made = layer(gates=gates)
    made.keep_(torch.arange(12).reshape(4, 3) % 2 == 0)
    return made


def test_the_map_is_a_matrix_product():
    made = layer()
    x = torch.randn(3, 5, generator=torch.Generator().manual_seed(1))

    torch.testing.assert_close(made(x), made.raw @ x)


def test_each_member_has_a_matrix_of_its_own():
    made = layer(members=2)
    x = torch.randn(3, 5, generator=torch.Generator().manual_seed(1))

    torch.testing.assert_close(made(x), torch.stack([made.raw[0] @ x, made.raw[1] @ x]))


@pytest.mark.parametrize("gates", [False, True])
def test_pruned_entries_are_exactly_zero(gates):
    made = half_pruned(gates)

    assert bool((made.weight[~made.mask] == 0).all())
    assert bool((made.weight[made.mask] != 0).any())


@pytest.mark.parametrize("gates", [False, True])
def test_pruned_entries_get_no_gradient(gates):
    made = half_pruned(gates)

    made(torch.ones(3, 5)).square().sum().backward()

    assert all(bool((p.grad[~made.mask] == 0).all()) for p in made.parameters())
    assert bool((made.raw.grad[made.mask] != 0).any())


@pytest.mark.parametrize("name", OPTIMISERS)
@pytest.mark.parametrize("gates", [False, True])
def test_pruned_entries_stay_zero_under_any_optimiser(name, gates):
    made = layer(gates=gates)
    optimiser = OPTIMISERS[name](made.parameters())
    x, y = torch.ones(3, 5), torch.ones(4, 5)

    for step in range(20):
        optimiser.zero_grad()
        (made(x) - y).square().mean().backward()
        optimiser.step()
        if step == 10:  # the optimiser has momentum by now
            made.keep_(torch.arange(12).reshape(4, 3) % 2 == 0)

    assert bool((made.weight[~made.mask] == 0).all())
    assert bool((made.settled()[~made.mask] == 0).all())


@pytest.mark.parametrize("gates", [False, True])
@pytest.mark.parametrize("evil", [math.nan, math.inf])
def test_a_masked_entry_that_is_not_finite_never_reaches_the_map(gates, evil):
    made = half_pruned(gates).eval()
    x = torch.ones(3, 5)
    expected = made(x).detach()
    with torch.no_grad():
        made.raw[~made.mask] = evil

    assert torch.equal(made(x).detach(), expected)
    assert list(made.symbolic(sp.Matrix([1, 1, 1]))) == pytest.approx(made.settled().sum(dim=1).tolist())


@pytest.mark.parametrize("evil", [math.nan, math.inf])
def test_outside_training_a_pruned_weight_silences_even_what_is_not_finite(evil):
    made = SparseLinear(2, 1).eval()
    nn.init.constant_(made.raw, 2.0)
    made.keep_(torch.tensor([[True, False]]))

    assert made(torch.tensor([[3.0], [evil]])).tolist() == [[6.0]]


@pytest.mark.parametrize(
    ("inputs", "expected"),
    [
        ((math.inf, 1.0), math.inf),
        ((-math.inf, 1.0), -math.inf),
        ((math.inf, -math.inf), math.nan),
        ((math.nan, 1.0), math.nan),
    ],
)
def test_outside_training_infinities_add_up_as_numbers_do(inputs, expected):
    made = SparseLinear(2, 1).eval()
    nn.init.constant_(made.raw, 2.0)

    assert made(torch.tensor(inputs)[:, None]).item() == pytest.approx(expected, nan_ok=True)


def test_pruning_is_for_good():
    made = half_pruned()

    made.keep_(torch.ones(4, 3, dtype=torch.bool))

    assert int(made.mask.sum()) == 6


def test_the_symbolic_map_is_the_map():
    made = half_pruned().double()
    x = torch.tensor([0.3, -1.7, 2.0], dtype=torch.float64)

    expected = [float(v) for v in made.symbolic(sp.Matrix(x.tolist()))]

    torch.testing.assert_close(made(x[:, None])[:, 0].tolist(), expected)


def test_pruned_entries_leave_no_trace_in_the_symbols():
    made = SparseLinear(2, 1)
    nn.init.ones_(made.raw)
    made.keep_(torch.tensor([[True, False]]))

    assert made.symbolic(sp.Matrix(sp.symbols("x y")))[0].free_symbols == {sp.Symbol("x")}


def test_a_weight_that_is_not_finite_has_no_equation():
    made = layer()
    with torch.no_grad():
        made.raw[0, 0] = math.nan

    with pytest.raises(NotFinite, match="NaN"):
        made.symbolic(sp.Matrix([1, 2, 3]))


def test_settled_gates_are_those_of_eval():
    made = layer(gates=True)

    settled = made.settled()

    assert torch.equal(settled, made.eval().weight)


def test_sparse_layers_are_found_however_deep():
    model = nn.Sequential(
        nn.Linear(2, 2), nn.ModuleDict({"inner": nn.Sequential(EQL(2, hidden_layers=3, seed=0))})
    )

    assert len(list(sparse_layers(model))) == 4


def test_prune_zeroes_what_is_below():
    made = layer()
    with torch.no_grad():
        made.raw.copy_(torch.arange(12.0).reshape(4, 3) - 5.5)

    left = prune_(made, below=2.0)

    assert int(left) == 8
    assert bool((made.weight[made.mask].abs() >= 2).all())
    assert torch.equal(made.raw == 0, ~made.mask)


def test_prune_leaves_encoders_alone():
    encoder = nn.Linear(2, 2)
    before = encoder.weight.clone()

    prune_(nn.Sequential(encoder, EQL(2, seed=0)), below=1e9)

    assert torch.equal(encoder.weight, before)


def test_prune_takes_one_threshold_per_member():
    net = EQL(2, primitives="id mul", members=3, seed=0)
    total = int(weights_left(net)[0])

    left = prune_(net, below=torch.tensor([0.0, 0.3, 1e9]))

    assert int(left[0]) == total
    assert 0 < int(left[1]) < total
    assert int(left[2]) == 0


def test_pruning_one_member_leaves_the_others_as_they_were():
    net = EQL(2, primitives="id mul", members=3, seed=0)
    x = torch.linspace(-1, 1, 8).reshape(4, 2)
    before = net(x).detach()

    prune_(net, below=torch.tensor([0.0, 1e9, 0.0]))

    assert torch.equal(net(x)[[0, 2]].detach(), before[[0, 2]])
    assert not net(x)[1].any()


def test_gated_weights_are_judged_by_their_settled_value():
    made = layer(gates=True)
    with torch.no_grad():
        made.raw.fill_(5.0)
        made.gate.log_alpha.fill_(5.0)
        made.gate.log_alpha[0] = -5.0

    assert int(prune_(made, below=0.01)) == 9


def test_a_weight_that_is_nan_is_not_pruned_as_small():
    made = layer()
    with torch.no_grad():
        made.raw[0, 0] = math.nan

    prune_(made, below=1e9)

    assert int(weights_left(made)) == 1


@pytest.mark.parametrize("below", [-0.1, math.nan, torch.tensor([0.1, math.nan, 0.1])], ids=str)
def test_a_bad_threshold_is_refused(below):
    with pytest.raises(InvalidArgument, match="below"):
        prune_(EQL(1, members=3, seed=0), below=below)


@pytest.mark.parametrize("members", [None, 2])
def test_thresholds_must_fit_the_members(members):
    with pytest.raises(InvalidArgument, match="below"):
        prune_(EQL(1, members=members, seed=0), below=torch.zeros(3))


def test_a_model_without_sparse_layers_is_refused():
    with pytest.raises(InvalidArgument, match="no sparse layer"):
        weights_left(nn.Linear(2, 2))


def test_populations_of_different_sizes_are_not_mixed():
    model = nn.ModuleList([EQL(1, members=2, seed=0), EQL(1, members=3, seed=0)])

    with pytest.raises(InvalidArgument, match="members"):
        weights_left(model)


def test_a_mask_of_the_wrong_shape_is_refused():
    with pytest.raises(InvalidArgument, match="keep"):
        layer().keep_(torch.ones(3, 4, dtype=torch.bool))


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"in_features": 0}, "in_features"),
        ({"out_features": -1}, "out_features"),
        ({"members": 0}, "members"),
        ({"members": 2, "seeds": [1]}, "seeds"),
    ],
)
def test_bad_sizes_are_refused(arguments, name):
    with pytest.raises(InvalidArgument, match=name):
        SparseLinear(**{"in_features": 2, "out_features": 2, **arguments})


def test_a_closed_gate_leaves_no_weight():
    net = EQL(2, 1, "id", 1, gates=True, seed=0)
    whole = int(weights_left(net))
    with torch.no_grad():
        net.linears[0].gate.log_alpha[0, 0] = -10.0

    assert int(weights_left(net)) == whole - 1
