"""Stepwise regression: sums of few columns, one shorter than the other, for tables that hold no law."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch

from eqlearn.nn.primitives import lookup
from eqlearn.numerics.budget import never
from eqlearn.numerics.criteria import akaike
from eqlearn.numerics.least_squares import linear_fit
from eqlearn.numerics.stepwise import eliminate, saliencies
from eqlearn.search.ansatz.layout import Sum, layout
from eqlearn.search.features import Features
from eqlearn.search.networks.fit import Fit
from eqlearn.search.networks.population import Population
from eqlearn.search.settings import Reading
from eqlearn.validation.table import Table


def stepwise_sums(
    features: Features, table: Table, reading: Reading, stop: Callable[[], bool] = never
) -> list[Fit]:
    """Least-squares sums of at most `reading.max_terms` columns and a constant that may predict best, the
    shortest first.

    Forward selection goes past that (columns may matter only together), backward elimination comes back.
    None if `stop()` holds.
    """
    if stop():
        return []
    columns = len(features.columns)
    root = np.ones(table.rows) if table.weight is None else np.sqrt(table.weight / table.weight.mean())
    x = features.tensor(table.X)[:columns].numpy().T * root[:, None]
    matrix = np.column_stack([x, root])
    targets = (table.y / features.units).T * root
    highest = min(columns, 2 * reading.max_terms, table.rows // 2 - 1)
    stairs = [_descent(matrix, y, _climb(matrix, y, highest)) for y in targets]
    fits = [
        _fit(features, [stair[min(size, len(stair) - 1)] for stair in stairs], matrix, targets)
        for size in range(1, min(reading.max_terms, max(len(stair) for stair in stairs) - 1) + 1)
    ]
    if not fits:
        return []
    lengths = [akaike(targets.size, f.loss, f.weights) for f in fits]
    near = [f for f, length in zip(fits, lengths, strict=True) if length <= min(lengths) + reading.max_behind]
    return near[: reading.max_sums]


def _climb(matrix: np.ndarray, y: np.ndarray, highest: int) -> list[int]:
    """Columns in the order in which each explains most of what is left; the last column is always in."""
    chosen: list[int] = []
    lengths = (matrix[:, :-1] ** 2).sum(axis=0)
    left, rest = y.copy(), matrix[:, :-1].copy()
    direction = matrix[:, -1] / np.linalg.norm(matrix[:, -1])
    while True:
        left = left - direction * (direction @ left)
        rest = rest - np.outer(direction, direction @ rest)
        if len(chosen) >= highest:
            return chosen
        size = (rest**2).sum(axis=0)
        size[chosen] = 0.0
        gain = np.where(size > 1e-10 * lengths, (rest.T @ left) ** 2 / np.maximum(size, 1e-300), 0.0)
        best = int(gain.argmax())
        if gain[best] <= 0:
            return chosen
        chosen.append(best)
        direction = rest[:, best] / math.sqrt(size[best])


def _descent(matrix: np.ndarray, y: np.ndarray, chosen: list[int]) -> list[list[int]]:
    """Ever smaller sets of columns, each without the one that is missed least; the smallest first."""
    sets = [sorted(chosen)]

    def smaller(models: list[list[int]]) -> list[list[list[int]]]:
        return [[_without_least(matrix, y, used)] if used else [] for used in models]

    def taken(models: list[list[int]]) -> None:
        sets.append(models[0])

    eliminate(sets[:1], smaller, len, progress=taken)  # shorter is better, whatever it explains
    return sorted({len(used): used for used in sets}.values(), key=len)


def _without_least(matrix: np.ndarray, y: np.ndarray, used: list[int]) -> list[int]:
    part = torch.as_tensor(matrix[:, [*used, -1]])
    rise = saliencies(part.mT @ part, linear_fit(part.mT, torch.as_tensor(y)))
    gone = int(rise[:-1].argmin())
    return [column for place, column in enumerate(used) if place != gone]


def _fit(features: Features, chosen: list[list[int]], matrix: np.ndarray, targets: np.ndarray) -> Fit:
    """The network that is the sum of the chosen columns, for each target, with its least-squares weights."""
    readouts, square = [], 0.0
    for used, y in zip(chosen, targets, strict=True):
        part = matrix[:, [*used, -1]]
        weights = np.linalg.lstsq(part, y, rcond=None)[0]
        readouts.append(Sum(tuple(zip(used, weights.tolist(), strict=False)), (), float(weights[-1])))
        square += float(((part @ weights - y) ** 2).sum())
    start = layout(readouts, features.count, lookup("id"))
    return Fit(*Population.started([start.structure], [start.weights]), square / len(matrix))
