"""Equations with a hidden parameter: coefficients that differ from experiment to experiment."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import sympy as sp

from eqlearn.fields.evidence import Standard, best_sums, jackknife
from eqlearn.fields.law import Law, snapped_sum
from eqlearn.fields.settings import FieldSettings
from eqlearn.fields.terms import Names, Term
from eqlearn.fields.weak import Jets, WeakForm
from eqlearn.numerics.criteria import FREE_IN_SQUARES, SAME_PARAMETER, SNAP_ERRORS
from eqlearn.numerics.subsets import Regression, Subset
from eqlearn.symbolic.expressions import fitted, real_symbol
from eqlearn.symbolic.snap import simple_number
from eqlearn.validation.fields import Field


@dataclass(frozen=True, eq=False)
class Moments:
    """Products of columns with each other, in each experiment by itself, `(experiments, columns, columns)`,
    the target last; `noise` is what noise adds to them on average, and `independent` how many rows are."""

    products: np.ndarray
    noise: np.ndarray
    independent: np.ndarray

    @classmethod
    def of(cls, form: WeakForm, terms: Sequence[Term], target: Term) -> Moments:
        """Of terms and a target, as test functions see them."""
        every: list[tuple[np.ndarray, np.ndarray, float]] = []
        for e in range(len(form.field.experiments)):
            field = form.field.only(e)
            own = WeakForm(field, form.windows, form.noise, form.settings, Jets(field, form.jets.half))
            columns = own.columns([*terms, target])
            every.append((columns.T @ columns, own.noise_products([*terms, target]), own.independent))
        products, noise, independent = zip(*every, strict=True)
        return cls(np.stack(products), np.stack(noise), np.array(independent))

    @property
    def count(self) -> int:
        return len(self.products)

    def only(self, rows: np.ndarray) -> Moments:
        """Of some of the experiments."""
        return Moments(self.products[rows], self.noise[rows], self.independent[rows])

    def mapped(self, weights: np.ndarray) -> Moments:
        """Of weighted sums of the columns, `(experiments, columns, sums)`."""
        turned = np.swapaxes(weights, -1, -2)
        return Moments(turned @ self.products @ weights, turned @ self.noise @ weights, self.independent)

    def beside(self, own: Sequence[int], min_signal: float = 0.0) -> Regression:
        """All columns, once those at `own` places, with a coefficient for each experiment, have followed
        them (by Schur's complement)."""
        size = np.sqrt(np.einsum("ekk->k", self.products))
        size = np.where(size > 0, size, 1.0)
        scale = np.outer(size, size)
        whole = _left(self.products / scale, own).sum(axis=0)
        clean = _left((self.products - self.noise) / scale, own).sum(axis=0)
        kept = np.maximum(np.diag(whole), 0.0)
        # What coefficients by experiment make up for is no column of its own.
        apart = kept > FREE_IN_SQUARES
        apart[list(own)] = False
        local = np.append(np.sqrt(np.where(apart, kept, 1.0))[:-1], 1.0)
        mask = np.append(apart[:-1], True)
        whole, clean = (
            np.where(np.outer(mask, mask), m, 0.0) / np.outer(local, local) for m in (whole, clean)
        )
        values, vectors = np.linalg.eigh(whole)
        factor = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
        usable = apart[:-1] & (np.diag(clean)[:-1] > min_signal)
        total = float(self.independent.sum())
        return Regression(factor, local * size, whole - clean, total, np.flatnonzero(usable))

    def own(self, places: Sequence[int], rest: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The coefficients of each experiment at some places, beside those of the `rest` of the columns, zero
        at the places and -1 for the target; and their standard errors."""
        some, clean = list(places), self.products - self.noise
        gram = clean[:, some][:, :, some]
        values = -np.linalg.solve(gram, (clean[:, some] @ rest)[..., None])[..., 0]
        every = np.broadcast_to(rest, (self.count, len(rest))).copy()
        every[:, some] = values
        missed = np.maximum(np.einsum("ei,eij,ej->e", every, self.products, every), 0.0)
        spread = np.einsum("ekk->ek", np.linalg.inv(self.products[:, some][:, :, some]))
        freedom = np.maximum(self.independent - len(some), 1.0)
        return values, np.sqrt(spread * (missed / freedom)[:, None])


def _left(products: np.ndarray, own: Sequence[int]) -> np.ndarray:
    """Products of what is left of columns once those at some places are taken off them."""
    if not len(own):
        return products
    some = list(own)
    inverse = np.linalg.pinv(products[:, some][:, :, some], hermitian=True)
    across = products[:, some]
    return np.asarray(products - np.swapaxes(across, -1, -2) @ inverse @ across)


@dataclass(frozen=True, eq=False)
class Hidden:
    """A law, and the hidden parameters of each experiment, `(experiments, parameters)`, with standard errors;
    `weights` are the terms' coefficients without parameters, then for each parameter, `(1 + parameters,
    terms)`, as the test functions of a `form` see them."""

    law: Law
    values: np.ndarray
    errors: np.ndarray
    terms: tuple[Term, ...]
    target: Term
    weights: np.ndarray
    form: WeakForm

    def read(self, field: Field) -> tuple[np.ndarray, np.ndarray]:
        """The parameters of other experiments, and their standard errors."""
        moments = Moments.of(replace(self.form, field=field), self.terms, self.target)
        count = self.weights.shape[1] + 1
        weights = np.zeros((count, len(self.weights) + 1))
        weights[:-1, :-1] = self.weights.T
        weights[-1, -1] = 1.0
        every = np.broadcast_to(weights, (moments.count, *weights.shape))
        rest = np.append(np.append(1.0, np.zeros(len(self.weights) - 1)), -1.0)
        return moments.mapped(every).own(range(1, len(self.weights)), rest)


def same_parameters(
    values: np.ndarray, errors: np.ndarray, known: np.ndarray
) -> tuple[np.ndarray, np.ndarray] | None:
    """What these values of one parameter are as sums of a number and those `known`, with standard errors;
    none if they are not."""
    along = np.column_stack([np.ones(len(values)), known])
    if len(values) <= along.shape[1] + 1 or not known.size:
        return None
    numbers = np.linalg.lstsq(along, values, rcond=None)[0]
    missed = values - along @ numbers
    if np.sqrt(np.mean(missed**2)) > max(
        SNAP_ERRORS * float(np.median(errors)), SAME_PARAMETER * np.std(values)
    ):
        return None
    spread = np.sqrt(np.diag(np.linalg.inv(along.T @ along)) * np.square(missed).sum() / (len(values) - 2))
    return numbers, spread


Structure = tuple[tuple[int, ...], tuple[int, ...]]  # places with own coefficients, and with common ones


def hidden_law(
    forms: Sequence[WeakForm],
    terms: Sequence[Term],
    target: Term,
    names: Names,
    parameters: Sequence[str],
    settings: FieldSettings,
) -> Hidden | None:
    """The law of one field in which some terms' coefficients are hidden `parameters` of each experiment, or
    in a straight line with them; none if all experiments have the same ones."""
    every = [Moments.of(form, terms, target) for form in forms]
    most = len(parameters) + len(names.axes) - 2  # along each axis of space, as diffusion is
    (own, common), standards = _structure(every, settings, most)
    if not own:
        return None
    tied = [_tied(moments, own, common, len(parameters), settings) for moments in every]
    sure = [float(np.median(t.errors / np.maximum(np.abs(t.values), 1e-300))) for t in tied]
    best = int(np.argmin(sure))
    law, values, errors, weights = tied[best].law(terms, names, parameters[: len(own)], standards[best])
    return Hidden(law, values, errors, tuple(terms), target, weights, forms[best])


def _structure(
    every: Sequence[Moments], settings: FieldSettings, most: int
) -> tuple[Structure, list[Standard]]:
    """Which terms have coefficients of each experiment, and which common ones: the former one by one, as long
    as the score of data, terms and coefficients improves."""
    count, experiments = every[0].products.shape[1] - 1, every[0].count
    few = replace(settings, systematic_rows=settings.systematic_rows * experiments)

    def sums(moments: Moments, own: Sequence[int]) -> tuple[Regression, list[Subset]]:
        beside = moments.beside(own, settings.min_signal)
        return beside, best_sums(beside, settings.free_terms, few)

    standards = []
    for moments in every:
        first = [sums(moments, (k,)) for k in range(count)]
        freest, some = min(first, key=lambda pair: min(one.loss for one in pair[1]))
        standards.append(Standard.of(freest, some, few))

    def at(width: int, own: tuple[int, ...]) -> float:
        _, some = sums(every[width], own)
        return min(map(standards[width].score, some))

    def scored(own: tuple[int, ...]) -> tuple[float, Structure]:
        found = [sums(m, own) for m in every]
        supports = {min(some, key=s.score).places for (_, some), s in zip(found, standards, strict=True)}
        each = [math.log(max(s.observations, 2.0)) for s in standards]
        price = len(own) * sum(0.5 * experiments * nats + math.log(count) for nats in each)
        scores = {
            places: sum(s.score(r.fitted(places)) for (r, _), s in zip(found, standards, strict=True)) + price
            for places in supports
        }
        best = min(scores, key=lambda p: scores[p])
        return scores[best], (own, best)

    best = scored(())
    for size in range(1, most + 1):
        start = best[1][0]
        if len(start) < size - 1:
            break
        tried = [tuple(sorted({*start, k})) for k in range(count) if k not in start]
        first_tried = sorted(tried, key=lambda own: at(len(every) // 2, own))[: settings.parameters_tried]
        best = min([best, *map(scored, first_tried)], key=lambda one: one[0])
    return best[1], standards


@dataclass(frozen=True, eq=False)
class _Tied:
    """Coefficients at one width: of common terms, and of terms that follow the parameters."""

    own: tuple[int, ...]
    common: tuple[int, ...]
    regression: Regression
    numbers: np.ndarray  # of common terms
    number_errors: np.ndarray
    slopes: np.ndarray  # of each own term by each parameter, `(own, parameters)`
    slope_errors: np.ndarray
    values: np.ndarray
    errors: np.ndarray
    loss: float
    noise: float

    def law(
        self, terms: Sequence[Term], names: Names, parameters: Sequence[str], standard: Standard
    ) -> tuple[Law, np.ndarray, np.ndarray, np.ndarray]:
        """The law with simple numbers where they are as likely, the parameters, their standard errors, and
        the weights of a `Hidden`."""
        written = [names.expression(t) for t in terms]
        contents = [written[k][0] for k in self.common]
        numbers, values, constants = snapped_sum(
            self.regression, list(self.common), self.numbers, self.number_errors, contents, True
        )
        expr = sp.Add(*(n * written[k][1] for n, k in zip(numbers, self.common, strict=True)))
        weights = np.zeros((1 + len(parameters), len(terms)))
        weights[0, list(self.common)] = values
        # A parameter is the coefficient of its first term as it is written.
        units = np.array([float(written[k][0]) for k in self.own[: len(parameters)]])
        for (row, column), slope in np.ndenumerate(self.slopes):
            content, rest = written[self.own[row]]
            size = content / units[column]
            number = simple_or_fitted(float(slope * size), float(self.slope_errors[row, column] * abs(size)))
            expr += number * real_symbol(parameters[column]) * rest
            weights[1 + column, self.own[row]] = float(number) / content
        missed = standard.unexplained(self.loss, self.noise)
        law = Law(expr, constants, math.sqrt(self.loss), math.sqrt(self.noise), self.loss, missed)
        return law, self.values * units, self.errors * np.abs(units), weights


def simple_or_fitted(value: float, error: float) -> Any:
    """A coefficient as a simple number, if one is as likely."""
    simple = simple_number(value, error) if value else sp.S.Zero
    return fitted(value) if simple is None or not simple.is_Rational else simple


def _tied(
    moments: Moments, own: Sequence[int], common: tuple[int, ...], count: int, settings: FieldSettings
) -> _Tied:
    """Coefficients where no more than `count` of the `own` ones are free: the first are the parameters, the
    others are in a straight line with them, by Gauss and Newton's method."""
    columns = moments.products.shape[1]
    rest, regression = _common(moments, own, common)
    values, errors = moments.own(own, rest)
    sure = np.median(errors / np.maximum(np.abs(values), 1e-300), axis=0)
    own = tuple(own[k] for k in np.argsort(sure))
    free, tied = own[:count], own[count:]
    slopes, slope_errors = np.eye(len(own), len(free)), np.zeros((len(own), len(free)))
    values = values[:, np.argsort(sure)]
    if tied:
        along = np.column_stack([np.ones(moments.count), values[:, : len(free)]])
        slopes[len(free) :] = np.linalg.lstsq(along, values[:, len(free) :], rcond=None)[0][1:].T
        common = tuple(sorted({*common, *tied}))
    turned, values = moments, values[:, : len(free)]
    for last in (False,) * 8 + (True,):
        turned = moments.mapped(_turned(columns, own, len(free), slopes, values))
        moves = tuple(range(columns - 1, columns - 1 + len(tied) * len(free)))
        places = common if last else (*common, *moves)
        rest, regression = _common(turned, free, places)
        values, errors = turned.own(free, rest)
        if last or not tied:
            break
        slopes[len(free) :] += rest[list(moves)].reshape(len(tied), len(free))
        spread = _errors(turned, free, places, settings)
        slope_errors[len(free) :] = spread[len(common) :].reshape(len(tied), len(free))
        # Straight lines through zero have no further term.
        sure_of = np.abs(rest[list(common)]) > SNAP_ERRORS * spread[: len(common)]
        common = tuple(k for k, fine in zip(common, sure_of, strict=True) if fine or k not in tied)
    best = regression.fitted(common)
    return _Tied(
        own, common, regression, best.coefficients, _errors(turned, free, common, settings), slopes,
        slope_errors, values, errors, best.loss, best.noise,
    )  # fmt: skip


def _turned(
    columns: int, own: Sequence[int], free: int, slopes: np.ndarray, values: np.ndarray
) -> np.ndarray:
    """Weights of columns in what parameters multiply, and of those in which slopes move; the target last."""
    tied = len(own) - free
    weights = np.zeros((len(values), columns, columns + tied * free))
    weights[:, range(columns - 1), range(columns - 1)] = 1.0
    weights[:, columns - 1, -1] = 1.0
    for column in range(free):
        weights[:, own, own[column]] = slopes[:, column]
        for row in range(tied):
            weights[:, own[free + row], columns - 1 + row * free + column] = values[:, column]
    return weights


def _common(moments: Moments, own: Sequence[int], places: Sequence[int]) -> tuple[np.ndarray, Regression]:
    """The coefficients of common columns, -1 for the target."""
    regression = moments.beside(own)
    rest = np.zeros(moments.products.shape[1])
    rest[sorted(places)], rest[-1] = regression.fitted(places).coefficients, -1.0
    return rest, regression


def _errors(
    moments: Moments, own: Sequence[int], places: Sequence[int], settings: FieldSettings
) -> np.ndarray:
    """Standard errors of common coefficients, from leaving out some of the experiments."""
    if not len(places):
        return np.empty(0)
    blocks = np.arange(moments.count) * min(settings.blocks, moments.count) // moments.count
    return jackknife(lambda rows: _common(moments.only(rows), own, places)[0][sorted(places)], blocks)
