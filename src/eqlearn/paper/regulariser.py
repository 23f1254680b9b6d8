"""The paper's figure of its regulariser: L0.5 and the smoothed L0.5 near zero."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from eqlearn import Lq, SmoothHalf
from eqlearn.paper.style import CHOSEN, DATA, GREY

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_regulariser(a: float = 0.1) -> Figure:
    """Both penalties and their slopes; `a` is larger than in training, so that it can be seen."""
    from matplotlib.figure import Figure

    w = torch.linspace(-3 * a, 3 * a, 1201, dtype=torch.float64, requires_grad=True)
    figure = Figure(figsize=(8.0, 3.2), layout="constrained")
    values, slopes = figure.subplots(1, 2)
    for penalty, colour, label in ((Lq(0.5), GREY, "L0.5"), (SmoothHalf(a), DATA, f"smoothed L0.5, a = {a}")):
        size = penalty.of(w)
        (slope,) = torch.autograd.grad(size.sum(), w)
        slope = torch.where(w.abs() < 1e-9, torch.nan if isinstance(penalty, Lq) else 0.0, slope)
        values.plot(w.detach(), size.detach(), color=colour, lw=1.8, label=label)
        slopes.plot(w.detach(), slope.detach(), color=colour, lw=1.8, label=label)
    for axes in (values, slopes):
        axes.axvspan(-a, a, color=CHOSEN, alpha=0.07, lw=0)
        axes.set_xlabel("weight")
        axes.spines[["top", "right"]].set_visible(False)
    values.set_title("penalty", loc="left", fontsize=10)
    slopes.set_title("its slope", loc="left", fontsize=10)
    slopes.set_ylim(-0.6 / a, 0.6 / a)
    values.legend(frameon=False, fontsize=8, loc="upper center")
    values.set_ylim(0, 2.2 * a**0.5)
    return figure
