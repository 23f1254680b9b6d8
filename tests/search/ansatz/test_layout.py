"""Ansatzes: the network that is laid out computes what the formula says."""

import torch

from eqlearn.nn.primitives import lookup
from eqlearn.search.ansatz.layout import Sum, Unit, layout
from eqlearn.search.networks.population import Population

SIN, COS, SQUARE, MUL, ID = (lookup(name) for name in ("sin1", "cos", "square", "mul", "id"))


def value_of_network(readout, x):
    start = layout([readout], len(x), ID)
    population = Population([start.structure], [[w != 0 for w in start.weights]])
    theta = torch.cat([w[w != 0] for w in start.weights])[None]
    return population.evaluate(theta, x)[0, 0], start.structure


def inputs(rows=9):
    return torch.rand(2, rows, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) + 0.5


def test_a_laid_out_sketch_has_the_sketch_s_values():
    x = inputs()
    inner = Unit(SIN, (Sum(units=((Unit(SQUARE, (Sum(((0, 1.0),)),)), 1.0),)),))
    low = Unit(COS, (Sum(((1, 2.0),), (), 0.3),))
    product = Unit(MUL, (Sum(units=((inner, 1.0),)), Sum(units=((low, 1.0),))))
    readout = Sum(((1, 0.5),), ((product, 2.0), (low, 1.0)), -1.0)

    value, structure = value_of_network(readout, x)

    assert len(structure.layers) == 3
    torch.testing.assert_close(value, readout.value(x))


def test_a_sketch_without_units_is_linear():
    x = inputs()
    readout = Sum(((0, 2.0), (1, -1.0)), (), 0.25)

    value, _ = value_of_network(readout, x)

    torch.testing.assert_close(value, 2 * x[0] - x[1] + 0.25)


def test_several_outputs_see_their_own_inputs_and_nothing_else():
    start = layout([Sum(((0, 2.0), (2, 1.0)), (), 0.1), Sum(((1, 3.0),))], 3, ID)

    assert not start.weights[0].any()
    assert start.weights[1].tolist() == [[0, 2, 0, 1, 0.1], [0, 0, 3, 0, 0]]


def test_sums_add_up_by_place():
    total = Sum(((0, 1.0),), (), 1.0) + Sum(((0, 2.0), (1, 3.0)), (), -1.0)

    assert dict(total.inputs) == {0: 3.0, 1: 3.0}
    assert total.constant == 0
