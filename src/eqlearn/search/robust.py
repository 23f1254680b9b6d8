"""Searches in spite of gross outliers: rows that no smooth function agrees with are left out, or count less.

A few values that are wrong by a misprint or a failing sensor outweigh a thousand good ones in least squares,
and hide an exact law altogether. Rows are first judged by a regression that resists them (Tukey's biweight on
columns, logarithms, squares and products); a search without the suspects follows; then all rows are judged
anew by the equation found, until the same rows stay out (the concentration steps of Rousseeuw & Van
Driessen 1999). So a suspect that fits the law is taken back.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement
from typing import Any

import numpy as np

from eqlearn.numerics.criteria import EXACT_ERROR
from eqlearn.search.candidate import Candidate, choose, find_rule
from eqlearn.symbolic.parametric import Formula
from eqlearn.validation.table import Table, read_table

LOSSES = ("squares", "huber", "auto")


@dataclass(frozen=True)
class Resistance:
    """When a row is an outlier, and how often rows are judged anew.

    `far` is in standard deviations, by the median of residuals; `most` is the share of rows that may be left
    out, `bend` where Huber's loss turns from squares to straight lines.
    """

    far: float = 6.0
    most: float = 0.2
    searches: int = 3
    first_share: float = 0.5
    bend: float = 1.345  # 95 % as efficient as least squares in normal noise (Huber 1964)
    iterations: int = 30
    rows_per_term: int = 5


RESISTANCE = Resistance()


def robustly(search: Callable[..., Any], given: Mapping[str, Any]) -> Any:
    """What `search` finds with the arguments `given`, in which `loss` says how outliers are met."""
    loss, options = given["loss"], {**given, "loss": "squares"}
    X, y, sample_weight = (options.pop(name) for name in ("X", "y", "sample_weight"))
    table, names = read_table(X, y, sample_weight, options["variables"])
    options["variables"] = names
    if loss == "huber":
        return _softly(search, table, options)
    return _without_outliers(search, table, options)


def _without_outliers(search: Callable[..., Any], table: Table, options: dict[str, Any]) -> Any:
    began, seconds = time.time(), options["seconds"]
    kept = ~_suspects(table)
    found: Any = None
    started = 0
    for number in range(RESISTANCE.searches):
        if seconds is not None:
            left = seconds - (time.time() - began)
            last = number == RESISTANCE.searches - 1
            options["seconds"] = max(left if last or kept.all() else RESISTANCE.first_share * left, 0.1)
        found = search(table.X[kept], table.y[kept], **_of_rows(options, table, kept))
        started += found.restarts
        options["journal"] = None  # which remembers the rounds of the first search, on other rows
        judged = _near(found.best, table, kept)
        if (judged == kept).all() or found.ended == "interrupted":
            break
        kept = judged
    outliers = tuple(np.flatnonzero(~kept).tolist())
    return replace(found, outliers=outliers, restarts=started, seconds=time.time() - began)


def _of_rows(options: dict[str, Any], table: Table, kept: np.ndarray) -> dict[str, Any]:
    """The options of a search on some of the rows."""
    chosen = dict(options)
    chosen["sample_weight"] = None if table.weight is None else table.weight[kept]
    for name in ("y_error", "x_error"):
        error = options[name]
        if isinstance(error, Mapping):
            chosen[name] = {c: e if np.ndim(e) == 0 else np.asarray(e)[kept] for c, e in error.items()}
        elif error is not None and np.ndim(error) and len(np.asarray(error)) == table.rows:
            chosen[name] = np.asarray(error)[kept]
    return chosen


def _near(candidate: Candidate, table: Table, kept: np.ndarray) -> np.ndarray:
    """Which rows agree with an equation, as far as those it was fitted to do; those, if too few do."""
    near = np.ones(table.rows, dtype=bool)
    for k, equation in enumerate(candidate.equations):
        with np.errstate(all="ignore"):
            left = np.abs(equation(table.X) - table.y[:, k])
        left = np.where(np.isfinite(left), left, np.inf)
        spread = float(table.y[kept, k].std())
        rounding = EXACT_ERROR * np.maximum(spread, np.abs(table.y[:, k]))
        near &= left <= np.maximum(RESISTANCE.far * _deviation(left[kept]), rounding)
    return near if near.mean() >= 1 - RESISTANCE.most else kept


def _deviation(residuals: np.ndarray) -> float:
    """The standard deviation of normal residuals, by the median of their sizes."""
    return 1.4826 * float(np.median(np.abs(residuals)))


def _suspects(table: Table) -> np.ndarray:
    """Rows that a resistant regression finds far off; none, if there are too many to be exceptions."""
    far = np.zeros(table.rows, dtype=bool)
    for y in table.y.T:
        residual = _resistant_residuals(table.X, y)
        far |= np.abs(residual) > RESISTANCE.far * max(_deviation(residual), EXACT_ERROR * float(y.std()))
    return far if far.mean() <= RESISTANCE.most else np.zeros(table.rows, dtype=bool)


def _resistant_residuals(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """What a regression on the basis leaves: first by least absolute values, then by Tukey's biweight."""
    basis = _basis(X, len(y) // RESISTANCE.rows_per_term)
    weight = np.ones(len(y))
    residual: np.ndarray = y - np.median(y)
    for step in range(RESISTANCE.iterations):
        root = np.sqrt(weight)
        factors = np.linalg.lstsq(basis * root[:, None], y * root, rcond=None)[0]
        residual = y - basis @ factors
        size = max(_deviation(residual), EXACT_ERROR * float(np.abs(y).max()), 1e-300)
        share = np.abs(residual) / size
        if step < RESISTANCE.iterations // 2:
            weight = 1 / np.maximum(share, 1e-3)
        else:  # which gives no weight at all to what is more than 4.685 deviations off
            weight = np.maximum(1 - (share / 4.685) ** 2, 0.0) ** 2
    return residual


def _basis(X: np.ndarray, most: int) -> np.ndarray:
    """A constant, standardised columns, then their logarithms, squares, products, inverses and cubes, as far
    as there are rows for them."""
    spread = X.std(axis=0)
    z = ((X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0))[:, spread > 0]
    positive = X[:, (X.min(axis=0) > 0) & (spread > 0)]
    columns = z.shape[1]

    def products(degree: int) -> tuple[int, Iterable[np.ndarray]]:
        every = combinations_with_replacement(range(columns), degree)
        return math.comb(columns + degree - 1, degree), (z[:, list(c)].prod(axis=1) for c in every)

    logarithms, inverses = np.log(positive).T, (np.median(positive, axis=0) / positive).T
    terms: list[np.ndarray] = [np.ones(len(X))]
    groups = [products(1), (len(logarithms), logarithms), products(2), (len(inverses), inverses), products(3)]
    for count, group in [*groups, (columns, z.T**4)]:
        if len(terms) + count > max(most, 1):
            break
        terms.extend(group)
    return np.column_stack(terms)


def _softly(search: Callable[..., Any], table: Table, options: dict[str, Any]) -> Any:
    """A search in which rows count as Huber's loss weighs them: by a resistant regression first, and in the
    end by each equation's own residuals."""
    own = np.ones(table.rows) if table.weight is None else table.weight
    first = np.ones(table.rows)
    for y in table.y.T:
        first = np.minimum(first, _huber(_resistant_residuals(table.X, y), y))
    found = search(table.X, table.y, **{**options, "sample_weight": own * first})
    front = tuple(_refitted(candidate, table, own) for candidate in found.front)
    best = choose(find_rule(options["select"], outside=options["extrapolation"] is not None), front)
    return replace(found, best=best, front=front)


def _huber(residual: np.ndarray, y: np.ndarray) -> np.ndarray:
    size = max(RESISTANCE.bend * _deviation(residual), EXACT_ERROR * float(np.abs(y).max()), 1e-300)
    weights: np.ndarray = size / np.maximum(np.abs(residual), size)
    return weights


def _refitted(candidate: Candidate, table: Table, own: np.ndarray) -> Candidate:
    """The candidate with its constants fitted by Huber's loss, by iterated weights; as it is where they are
    loose or leave the formula's domain."""
    equations, constants = [], []
    for k, equation in enumerate(candidate.equations):
        y = table.y[:, k]
        for _ in range(RESISTANCE.iterations):
            formula = Formula.of(equation)
            fit = formula.fit(table.X, y, own * _huber(y - equation(table.X), y))
            if fit.loose or not np.isfinite(fit.error):
                return candidate
            moved = np.abs(fit.values - formula.constants)
            equation = formula.with_constants(list(fit.values))
            if (moved <= 1e-3 * fit.standard_errors).all():
                break
        equations.append(equation)
        constants.append(fit.constants)
    return replace(candidate, equations=tuple(equations), constants=tuple(constants))
