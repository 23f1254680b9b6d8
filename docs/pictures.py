"""Draws the manual's pictures anew: `python docs/pictures.py`."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from matplotlib.figure import Figure

from eqlearn import EQL, Candidate, EQLRegressor, Phase, eliminate, train
from eqlearn.paper.benchmark import TARGETS
from eqlearn.paper.regulariser import draw_regulariser
from eqlearn.report.figures import DATA, GREY, INK, Picture, draw

ROOT = Path(__file__).parent.parent
PAPER_RATES = {target.name: target.paper for target in TARGETS if target.paper is not None}


def network() -> Figure:
    """A network with all its weights, and what is left of it when it has learned sin(2x) + xy."""
    inputs = 2 * torch.rand(200, 2, generator=torch.Generator().manual_seed(0)) - 1
    target = torch.sin(2 * inputs[:, :1]) + inputs[:, :1] * inputs[:, 1:]
    net = EQL(2, 1, primitives="id square sin1 exp mul", hidden_layers=1, seed=0)
    before = _as_candidate(net)

    def loss(model: EQL, phase: Phase) -> torch.Tensor:
        return (model(inputs) - target).square().mean()

    schedule = (
        Phase(name="fit", steps=500, lr=2e-2),
        Phase(name="sparsify", steps=500, lr=1e-2, penalty=2e-3, ramp="linear", prune_below=0.02),
    )
    for _ in train(net, loss, schedule, optimiser=torch.optim.Adam):
        pass
    after = _as_candidate(eliminate(net.double(), inputs.double(), target.double()))
    figure = Figure(figsize=(9.0, 4.2), layout="constrained")
    for part, candidate, title in zip(
        figure.subfigures(1, 2), (before, after), ("Before", "After"), strict=True
    ):
        nothing = np.zeros(1)
        draw(Picture([candidate], candidate, nothing, nothing, ["x", "y"], ["f"]), "network", part)
        part.axes[0].set_title(title, loc="left")
    return figure


def _as_candidate(net: EQL) -> Candidate:
    copy = EQL(2, 1, primitives="id square sin1 exp mul", hidden_layers=1, seed=0).double()
    copy.load_state_dict({name: value.clone() for name, value in net.state_dict().items()})
    return Candidate((), math.nan, math.nan, False, network=copy.eval())


def pareto() -> Figure:
    """The front of a small noisy table: that of the page on choosing."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, size=(150, 1))
    y = x[:, 0] ** 2 + 0.1 * x[:, 0] ** 3 + 0.02 * rng.standard_normal(150)
    model = EQLRegressor(primitives="id square mul", hidden_layers=2, restarts=60).fit(x, y)
    picture = Picture(model.found_.front, model.found_.best, y, model.predict(x), ["x"])
    return draw(picture, "pareto", Figure(figsize=(5.2, 3.8), layout="constrained"))


def rates() -> Figure:
    """The share of seeds that led to the right equation, from the files in results/benchmark."""
    figure = Figure(figsize=(8.0, 3.9), layout="constrained")
    for place, (axes, name, title) in enumerate(
        zip(figure.subplots(1, 2, sharey=True), ("half", "l0"), ("L0.5", "L0"), strict=True)
    ):
        file = ROOT / f"results/benchmark/modern-{name}.json"
        trials = json.loads(file.read_text(encoding="utf-8"))["trials"]
        found = defaultdict(list)
        for trial in trials.values():
            found[trial["function"]].append(trial["tier"] in ("exact", "symbolic"))
        functions = list(PAPER_RATES)[::-1]
        ours = [np.mean(found[f]) for f in functions]
        theirs = [PAPER_RATES[f][place] for f in functions]
        rows = np.arange(len(functions))
        axes.hlines(rows, theirs, ours, color=GREY, lw=1, zorder=1)
        axes.plot(theirs, rows, "o", ms=6, mfc="white", mec=INK, label="paper, one start")
        axes.plot(ours, rows, "o", ms=6, color=DATA, label="eqlearn, one call")
        axes.set_yticks(rows, functions, fontsize=8)
        axes.set(xlim=(-0.04, 1.04), xlabel="share of seeds with the right equation")
        axes.set_title(title, loc="left", fontsize=10)
        axes.spines[["top", "right"]].set_visible(False)
    handles = axes.get_legend_handles_labels()
    figure.legend(*handles, loc="outside upper right", ncols=2, frameon=False, fontsize=8)
    return figure


PICTURES: dict[str, Callable[[], Figure]] = {
    "regulariser": draw_regulariser,
    "network": network,
    "pareto": pareto,
    "rates": rates,
}


def main(folder: Path = ROOT / "docs" / "pictures") -> None:
    for name, drawn in PICTURES.items():
        drawn().savefig(folder / f"{name}.png", dpi=130)


if __name__ == "__main__":
    main()
