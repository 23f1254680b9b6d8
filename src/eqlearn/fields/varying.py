"""Equations whose coefficients vary along one axis, in space or in time: their terms' integrals and laws."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import sympy as sp

from eqlearn.fields.law import Law
from eqlearn.fields.settings import FieldSettings
from eqlearn.fields.terms import Names, Term
from eqlearn.fields.weak import WeakForm, weak_forms
from eqlearn.nn.primitives import PrimitivesLike
from eqlearn.numerics.budget import Deadline
from eqlearn.numerics.splines import Splines
from eqlearn.search.groups.coefficients import CoefficientFit, CoefficientProblem, choose_terms
from eqlearn.search.groups.views import Axis, CoefficientSettings
from eqlearn.symbolic.expressions import real_symbol
from eqlearn.symbolic.parametric import Constant
from eqlearn.symbolic.varying import Varying, varying_name
from eqlearn.validation.fields import Field


@dataclass(frozen=True, eq=False)
class VaryingView:
    """Terms and the `goal`, integrated over test functions, with functions of the axis at `place` for
    coefficients."""

    form: WeakForm
    every: Sequence[Term]
    goal: Term
    place: int

    @property
    def independent(self) -> float:
        return self.form.independent

    @property
    def target(self) -> np.ndarray:
        return self.form.column(self.goal)

    def blocks(self, terms: Sequence[int], splines: Splines) -> np.ndarray:
        return varying_columns(self.form, [self.every[k] for k in terms], self.place, splines)

    def noise(self, terms: Sequence[int]) -> np.ndarray | None:
        """From covariances of products along the axis, and what test functions weight them by there."""
        form, some = self.form, [*(self.every[k] for k in terms), self.goal]
        window, count = form.windows[self.place], len(form.field.axes[tuple(form.field.axes)[self.place]])
        found = np.zeros((count, len(some), len(some)))
        if not any(form.noise) or any(t.factors for t in some):
            return None
        along = self._covariances(tuple(dict.fromkeys(t.powers for t in some)))
        share = float(form.keep.mean())
        for i, first in enumerate(some):
            for j, second in enumerate(some):
                size = share
                for other, one in enumerate(form.windows):
                    if other != self.place:
                        weights = one.weights(first.order[other]) * one.weights(second.order[other])
                        size *= float(weights.sum())
                here = window.weights(first.order[self.place]) * window.weights(second.order[self.place])
                found[:, i, j] = size * here.sum(axis=0) * along[first.powers, second.powers]
        return found

    def _covariances(self, powers: Sequence[tuple[int, ...]]) -> dict[Any, np.ndarray]:
        """The covariance that noise gives to two products at the same point, along the axis, for all
        experiments together."""
        found: dict[Any, np.ndarray] = {}
        others = tuple(k for k in range(len(self.form.field.axes)) if k != self.place)
        for experiment in range(len(self.form.field.experiments)):
            each = {p: self.form.product(experiment, p, ()) for p in powers}
            for p in powers:
                for q in powers:
                    both = self.form.product(experiment, tuple(np.add(p, q).tolist()), ())
                    mean = np.nanmean(each[p] * each[q] - both, axis=others)
                    found[p, q] = found.get((p, q), 0.0) + mean
        return found


def varying_columns(form: WeakForm, terms: Sequence[Term], place: int, splines: Splines) -> np.ndarray:
    """The integrals of terms with each spline in the axis at this place for their coefficient, by parts,
    `(rows, terms·splines)`."""
    window, along = form.windows[place], form.field.axes[tuple(form.field.axes)[place]]
    designs = [splines.design(along, k) for k in range(max((t.order[place] for t in terms), default=0) + 1)]
    weights: dict[int, np.ndarray] = {}
    found = []
    for term in terms:
        order = term.order[place]
        if order not in weights:
            # Derivatives of test functions times splines (Leibniz).
            parts = (
                math.comb(order, k) * (-1) ** k * window.weights(order - k)[:, :, None] * designs[k][None]
                for k in range(order + 1)
            )
            weights[order] = np.sum(list(parts), axis=0)
        rows = []
        for experiment in range(len(form.field.experiments)):
            values = np.nan_to_num(form.product(experiment, term.powers, term.factors))
            values = np.broadcast_to(values, form.field.shape)
            for other, one in enumerate(form.windows):
                if other != place:
                    values = np.tensordot(one.weights(term.order[other]), values, axes=(1, other))
                    values = np.moveaxis(values, 0, other)
            both = np.tensordot(np.moveaxis(values, place, -1), weights[order], axes=(-1, 1))
            rows.append(np.moveaxis(both, -2, place).reshape(-1, splines.count))
        found.append(np.concatenate(rows)[form.keep])
    return np.concatenate(found, axis=1)


@dataclass(frozen=True, eq=False)
class VaryingTask:
    """What a search for coefficients that vary is given: views of several widths, in which terms and goals
    are integrated."""

    axis: Axis
    place: int
    forms: Sequence[WeakForm]
    names: Names
    settings: CoefficientSettings
    primitives: PrimitivesLike
    seed: int
    end: Deadline

    @classmethod
    def of(
        cls, field: Field, axis: str, order: int, highest: int, noise: Sequence[float], names: Names,
        settings: FieldSettings, primitives: PrimitivesLike, seed: int, end: Deadline,
    ) -> VaryingTask:  # fmt: skip
        """With test functions that are narrower than for numbers: a coefficient may change faster than the
        fields do."""
        more = replace(settings, widths=settings.varying_widths, max_rows=settings.varying_rows)
        forms = weak_forms(field, order, highest, noise, more)
        distinct = {tuple(w.half for w in form.windows): form for form in forms}
        period = field.length(axis) if axis in field.periodic else None
        return cls(
            Axis(axis, field.axes[axis], period), tuple(field.axes).index(axis), list(distinct.values()),
            names, CoefficientSettings(), primitives, seed, end,
        )  # fmt: skip

    def law(self, terms: Sequence[Term], goal: Term, given: int) -> tuple[Law, Varying | None]:
        """The law of one field, and a table of those of its coefficients that have no formula, whose names
        count on from `given`."""
        views = [VaryingView(form, terms, goal, self.place) for form in self.forms]
        problem, fit = choose_terms(views, len(terms), self.axis, self.settings, self.end)
        fit = problem.with_formulas(fit, self.primitives, self.seed, self.end)
        fit, expressions = problem.snapped(fit)
        return self._written(problem, fit, expressions, [terms[k] for k in problem.terms], given)

    def _written(
        self, problem: CoefficientProblem, fit: CoefficientFit, expressions: Sequence[Any],
        terms: Sequence[Term], given: int,
    ) -> tuple[Law, Varying | None]:  # fmt: skip
        parts: list[Any] = []
        tables: list[tuple[str, np.ndarray, np.ndarray]] = []
        constants: list[Constant] = []
        counts = problem.counts(fit.coefficients)
        for place, (term, expr) in enumerate(zip(terms, expressions, strict=True)):
            content, rest = self.names.expression(term)
            if expr is None:
                name = varying_name(given + len(tables), self.axis.name)
                curve, errors = problem.curve(fit, place, self.axis.values)
                tables.append((name, content * curve, abs(content) * errors))
                parts.append(real_symbol(name) * rest)
                continue
            parts.append(sp.expand(content * expr) * rest if expr.is_number else content * expr * rest)
            first = sum(counts[:place])
            mine = slice(first, first + counts[place])
            pairs = zip(fit.values[mine], fit.standard_errors[mine], strict=True)
            constants += [Constant(abs(float(v)) * content, float(e) * content) for v, e in pairs]
        floor, noise = self.settings.floor**2, problem.noise
        missed = fit.misfit > 4 * (noise + floor)
        law = Law(
            sp.Add(*parts),
            tuple(constants),
            math.sqrt(fit.misfit + noise),
            math.sqrt(noise),
            fit.score,
            missed,
        )
        return law, _table(self.axis, tables) if tables else None


def _table(axis: Axis, tables: Sequence[tuple[str, np.ndarray, np.ndarray]]) -> Varying:
    names, curves, errors = zip(*tables, strict=True)
    values = np.stack(curves, axis=1)
    population = np.stack([values.mean(axis=0), values.std(axis=0)])
    return Varying(
        axis.name, tuple(axis.values.tolist()), tuple(names), values, np.stack(errors, axis=1), population,
        0.0, axis.name, axis.values,
    )  # fmt: skip


def joined(tables: Sequence[Varying]) -> Varying | None:
    """The tables of several laws, over the same axis, as one."""
    if not tables:
        return None
    names = tuple(name for table in tables for name in table.names)
    values, errors, population = (
        np.concatenate([getattr(table, part) for table in tables], axis=1)
        for part in ("values", "standard_errors", "population")
    )
    return replace(tables[0], names=names, values=values, standard_errors=errors, population=population)
