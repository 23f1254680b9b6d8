"""Structures compared on all groups at once, every constant free in every group."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import sympy as sp
import torch

from eqlearn.errors import NotFinite
from eqlearn.numerics.budget import never
from eqlearn.numerics.criteria import CREDIBLE, EXACT_ERROR
from eqlearn.search.groups.group_fit import GroupFit, fit_from_many
from eqlearn.search.groups.group_settings import GroupSettings
from eqlearn.search.groups.rows import GroupedRows
from eqlearn.search.groups.structure import Structure, freed, parametrisations
from eqlearn.symbolic.equation import Equation
from eqlearn.symbolic.expressions import complexity


@dataclass(eq=False)
class Ranking:
    """The structures seen so far, each fitted in every group, by their key."""

    rows: GroupedRows
    settings: GroupSettings
    stop: Callable[[], bool] = never
    fits: dict[Any, tuple[Structure, GroupFit]] = field(default_factory=dict)
    _seen: set[Any] = field(default_factory=set)

    def add(self, equations: Iterable[Equation]) -> None:
        """Takes up the structures of these equations, and those with their exponents free."""
        for equation in equations:
            for positive in (None, self._positive(equation)):
                structure = freed(equation, positive)
                if structure.key not in self._seen and not self.stop():
                    self._seen.add(structure.key)
                    self._fit(structure)

    def _positive(self, equation: Equation) -> Callable[[sp.Expr], bool]:
        X = self.rows.columns.T.numpy()
        return lambda part: bool((Equation(part, equation.variables)(X) > 0).all())

    def _fit(self, structure: Structure) -> None:
        try:
            first = next(parametrisations(structure, self.rows.columns[:, : _some(self.rows)], 1))
            count = len(first.parameters)
            room = CREDIBLE * int(self.rows.sizes.min())
            if not 0 < count <= min(self.settings.max_parameters, room):
                return
            settings = self.settings
            fit = fit_from_many(
                first, self.rows, first.start, settings.factors, steps=settings.steps, stop=self.stop
            )
        except NotFinite:
            return
        if math.isfinite(fit.cost):
            self.fits[structure.key] = (structure, fit)

    @property
    def best(self) -> float:
        """The least nats of any structure."""
        return min((total(fit) for _, fit in self.fits.values()), default=math.inf)

    @property
    def exact(self) -> bool:
        """Whether a structure fits all groups to rounding."""
        return any(fit.error < EXACT_ERROR for _, fit in self.fits.values())

    def finalists(self) -> list[tuple[Structure, GroupFit]]:
        """The best structures, with rows weighted by the noise that the very best has in each group."""
        if not self.fits:
            return []
        _, best = min(self.fits.values(), key=lambda item: total(item[1]))
        rows = self.rows.with_noise(noise_by_group(best))
        # Weighted by group, so that each group's own fit stays the best.
        again = [(structure, fit.at(fit.values, rows)) for structure, fit in self.fits.values()]
        ranked = sorted(again, key=lambda item: total(item[1]))
        near = total(ranked[0][1]) + self.settings.max_behind * rows.count
        return [item for item in ranked[: self.settings.finalists] if total(item[1]) <= near]


def total(fit: GroupFit) -> float:
    """Nats for data, constants and the formula they stand in."""
    expr = fit.structure.expr
    functions = {node.func for node in sp.preorder_traversal(expr) if node.args}
    symbols = len(functions) + len(fit.structure.variables) + 1
    return fit.cost + complexity(expr) * math.log(symbols)


def _some(rows: GroupedRows) -> int:
    """How many of the first rows are enough to see which slopes are independent."""
    return min(rows.rows, max(50, int(rows.sizes[0])))


def noise_by_group(fit: GroupFit) -> torch.Tensor:
    """The noise of each group, by whichever description is shortest: the same for all, in proportion to the
    spread of the target in the group, or each group's own."""
    rows, sizes = fit.rows, fit.rows.sizes.double()
    equal = torch.ones(rows.count, dtype=torch.float64)
    if fit.error < EXACT_ERROR:
        return equal
    square = fit.system.square
    own = (square / sizes.clamp(min=1)).sqrt().clamp(min=EXACT_ERROR * rows.spread)
    lengths = []
    for noise, price in ((equal, 0.0), (rows.spreads, math.log(2)), (own, 0.5 * float(sizes.log().sum()))):
        mean = (square / noise.square()).sum() / rows.rows
        length = 0.5 * rows.rows * math.log(float(mean)) + float((sizes * noise.log()).sum())
        lengths.append((length + price, noise))
    return min(lengths, key=lambda item: item[0])[1]
