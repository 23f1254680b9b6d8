"""Sums of terms whose coefficients are functions of a coordinate: chosen as splines, then given formulas."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import sympy as sp
import torch
from torch import Tensor

from eqlearn.errors import NotFinite
from eqlearn.nn.primitives import PrimitivesLike
from eqlearn.numerics.blocks import Blocks, Support
from eqlearn.numerics.budget import Deadline, never
from eqlearn.numerics.covariance import errors_from_slopes
from eqlearn.numerics.criteria import CHANCE_DEVIATIONS, FLOORS, information_criterion
from eqlearn.numerics.least_squares import Rule, SquareRoot, levenberg_marquardt
from eqlearn.numerics.splines import Splines
from eqlearn.search.candidate import structure_cost
from eqlearn.search.groups.views import Axis, CoefficientSettings, View, regression
from eqlearn.search.search import discover
from eqlearn.search.settings import Settings
from eqlearn.symbolic.equation import Equation
from eqlearn.symbolic.expressions import fitted
from eqlearn.symbolic.parametric import Formula
from eqlearn.symbolic.snap import snap_in_turn

# A function of one variable is found by the cheapest strategies, or not at all.
FUNCTIONS = Settings(strategies=("linear", "rational", "pairs", "profiled", "products"), networks=False)
# A curve's errors go together, so that in its table one kind of formula may hide another that fits the data
# better: each is searched for by itself.
KINDS = (
    replace(FUNCTIONS, strategies=("linear", "profiled", "products")),
    replace(FUNCTIONS, strategies=("rational", "pairs")),
)


def choose_terms(
    views: Sequence[View],
    terms: int,
    axis: Axis,
    settings: CoefficientSettings,
    stop: Callable[[], bool] = never,
) -> tuple[CoefficientProblem, CoefficientFit]:
    """Which of so many terms there are and which of their coefficients vary, in the view that determines them
    best, of those that explain the data if any does."""
    found = [_chosen(view, terms, axis, settings, stop) for view in views]
    explained = [(p, f) for p, f in found if not p.unexplained(f)]
    return min(explained or found, key=lambda pair: pair[0].uncertainty(pair[1]))


def _chosen(
    view: View, terms: int, axis: Axis, settings: CoefficientSettings, stop: Callable[[], bool]
) -> tuple[CoefficientProblem, CoefficientFit]:
    """The best sum that one view shows: with more splines, and for the best terms alone, as long as that is
    shorter to tell."""
    places: Sequence[int] = range(terms)
    best: tuple[CoefficientProblem, CoefficientFit] | None = None
    for size in settings.splines:
        splines = axis.splines(size, settings.degree)
        if best is not None and (stop() or view.independent < settings.per_spline * splines.count):
            break
        seen = regression(view, places, axis, splines, settings.min_signal)
        blocks = Blocks(seen, len(places), splines.count, settings.floor**2)
        ranked = blocks.best(settings.max_terms, settings.beam, stop)
        support = tuple((places[k], varies) for k, varies in ranked[0])
        problem = CoefficientProblem(view, axis, tuple(k for k, _ in support), splines, settings)
        fit = problem.start(support)
        if best is not None and fit.score >= best[1].score:
            break
        best = problem, fit
        if not any(varies for _, varies in support):
            break
        places = sorted({places[k] for s in ranked[: settings.shortlist] for k, _ in s})
    assert best is not None
    return best


@dataclass(frozen=True, eq=False)
class Coefficient:
    """The coefficient of one term: a formula in the coordinate, constants among them, or splines."""

    term: int
    formula: Formula | None


@dataclass(frozen=True, eq=False)
class CoefficientFit:
    """Coefficients with `values` of all their numbers, one after the other, and standard errors; the mean
    squared `misfit` relative to the target's, without the noise, and how many nats the whole takes."""

    coefficients: tuple[Coefficient, ...]
    values: np.ndarray
    standard_errors: np.ndarray
    misfit: float
    score: float
    slopes: np.ndarray

    def parts(self, counts: Sequence[int]) -> list[np.ndarray]:
        return np.split(self.values, np.cumsum(counts)[:-1])


@dataclass(frozen=True, eq=False)
class CoefficientProblem:
    """The terms of one sum, as one view sees them: fine splines, in which formulas are written as well."""

    view: View
    axis: Axis
    terms: tuple[int, ...]
    splines: Splines
    settings: CoefficientSettings

    @cached_property
    def fine(self) -> Splines:
        per, degree = self.splines.count, self.settings.degree
        inner = per if self.axis.period is not None else per - degree
        more = max(self.settings.finer, math.ceil(self.settings.min_fine / inner))
        return self.axis.splines(more * inner + (per - inner), degree)

    @cached_property
    def points(self) -> np.ndarray:
        return self.axis.points(4 * self.fine.count)

    @cached_property
    def _factor(self) -> tuple[np.ndarray, np.ndarray, float]:
        """Slopes of the residual by the fine splines of each term, the target, and the noise's part of it."""
        if not self.terms:
            return np.empty((1, 0)), np.ones(1), 0.0
        whole = regression(self.view, self.terms, self.axis, self.fine)
        matrix = whole.corrected * whole.scales / whole.scales[-1]
        noise = 0.0 if whole.noise is None else float(whole.noise[-1, -1])
        return matrix[:, len(self.terms) : -1], matrix[:, -1], noise

    @property
    def noise(self) -> float:
        """The noise's part of the target's square."""
        return self._factor[2]

    def unexplained(self, fit: CoefficientFit) -> bool:
        """Whether a fit misses more than chance, a solver and a grid explain."""
        chance = self.noise * CHANCE_DEVIATIONS * math.sqrt(2 / self.view.independent)
        return fit.misfit > chance + FLOORS * self.settings.floor**2

    def uncertainty(self, fit: CoefficientFit) -> float:
        """How uncertain coefficients are, relative to their sizes, on average."""
        points, counts, found = self.axis.points(40), self.counts(fit.coefficients), []
        for place, one in enumerate(fit.coefficients):
            if one.formula is None:
                curve, errors = self.curve(fit, place, points)
                found.append(float(np.median(errors) / max(np.median(np.abs(curve)), 1e-300)))
            else:
                at = sum(counts[:place])
                found.append(float(fit.standard_errors[at] / max(abs(fit.values[at]), 1e-300)))
        return float(np.mean(found)) if found else math.inf

    @cached_property
    def _from_points(self) -> list[np.ndarray]:
        """Slopes of the residual by the values of each coefficient at `points`."""
        matrix, _, _ = self._factor
        written = np.linalg.pinv(self.fine.design(self.points))
        size = len(written)
        return [matrix[:, k * size : (k + 1) * size] @ written for k in range(len(self.terms))]

    @cached_property
    def _design(self) -> np.ndarray:
        return self.splines.design(self.points)

    def counts(self, some: Sequence[Coefficient]) -> list[int]:
        """How many numbers each coefficient has."""
        return [self.splines.count if c.formula is None else len(c.formula.constants) for c in some]

    def curve(self, fit: CoefficientFit, place: int, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """A coefficient that is splines, at some points, and its standard errors."""
        counts = self.counts(fit.coefficients)
        start = sum(counts[:place])
        design = self.splines.design(points)
        mine = np.linalg.pinv(fit.slopes, rcond=1e-10)[start : start + counts[place]]
        freedom = max(self.view.independent - len(fit.values), 1.0)
        size = math.sqrt((fit.misfit + self.noise) / freedom)
        return design @ fit.parts(counts)[place], size * np.linalg.norm(design @ mine, axis=1)

    def fitted(
        self, some: Sequence[Coefficient], start: np.ndarray, fixed: np.ndarray | None = None, steps: int = 0
    ) -> CoefficientFit:
        """Least squares from `start`, some numbers `fixed`."""
        _, target, noise = self._factor
        if not some:
            return CoefficientFit((), start, start, 1.0, self._score(some, 1.0), np.empty((1, 0)))
        counts, columns = self.counts(some), torch.tensor(self.points[None])
        held = np.zeros(len(start), dtype=bool) if fixed is None else fixed

        def linearise(point: Tensor) -> SquareRoot:
            residual, slopes = -target, []
            parts = np.split(point[0].numpy(), np.cumsum(counts)[:-1])
            for block, one, numbers in zip(self._from_points, some, parts, strict=True):
                if one.formula is None:
                    value, slope = self._design @ numbers, self._design
                else:
                    value, slope = one.formula.linearise(columns, numbers)
                with np.errstate(all="ignore"):  # a formula may have no values at some points
                    residual = residual + block @ np.broadcast_to(value, self.points.shape)
                    slopes.append(block @ slope)
            every = np.nan_to_num(np.column_stack(slopes), posinf=0.0, neginf=0.0)
            return SquareRoot(residual[None], lambda: (every[None], None), 1)

        point, system = levenberg_marquardt(
            linearise, torch.tensor(start)[None], Rule(0 if held.all() else steps or self.settings.steps),
            fixed=torch.from_numpy(held)[None] if held.any() else None,
        )  # fmt: skip
        misfit, free = float(system.loss), np.flatnonzero(~held)
        slopes = system.slopes[0][0]
        errors = np.zeros(len(start))
        freedom = max(self.view.independent - len(free), 1.0)
        errors[free] = errors_from_slopes(slopes[:, free], (misfit + noise) / freedom)
        values = point[0].numpy()
        return CoefficientFit(tuple(some), values, errors, misfit, self._score(some, misfit), slopes)

    def _score(self, some: Sequence[Coefficient], misfit: float) -> float:
        count = max(round(self.view.independent), 2)
        if not math.isfinite(misfit):
            return math.inf
        loss = misfit + self.noise + self.settings.floor**2
        written = sum(structure_cost(c.formula.expr, 1) for c in some if c.formula is not None)
        return information_criterion(count, loss, sum(self.counts(some)), placed=False) + written

    def start(self, support: Support) -> CoefficientFit:
        """The fit with splines for each coefficient that varies, and a number for the others."""
        number = Formula(sp.S(fitted(1.0 + 1e-12)), (self.axis.name,))
        some = [Coefficient(k, None if varies else number) for k, varies in support]
        return self.fitted(some, np.zeros(sum(self.counts(some))), steps=4)

    def with_formulas(
        self, fit: CoefficientFit, primitives: PrimitivesLike, seed: int, end: Deadline
    ) -> CoefficientFit:
        """The fit with a formula for each coefficient that has one, the most certain first."""
        free = [k for k, c in enumerate(fit.coefficients) if c.formula is None]
        points = self.axis.points(self.settings.points)
        certain = {k: np.median(np.divide(*self.curve(fit, k, points)[::-1])) for k in free}
        for place in sorted(free, key=lambda k: abs(certain[k])):
            if end():
                break
            fit = self._with_formula(fit, place, primitives, seed, end)
        return fit

    def _with_formula(
        self, fit: CoefficientFit, place: int, primitives: PrimitivesLike, seed: int, end: Deadline
    ) -> CoefficientFit:
        points = self.axis.points(self.settings.points)
        curve, errors = self.curve(fit, place, points)
        known = errors <= self.settings.max_spread * np.median(errors)
        if np.ptp(curve[known]) == 0 or not np.isfinite(curve).all():
            return fit
        weight = (errors[known].min() / errors[known]) ** 2 if errors[known].min() > 0 else None
        seconds = None if math.isinf(end.at) else max(0.5, (end.at - time.time()) / 4)
        tried = []
        for kind in KINDS:
            found = discover(
                points[known][:, None], curve[known], primitives=primitives, variables=[self.axis.name],
                seconds=seconds, seed=seed, hidden_layers=2, settings=kind, sample_weight=weight,
            )  # fmt: skip
            ranked = sorted(found.front, key=lambda c: c.description_length)[: self.settings.formulas]
            tried += [self._replaced(fit, place, c.equation) for c in ranked]
        return min([fit, *(t for t in tried if t is not None)], key=lambda f: f.score)

    def _replaced(self, fit: CoefficientFit, place: int, law: Equation) -> CoefficientFit | None:
        expr = law.expr if law.constants else law.expr * fitted(1.0 + 1e-12)
        formula = Formula(sp.S(expr), law.variables)
        some = list(fit.coefficients)
        some[place] = replace(some[place], formula=formula)
        parts = fit.parts(self.counts(fit.coefficients))
        parts[place] = formula.constants
        try:
            made = self.fitted(some, np.concatenate(parts))
        except NotFinite:
            return None
        return made if math.isfinite(made.misfit) else None

    def snapped(self, fit: CoefficientFit) -> tuple[CoefficientFit, list[Any]]:
        """The fit with numbers moved to simple ones within their errors, and for each coefficient its
        expression, or nothing where it is splines."""
        count = max(round(self.view.independent), 2)
        base = self.noise + self.settings.floor**2

        def refit(before: CoefficientFit, start: np.ndarray, held: np.ndarray) -> CoefficientFit:
            return self.fitted(before.coefficients, start, held, steps=8)

        def rise(before: CoefficientFit, after: CoefficientFit) -> float:
            return 0.5 * count * math.log((after.misfit + base) / (before.misfit + base))

        formulas = [c.formula is not None for c in fit.coefficients]
        own = np.repeat(formulas, self.counts(fit.coefficients))
        loose = replace(fit, standard_errors=np.where(own, fit.standard_errors, np.inf))
        numbers, final = snap_in_turn(loose, count, refit, rise) if own.any() else (list(fit.values), fit)
        expressions: list[Any] = []
        for one, size in zip(fit.coefficients, self.counts(fit.coefficients), strict=True):
            some, numbers = numbers[:size], numbers[size:]
            plain = [n if isinstance(n, sp.Rational) else fitted(float(n)) for n in some]
            expressions.append(None if one.formula is None else one.formula.filled(plain))
        return final, expressions
