"""Polish: the surviving weights of a network, fitted to machine precision, with standard errors."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from eqlearn.core.balance import balance_
from eqlearn.core.network import EQL
from eqlearn.discovery.least_squares import EXACT, Fit, LeastSquares, levenberg_marquardt, normal_equations
from eqlearn.discovery.population import Population
from eqlearn.discovery.table import read_table
from eqlearn.discovery.uncertainty import errors_from_curvature
from eqlearn.errors import InvalidArgument
from eqlearn.words import counted


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
    problem, scale = problem_of(network, X, y, sample_weight)
    fit = fit_of(network, problem, scale, steps=steps)
    polished = network_of(fit, scale)
    population, theta = Population.of(polished)
    theta = torch.where(population.readout(), theta / scale, theta)
    errors = standard_errors(Fit(population, theta, fit.loss), problem)
    blocks = population.weights(0, errors[None])
    blocks[-1] = blocks[-1] * scale
    return Polished(polished, fit.loss * scale**2, tuple(blocks))


def problem_of(network: EQL, X: Any, y: Any, sample_weight: Any = None) -> tuple[LeastSquares, float]:
    """The data as a fit needs them: float64, feature-major, the target divided by its spread."""
    if network.members is not None:
        raise InvalidArgument("a population can't be polished as one; take a network with `member(i)` first")
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
    return LeastSquares(x, target / scale, weight), scale


def fit_of(network: EQL, problem: LeastSquares, scale: float, *, steps: int) -> Fit:
    """The network as a fit to the scaled problem, brought to its optimum."""
    # Weights of one size along every chain: else rounding in the large ones hides the small ones' slopes.
    population, theta = Population.of(balance_(deepcopy(network)))
    if int(population.counts[0]) == 0:
        raise InvalidArgument("every weight of the network is pruned; there is nothing to fit")
    theta = torch.where(population.readout(), theta / scale, theta)
    theta, loss = levenberg_marquardt(
        population, theta, problem, steps=steps, project=True, enough=EXACT * 1e-10, patience=1e-12
    )
    return Fit(population, theta, float(loss[0]))


def network_of(fit: Fit, scale: float) -> EQL:
    """The fitted network in the target's own units, its weights of one size, fit for training on."""
    theta = torch.where(fit.population.readout(), fit.theta * scale, fit.theta)
    return balance_(fit.population.network(0, theta))


def standard_errors(fit: Fit, problem: LeastSquares) -> Tensor:
    """One per active weight, from s²(JᵀJ)⁻¹; infinite along directions the data leave free."""
    count = fit.weights
    curvature = (
        normal_equations(fit.population, fit.theta, problem).curvature[0, :count, :count] * problem.rows
    )
    observations = problem.rows * problem.y.shape[0]
    variance = fit.loss * problem.rows / max(1, observations - count)
    return torch.as_tensor(errors_from_curvature(curvature.numpy(), variance))
