"""The network: its shapes, its members, its starts, and that it is an ordinary module."""

import copy
import math

import pytest
import sympy as sp
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from eqlearn.errors import InvalidArgument, NotFinite, UnknownName, WrongType
from eqlearn.nn.eql import EQL
from eqlearn.nn.inits import INITS, Init
from eqlearn.nn.primitives import PAPER, PRIMITIVES, lookup

SMALL = "one id square sin mul"


def data(features: int = 2, rows: int = 16, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.rand(rows, features, generator=torch.Generator().manual_seed(0), dtype=dtype) * 2 - 1


def mse(net: nn.Module, x: torch.Tensor) -> torch.Tensor:
    y = x.prod(dim=-1, keepdim=True)
    return (net(x) - y).square().mean(dim=(-2, -1))


def random_mask_(net: EQL, density: float, seed: int = 0) -> EQL:
    generator = torch.Generator().manual_seed(seed)
    for linear in net.linears:
        linear.keep_(torch.rand(linear.mask.shape, generator=generator) < density)
    return net


# Shapes


@pytest.mark.parametrize("batch", [(), (5,), (4, 5), (0,), (2, 3, 4)])
@pytest.mark.parametrize("members", [None, 1, 3])
def test_the_output_keeps_the_batch_axes(batch, members):
    net = EQL(2, 4, SMALL, members=members, seed=0)

    y = net(torch.zeros(*batch, 2))

    assert y.shape == (*(() if members is None else (members,)), *batch, 4)


@given(
    st.integers(1, 4), st.integers(1, 3), st.integers(1, 4), st.booleans(), st.booleans(),
    st.lists(st.sampled_from(list(PRIMITIVES)), min_size=1, max_size=5),
)  # fmt: skip
@settings(max_examples=30)
def test_any_architecture_gives_what_its_symbols_give(inputs, outputs, layers, skip, bias, names):
    net = EQL(inputs, outputs, " ".join(["id", *names]), layers, skip=skip, bias=bias, seed=0).double().eval()
    random_mask_(net, 0.5)
    x = torch.linspace(0.1, 0.4, inputs, dtype=torch.float64)

    y = net(x).tolist()

    for actual, expression in zip(y, net.symbolic([sp.Float(v, 17) for v in x.tolist()]), strict=True):
        expected = complex(expression.evalf())
        if expected.imag == 0 and math.isfinite(expected.real) and math.isfinite(actual):
            assert actual == pytest.approx(expected.real, rel=1e-9, abs=1e-12)


def test_rows_do_not_depend_on_one_another():
    net, x = EQL(2, primitives=PAPER, seed=0), data()

    torch.testing.assert_close(net(x)[3], net(x[3]))


def test_layers_may_have_sets_of_their_own():
    net = EQL(2, 1, ["id*3 mul", [lookup("sin")], "exp*2"], 3, seed=0)

    assert [len(layer.units) for layer in net.layers] == [4, 1, 2]
    assert net(data()).shape == (16, 1)


def test_units_of_one_kind_need_not_be_neighbours():
    mixed = EQL(2, 1, "mul id mul", 1, seed=0).double()
    x = data(dtype=torch.float64)

    expression = mixed.symbolic(sp.symbols("x:2"))[0]

    expected = sp.lambdify(sp.symbols("x:2"), expression)(*x.mT.numpy())
    torch.testing.assert_close(mixed(x)[:, 0].detach(), torch.from_numpy(expected))


def test_skip_lets_the_readout_see_the_inputs():
    net = EQL(2, 1, "sin", 1, skip=True, seed=0)
    with torch.no_grad():
        net.readout.raw.copy_(torch.tensor([[0.0, 2.0, 3.0]]))
    x = data()

    torch.testing.assert_close(net(x), x @ torch.tensor([[2.0], [3.0]]))


def test_bias_gives_a_constant():
    net = EQL(2, 1, "sin", 1, bias=True, seed=0)
    with torch.no_grad():
        net.readout.raw.copy_(torch.tensor([[0.0, 7.0]]))

    torch.testing.assert_close(net(data()), torch.full((16, 1), 7.0))


def test_propagate_is_forward_on_feature_major_data():
    net, x = EQL(2, 3, SMALL, members=2, skip=True, bias=True, seed=0), data()

    torch.testing.assert_close(net.propagate(x.mT).mT, net(x))


def test_propagate_takes_inputs_of_each_members_own():
    net = EQL(2, 1, SMALL, members=3, skip=True, seed=0)
    x = torch.stack([data() + i for i in range(3)])

    together = net.propagate(x.mT).mT

    torch.testing.assert_close(together, torch.stack([net.member(i)(x[i]) for i in range(3)]))


# Members


@pytest.mark.parametrize("gates", [False, True])
def test_members_trained_together_get_the_gradients_they_would_have_alone(gates):
    net, x = EQL(2, 1, SMALL, members=4, skip=True, bias=True, gates=gates, seed=0), data()
    random_mask_(net, 0.8)
    alone = [net.member(i) for i in range(4)]

    mse(net, x).sum().backward()

    for i, single in enumerate(alone):
        mse(single, x).backward()
        for (name, mine), theirs in zip(single.named_parameters(), net.parameters(), strict=True):
            torch.testing.assert_close(theirs.grad[i], mine.grad, msg=lambda m, name=name: f"{name}: {m}")


@pytest.mark.parametrize("evil", [math.nan, math.inf, 1e30])
def test_a_broken_member_touches_no_other(evil):
    net, x = EQL(2, 1, PAPER, members=3, seed=0), data()
    healthy = copy.deepcopy(net)
    with torch.no_grad():
        for linear in net.linears:
            linear.raw[1] = evil

    mse(net, x).sum().backward()
    mse(healthy, x).sum().backward()

    torch.testing.assert_close(net(x)[[0, 2]], healthy(x)[[0, 2]])
    for mine, theirs in zip(net.parameters(), healthy.parameters(), strict=True):
        torch.testing.assert_close(mine.grad[[0, 2]], theirs.grad[[0, 2]])


@pytest.mark.parametrize("index", [0, 2, -1])
def test_a_member_is_the_populations_slice(index):
    net, x = EQL(2, 2, [SMALL, "id exp"], 2, members=3, skip=True, bias=True, gates=True, seed=0), data()
    random_mask_(net, 0.7)
    net.double().eval()

    single = net.member(index)

    torch.testing.assert_close(single(x.double()), net(x.double())[index])
    assert single.members is None
    assert single.training is False


def test_a_member_is_a_copy():
    net = EQL(1, primitives=SMALL, members=2, seed=0)
    before = net.readout.raw.clone()

    nn.init.zeros_(net.member(0).readout.raw)

    assert torch.equal(net.readout.raw, before)


# Starts


def test_the_same_seed_gives_the_same_network():
    first, second = EQL(2, seed=7), EQL(2, seed=7)

    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True))


def test_different_seeds_give_different_networks():
    assert not torch.equal(EQL(2, seed=7).readout.raw, EQL(2, seed=8).readout.raw)


@pytest.mark.parametrize("gates", [False, True])
def test_members_start_as_they_would_alone(gates):
    population = EQL(2, members=3, gates=gates, seed=[4, 9, 2])

    for i, seed in enumerate([4, 9, 2]):
        alone = EQL(2, gates=gates, seed=seed)
        for theirs, mine in zip(population.parameters(), alone.parameters(), strict=True):
            assert torch.equal(theirs[i], mine)


def test_one_seed_counts_up_over_the_members():
    assert torch.equal(EQL(2, members=3, seed=5).readout.raw[2], EQL(2, seed=7).readout.raw)


def test_gates_do_not_change_the_weights_of_a_seed():
    plain, gated = EQL(2, seed=3), EQL(2, gates=True, seed=3)

    assert all(torch.equal(a.raw, b.raw) for a, b in zip(plain.linears, gated.linears, strict=True))


def test_gates_start_close_to_half_open_but_not_equal():
    log_alpha = EQL(2, members=50, gates=True, seed=0).linears[1].gate.log_alpha.detach()

    # 16,200 draws with a spread of 0.01.
    assert float(log_alpha.std()) == pytest.approx(0.01, rel=0.05)
    assert abs(float(log_alpha.mean())) < 5 * 0.01 / math.sqrt(log_alpha.numel())


def test_a_seeded_network_leaves_the_global_generator_alone():
    before = torch.get_rng_state()

    EQL(2, members=3, gates=True, seed=0).member(0)

    assert torch.equal(torch.get_rng_state(), before)


def test_without_a_seed_the_global_generator_decides():
    torch.manual_seed(0)
    first = EQL(2)
    second = EQL(2)
    torch.manual_seed(0)

    assert torch.equal(EQL(2).readout.raw, first.readout.raw)
    assert not torch.equal(second.readout.raw, first.readout.raw)


def test_reset_keeps_the_mask():
    net = random_mask_(EQL(2, members=2, seed=0), 0.5)
    masks = [linear.mask.clone() for linear in net.linears]

    net.reset("released", [3, 4])

    assert all(torch.equal(linear.mask, mask) for linear, mask in zip(net.linears, masks, strict=True))
    assert all(bool((linear.raw[~linear.mask] == 0).all()) for linear in net.linears)


@pytest.mark.parametrize("name", INITS)
def test_each_layer_starts_with_its_spread(name):
    init, net = INITS[name], EQL(5, 5, "id*30", 3, members=40, init=name, seed=0)
    spreads = [init.first, init.middle, init.middle, init.last]
    # The standard deviation of a normal cut at two of its own, and of a uniform number in [0, 1).
    cut = 1.0 if init.truncate is None else 0.87963

    for depth, (linear, spread) in enumerate(zip(net.linears, spreads, strict=True)):
        spread = spread * cut / (linear.in_features**0.25 if init.fan_in else 1)
        if depth == 3 and init.uniform_readout:
            spread = 1 / math.sqrt(12)
        assert float(linear.raw.detach().std()) == pytest.approx(spread, rel=0.05)


@pytest.mark.parametrize("name", ["released", "released-l0"])
def test_truncation_is_at_two_standard_deviations(name):
    init, net = INITS[name], EQL(5, 5, "id*30", 2, members=40, init=name, seed=0)

    for linear, spread in zip(net.linears, [init.first, init.middle, init.last], strict=True):
        assert 1.9 * spread < float(linear.raw.detach().abs().max()) <= 2 * spread * (1 + 1e-6)


def test_a_uniform_readout_lies_between_zero_and_one():
    raw = EQL(5, 5, "id*30", init="released-systems", seed=0).readout.raw

    assert bool(((raw >= 0) & (raw < 1)).all())


def test_an_init_may_be_given_as_a_value():
    net = EQL(2, init=Init(first=1e-9, middle=1e-9, last=1e-9), seed=0)

    assert all(float(p.detach().abs().max()) < 1e-7 for p in net.parameters())


# Dead weights


def test_the_representation_shows_the_sets():
    assert "one id*2" in repr(EQL(2, primitives="one id*2", seed=0))


def test_guards_act_only_while_training():
    net = EQL(1, 1, "inv", 1, seed=0)
    with torch.no_grad():
        net.linears[0].raw.fill_(1.0)
        net.readout.raw.fill_(1.0)
    x = torch.tensor([[1e-6]])

    assert float(net.train()(x).detach()) == pytest.approx(1e3)
    assert float(net.eval()(x).detach()) == pytest.approx(1e6)


# Bad input


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"in_features": 0}, "in_features"),
        ({"in_features": -2}, "in_features"),
        ({"out_features": 0}, "out_features"),
        ({"hidden_layers": 0}, "hidden_layers"),
        ({"members": 0}, "members"),
        ({"members": -1}, "members"),
        ({"primitives": ""}, "primitives"),
        ({"primitives": []}, "primitives"),
        ({"primitives": "one*3"}, "constants only"),
        ({"primitives": ["id", "mul", "sin"]}, "3 sets"),
        ({"seed": [1, 2]}, "seed"),
        ({"members": 3, "seed": [1, 2]}, "seed"),
        ({"seed": -1}, "seed"),
        ({"seed": 2**60}, "seed"),
    ],
)
def test_bad_arguments_are_refused(arguments, name):
    with pytest.raises(InvalidArgument, match=name):
        EQL(**{"in_features": 2, **arguments})


@pytest.mark.parametrize(
    ("arguments", "hint"), [({"primitives": "id sine"}, "'sin'"), ({"init": "xavier"}, "released")]
)
def test_unknown_names_are_refused(arguments, hint):
    with pytest.raises(UnknownName, match=hint):
        EQL(2, **arguments)


@pytest.mark.parametrize("shape", [(), (3,), (5, 3), (2, 5), (4, 5, 1)])
def test_inputs_of_the_wrong_shape_are_refused(shape, unchecked_types):
    with pytest.raises(InvalidArgument, match="2 features"):
        EQL(2, seed=0)(torch.zeros(shape))


@pytest.mark.parametrize("dtype", [torch.float64, torch.int64])
def test_inputs_of_the_wrong_dtype_are_refused(dtype, unchecked_types):
    with pytest.raises(WrongType, match="float32"):
        EQL(2, seed=0)(torch.zeros(3, 2, dtype=dtype))


def test_inputs_for_other_members_are_refused():
    with pytest.raises(InvalidArgument, match="members"):
        EQL(2, members=3, seed=0).propagate(torch.zeros(4, 2, 10))


@pytest.mark.parametrize("index", [3, -4])
def test_a_member_that_is_not_there_is_refused(index):
    with pytest.raises(InvalidArgument, match="no member"):
        EQL(2, members=3, seed=0).member(index)


def test_a_single_network_has_no_members():
    with pytest.raises(InvalidArgument, match="single"):
        EQL(2, seed=0).member(0)


def test_a_population_has_no_single_equation():
    with pytest.raises(InvalidArgument, match="member"):
        EQL(2, members=3, seed=0).symbolic(sp.symbols("x y"))


def test_the_number_of_symbols_must_fit():
    with pytest.raises(InvalidArgument, match="2 inputs"):
        EQL(2, seed=0).symbolic(sp.symbols("x y z"))


def test_a_network_that_is_not_finite_has_no_equation():
    net = EQL(1, seed=0)
    nn.init.constant_(net.readout.raw, math.nan)

    with pytest.raises(NotFinite):
        net.symbolic([sp.Symbol("x")])


@pytest.mark.parametrize(
    "arguments", [{"first": 0.0}, {"middle": -1.0}, {"last": math.inf}, {"truncate": math.nan}]
)
def test_a_bad_init_is_refused(arguments):
    with pytest.raises(InvalidArgument, match=next(iter(arguments))):
        Init(**arguments)


def test_reset_needs_a_seed_for_each_member():
    with pytest.raises(InvalidArgument, match="seed"):
        EQL(1, members=3, seed=0).reset("default", [1])


def test_a_member_has_gates_exactly_where_its_population_has_them():
    population = EQL(2, 1, "id square", 1, members=2, gates=True, seed=0)
    population.readout.gate = None

    member = population.member(1)

    assert [layer.gate is not None for layer in member.linears] == [True, False]


def test_long_seeds_differ_too():
    first, second = (EQL(2, 1, seed=seed).linears[0].raw for seed in (0, 2**32))

    assert not torch.equal(first, second)


@pytest.mark.usefixtures("unchecked_types")
def test_what_is_no_tensor_is_refused_by_its_name():
    with pytest.raises(WrongType, match="`x` must be a tensor, got list"):
        EQL(2, 1)([[1.0, 2.0]])


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize("counts", [(2.5, 1), (2, 0), ("2", 1)])
def test_a_number_of_features_must_be_whole(counts):
    with pytest.raises(InvalidArgument, match="_features` must be a whole number of at least 1"):
        EQL(*counts)
