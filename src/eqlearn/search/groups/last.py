"""The last fit, to all rows of all groups, and the candidates that come of it."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from eqlearn.errors import InvalidArgument, WrongType, counted
from eqlearn.numerics.criteria import EXACT_ERROR
from eqlearn.search.candidate import Candidate
from eqlearn.search.groups.draft import Draft, refitted, structure_of
from eqlearn.search.groups.group_fit import GroupFit, Prior, fit_from_many, fit_own
from eqlearn.search.groups.group_settings import GroupSettings
from eqlearn.search.groups.rank import noise_by_group
from eqlearn.search.groups.rows import GroupedRows
from eqlearn.symbolic.varying import Varying
from eqlearn.validation.groups import Groups
from eqlearn.validation.table import columns_of, read_table

# More rows are fitted with the best equation only.
_MOST_ROWS = 50_000
# A group whose mean squared error is so many times the middle one's is fitted again from other starts.
_ASTRAY = 9.0


def measured(
    drafts: Sequence[Draft],
    rows: GroupedRows,
    groups: Groups,
    settings: GroupSettings,
    parameter: str | None = None,
) -> list[Candidate]:
    """The candidates of these drafts, the shortest first, with their constants fitted to all rows; groups of
    too few rows for their own constants take what they lack from the population of the others."""
    kept = drafts if rows.rows <= _MOST_ROWS else drafts[:1]
    noise: Tensor | None = None
    candidates = []
    if len(small := few_rows(rows, len(drafts[0].names))):
        _warn_of(small, groups, len(drafts[0].names))
    for d in kept:
        large = torch.nonzero(rows.sizes > len(d.names))[:, 0]
        enough = rows if len(large) == rows.count else rows.of_groups(large)
        start = starts(d, enough, settings)
        if noise is None:
            noise = torch.full((rows.count,), math.nan, dtype=torch.float64)
            noise[large] = noise_by_group(start)
            noise = torch.where(noise.isnan(), noise[large].median(), noise)
        weighted = enough.with_noise(noise[large])
        own = {name: start.values[:, k] for k, name in enumerate(d.names)}
        columns = d.fit.structure.variables
        final = refitted(d.equation, columns, groups.name, own, weighted, settings)
        varying = _varying(final, rows, large, groups, noise, parameter)
        candidates.append(_candidate(final, rows, varying))
    return candidates


def starts(d: Draft, rows: GroupedRows, settings: GroupSettings) -> GroupFit:
    """The varying constants of each group with the common ones as they are; from the middle of the groups
    already known, and where that leads astray from others."""
    count = len(d.equation.constants)
    fixed = {i: float(d.fit.values[0, i]) for i in range(count)}
    alone = d.fit.structure.fixed(fixed)
    middle = d.fit.values[:, count:].median(dim=0).values
    if not len(middle):
        return fit_own(alone, rows, torch.empty(rows.count, 0, dtype=torch.float64), steps=0)
    fit = fit_own(alone, rows, middle.expand(rows.count, -1).clone(), steps=settings.steps)
    mean = fit.system.square / rows.sizes.clamp(min=1)
    floor = (EXACT_ERROR * rows.spread) ** 2
    astray = torch.nonzero(~(mean <= _ASTRAY * mean.nanmedian().clamp(min=floor)))[:, 0]
    if not len(astray):
        return fit
    again = fit_from_many(
        alone, rows.of_groups(astray), middle.numpy(), settings.factors, steps=settings.steps
    )
    better = again.system.square < fit.system.square[astray].nan_to_num(nan=torch.inf)
    values = fit.values.clone()
    values[astray[better]] = again.values[better]
    return fit_own(alone, rows, values, steps=0)


def _candidate(d: Draft, rows: GroupedRows, varying: Varying | None) -> Candidate:
    X = [*rows.columns.numpy(), *(() if varying is None else varying.values[rows.codes.numpy()].T)]
    residual = d.equation(np.stack(X, axis=1)) - rows.y.numpy()
    with np.errstate(all="ignore"):
        error = float(np.sqrt(np.mean(residual**2))) / rows.spread
    return Candidate(
        equations=(d.equation,), training_error=error if math.isfinite(error) else math.inf,
        description_length=d.length, exact=error < EXACT_ERROR, constants=(d.constants,), method="groups",
        varying=varying,
    )  # fmt: skip


def _varying(
    d: Draft, rows: GroupedRows, large: Tensor, groups: Groups, noise: Tensor, parameter: str | None
) -> Varying | None:
    """The table of the constants that vary, of all groups."""
    if not d.names:
        return None
    count = len(d.equation.constants)
    known, uncertain = d.fit.values[:, count:], d.fit.errors[:, count:]
    population = population_of(known, uncertain)
    values = torch.empty(rows.count, len(d.names), dtype=torch.float64)
    errors = torch.empty_like(values)
    values[large], errors[large] = known, uncertain
    small = few_rows(rows, len(d.names))
    if len(small):
        shares = rows.sizes[large] / rows.sizes[large].sum()
        relative = torch.exp((shares * noise[large].log()).sum()) / noise[small]
        values[small], errors[small] = from_population(
            d.fit, count, rows.of_groups(small), relative, population
        )
    at = None
    if parameter is not None:
        column = rows.columns[d.fit.structure.variables.index(parameter)]
        at = (rows.summed(column) / rows.sizes).numpy()
    return Varying(
        groups.name, groups.labels, d.names, values.numpy(), errors.numpy(), population,
        math.sqrt(d.fit.variance), parameter, at,
    )  # fmt: skip


def few_rows(rows: GroupedRows, constants: int) -> Tensor:
    """The groups that have no more rows than constants of their own."""
    return torch.nonzero(rows.sizes <= constants)[:, 0]


def _warn_of(small: Tensor, groups: Groups, constants: int) -> None:
    labels = ", ".join(repr(groups.labels[i]) for i in small[:3].tolist())
    warnings.warn(
        f"{counted(len(small), 'group')} of too few rows for {counted(constants, 'constant')} of their own "
        f"({labels}{', ...' if len(small) > 3 else ''}): what their rows leave open is taken from the "
        "population of the others",
        stacklevel=2,
    )


def population_of(values: Tensor, errors: Tensor) -> np.ndarray:
    """The mean and the spread of constants over groups, `(2, constants)`, groups weighted alike; their errors
    are taken off the spread."""
    mean = values.mean(dim=0)
    usable = torch.where(torch.isfinite(errors), errors, 0.0)
    square = values.var(dim=0, correction=min(1, len(values) - 1)) - usable.square().mean(dim=0)
    least = 1e-12 * mean.abs() + 1e-300
    return torch.stack([mean, torch.maximum(square.clamp(min=0.0).sqrt(), least)]).numpy()


def from_population(
    fit: GroupFit, common: int, rows: GroupedRows, relative: Tensor, population: np.ndarray
) -> tuple[Tensor, Tensor]:
    """The varying constants of groups of few rows and their standard errors: their rows and the population
    together (the mode of the posterior). `relative` is what their residuals are multiplied by."""
    fixed = {i: float(fit.values[0, i]) for i in range(common)}
    mean, spread = (torch.from_numpy(row) for row in population)
    prior = Prior(mean, fit.variance / spread.square())
    start = mean.expand(rows.count, -1).clone()
    # Residuals are relative to the noise of a row on average, as they were in the fit.
    weighted = replace(rows, root=rows.root * relative[rows.codes])
    found = fit_own(fit.structure.fixed(fixed), weighted, start, steps=40, prior=prior)
    return found.values, found.system.errors(fit.variance)


def adapted(candidate: Candidate, new_group: Any) -> Candidate:
    """The candidate with the constants of one new group, called 0, fitted to its rows `(X, y)`; what the rows
    leave open is taken from the population of the groups that were fitted."""
    varying, equation = candidate.varying, candidate.equation
    if varying is None:
        raise InvalidArgument("no constant of the equation varies, so there is nothing to fit to `new_group`")
    if not (isinstance(new_group, tuple | list) and len(new_group) == 2):
        raise WrongType("`new_group` must be a pair `(X, y)` of rows of one group that was not fitted")
    columns = equation.variables[: -len(varying.names)]
    X, _ = columns_of(new_group[0], columns)
    table, _ = read_table(np.stack(X, axis=1), new_group[1], None, columns)
    rows = GroupedRows.of(table, Groups(varying.group, (0,), np.zeros(table.rows, dtype=np.int64)))
    alone = structure_of(equation, len(columns)).fixed(dict(enumerate(equation.constants)))
    mean, spread = (torch.from_numpy(row) for row in varying.population)
    prior = Prior(mean, varying.noise**2 / spread.square())
    settings = GroupSettings()
    fit = fit_from_many(alone, rows, mean.numpy(), settings.factors, steps=settings.steps, prior=prior)
    errors = fit.system.errors(varying.noise**2)
    new = replace(varying, labels=(0,), values=fit.values.numpy(), standard_errors=errors.numpy())
    return replace(candidate, varying=new)
