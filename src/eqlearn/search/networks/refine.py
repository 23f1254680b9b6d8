"""Networks refined: weights fitted to machine precision, and taken out by Optimal Brain Surgeon."""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from eqlearn.errors import InvalidArgument, counted
from eqlearn.nn.eql import EQL
from eqlearn.nn.rescale import balance_
from eqlearn.numerics.budget import never
from eqlearn.numerics.covariance import errors_from_curvature
from eqlearn.numerics.criteria import EXACT_LOSS
from eqlearn.search.networks.fit import Fit, Samples, levenberg_marquardt, normal_equations, stack, take
from eqlearn.search.networks.population import Population
from eqlearn.validation.options import check_single
from eqlearn.validation.table import read_table


@dataclass(frozen=True)
class Polished:
    """A polished network, its mean squared error, and each weight's standard error, layer by layer.

    A weight that the data do not determine alone (its scale can move to another layer) has an infinite
    standard error; read the equation and fit its constants to get meaningful ones.
    """

    network: EQL
    error: float
    standard_errors: tuple[Tensor, ...]


def polish(network: EQL, X: Any, y: Any, *, sample_weight: Any = None, steps: int = 100) -> Polished:
    """Fits the weights that are not pruned by Levenberg-Marquardt in float64; a new network.

    Works on an `EQL` taken out of any model, with any mask and number of outputs; `X` is `(rows, in)`, `y`
    `(rows,)` or `(rows, out)`. The linear read-out is solved exactly at every step. Rows are taken in
    pieces, so that memory stays bounded.
    """
    samples, scale = samples_of(network, X, y, sample_weight)
    fit = fit_of(network, samples, scale, steps=steps)
    polished = network_of(fit, scale)
    population, theta = Population.of(polished)
    theta = torch.where(population.readout(), theta / scale, theta)
    errors = standard_errors(Fit(population, theta, fit.loss), samples)
    blocks = population.weights(0, errors[None])
    blocks[-1] = blocks[-1] * scale
    return Polished(polished, fit.loss * scale**2, tuple(blocks))


def samples_of(network: EQL, X: Any, y: Any, sample_weight: Any = None) -> tuple[Samples, float]:
    """The data as a fit needs them: float64, feature-major, the target divided by its spread."""
    check_single("network", network.members)
    table, _ = read_table(X, y, sample_weight)
    sides = (("X", table.X, network.in_features), ("y", table.y, network.out_features))
    for name, values, wanted in sides:
        if values.shape[1] != wanted:
            has = counted(values.shape[1], "column")
            raise InvalidArgument(f"`{name}` has {has}, the network needs {wanted}")
    x, target = (torch.as_tensor(values).mT.contiguous() for _, values, _ in sides)
    weight = None if table.weight is None else torch.as_tensor(table.weight / table.weight.mean())
    scale = float(target.std()) if target.numel() > 1 else 0.0
    scale = scale if scale > 0 else float(target.abs().max()) or 1.0
    return Samples(x, target / scale, weight), scale


def fit_of(network: EQL, samples: Samples, scale: float, *, steps: int) -> Fit:
    """The network as a fit to the scaled samples, brought to its optimum."""
    # Weights of one size along every chain: else rounding in the large ones hides the small ones' slopes.
    population, theta = Population.of(balance_(deepcopy(network)))
    if int(population.counts[0]) == 0:
        raise InvalidArgument("every weight of the network is pruned; there is nothing to fit")
    theta = torch.where(population.readout(), theta / scale, theta)
    theta, loss = levenberg_marquardt(
        population, theta, samples, steps=steps, project=True, enough=EXACT_LOSS * 1e-10, patience=1e-12
    )
    return Fit(population, theta, float(loss[0]))


def network_of(fit: Fit, scale: float) -> EQL:
    """The fitted network in the target's own units, its weights of one size, fit for training on."""
    theta = torch.where(fit.population.readout(), fit.theta * scale, fit.theta)
    return balance_(fit.population.network(0, theta))


def standard_errors(fit: Fit, samples: Samples) -> Tensor:
    """One per active weight, from s²(JᵀJ)⁻¹; infinite along directions the data leave free."""
    count = fit.weights
    curvature = (
        normal_equations(fit.population, fit.theta, samples).curvature[0, :count, :count] * samples.rows
    )
    observations = samples.rows * samples.y.shape[0]
    variance = fit.loss * samples.rows / max(1, observations - count)
    return torch.as_tensor(errors_from_curvature(curvature.numpy(), variance))


def eliminate_fits(
    fits: list[Fit],
    samples: Samples,
    *,
    steps: int = 20,
    singles: int = 6,
    stop: Callable[[], bool] = never,
) -> list[Fit]:
    """Eliminates several networks (of one depth and way of joining) together, one batch of trials a round."""
    fits = [_without_dead(fit, samples) for fit in fits]
    active = [fit.weights > 1 for fit in fits]
    while any(active) and not stop():
        chosen = [i for i, on in enumerate(active) if on]
        trials: list[tuple[int, Tensor]] = []
        for i in chosen:
            trials += [(i, keep) for keep in _removals(fits[i], samples, singles)]
        restricted = [fits[i].population.restrict(fits[i].theta, keep[None], [0]) for i, keep in trials]
        population, theta = stack([p for p, _ in restricted], [t[0] for _, t in restricted])
        theta, loss = levenberg_marquardt(
            population, theta, samples, steps=steps, enough=EXACT_LOSS * 1e-4, stop=stop
        )
        for i in chosen:
            rows = [r for r, (j, _) in enumerate(trials) if j == i]
            options = [take(population, theta, loss, r) for r in rows if math.isfinite(loss[r])]
            best = min(options, key=lambda f: f.score(samples.rows), default=fits[i])
            if best is fits[i] or best.score(samples.rows) >= fits[i].score(samples.rows):
                active[i] = False
            else:
                fits[i] = _without_dead(best, samples)
                active[i] = fits[i].weights > 1
    return fits


def _without_dead(fit: Fit, samples: Samples) -> Fit:
    """Drops weights on which the output does not depend."""
    state = normal_equations(fit.population, fit.theta, samples)
    alive = state.curvature[0].diagonal() > 0
    if bool(alive[: fit.weights].all()) or not math.isfinite(fit.loss):
        return fit
    population, theta = fit.population.restrict(fit.theta, alive[None], [0])
    return Fit(population, theta, fit.loss)


def _removals(fit: Fit, samples: Samples, singles: int) -> list[Tensor]:
    """Sets of weights to keep: without each of the least salient ones, and without growing runs of them.

    The saliency w²/[H⁻¹] is the rise in error that a quadratic model predicts once the others have been
    refitted; unlike the weight's size, it does not change when a unit's scale moves between layers.
    """
    count = fit.weights
    state = normal_equations(fit.population, fit.theta, samples)
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
    samples, scale = samples_of(network, X, y, sample_weight)
    fit = fit_of(network, samples, scale, steps=steps)
    (smaller,) = eliminate_fits([fit], samples, steps=steps, singles=12)
    return network_of(smaller, scale).to(network.readout.raw)
