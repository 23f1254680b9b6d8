"""Figures and data frames of a search: Pareto front, predictions, residuals, network, constants."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from eqlearn.errors import InvalidArgument, UnknownName
from eqlearn.report.drawings import Diagram, Node, diagram
from eqlearn.report.record import MEASURES
from eqlearn.search.candidate import Candidate
from eqlearn.search.search import Found
from eqlearn.symbolic.printing import latex_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


INK, GREY, FAINT = "#1b2733", "#8291a1", "#e3e8ee"
DATA, CHOSEN, HELD_OUT = "#2b6cb0", "#c2410c", "#0f766e"
# The smallest error that is drawn: below it there is only rounding.
_FLOOR = 1e-16

_STYLE: dict[str, Any] = {
    "font.size": 9.0,
    "axes.titlesize": 10.0,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "savefig.dpi": 200,
    "grid.color": FAINT,
    "figure.facecolor": "white",
    **dict.fromkeys(("axes.axisbelow", "axes.grid"), True),
    **dict.fromkeys(("axes.spines.top", "axes.spines.right", "legend.frameon"), False),
    **dict.fromkeys(("axes.linewidth", "grid.linewidth"), 0.8),
    **dict.fromkeys(("text.color", "axes.labelcolor", "xtick.labelcolor", "ytick.labelcolor"), INK),
    **dict.fromkeys(("axes.edgecolor", "xtick.color", "ytick.color"), GREY),
}


@dataclass(frozen=True, eq=False)
class Picture:
    """What is drawn of a search: its front, the chosen candidate, and one output on some rows.

    `inputs` are the names of the inputs of the chosen network, `outputs` those of the targets.
    """

    front: Sequence[Candidate]
    best: Candidate
    true: np.ndarray
    predicted: np.ndarray
    inputs: Sequence[str]
    outputs: Sequence[str] = ("y",)
    output: int = 0

    @property
    def name(self) -> str:
        return self.outputs[self.output]


def draw(picture: Picture, kind: str, figure: Figure) -> Figure:
    """Draws one of `KINDS`, or "all" of them, into an empty figure."""
    if kind != "all" and kind not in KINDS:
        raise UnknownName(f"no plot of `kind` {kind!r}; the known ones are all, {', '.join(KINDS)}")
    import matplotlib

    with matplotlib.rc_context(_STYLE):
        chosen = list(KINDS) if kind == "all" else [kind]
        axes = figure.subplots(2, 2).flat if kind == "all" else [figure.subplots()]
        for name, ax in zip(chosen, axes, strict=True):
            KINDS[name](picture, ax)
        if kind == "all":
            heading, mathematics = _heading(picture)
            size = 13 if mathematics else 10
            figure.suptitle(heading, parse_math=mathematics, fontsize=size, x=0.02, ha="left")
    return figure


def fit_figure(
    found: Found, kind: str, X: np.ndarray, true: np.ndarray, outputs: Sequence[str], output: int
) -> Figure:
    """A figure of what was found, on rows `(rows, in)` of which the values of one output are known."""
    predicted = found.best.equations[output](X)
    picture = Picture(found.front, found.best, true, predicted, found.inputs, outputs=outputs, output=output)
    return draw(picture, kind, new_figure(kind))


def new_figure(kind: str = "all") -> Figure:
    """An empty figure of pyplot, for `plt.show()`; a notebook shows it by itself, once."""
    from matplotlib import pyplot as plt

    figure: Figure = plt.figure(figsize=(9.5, 7.5) if kind == "all" else (5.2, 4.0), layout="constrained")
    if "inline" in plt.get_backend():
        plt.close(figure)  # otherwise the notebook shows it twice: at the end of the cell, and as its value
    return figure


def pareto(picture: Picture, ax: Axes) -> None:
    """Error against complexity, for each equation of the front."""
    complexity = [c.complexity for c in picture.front]
    errors = [max(c.training_error, _FLOOR) for c in picture.front]
    ax.plot(complexity, errors, drawstyle="steps-post", color=DATA, lw=1.2, alpha=0.45)
    ax.plot(complexity, errors, "o", ms=5, color=DATA, label="training")
    unseen = {"validation_error": ("held out", "D"), "extrapolation_error": ("extrapolation", "^")}
    for field, (name, marker) in unseen.items():
        points = [(c.complexity, max(getattr(c, field), _FLOOR)) for c in picture.front]
        if points := [p for p in points if math.isfinite(p[1])]:
            ax.plot(*zip(*points, strict=True), marker, ms=4.5, mfc="none", mec=HELD_OUT, mew=1.1, label=name)
    best = (picture.best.complexity, max(picture.best.training_error, _FLOOR))
    ax.plot(*best, "o", ms=11, mfc="none", mec=CHOSEN, mew=1.6, label="chosen")
    ax.set(yscale="log", xlabel="complexity (nodes)", ylabel="error / spread of the target")
    ax.set_title("Pareto front")
    if max(errors) / min(errors) < 10:  # else a logarithmic axis may show no labelled tick
        ax.set_ylim(min(errors) / 2, max(errors) * 2)
    ax.margins(x=0.06)
    ax.legend(loc="best")


def predictions(picture: Picture, ax: Axes) -> None:
    """Predicted against measured values."""
    true, predicted = _finite(picture)
    ends = [min(true.min(), predicted.min()), max(true.max(), predicted.max())]
    ax.plot(ends, ends, color=GREY, lw=1, zorder=1)
    _dots(true, predicted, ax)
    spread = float(((true - true.mean()) ** 2).sum())
    if spread > 0:
        r2 = 1 - float(((true - predicted) ** 2).sum()) / spread
        ax.text(0.03, 0.97, f"R² = {_r2_text(r2)}", transform=ax.transAxes, va="top")
    ax.set_xlabel(_short(f"{picture.name}, measured", 60), parse_math=False)
    ax.set_ylabel(_short(f"{picture.name}, predicted", 60), parse_math=False)
    ax.set_title("Predicted and measured")


def residuals(picture: Picture, ax: Axes) -> None:
    """Residuals, with a band of two standard deviations."""
    true, predicted = _finite(picture)
    left = true - predicted
    width = 2 * float(left.std())
    ax.axhspan(-width, width, color=FAINT, alpha=0.6, lw=0, zorder=0)
    ax.axhline(0, color=GREY, lw=1, zorder=1)
    _dots(predicted, left, ax)
    ax.set_xlabel(_short(f"{picture.name}, predicted", 60), parse_math=False)
    ax.set_ylabel("measured - predicted")
    ax.set_title("Residuals")


def network(picture: Picture, ax: Axes) -> None:
    """The remaining weights, from the inputs to the outputs."""
    ax.set_axis_off()
    ax.set_title("Surviving network")
    if picture.best.network is None:
        ax.text(0.5, 0.5, "a constant: no network", ha="center", va="center", color=GREY)
        return
    graph = diagram(picture.best.network, picture.inputs, picture.outputs)
    _draw_edges(graph, ax)
    for node in graph.nodes:
        _draw_node(node, ax)
    ax.set(xlim=(-0.35, graph.columns - 0.65), ylim=(-0.06, 1.06))
    for colour, words in ((DATA, "positive weight"), (CHOSEN, "negative weight")):
        ax.plot([], [], color=colour, lw=2, label=words)
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, 0.02), ncols=2)


def _draw_node(node: Node, ax: Axes) -> None:
    if node.kind == "unit" and not node.label:
        ax.plot(node.column, node.height, "o", ms=5, color=INK, zorder=3)
        return
    face = {"input": "#e8f0fa", "output": "#fdeadf", "constant": FAINT, "unit": "white"}[node.kind]
    edge = {"input": DATA, "output": CHOSEN, "constant": GREY, "unit": INK}[node.kind]
    box = {"boxstyle": "round,pad=0.4,rounding_size=0.6", "fc": face, "ec": edge, "lw": 1}
    label = ax.text(node.column, node.height, _short(node.label, 18), parse_math=False, bbox=box, zorder=4)
    label.set(ha="center", va="center")


def _draw_edges(graph: Diagram, ax: Axes) -> None:
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    for edge, strength in zip(graph.edges, graph.strengths, strict=True):
        source, target = graph.nodes[edge.source], graph.nodes[edge.target]
        x0, x1 = source.column, target.column
        y1 = target.height - 0.02 * edge.argument
        bend = (x1 - x0) / 2
        curve = [(x0, source.height), (x0 + bend, source.height), (x1 - bend, y1), (x1, y1)]
        path = Path(curve, [Path.MOVETO, Path.CURVE4, Path.CURVE4, Path.CURVE4])
        width, colour = 0.6 + 2.4 * strength, DATA if edge.weight > 0 else CHOSEN
        line = PathPatch(path, fill=False, lw=width, ec=colour, alpha=0.75, capstyle="round", zorder=2)
        ax.add_patch(line)


KINDS: dict[str, Callable[[Picture, Any], None]] = {
    "pareto": pareto,
    "network": network,
    "predictions": predictions,
    "residuals": residuals,
}


def _heading(picture: Picture) -> tuple[str, bool]:
    """The equation as a formula, if it fits on a line and matplotlib can typeset it; else as text."""
    from matplotlib.mathtext import MathTextParser

    equation = picture.best.equations[picture.output]
    if equation.complexity <= 30:
        formula = f"${latex_name(picture.name)} = {equation.latex(4)}$"
        with suppress(ValueError):  # a name may hold anything, and matplotlib knows little of LaTeX
            MathTextParser("path").parse(formula)
            return formula, True
    return _short(f"{picture.name} = {equation}", 300, 110), False


def _finite(picture: Picture) -> tuple[np.ndarray, np.ndarray]:
    keep = np.isfinite(picture.predicted)
    if not keep.any():
        raise InvalidArgument("the equation has no finite value on these rows, so there is nothing to draw")
    return picture.true[keep], picture.predicted[keep]


def _dots(x: np.ndarray, y: np.ndarray, ax: Axes) -> None:
    size, opacity = np.clip(60 / math.sqrt(len(x)), 2.0, 5.0), np.clip(12 / math.sqrt(len(x)), 0.25, 0.85)
    ax.plot(x, y, "o", ms=float(size), color=DATA, alpha=float(opacity), mew=0)


def _r2_text(r2: float) -> str:
    """Enough nines to tell a good fit from a perfect one."""
    if 1 - 1e-12 < r2 <= 1:
        return "1"
    return f"{r2:.3f}" if r2 < 0.999 else f"1 - {1 - r2:.1e}"


def _short(text: str, longest: int, width: int | None = None) -> str:
    text = text if len(text) <= longest else text[: longest - 3] + "..."
    return "\n".join(textwrap.wrap(text, width, break_on_hyphens=False)) if width else text


def front_frame(front: Sequence[Candidate], best: Candidate) -> Any:
    """One row per candidate, simplest first; `pick` marks the chosen one.

    Errors are root-mean-square errors divided by the target's standard deviation, NaN without such data.
    """
    import pandas as pd

    fields = ("complexity", *MEASURES, "exact")
    columns = {name: [getattr(c, name) for c in front] for name in fields}
    return pd.DataFrame({**columns, "equation": list(map(str, front)), "pick": [c is best for c in front]})


def constants_frame(candidate: Candidate, outputs: Sequence[str]) -> Any:
    """One row per fitted constant, in reading order: value, standard error, 95 % interval. Where constants
    vary, one row per group: each of them and its standard error, then those that are shared."""
    import pandas as pd

    if candidate.varying is not None:
        frame = candidate.varying.frame()
        for place, shared in enumerate(candidate.constants[0]):
            frame[f"c{place + 1}"], frame[f"c{place + 1} standard error"] = (
                shared.value,
                shared.standard_error,
            )
        return frame
    rows = [
        (output, constant.value, constant.standard_error, *constant.interval())
        for output, constants in zip(outputs, candidate.constants, strict=False)
        for constant in constants
    ]
    frame = pd.DataFrame(rows, columns=["output", "value", "standard_error", "low", "high"])
    return frame.astype(dict.fromkeys(frame.columns[1:], "float64"))  # also when there is no row
