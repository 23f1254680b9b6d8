"""Several equations behind one encoder: the simplest that fits is kept."""

import pytest
import sympy as sp
import torch

from eqlearn.errors import InvalidArgument
from eqlearn.nn.eql import EQL
from eqlearn.paper.mnist.heads import (
    Head,
    eliminated_heads,
    free_constant_,
    hold_straight_,
    served_error,
    simplest_head,
)
from eqlearn.symbolic.equation import Equation
from eqlearn.training.schedule import Phase

SCHEDULE = (Phase(name="sparsify", steps=200, lr=1e-2, penalty=1.0, ramp="linear", prune_below=0.01),)
PRIMITIVES = "one id*2 sin1 mul"


def latents(noise=0.02):
    generator = torch.Generator().manual_seed(0)
    z = torch.rand(300, 2, generator=generator) * 2 - 1
    return z, z.sum(dim=1) * 0.6 - 0.01 + noise * torch.randn(300, generator=generator)


@pytest.mark.parametrize("penalty", ["half", "l0"])
def test_a_sum_is_found_on_noisy_latents(penalty):
    z, y = latents()
    heads = EQL(2, 1, PRIMITIVES, members=2, gates=penalty == "l0", seed=0)

    found = simplest_head(eliminated_heads(heads, z, y, SCHEDULE, penalty=penalty))

    equation = Equation.read(found.network, ["a", "b"])
    assert equation.matches("0.6*a + 0.6*b - 0.01", box=(-1, 1), tolerance=0.05)
    assert equation.complexity <= 9


def test_a_single_equation_leaves_no_choice():
    z, y = latents()

    with pytest.raises(InvalidArgument, match="with `members`"):
        eliminated_heads(EQL(2, 1, PRIMITIVES, seed=0), z, y, SCHEDULE)


def test_length_decides_among_errors_that_are_close():
    network = EQL(2, 1, PRIMITIVES, seed=0)
    long, short, wrong = Head(network, 20, 1.0), Head(network, 7, 1.4), Head(network, 3, 2.0)

    assert simplest_head([long, short, wrong]) is short
    assert simplest_head([long, short, wrong], slack=0.1) is long


def test_a_form_that_training_found_itself_goes_before_one_that_was_offered():
    network = EQL(2, 1, PRIMITIVES, seed=0)
    found, offered = Head(network, 7, 1.001), Head(network, 7, 1.0, "one id")
    better = Head(network, 7, 0.9, "one id mul")

    assert simplest_head([offered, found]) is found
    assert simplest_head([offered, found, better]) is better


def test_the_first_head_is_also_offered_with_some_kinds_of_units_only():
    z, y = latents()

    found = eliminated_heads(EQL(2, 1, PRIMITIVES, members=2, seed=0), z, y, SCHEDULE)

    offered = {head.origin: head.network for head in found if head.origin != "trained"}
    assert list(offered) == ["one id", "one id mul"]
    assert Equation.read(offered["one id"], ["a", "b"]).matches(
        "0.6*a + 0.6*b - 0.01", box=(-1, 1), tolerance=0.05
    )


def test_the_last_head_can_be_held_straight():
    z, y = latents()
    heads = EQL(2, 1, "one id mul", hidden_layers=1, members=3, seed=0)

    hold_straight_(heads)

    free, straight = (Equation.read(heads.member(i), ["a", "b"]) for i in (0, 2))
    assert free.complexity > straight.complexity
    assert set(sp.hessian(straight.expr, sorted(straight.expr.free_symbols, key=str))) == {0}
    brief = (Phase(name="sparsify", steps=1, lr=1e-3),)
    origins = [head.origin for head in eliminated_heads(heads, z[:50], y[:50], brief)]
    assert origins == ["trained", "trained", "one id", "one id", "one id mul"]


@pytest.mark.parametrize("members", [None, 1])
def test_one_equation_is_not_held_straight(members):
    with pytest.raises(InvalidArgument, match="at least two `members`"):
        hold_straight_(EQL(2, 1, PRIMITIVES, members=members, seed=0))


def test_members_that_came_to_nothing_are_not_kept():
    z, y = latents()
    everything = (Phase(name="sparsify", steps=1, lr=1e-3, prune_below=100.0),)

    found = eliminated_heads(EQL(2, 1, PRIMITIVES, members=2, seed=0), z, y, everything)

    assert all(head.complexity == 1 for head in found if head.origin == "trained")
    assert simplest_head(found).origin != "trained"


def test_no_head_is_an_error():
    with pytest.raises(InvalidArgument, match="came to nothing"):
        simplest_head([])


def test_a_pruned_constant_can_be_used_again():
    network = EQL(2, 1, PRIMITIVES, seed=0)
    network.readout.keep_(torch.tensor([[False, True, True, True, True]]))
    before = Equation.read(network, ["a", "b"])

    free_constant_(network)

    assert bool(network.readout.mask[0, 0])
    assert Equation.read(network, ["a", "b"]) == before


def linear_head():
    """0.6 a + 0.6 b, behind latents that are bent."""
    network = EQL(2, 1, "id", 1, seed=0).double()
    with torch.no_grad():
        network.linears[0].raw.copy_(torch.tensor([[0.6, 0.6]]))
        network.linears[1].raw.fill_(1.0)
    return network


def test_a_bend_that_the_encoder_can_undo_is_no_error():
    z, _ = latents()
    straight = 0.6 * (z + 0.3 * z**2 - 0.2 * z**3).sum(dim=1)

    held = (linear_head()(z.double())[:, 0] - straight).square().mean().item()

    assert served_error(linear_head(), z, straight) < 1e-6 * held


def test_what_no_common_bend_can_give_stays_an_error():
    z, _ = latents()

    product, uneven = z[:, 0] * z[:, 1], 0.6 * z[:, 0] + 0.6 * z[:, 1] ** 3

    assert served_error(linear_head(), z, product) > 0.5 * float(product.var())
    assert served_error(linear_head(), z, uneven) > 1e-3


def test_measuring_an_equation_leaves_it_as_it_was():
    network = linear_head()
    z, y = latents()
    before = [layer.raw.clone() for layer in network.linears]

    served_error(network, z, y)

    assert all(torch.equal(layer.raw, old) for layer, old in zip(network.linears, before, strict=True))


def test_a_sum_is_kept_behind_latents_that_are_bent():
    z, y = latents(noise=0.01)
    bent = z - 0.15 * z**2  # the encoder's latent; what it should be is z

    found = simplest_head(
        eliminated_heads(EQL(2, 1, "one id*2 exp square", members=2, seed=0), bent, y, SCHEDULE)
    )

    equation = Equation.read(found.network, ["a", "b"])
    assert equation.complexity <= 9
    assert equation.expr.is_polynomial()
