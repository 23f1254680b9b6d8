"""Backward elimination: takes weights out by saliency, refits, keeps a removal while the score improves."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from eqlearn.core.network import EQL
from eqlearn.discovery.least_squares import (
    EXACT,
    Fit,
    LeastSquares,
    levenberg_marquardt,
    never,
    normal_equations,
    stack,
    take,
)
from eqlearn.discovery.polish import fit_of, network_of, problem_of


def eliminate_fits(
    fits: list[Fit],
    problem: LeastSquares,
    *,
    steps: int = 20,
    singles: int = 6,
    stop: Callable[[], bool] = never,
) -> list[Fit]:
    """Eliminates several networks (of one depth and way of joining) together, one batch of trials a round."""
    fits = [_without_dead(fit, problem) for fit in fits]
    active = [fit.weights > 1 for fit in fits]
    while any(active) and not stop():
        chosen = [i for i, on in enumerate(active) if on]
        trials: list[tuple[int, Tensor]] = []
        for i in chosen:
            trials += [(i, keep) for keep in _removals(fits[i], problem, singles)]
        restricted = [fits[i].population.restrict(fits[i].theta, keep[None], [0]) for i, keep in trials]
        population, theta = stack([p for p, _ in restricted], [t[0] for _, t in restricted])
        theta, loss = levenberg_marquardt(
            population, theta, problem, steps=steps, enough=EXACT * 1e-4, stop=stop
        )
        for i in chosen:
            rows = [r for r, (j, _) in enumerate(trials) if j == i]
            options = [take(population, theta, loss, r) for r in rows if math.isfinite(loss[r])]
            best = min(options, key=lambda f: f.score(problem.rows), default=fits[i])
            if best is fits[i] or best.score(problem.rows) >= fits[i].score(problem.rows):
                active[i] = False
            else:
                fits[i] = _without_dead(best, problem)
                active[i] = fits[i].weights > 1
    return fits


def _without_dead(fit: Fit, problem: LeastSquares) -> Fit:
    """Drops weights on which the output does not depend."""
    state = normal_equations(fit.population, fit.theta, problem)
    alive = state.curvature[0].diagonal() > 0
    if bool(alive[: fit.weights].all()) or not math.isfinite(fit.loss):
        return fit
    population, theta = fit.population.restrict(fit.theta, alive[None], [0])
    return Fit(population, theta, fit.loss)


def _removals(fit: Fit, problem: LeastSquares, singles: int) -> list[Tensor]:
    """Sets of weights to keep: without each of the least salient ones, and without growing runs of them.

    The saliency w²/[H⁻¹] is the rise in error that a quadratic model predicts once the others have been
    refitted; unlike the weight's size, it does not change when a unit's scale moves between layers.
    """
    count = fit.weights
    state = normal_equations(fit.population, fit.theta, problem)
    curvature = state.curvature[0, :count, :count]
    scale = curvature.diagonal().clamp(min=1e-300).sqrt()
    # A little ridge makes directions that the data leave free harmless: their weights are not salient.
    scaled = curvature / scale[:, None] / scale + 1e-10 * torch.eye(count, dtype=curvature.dtype)
    factor, info = torch.linalg.cholesky_ex(scaled)
    inverse = torch.cholesky_inverse(factor).diagonal() if int(info) == 0 else torch.ones(count)
    saliency = (fit.theta[0, :count] * scale).square() / inverse.clamp(min=1e-300)
    order = saliency.argsort()
    sets = [order[i : i + 1] for i in range(min(singles, count))]
    sets += [order[:n] for n in (2, 3, 4, 6, 8, 12, 16, 24, 32) if n < count]
    keeps = torch.ones(len(sets), count, dtype=torch.bool)
    for row, gone in enumerate(sets):
        keeps[row, gone] = False
    return list(keeps)


def eliminate(network: EQL, X: Any, y: Any, *, sample_weight: Any = None, steps: int = 30) -> EQL:
    """The network with every weight removed that the data do not need, refitted; a new network.

    Works on an `EQL` taken out of any model, with any mask; `X` is `(rows, in)` and `y` `(rows,)` or
    `(rows, out)`. A removal stays while an information criterion improves.
    """
    problem, scale = problem_of(network, X, y, sample_weight)
    fit = fit_of(network, problem, scale, steps=steps)
    (smaller,) = eliminate_fits([fit], problem, steps=steps, singles=12)
    return network_of(smaller, scale).to(network.readout.raw)
