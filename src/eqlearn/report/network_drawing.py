"""The surviving network as an SVG drawing, from the inputs on the left to the outputs on the right."""

from __future__ import annotations

from html import escape

from eqlearn.views.diagram import Diagram, Edge, Node

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
