"""The figures of MNIST arithmetic: latents against digits, predictions against results, trials together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from eqlearn import Equation
from eqlearn.paper.mnist.measures import FIVE, Evaluation
from eqlearn.paper.mnist.pairs import LATENTS
from eqlearn.paper.pages.mnist import NETWORKS
from eqlearn.paper.style import CHOSEN, DATA, FAINT, GREY, INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


SHOWN = 1_500  # points of a panel: enough to see the spread, few enough for a small file
READABLE = 25  # nodes of a formula that a title has room for
_SETS = {"train": "training images", "test": "test images"}


def draw_trial(evaluations: Mapping[str, Evaluation], equation: str | None) -> Figure:
    """The paper's figure of a trial: the latent against the digit above, predicted against true below.

    `equation` is the formula found, None for a network that has none.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.4, 7.2), layout="constrained")
    axes = figure.subplots(2, 2)
    for column, (name, evaluation) in enumerate(evaluations.items()):
        _latents(axes[0, column], evaluation, _SETS[name])
        _predictions(axes[1, column], evaluation, _SETS[name])
    for letter, ax in zip("abcd", axes.flat, strict=True):
        _dress(ax, letter)
    figure.suptitle(_title(equation), x=0.02, ha="left", fontsize=12, color=INK)
    return figure


def _title(equation: str | None) -> str:
    if equation is None:
        return "ReLU network"
    found = Equation.parse(equation, LATENTS)
    if found.complexity > READABLE:
        return f"an equation of {found.complexity} nodes"
    return f"$\\hat{{y}} = {found.latex(4)}$"


def _latents(ax: Axes, evaluation: Evaluation, name: str) -> None:
    gauge = evaluation.gauge
    rng = np.random.default_rng(0)
    z, digit = evaluation.latents.numpy(), evaluation.labels.numpy()
    rows = rng.permutation(len(z))[:SHOWN]
    ax.plot(digit[rows] + rng.uniform(-0.28, 0.28, len(rows)), z[rows], ".", ms=2.2, color=DATA, alpha=0.45)
    kinds = np.unique(digit)
    medians = [np.median(z[digit == d]) for d in kinds]
    ax.plot(kinds, medians, "o", ms=5, mfc="white", mec=INK, mew=1.2, label="median")
    line = f"ψ = {gauge.scale:.3f} z {gauge.shift:+.3f}"
    ax.plot(kinds, gauge.latent(kinds), color=CHOSEN, lw=1.4, label=line)
    ax.set(
        xlabel="digit ψ",
        ylabel="latent z",
        xticks=kinds,
        title=f"{name}: correlation {gauge.correlation:.4f}",
    )
    ax.legend(loc="best", fontsize=8, frameon=False)


def _predictions(ax: Axes, evaluation: Evaluation, name: str) -> None:
    rng = np.random.default_rng(0)
    true, predicted = evaluation.true.numpy(), evaluation.predicted.numpy()
    step = np.diff(np.unique(true)).min()
    rows = rng.permutation(len(true))[:SHOWN]
    right = np.round(predicted[rows]) == true[rows]
    x = true[rows] + step * rng.uniform(-0.28, 0.28, len(rows))
    ax.plot(x[right], predicted[rows][right], ".", ms=2.2, color=DATA, alpha=0.45, label="right when rounded")
    ax.plot(x[~right], predicted[rows][~right], "x", ms=4, color=CHOSEN, alpha=0.9, label="wrong")
    ax.plot([true.min(), true.max()], [true.min(), true.max()], color=GREY, lw=1, zorder=0)
    low, high = true.min() - 0.1 * np.ptp(true), true.max() + 0.1 * np.ptp(true)
    mae = float(np.abs(predicted - true).mean())
    title = f"{name}: {100 * (evaluation.accuracy() or 0):.1f} % right, mean error {mae:.3f}"
    ax.set(xlabel="true result y", ylabel="predicted ŷ", xlim=(low, high), ylim=(low, high), title=title)
    _whole(ax)
    ax.legend(loc="upper left", fontsize=8, frameon=False, markerscale=1.6)


def draw_generalisation(trials: Mapping[str, Mapping[str, Any]]) -> Figure:
    """Networks that saw results below a bound only: what they predict for all, test digits."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.4 * len(trials), 4.2), layout="constrained")
    axes = figure.subplots(1, len(trials), sharey=True, squeeze=False)[0]
    for ax, (network, trial) in zip(axes, trials.items(), strict=True):
        rows = np.array(trial["test"]["by_result"], dtype=float)
        true, low, middle, high = rows[:, 0], rows[:, 2], rows[:, 3], rows[:, 4]
        edge, margin = trial["bound"], 0.04 * np.ptp(true)
        ax.axvspan(edge - 0.5, true.max() + margin, color=FAINT, lw=0, label="never seen in training")
        ax.plot([true.min(), true.max()], [true.min(), true.max()], color=GREY, lw=1)
        ax.vlines(true, low, high, color=DATA, lw=2.2, alpha=0.45, label="90 % of predictions")
        ax.plot(true, middle, "o", ms=4.5, color=DATA, label="median")
        accuracy = trial["test"]["accuracy_from_bound"]
        ax.set(xlabel="true result y", xlim=(true.min() - margin, true.max() + margin))
        ax.set_ylabel("predicted ŷ" if ax is axes[0] else "")
        _whole(ax)
        right = "nothing there" if accuracy is None else f"{100 * accuracy:.1f} % right"
        ax.set_title(f"{NETWORKS[network]}: {right} from {edge:g} on")
        ax.legend(loc="upper left", fontsize=8, frameon=False)
    for letter, ax in zip("abcd", axes, strict=False):
        _dress(ax, letter)
    return figure


def draw_maps(trials: Sequence[Mapping[str, Any]]) -> Figure:
    """All trials together: each encoder's latent of a digit, and what the equation makes of it.

    The left-hand curves may rise, fall or bend, the latent's sign and shape being free; composed with their
    equations, on the right, they should all be the line in grey, the true results beside a five.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.4, 3.9), layout="constrained")
    left, right = figure.subplots(1, 2)
    colours = ["#2b6cb0", "#c2410c", "#0f766e", "#7c3aed", "#a16207", "#be185d", "#475569", "#15803d"]
    for number, trial in enumerate(trials):
        points = np.array(trial["latent_map"], dtype=float)
        style = {"color": colours[number % len(colours)], "ms": 4, "lw": 1.1, "marker": "o"}
        left.plot(points[:, 0], **style, label=f"seed {trial['seed']}")
        right.plot(points[:, 1], **style)
    digits = np.arange(len(points))
    right.plot(points[:, 2], color=GREY, lw=5, alpha=0.35, zorder=0, label="true")
    left.set(xlabel="digit ψ", ylabel="median latent z", xticks=digits, title="what the encoder found")
    right.set(
        xlabel="digit ψ", ylabel=f"ŷ for ψ and {FIVE}", xticks=digits, title="what the equation makes of it"
    )
    for ax in (left, right):
        ax.legend(fontsize=8, frameon=False)
    for letter, ax in zip("ab", (left, right), strict=True):
        _dress(ax, letter)
    return figure


def _whole(ax: Axes) -> None:
    """Ticks at whole numbers only."""
    from matplotlib.ticker import MaxNLocator

    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 3, 5, 10]))


def _dress(ax: Axes, letter: str) -> None:
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(GREY)
    ax.tick_params(color=GREY, labelsize=8.5)
    ax.grid(color=FAINT, lw=0.8)
    ax.set_axisbelow(True)
    ax.set_title(f"({letter}) {ax.get_title()}", loc="left", fontsize=9.5, color=INK)
    ax.set_title("")
