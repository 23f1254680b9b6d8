"""Structures: drawn by a seed, as large as their level says, and networks like any other."""

import numpy as np
import pytest
import torch

from eqlearn import EQL, errors
from eqlearn.nn.primitives import lookup, parse_set
from eqlearn.search.networks.structures import Level, Structure, Vocabulary

KINDS = Vocabulary.of(parse_set("id square sin1 exp mul"))


def test_a_drawn_structure_is_as_large_as_its_level():
    structure = KINDS.draw(Level(2, 3, 1), 4, 1, np.random.default_rng(0))

    assert [len(units) for units in structure.layers] == [5, 5]  # the identity, three at random, one binary
    assert all(sum(p.arity == 2 for p in units) == 1 for units in structure.layers)


def test_the_same_generator_draws_the_same():
    draws = [KINDS.draw(Level(1, 4, 1), 2, 1, np.random.default_rng(7)) for _ in range(2)]

    assert draws[0] == draws[1]


def test_masks_hide_the_inputs_that_are_not_named():
    structure = Structure(3, ((lookup("sin1"),), (lookup("id"),)), skip=True)

    first, second, last = structure.masks([1])

    assert first[0].tolist() == [False, True, False, True]
    assert second[0].tolist() == [True, False, True, False, True]
    assert last.shape == structure.shapes()[-1]


def test_a_structure_of_a_network_makes_the_same_network():
    network = EQL(2, 1, "id square mul", 2, skip=True, seed=0).double()

    copy = Structure.of(network).network(
        [linear.raw.detach() for linear in network.linears], [linear.mask for linear in network.linears]
    )

    x = torch.randn(5, 2, dtype=torch.float64)
    torch.testing.assert_close(copy(x), network.eval()(x))


def test_a_favourite_is_drawn_in_about_half_of_the_cases():
    favoured = KINDS.favouring("exp").unary

    assert abs(2 * sum(p.name == "exp" for p in favoured) - len(favoured)) <= 1


def test_constants_alone_are_refused():
    with pytest.raises(errors.InvalidArgument):
        Vocabulary.of(parse_set("one"))
