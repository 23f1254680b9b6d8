"""The strong form of a field's equations: every term at points, with derivatives taken there."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from eqlearn.fields.law import Law
from eqlearn.fields.settings import FieldSettings
from eqlearn.fields.terms import Names, Term, orders
from eqlearn.fields.weak import Jets
from eqlearn.nn.primitives import PrimitivesLike
from eqlearn.numerics.criteria import EXACT_WEAK
from eqlearn.search.search import discover
from eqlearn.symbolic.parametric import Formula
from eqlearn.validation.fields import Field


@dataclass(eq=False)
class StrongForm:
    """Terms of a field's equations at some of its points, away from ends that are no seam."""

    field: Field
    settings: FieldSettings
    jets: Jets
    seed: int

    def __post_init__(self) -> None:
        self.names = Names(self.field.names, tuple(self.field.axes))
        inside = [
            np.arange(n) if axis in self.field.periodic else np.arange(n // 10 + 1, n - n // 10 - 1)
            for axis, n in zip(self.field.axes, self.field.shape, strict=True)
        ]
        grid = np.stack([g.ravel() for g in np.meshgrid(*inside, indexing="ij")])
        finite = np.ones(grid.shape[1], dtype=bool)
        for one in self.field.experiments:
            for values in one.values():
                finite &= np.isfinite(values[tuple(grid)])
        places = np.flatnonzero(finite)
        generator = np.random.default_rng(self.seed)
        count = min(len(places), self.settings.max_rows // len(self.field.experiments))
        self.points = grid[:, np.sort(generator.choice(places, count, replace=False))]
        self._known: dict[str, np.ndarray] = {}

    @property
    def independent(self) -> float:
        return max(
            float(self.points.shape[1]) * len(self.field.experiments) / self.settings.shared_points, 2.0
        )

    def variable(self, name: str) -> np.ndarray:
        """A field, a derivative or a coordinate at all points of all experiments."""
        if name not in self._known:
            jet = self.names.read(name)
            if jet is None:
                place = list(self.field.axes).index(name)
                one = self.field.axes[name][self.points[place]]
                self._known[name] = np.concatenate([one for _ in self.field.experiments])
            else:
                every = range(len(self.field.experiments))
                self._known[name] = np.concatenate([self.jets(e, jet)[tuple(self.points)] for e in every])
        return self._known[name]

    def column(self, term: Term) -> np.ndarray:
        content, expr = self.names.expression(term)
        variables = sorted(s.name for s in expr.free_symbols)
        if not variables:
            return np.full(self.points.shape[1] * len(self.field.experiments), float(content * expr))
        formula = Formula(expr, tuple(variables))
        return content * np.asarray(formula(np.stack([self.variable(v) for v in variables])))

    def columns(self, terms: Sequence[Term]) -> np.ndarray:
        return np.stack([self.column(t) for t in terms], axis=1)

    def noise_products(self, terms: Sequence[Term]) -> np.ndarray:
        return np.zeros((len(terms), len(terms)))

    def blocks(self) -> np.ndarray:
        """The part of time that each row belongs to."""
        parts = self.points[-1] * self.settings.blocks // self.field.shape[-1]
        return np.concatenate([parts for _ in self.field.experiments])


def table_law(
    form: StrongForm, target: Term, before: Law, *, primitives: PrimitivesLike, seconds: float, seed: int
) -> Law | None:
    """A law of any form in fields, derivatives and coordinates, by a search in their table at points; none if
    it misses as much as the one `before`."""
    fields, dimensions = len(form.names.fields), len(form.names.axes) - 1
    most = 3 if dimensions == 1 and fields == 1 else 2
    names = [form.names.jet(k, o) for k in range(fields) for o in orders(dimensions, most)]
    names += [axis for axis in form.names.axes if axis not in form.field.periodic]
    table, values = np.stack([form.variable(n) for n in names], axis=1), form.column(target)
    found = discover(
        table, values, primitives=primitives, variables=names, seconds=seconds, seed=seed, hidden_layers=2
    )
    best = found.best
    missed = best.equation(table) - values
    error = float(np.sqrt(np.mean(missed**2) / np.mean(values**2)))
    if not error < form.settings.table_gain * before.error:
        return None
    constants = best.constants[0] if best.constants else ()
    price = 0.5 * form.settings.systematic_rows * math.log(max(error / before.error, EXACT_WEAK))
    return Law(
        best.equation.expr, constants, error, 0.0, before.score + price, error > form.settings.table_error
    )
