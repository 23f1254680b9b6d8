"""The sparse network as a graph, and the graph as an SVG drawing."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape
from statistics import fmean
from typing import Literal

import sympy as sp

from eqlearn.errors import InvalidArgument
from eqlearn.nn.eql import EQL, argument_rows
from eqlearn.nn.primitives import Primitive
from eqlearn.validation.options import check_single


@dataclass(frozen=True)
class Node:
    """An input, unit or output; `height` is its position in its column, from 0 (bottom) to 1 (top)."""

    label: str
    kind: Literal["input", "constant", "unit", "output"]
    column: int
    height: float = 0.5


@dataclass(frozen=True)
class Edge:
    """A weight between two nodes (indices into `Diagram.nodes`), and which argument it feeds."""

    source: int
    target: int
    weight: float
    argument: int = 0


@dataclass(frozen=True)
class Diagram:
    """The part of a network that reaches an output."""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]

    @property
    def columns(self) -> int:
        return max(node.column for node in self.nodes) + 1

    @property
    def strengths(self) -> list[float]:
        """How strongly to draw each edge: 1 for the largest weight into its column, 0 three decades below."""
        into = [self.nodes[edge.target].column for edge in self.edges]
        sizes = [abs(edge.weight) for edge in self.edges]
        largest = {c: max(s for s, d in zip(sizes, into, strict=True) if d == c) for c in set(into)}
        return [max(0.0, 1 + math.log10(s / largest[c]) / 3) for s, c in zip(sizes, into, strict=True)]


def diagram(network: EQL, inputs: Sequence[str], outputs: Sequence[str] = ("y",)) -> Diagram:
    """The graph of a single network, with names for its inputs and outputs."""
    sizes = {"inputs": (inputs, network.in_features), "outputs": (outputs, network.out_features)}
    for name, (names, count) in sizes.items():
        if len(names) != count:
            raise InvalidArgument(f"`{name}` holds {len(names)} names for a network of {count} {name}")
    check_single("graph", network.members)
    grower = _Grower(network, inputs)
    for k, name in enumerate(outputs):
        grower.add(("output", k), Node(name, "output", len(network.layers) + 1))
        grower.reach(len(network.layers), k, ("output", k), 0)
    places = {key: place for place, key in enumerate(grower.nodes)}
    edges = [Edge(places[s], places[t], weight, argument) for s, t, weight, argument in grower.edges]
    return _arranged(list(grower.nodes.values()), edges)


Key = tuple[str, int] | tuple[str, int, int]


class _Grower:
    """Walks from the outputs back to the inputs along weights that are not zero."""

    def __init__(self, network: EQL, inputs: Sequence[str]) -> None:
        self.network = network
        self.inputs = inputs
        self.weights = [linear.settled().tolist() for linear in network.linears]
        self.nodes: dict[Key, Node] = {}
        self.edges: list[tuple[Key, Key, float, int]] = []

    def add(self, key: Key, node: Node) -> bool:
        """Adds the node; says whether it is new."""
        new = key not in self.nodes
        self.nodes.setdefault(key, node)
        return new

    def reach(self, depth: int, row: int, target: Key, argument: int) -> None:
        """Follows row `row` of linear map `depth`, which feeds `target`."""
        for place, weight in enumerate(self.weights[depth][row]):
            if weight != 0:
                self.edges.append((self._source(depth, place), target, weight, argument))

    def _source(self, depth: int, place: int) -> Key:
        """The node at a position in the input of layer `depth`: units, inputs (skip), then the constant."""
        units = self.network.layers[depth - 1].units if depth else ()
        if place < len(units):
            key: Key = ("unit", depth - 1, place)
            if self.add(key, Node(unit_label(units[place]), "unit", depth)):
                for argument, row in enumerate(argument_rows(units)[place]):
                    self.reach(depth - 1, row, key, argument)
            return key
        place -= len(units)
        if place < len(self.inputs) and (depth == 0 or self.network.skip):
            key, node = ("input", place), Node(self.inputs[place], "input", 0)
        else:  # one column before what it feeds, so that the line does not cross the drawing
            key, node = ("constant", depth), Node("1", "constant", depth)
        self.add(key, node)
        return key


def unit_label(primitive: Primitive) -> str:
    """The formula of a primitive in a few characters; "" for the identity."""
    if primitive.name == "id":
        return ""
    letters = "g" if primitive.arity == 1 else "abcdef"[: primitive.arity]
    text = str(primitive.symbolic(*(sp.Symbol(letter) for letter in letters)))
    text = re.sub(r"\*\*([23])(?![\d.])", lambda power: "²³"[int(power[1]) - 2], text)
    for long, short in (("**", "^"), ("pi", "π"), ("*", "·"), ("2·π·", "2π")):
        text = text.replace(long, short)
    return text if len(text) <= 14 else primitive.name


def _arranged(nodes: list[Node], edges: list[Edge]) -> Diagram:
    """Heights such that few lines cross: columns are sorted in turn by the mean height of neighbours."""
    columns: dict[int, list[int]] = {}
    for place, node in enumerate(nodes):
        columns.setdefault(node.column, []).append(place)
    heights = [0.5] * len(nodes)
    for members in columns.values():
        _spread(members, heights)
    neighbours: dict[int, list[int]] = {place: [] for place in range(len(nodes))}
    for edge in edges:
        neighbours[edge.source].append(edge.target)
        neighbours[edge.target].append(edge.source)
    order = sorted(columns)
    for sweep in [order, order[::-1]] * 4:
        for column in sweep:
            middle = {p: fmean([heights[q] for q in neighbours[p] or [p]]) for p in columns[column]}
            columns[column].sort(key=lambda p: -middle[p])
            _spread(columns[column], heights)
    placed = (replace(node, height=height) for node, height in zip(nodes, heights, strict=True))
    return Diagram(tuple(placed), tuple(edges))


def _spread(members: Sequence[int], heights: list[float]) -> None:
    for rank, place in enumerate(members):
        heights[place] = 1 - (rank + 0.5) / len(members)


COLUMN, ROW, MARGIN = 170.0, 62.0, 78.0
TALLEST = 12


def network_svg(graph: Diagram) -> str:
    """Lines are weights, thicker where larger; colours come from the page's style, by class."""
    most = max(sum(n.column == c for n in graph.nodes) for c in range(graph.columns))
    width, height = 2 * MARGIN + COLUMN * (graph.columns - 1), ROW * max(2, min(most, TALLEST))
    places = [(MARGIN + COLUMN * n.column, (1 - n.height) * height) for n in graph.nodes]
    drawn = zip(graph.edges, graph.strengths, strict=True)
    lines = [_line(e, places[e.source], places[e.target], strength) for e, strength in drawn]
    nodes = [_node(n, *place) for n, place in zip(graph.nodes, places, strict=True)]
    inputs = ", ".join(n.label for n in graph.nodes if n.kind == "input") or "constants"
    outputs = ", ".join(n.label for n in graph.nodes if n.kind == "output")
    label = escape(f"Network from {inputs} to {outputs} with {len(graph.edges)} weights")
    return (
        f'<svg class="network" viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}" '
        f'role="img" aria-label="{label}">{"".join(lines)}{"".join(nodes)}</svg>'
    )


def _line(edge: Edge, start: tuple[float, float], end: tuple[float, float], strength: float) -> str:
    (x0, y0), (x1, y1) = start, (end[0], end[1] + 7 * edge.argument)
    bend = (x1 - x0) / 2
    sign = "positive" if edge.weight > 0 else "negative"
    return (
        f'<path class="weight {sign}" '
        f'd="M{x0},{y0:.1f}C{x0 + bend},{y0:.1f} {x1 - bend},{y1:.1f} {x1},{y1:.1f}" '
        f'stroke-width="{0.8 + 3.2 * strength:.2f}"><title>weight {edge.weight:.4g}</title></path>'
    )


def _node(node: Node, x: float, y: float) -> str:
    if node.kind == "unit" and not node.label:
        return f'<circle class="node passing" cx="{x}" cy="{y:.1f}" r="4"><title>sum</title></circle>'
    label = node.label if len(node.label) <= 16 else node.label[:15] + "…"
    half = max(17.0, 4.3 * len(label) + 11)
    return (
        f'<g class="node {node.kind}"><title>{escape(node.label)}</title>'
        f'<rect x="{x - half:.1f}" y="{y - 16:.1f}" width="{2 * half:.1f}" height="32" rx="16"/>'
        f'<text x="{x}" y="{y:.1f}" dy="0.35em" text-anchor="middle">{escape(label)}</text></g>'
    )
