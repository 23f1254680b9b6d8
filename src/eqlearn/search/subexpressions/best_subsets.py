"""Sums of few out of many simple subexpressions, for laws in noise: the best subsets of each size."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from eqlearn.numerics.budget import never
from eqlearn.numerics.criteria import information_criterion
from eqlearn.numerics.subsets import Places, Regression, sparse_path
from eqlearn.search.ansatz.layout import Ansatz, Sum, Unit
from eqlearn.search.ansatz.target_transform import noisy_transforms
from eqlearn.search.features import Features
from eqlearn.search.problem import Problem
from eqlearn.search.subexpressions.bank import Bank, grown, is_for_banks
from eqlearn.search.subexpressions.bank_settings import SubsetSettings
from eqlearn.search.subexpressions.pairs import in_seen_units, target_values


def subset_ansatzes(problem: Problem, stop: Callable[[], bool] = never) -> list[Ansatz]:
    """The best sums of each size with a constant, those that score best first: of the target and, in values
    that hold noise, of its transforms."""
    if not is_for_banks(problem):
        return []
    settings, y = problem.settings.subsets, target_values(problem, None)
    bank = grown(problem, settings.entries, stop, monomials=settings.monomials, exact=True)
    found = [in_seen_units(Ansatz(None, law), problem) for law in _laws(bank, y, None, problem, stop)]
    if not problem.noisy:
        return found
    units, scale = problem.vocabulary.unary, problem.features.outputs[0]
    for transform, weights in noisy_transforms(units, problem.samples.y, scale, settings.min_rows):
        for law in _laws(bank, transform.target[0].numpy(), weights, problem, stop):
            found.append(Ansatz(None, Sum(units=((Unit(transform.unit, (law,)), transform.amplitude),))))
    return found


def _laws(
    bank: Bank, y: np.ndarray, weights: np.ndarray | None, problem: Problem, stop: Callable[[], bool]
) -> Iterator[Sum]:
    """The best sums of entries for a target whose rows have weights."""
    settings = problem.settings.subsets
    if stop() or not y.std() > 0:
        return
    w = np.ones(len(y)) if weights is None else weights
    means, mean = bank.values @ w**2 / (w @ w), float(y @ w**2 / (w @ w))
    regression = Regression.of((w * (bank.values - means[:, None])).T, w * (y - mean))
    path = sparse_path(regression, settings.max_terms, settings.beam, beside=[()], stop=stop)
    for _, places in _scored(path, len(y), settings):
        coefficients = regression.fitted(places).coefficients
        constant = mean - float(coefficients @ means[list(places)])
        yield _law(bank, places, coefficients, constant, problem.features)


def _scored(path: dict[Places, float], rows: int, settings: SubsetSettings) -> list[tuple[float, Places]]:
    """The best sums of a path by what they leave, how many they are and how simple: an entry costs as much as
    its place among the entries, of which the simplest come first."""
    scored = [
        (
            information_criterion(rows, loss, len(places) + 1, placed=False)
            + sum(math.log(2 + place) for place in places),
            places,
        )
        for places, loss in path.items()
        if places
    ]
    return sorted(scored)[: settings.kept]


def _law(bank: Bank, places: Places, coefficients: np.ndarray, constant: float, features: Features) -> Sum:
    """The sum of these entries, written out; products of columns as the inputs that they are."""
    inputs = {factors: features.behind + k for k, factors in enumerate(features.products)}
    law = Sum(constant=constant)
    for place, coefficient in zip(places, coefficients.tolist(), strict=True):
        product = inputs.get(_factors(bank, bank.places[place]))
        term = bank.term(place) if product is None else Sum(((product, features.size(product)),))
        law = law + term * coefficient
    return law


def _factors(bank: Bank, place: int) -> tuple[int, ...]:
    """The columns whose product an entry is, in order; none if it is anything else."""
    how, args, factor, shift = bank.made[place]
    if how == "column":
        return (args[0],)
    if isinstance(how, str) or how.name not in ("mul", "square") or (factor, shift) != (1.0, 0.0):
        return ()
    parts = [_factors(bank, a) for a in (args if how.name == "mul" else args * 2)]
    return tuple(sorted(sum(parts, ()))) if all(parts) else ()
