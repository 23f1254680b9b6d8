"""The equation is the model: over random architectures, masks, primitives, outputs, members and gates."""

import copy
import random
import time
from dataclasses import dataclass

import numpy as np
import pytest
import sympy as sp
import torch

from eqlearn.errors import NotFinite
from eqlearn.nn.eql import EQL
from eqlearn.nn.penalties import sparsity
from eqlearn.nn.primitives import PRIMITIVES, Primitive
from eqlearn.nn.sparse import prune_, sparse_layers
from eqlearn.symbolic.equation import Equation

ROWS = 24
NAMES = tuple(PRIMITIVES)
# Beyond these functions' domains a network is NaN or infinite; where a later unit undoes one of them (a
# squared square root), the equation goes on.
LIMITED = {"log", "sqrt", "inv", "div", "pow", "acos", "acosh", "atanh", "erfinv"}


@dataclass(frozen=True)
class Case:
    """A random network in `eval()`, rows for it, and one member to read if it has members."""

    net: EQL
    member: int | None
    x: torch.Tensor
    limited_last: bool

    @property
    def names(self):
        return [f"x{i}" for i in range(self.net.in_features)]

    def values(self, dtype=torch.float64):
        with torch.no_grad():
            y = copy.deepcopy(self.net).to(dtype)(self.x.to(dtype)).double().numpy()
        return y if self.member is None else y[self.member]


def draw(seed):
    rng = random.Random(seed)
    layers = rng.randint(1, 3)
    limited_last = rng.random() < 0.5
    sets = []
    for depth in range(layers):
        known = NAMES if depth == layers - 1 or not limited_last else [n for n in NAMES if n not in LIMITED]
        sets.append(" ".join([known[seed % len(known)], *rng.choices(known, k=rng.randint(0, 2)), "id"]))
    members = rng.choice([None, None, 2])
    net = EQL(
        rng.randint(1, 3), rng.randint(1, 2), sets, layers, members=members, skip=rng.random() < 0.4,
        bias=rng.random() < 0.4, gates=rng.random() < 0.3, seed=seed,
    ).double()  # fmt: skip
    generator = torch.Generator().manual_seed(seed)
    for layer in sparse_layers(net):
        layer.keep_(torch.rand(layer.mask.shape, generator=generator) < rng.choice([0.4, 0.7, 1.0]))
        if layer.gate is not None:
            with torch.no_grad():
                layer.gate.log_alpha.normal_(0, 2, generator=generator)
    x = 4 * torch.rand(ROWS, net.in_features, generator=generator, dtype=torch.float64) - 2
    member = None if members is None else rng.randrange(members)
    return Case(net.eval(), member, x, limited_last)


def read_all(case, simplify):
    """The equations, or nothing where a unit is undefined on every row: that has no formula."""
    try:
        return Equation.read_all(case.net, case.names, member=case.member, simplify=simplify)
    except NotFinite:
        assert undefined_unit(case)
        pytest.skip("a unit never has a value")


def undefined_unit(case):
    net = case.net if case.member is None else case.net.member(case.member)
    seen = []
    for layer in net.layers:
        layer.register_forward_hook(lambda _, __, h: seen.append(bool(torch.isfinite(h).all(dim=-1).all())))
    with torch.no_grad():
        net(case.x)
    return not all(seen)


@pytest.mark.parametrize("simplify", [False, True], ids=["raw", "simplified"])
@pytest.mark.parametrize("seed", range(120))
def test_the_equation_is_the_model(seed, simplify):
    case = draw(seed)
    module, rough = case.values(), case.values(torch.float32)

    equations = read_all(case, simplify)
    values = np.stack([e(case.x.numpy()) for e in equations], axis=1)

    finite = np.isfinite(module)
    assert np.isfinite(values[finite]).all()
    # Where float32 does not give three digits, float64 can't be asked for nine in two orders of summation.
    with np.errstate(all="ignore"):
        asked = finite & (np.abs(rough - module) <= 1e-3 * np.abs(module))
    np.testing.assert_allclose(values[asked], module[asked], rtol=1e-9, atol=0)
    if case.limited_last:
        assert np.array_equal(finite, np.isfinite(values))


def test_most_random_values_are_compared():
    compared = total = 0
    for seed in range(40):
        case = draw(seed)
        module, rough = case.values(), case.values(torch.float32)
        with np.errstate(all="ignore"):
            compared += int(np.sum(np.isfinite(module) & (np.abs(rough - module) <= 1e-3 * np.abs(module))))
        total += module.size

    assert compared > 0.5 * total


@pytest.mark.parametrize("name", NAMES)
def test_the_equation_is_the_model_for_each_primitive_alone(name):
    arity = max(1, PRIMITIVES[name].arity)
    net = EQL(arity, 1, f"{name} id", 1, bias=True, seed=3).double().eval()
    x = torch.linspace(0.2, 1.7, 9 * arity, dtype=torch.float64).reshape(9, arity)
    with torch.no_grad():
        module = net(x)[:, 0].numpy()

    values = Equation.read(net, [f"x{i}" for i in range(arity)])(x.numpy())

    np.testing.assert_allclose(values, module, rtol=1e-12, equal_nan=True)


def test_a_custom_primitive_is_read_as_its_formula():
    softplus = Primitive("softplus_for_this_test", 1, lambda m, g: m.log(1 + m.exp(g)))
    net = EQL(1, 1, [softplus, PRIMITIVES["id"]], 1, seed=0).double().eval()
    x = torch.linspace(-2, 2, 11, dtype=torch.float64)[:, None]

    values = Equation.read(net, ["x"])(x.numpy())

    np.testing.assert_allclose(values, net(x).detach()[:, 0].numpy(), rtol=1e-12)


def test_a_float32_network_is_read_with_its_exact_weights():
    net = EQL(2, 1, "id square mul", 1, seed=1).eval()
    x = torch.rand(20, 2, dtype=torch.float64)

    values = Equation.read(net, ["x", "y"])(x.numpy())

    np.testing.assert_allclose(values, net.double()(x).detach()[:, 0].numpy(), rtol=1e-13)


@pytest.mark.parametrize("seed", range(10))
def test_what_is_pruned_from_the_model_is_not_in_the_formula(seed):
    net = EQL(3, 1, "id*2 square*2 sin exp mul", 2, seed=seed).double().eval()
    prune_(net, below=0.4)
    x = torch.rand(ROWS, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))

    equation = Equation.read(net, ["x0", "x1", "x2"])
    used = {str(s) for s in equation.expr.free_symbols}

    np.testing.assert_allclose(equation(x.numpy()), net(x).detach()[:, 0].numpy(), rtol=1e-9, atol=1e-14)
    for i in range(3):
        moved = x.clone()
        moved[:, i] += 1.0
        changes = not torch.equal(net(moved), net(x))
        assert changes <= (f"x{i}" in used)


def test_an_unread_unit_outside_its_domain_silences_nothing():
    net = EQL(1, 1, "log inv id", 1, seed=0).double().eval()
    with torch.no_grad():
        net.readout.mask[0, :2] = False
    x = torch.tensor([[-1.0], [0.0], [1.0]], dtype=torch.float64)

    values = Equation.read(net, ["x"])(x.numpy())

    np.testing.assert_allclose(net(x).detach()[:, 0].numpy(), values, rtol=1e-12)


def test_infinities_add_up_as_they_do_in_the_formula():
    net = EQL(1, 1, "inv exp", 1, seed=0).double().eval()
    with torch.no_grad():
        net.linears[0].raw.copy_(torch.tensor([[1.0], [1000.0]]))
        net.readout.raw.copy_(torch.tensor([[1.0, -1.0]]))
    x = torch.tensor([[0.0], [1.0], [-1.0]], dtype=torch.float64)

    values = net(x).detach()[:, 0].tolist()

    assert values == [np.inf, -np.inf, -1.0]


def test_a_silent_weight_passes_no_broken_gradient():
    net = EQL(1, 1, "log id", 1, seed=0).double().eval()
    with torch.no_grad():
        net.readout.mask[0, 0] = False
    x = torch.tensor([[-1.0]], dtype=torch.float64)

    net(x).sum().backward()

    assert torch.isfinite(net.readout.raw.grad).all()


def test_gates_are_read_as_they_are_in_eval_whatever_the_mode():
    net = EQL(2, 1, "id square", 1, gates=True, seed=0).double().train()

    while_training = Equation.read(net, ["x", "y"])

    assert while_training == Equation.read(net.eval(), ["x", "y"])


def test_a_sequence_of_networks_is_one_equation():
    chain = torch.nn.Sequential(EQL(2, 2, "id square", 1, seed=0), EQL(2, 1, "id sin", 1, seed=1)).double()
    chain.eval()
    x = torch.rand(ROWS, 2, dtype=torch.float64)

    values = Equation.read(chain, ["x", "y"])(x.numpy())

    np.testing.assert_allclose(values, chain(x).detach()[:, 0].numpy(), rtol=1e-9)


@pytest.mark.slow
def test_a_dense_three_layer_paper_network_is_read_in_bounded_time():
    net = EQL(2, 1, hidden_layers=3, bias=True, seed=0).double().eval()
    x = 2 * torch.rand(ROWS, 2, dtype=torch.float64) - 1
    start = time.monotonic()

    equation = Equation.read(net, ["x", "y"])

    assert time.monotonic() - start < 120  # a hang would be hours; about ten seconds on an idle core
    np.testing.assert_allclose(equation(x.numpy()), net(x).detach()[:, 0].numpy(), rtol=1e-9)


def test_a_tower_of_exponentials_of_a_number_is_refused_at_once():
    net = EQL(1, 1, "exp", 6, bias=True, seed=0).double().eval()
    with torch.no_grad():
        for linear in net.linears:
            linear.raw.fill_(3.0)
        net.linears[0].mask[:, 0] = False

    with pytest.raises(NotFinite, match="the formula"):
        Equation.read(net, ["x"])


def test_a_constant_far_inside_an_exponential_keeps_its_value():
    net = EQL(1, 1, "exp", 1, bias=True, seed=0).double().eval()
    with torch.no_grad():
        net.linears[0].raw.copy_(torch.tensor([[1000.0, -2000.0]]))
        net.readout.raw.copy_(torch.tensor([[1.0, 0.0]]))
    x = torch.tensor([[2.0], [1.9], [2.1]], dtype=torch.float64)

    values = Equation.read(net, ["x"])(x.numpy())

    np.testing.assert_allclose(values, net(x).detach()[:, 0].numpy(), rtol=1e-9)


def test_reading_leaves_the_network_as_it_was():
    net = EQL(2, 1, "id exp mul", 2, gates=True, seed=0).train()
    before = {k: v.clone() for k, v in net.state_dict().items()}

    Equation.read(net, ["x", "y"])

    assert net.training
    assert all(torch.equal(v, before[k]) for k, v in net.state_dict().items())
    assert torch.isfinite(sparsity(net))


def test_symbols_are_plain_ones_whatever_their_names_mean_to_sympy():
    net = EQL(3, 1, "id mul", 1, seed=0).double().eval()

    expr = Equation.read(net, ["I", "pi", "lambda"]).expr

    assert {(type(s), s.name) for s in expr.free_symbols} <= {(sp.Symbol, n) for n in ("I", "pi", "lambda")}
    assert expr.free_symbols
