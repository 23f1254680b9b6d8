"""Weights that share their scale: the same function, to the bit."""

import pytest
import torch

from eqlearn import EQL
from eqlearn.nn.primitives import lookup
from eqlearn.nn.rescale import balance_, degrees

X = torch.linspace(-2, 2, 60, dtype=torch.float64).view(20, 3)


def lopsided(primitives="id*2 square mul sin", members=None, **options):
    """A network whose weights into its units are 2**20 times as large as those out of them."""
    network = EQL(3, 1, primitives, 2, members=members, seed=0, **options).double().eval()
    with torch.no_grad():
        network.linears[0].raw *= 2.0**10
        network.linears[1].raw *= 2.0**-20
        network.linears[2].raw *= 2.0**10
    return network


def spread(network):
    sizes = torch.stack([layer.settled().abs().max() for layer in network.linears])
    return float(sizes.max() / sizes.min())


@pytest.mark.parametrize(
    ("name", "expected"),
    [("id", (1,)), ("square", (2,)), ("mul", (1, 1)), ("sin", None), ("exp", None), ("sigmoid", None)],
)
def test_what_a_unit_carries_through_is_known(name, expected):
    assert degrees(lookup(name)) == expected


@pytest.mark.parametrize("options", [{}, {"skip": True}, {"bias": True}, {"members": 3}, {"gates": True}])
@pytest.mark.parametrize("primitives", ["id*2", "id square mul", "id*2 square mul sin exp one"])
def test_not_a_bit_of_the_output_changes(primitives, options):
    network = lopsided(primitives, **options)
    before = network(X)

    balance_(network)

    torch.testing.assert_close(network(X), before, rtol=0, atol=0, equal_nan=True)  # exp overflows in places


@pytest.mark.parametrize("primitives", ["id*2", "square*2", "mul*2", "id square mul"])
def test_the_scale_is_shared(primitives):
    network = lopsided(primitives)

    balance_(network)

    assert spread(network) < 100


def test_a_sine_keeps_its_weights():
    network = lopsided("sin*2")
    before = [layer.raw.clone() for layer in network.linears]

    balance_(network)

    assert all(torch.equal(layer.raw, old) for layer, old in zip(network.linears, before, strict=True))


def test_units_that_are_cut_off_do_no_harm():
    network = lopsided("id*2")
    network.linears[0].keep_(torch.tensor([[True, False, False], [False, False, False]]))
    before = network(X)

    balance_(network)

    assert torch.equal(network(X), before)
    assert all(bool(torch.isfinite(layer.raw).all()) for layer in network.linears)


def test_a_balanced_network_is_left_alone():
    network = balance_(lopsided("id*2 mul"))
    before = [layer.raw.clone() for layer in network.linears]

    balance_(network)

    assert all(torch.equal(layer.raw, old) for layer, old in zip(network.linears, before, strict=True))
