"""Derivatives written by hand, against those of autograd on the same function."""

import copy

import pytest
import torch

from eqlearn.functions import TORCH
from eqlearn.nn.by_hand import Propagation
from eqlearn.nn.eql import EQL
from eqlearn.nn.primitives import PAPER, PRIMITIVES
from eqlearn.nn.sparse import prune_

SHAPES = [
    ({}, (2, 20)),
    ({}, (3, 2, 20)),
    ({"members": 3}, (2, 20)),
    ({"members": 3}, (3, 2, 20)),
    ({"skip": True, "bias": True}, (2, 20)),
    ({"members": 2, "skip": True, "bias": True}, (2, 1000)),
    ({"primitives": "log div cube id"}, (2, 20)),
]


def network(**options):
    primitives = options.pop("primitives", PAPER)
    made = EQL(2, 2, primitives, seed=1, **options).double()
    prune_(made, below=0.05)
    return made


def inputs_of(net, shape):
    return [torch.randn(shape, dtype=torch.float64, requires_grad=True), *(m.raw for m in net.linears)]


@pytest.mark.parametrize(("options", "shape"), SHAPES)
def test_a_networks_value_and_gradients_are_those_of_autograd(options, shape):
    net = network(**options)
    inputs, rule = inputs_of(net, shape), Propagation(net)
    plain = rule.plain(*inputs)
    weights = torch.randn_like(plain)

    y = net.propagate(inputs[0])

    torch.testing.assert_close(y, plain)
    expected = torch.autograd.grad((plain * weights).sum(), inputs)
    torch.testing.assert_close(torch.autograd.grad((y * weights).sum(), inputs), expected)


@pytest.mark.parametrize("rows", [20, 4000])
def test_two_networks_under_way_and_a_retained_graph_do_not_share_buffers(rows):
    net = network()
    x, other = torch.randn(2, rows, dtype=torch.float64), torch.randn(2, rows, dtype=torch.float64)
    raw = [m.raw for m in net.linears]
    expected = torch.autograd.grad(Propagation(net).plain(x, *raw).sum(), raw)

    loss = net.propagate(x).sum()
    net.propagate(other).sum().backward()
    first = torch.autograd.grad(loss, raw, retain_graph=True)
    net.propagate(other).sum().backward()
    second = torch.autograd.grad(loss, raw)

    torch.testing.assert_close(first, expected)
    torch.testing.assert_close(second, expected)


def test_second_derivatives_are_there():
    net = network()
    x = torch.randn(2, 5, dtype=torch.float64, requires_grad=True)

    assert torch.autograd.gradgradcheck(lambda x: net.propagate(x), x)


def test_buffers_are_neither_copied_nor_saved():
    net = network()
    net.propagate(torch.randn(2, 5, dtype=torch.float64)).sum().backward()

    assert len(net.scratch) == 1
    assert len(copy.deepcopy(net).scratch) == 0


def test_a_hook_on_a_layer_still_sees_what_it_computes():
    net, seen = network(), []
    net.layers[0].register_forward_hook(lambda *call: seen.append(call))

    net.propagate(torch.randn(2, 5, dtype=torch.float64))

    assert len(seen) == 1


@pytest.mark.parametrize("primitive", [p for p in PRIMITIVES.values() if p.pullback], ids=lambda p: p.name)
def test_the_pullback_of_a_primitive_is_the_slope_of_what_is_trained(primitive):
    arguments = [3 * torch.randn(50, dtype=torch.float64) for _ in range(primitive.arity)]
    arguments[0][0] = 90.0  # beyond where exponentials are held
    leaves = [g.clone().requires_grad_() for g in arguments]
    h = primitive(*leaves, guarded=True)
    dh = torch.randn_like(h)

    found = primitive.pullback(TORCH, dh, h.detach(), *arguments)

    torch.testing.assert_close(found, torch.autograd.grad(h, leaves, dh, materialize_grads=True))
