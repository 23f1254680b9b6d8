"""The network as a graph: every weight that matters is an edge, and nothing else is."""

import pytest
import torch

from eqlearn.errors import InvalidArgument
from eqlearn.nn.eql import EQL
from eqlearn.nn.primitives import PRIMITIVES, Primitive
from eqlearn.report.drawings import diagram, unit_label


def small_network(skip=False):
    """sin(2π·2x) - 0.5·(y·1), with a dead weight into a unit that nobody reads."""
    network = EQL(2, 1, "id sin mul", 1, bias=True, skip=skip, seed=0)
    first, last = network.linears
    with torch.no_grad():
        for linear in (first, last):
            linear.raw.zero_()
        first.raw[1, 0] = 2.0  # x into sin
        first.raw[2, 1] = 1.0  # y, the product's first argument
        first.raw[3, 2] = 1.0  # the constant, its second
        first.raw[0, 0] = 9.0  # x into the identity, which is not read
        last.raw[0, 1] = 1.0
        last.raw[0, 2] = -0.5
    return network


def test_the_graph_holds_what_reaches_the_output():
    graph = diagram(small_network(), ["x", "y"], ["z"])

    labels = {(node.kind, node.label) for node in graph.nodes}
    assert labels == {
        ("input", "x"),
        ("input", "y"),
        ("constant", "1"),
        ("unit", "sin(2πg)"),
        ("unit", "a·b"),
        ("output", "z"),
    }


def test_every_edge_carries_its_weight_and_argument():
    graph = diagram(small_network(), ["x", "y"], ["z"])

    edges = {
        (graph.nodes[e.source].label, graph.nodes[e.target].label, e.weight, e.argument) for e in graph.edges
    }
    assert edges == {
        ("x", "sin(2πg)", 2.0, 0),
        ("y", "a·b", 1.0, 0),
        ("1", "a·b", 1.0, 1),
        ("sin(2πg)", "z", 1.0, 0),
        ("a·b", "z", -0.5, 0),
    }


def test_edges_lead_from_left_to_right():
    graph = diagram(EQL(3, 2, "id sin mul", 3, bias=True, skip=True, seed=1), "abc", "uv")

    assert all(graph.nodes[e.source].column < graph.nodes[e.target].column for e in graph.edges)
    assert graph.columns == 5


def test_skipped_inputs_are_the_same_nodes_as_inputs():
    network = small_network(skip=True)
    with torch.no_grad():
        network.readout.raw[0, 3] = 4.0  # after the three units: x itself

    graph = diagram(network, ["x", "y"], ["z"])

    assert [node.label for node in graph.nodes].count("x") == 1
    assert ("x", "z") in {(graph.nodes[e.source].label, graph.nodes[e.target].label) for e in graph.edges}


def test_nodes_of_a_column_stand_apart():
    graph = diagram(EQL(3, 1, "id sin mul", 2, seed=1), "abc")

    places = [(node.column, node.height) for node in graph.nodes]
    assert len(set(places)) == len(places)


@pytest.mark.parametrize("primitive", PRIMITIVES.values(), ids=lambda p: p.name)
def test_every_primitive_has_a_short_label(primitive):
    label = unit_label(primitive)

    assert len(label) <= 14
    assert bool(label) == (primitive.name != "id")


def test_names_must_be_as_many_as_inputs():
    with pytest.raises(InvalidArgument, match="`inputs` holds 1 names"):
        diagram(small_network(), ["x"])


def test_a_population_has_no_graph():
    with pytest.raises(InvalidArgument, match="member"):
        diagram(EQL(1, 1, members=2, seed=0), ["x"])


def test_only_small_powers_are_written_above_the_line():
    assert unit_label(Primitive("p", 1, lambda m, g: g**20)) == "g^20"
    assert unit_label(Primitive("q", 1, lambda m, g: g**3)) == "g³"
