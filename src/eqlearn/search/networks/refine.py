"""Networks refined: weights fitted to machine precision, and taken out by Optimal Brain Surgeon."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from eqlearn.errors import InvalidArgument, WrongType, counted
from eqlearn.nn.eql import EQL
from eqlearn.nn.rescale import balance_
from eqlearn.numerics import stepwise
from eqlearn.numerics.budget import Deadline, never
from eqlearn.numerics.covariance import errors_from_curvature
from eqlearn.numerics.criteria import EXACT_LOSS
from eqlearn.numerics.stepwise import removals, saliencies
from eqlearn.search.networks.fit import Fit, Samples, levenberg_marquardt, normal_equations, stack, take
from eqlearn.search.networks.population import Population
from eqlearn.validation.options import check_budget, check_single
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


def _check_is_network(network: object) -> None:
    if isinstance(network, EQL):
        return
    inside = isinstance(network, nn.Module) and any(isinstance(part, EQL) for part in network.modules())
    where = "the EQL inside it (such as `model[1]`)" if inside else "an `EQL`"
    raise WrongType(
        f"`network` is a {type(network).__name__}; pass {where}, and as `X` the values that reach it"
    )


def samples_of(network: EQL, X: Any, y: Any, sample_weight: Any = None) -> tuple[Samples, float]:
    """The data as a fit needs them: float64, feature-major, the target divided by its spread."""
    _check_is_network(network)
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


def fit_of(
    network: EQL, samples: Samples, scale: float, *, steps: int, stop: Callable[[], bool] = never
) -> Fit:
    """The network as a fit to the scaled samples, brought to its optimum."""
    # Weights of one size along every chain: else rounding in the large ones hides the small ones' slopes.
    population, theta = Population.of(balance_(deepcopy(network)))
    if int(population.counts[0]) == 0:
        raise InvalidArgument("every weight of the network is pruned; there is nothing to fit")
    theta = torch.where(population.readout(), theta / scale, theta)
    enough = EXACT_LOSS * 1e-10
    theta, loss = levenberg_marquardt(
        population, theta, samples, steps=steps, project=True, enough=enough, patience=1e-12, stop=stop
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
    progress: Callable[[list[Fit]], object] = lambda fits: None,
    stop: Callable[[], bool] = never,
) -> list[Fit]:
    """Eliminates several networks (of one depth and way of joining) together, one batch of trials a round."""

    def smaller(fits: list[Fit]) -> list[list[Fit]]:
        keeps = [_kept(fit, samples, singles) for fit in fits]
        trials = [
            fit.population.restrict(fit.theta, keep[None], [0])
            for fit, every in zip(fits, keeps, strict=True)
            for keep in every
        ]
        if not trials:
            return [[] for _ in fits]
        population, theta = stack([p for p, _ in trials], [t[0] for _, t in trials])
        theta, loss = levenberg_marquardt(
            population, theta, samples, steps=steps, enough=EXACT_LOSS * 1e-4, stop=stop
        )
        found = iter(take(population, theta, loss, row) for row in range(len(trials)))
        return [[next(found) for _ in every] for every in keeps]

    def alive(fit: Fit) -> Fit:
        return _without_dead(fit, samples)

    return stepwise.eliminate(
        [alive(fit) for fit in fits],
        smaller,
        lambda fit: fit.score(samples.rows),
        tidied=alive,
        progress=progress,
        stop=stop,
    )


def _without_dead(fit: Fit, samples: Samples) -> Fit:
    """Drops weights on which the output does not depend."""
    state = normal_equations(fit.population, fit.theta, samples)
    alive = state.curvature[0].diagonal() > 0
    if bool(alive[: fit.weights].all()) or not math.isfinite(fit.loss):
        return fit
    population, theta = fit.population.restrict(fit.theta, alive[None], [0])
    return Fit(population, theta, fit.loss)


def _kept(fit: Fit, samples: Samples, singles: int) -> list[Tensor]:
    """Sets of weights to keep: without each of the least salient ones, and without growing runs of them."""
    count = fit.weights
    if count <= 1:
        return []
    curvature = normal_equations(fit.population, fit.theta, samples).curvature[0, :count, :count]
    order = saliencies(curvature, fit.theta[0, :count]).argsort()
    sets = removals(order, singles=singles, runs=(2, 3, 4, 6, 8, 12, 16, 24, 32))
    keeps = torch.ones(len(sets), count, dtype=torch.bool)
    for row, gone in enumerate(sets):
        keeps[row, gone] = False
    return list(keeps)


def eliminate(
    network: EQL,
    X: Any,
    y: Any,
    *,
    sample_weight: Any = None,
    steps: int = 30,
    seconds: float | None = None,
    progress: Callable[[int, float], object] | None = None,
) -> EQL:
    """The network with every weight removed that the data do not need, refitted; a new network.

    Works on an `EQL` taken out of any model, with any mask; `X` is `(rows, in)` and `y` `(rows,)` or
    `(rows, out)`. A removal stays while an information criterion improves. After `seconds` no more weights
    are tried, and what is left by then is given back; `progress(weights, error)` is called after each round
    with the number of weights left and the mean squared error.
    """
    check_budget(seconds, None)
    stop = never if seconds is None else Deadline(time.time() + seconds)
    samples, scale = samples_of(network, X, y, sample_weight)
    fit = fit_of(network, samples, scale, steps=steps, stop=stop)

    def report(fits: list[Fit]) -> None:
        if progress is not None:
            progress(fits[0].weights, fits[0].loss * scale**2)

    (smaller,) = eliminate_fits([fit], samples, steps=steps, singles=12, progress=report, stop=stop)
    return network_of(smaller, scale).to(network.readout.raw)
