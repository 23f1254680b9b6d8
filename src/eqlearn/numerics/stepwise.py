"""Backward elimination: parts of a model leave one by one, or in runs, as long as its score improves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import torch
from jaxtyping import Float
from torch import Tensor

from eqlearn.numerics.budget import never

Model = TypeVar("Model")


def saliencies(
    curvature: Float[Tensor, "weights weights"], weights: Float[Tensor, " weights"], *, ridge: float = 1e-10
) -> Float[Tensor, " weights"]:
    """How much the error would rise without each weight, once the others have been refitted, to second order:
    w²/[H⁻¹] of Optimal Brain Surgeon (Hassibi & Stork 1993).

    Unlike a weight's size, it does not change when a unit's scale moves between layers. The `ridge`, relative
    to the curvature's diagonal, makes directions that the data leave free harmless: their weights are not
    salient.
    """
    scale = curvature.diagonal().clamp(min=1e-300).sqrt()
    scaled = curvature / scale[:, None] / scale + ridge * torch.eye(len(weights), dtype=curvature.dtype)
    factor, info = torch.linalg.cholesky_ex(scaled)
    inverse = torch.cholesky_inverse(factor).diagonal() if int(info) == 0 else torch.ones_like(weights)
    return (weights * scale).square() / inverse.clamp(min=1e-300)


def removals(order: Tensor, *, singles: int, runs: Iterable[int]) -> list[Tensor]:
    """Parts to do without, given from the least salient to the most: runs of the first, and the first
    `singles` each alone; never all."""
    shorter = [order[:count] for count in runs if count < len(order)]
    return shorter + [order[i : i + 1] for i in range(min(singles, len(order)))]


def eliminate(
    models: Sequence[Model],
    smaller: Callable[[list[Model]], Sequence[Iterable[Model]]],
    score: Callable[[Model], float],
    *,
    beats: Callable[[Model, Model], bool] | None = None,
    tidied: Callable[[Model], Model] = lambda model: model,
    first: bool = False,
    progress: Callable[[list[Model]], object] = lambda models: None,
    stop: Callable[[], bool] = never,
) -> list[Model]:
    """Every model without the parts whose removal makes it better.

    * `smaller(models)`: for each of these models, what is left of it, refitted, without parts that might go;
      none ends its elimination. Several models are asked for together, so that they can be fitted together.
    * `score(model)`: the smaller, the better.
    * `beats(trial, model)`: whether a trial may replace the model; by default, if its score is smaller.
    * `tidied(model)`: what a model becomes that has replaced another.
    * `first`: take the first trial that may, and fit no more, instead of the best of all.
    * `progress(models)`: called after each round.
    * `stop()`: asked before each round.
    """
    models, active = list(models), list(range(len(models)))
    while active and not stop():
        going = []
        for i, trials in zip(active, smaller([models[i] for i in active]), strict=True):
            model = models[i]
            if beats is None:
                bar = score(model)
                able = (trial for trial in trials if score(trial) < bar)
            else:
                able = (trial for trial in trials if beats(trial, model))
            best = next(able, None) if first else min(able, key=score, default=None)
            if best is not None:
                models[i] = tidied(best)
                going.append(i)
        active = going
        progress(models)
    return models
