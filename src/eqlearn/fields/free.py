"""Terms with a free function: of a field, of a place or of time, first as splines, then as a formula."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import sympy as sp

from eqlearn.dynamics.library import monomials
from eqlearn.fields.evidence import Standard, best_sums
from eqlearn.fields.terms import Names, Order, Term, orders
from eqlearn.fields.weak import WeakForm
from eqlearn.numerics.criteria import FREE_SPLINES, MADE_UP_FOR
from eqlearn.numerics.splines import Splines
from eqlearn.numerics.subsets import Regression, Subset
from eqlearn.symbolic.expressions import real_symbol


@dataclass(frozen=True)
class FreeTerm:
    """A function h of one `variable` in a term: the derivative ∂^order of h(u)·product, or, where the
    variable is an axis, h(x)·∂^order of the product."""

    variable: str
    powers: tuple[int, ...]
    order: Order

    def expression(self, names: Names, function: Any) -> Any:
        """The term with this function, written out."""
        fields = zip(names.fields, self.powers, strict=True)
        carried = sp.Mul(*(real_symbol(n) ** p for n, p in fields))
        if self.variable in names.axes:
            return function * names.expanded(carried, self.order)
        return names.expanded(function * carried, self.order)


def free_terms(names: Names) -> list[FreeTerm]:
    """Reactions h(u) and h(u)*v, fluxes and diffusion h(u)_x and h(u)_xx; sources h(x), potentials h(x)*u,
    coefficients h(x)*u_x and h(x)*u_xx; also of time."""
    count, dimensions = len(names.fields), len(names.axes) - 1
    none, nothing = orders(dimensions, 0)[0], (0,) * count
    single = monomials(count, 1)[1:]
    straight = [o for o in orders(dimensions, 2) if max(o) == sum(o) > 0]
    found = []
    for place, name in enumerate(names.fields):
        found.append(FreeTerm(name, nothing, none))
        found += [FreeTerm(name, p, none) for p in single if not p[place]]
        found += [FreeTerm(name, nothing, o) for o in straight]
    for name in names.axes:
        found.append(FreeTerm(name, nothing, none))
        found += [FreeTerm(name, p, o) for p in single for o in (none, *straight)]
    return found


@dataclass(eq=False)
class FreeFit:
    """A sum of terms beside one free function, as test functions of one width see it."""

    form: WeakForm
    term: FreeTerm
    splines: Splines
    basis: np.ndarray  # integrals of the term with each spline for its function, `(rows, splines)`
    terms: Sequence[Term]
    target: Term

    @cached_property
    def regression(self) -> Regression:
        """The other terms, once the free function has followed them."""
        columns = np.column_stack([self.form.columns(self.terms), self.form.column(self.target)])
        used = self.basis[:, np.linalg.norm(self.basis, axis=0) > 0]
        scale = np.linalg.norm(used, axis=0)
        left, sizes, _ = np.linalg.svd(used / scale, full_matrices=False)
        left = left[:, sizes > FREE_SPLINES * sizes[0]]
        rest = columns - left @ (left.T @ columns)
        noise = self.form.noise_products([*self.terms, self.target])
        whole = np.linalg.norm(columns, axis=0)
        # What the free function makes up for is no term of its own.
        own = np.linalg.norm(rest, axis=0) > MADE_UP_FOR * whole
        rest = rest * np.where(own, 1.0, 0.0)
        made = Regression.of(
            rest[:, :-1], rest[:, -1], noise, self.form.independent, self.form.settings.min_signal
        )
        # The target's size stays that of the whole, so that what is left is comparable.
        share = float(np.linalg.norm(rest[:, -1]) / whole[-1])
        return made if share == 0 else _shrunk(made, share)

    def curve(self, places: Sequence[int], points: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The free function at some points, beside the terms at these places, how uncertain it is there, in
        any unit, and the terms' coefficients."""
        columns = self.form.columns(self.terms)[:, list(places)] if places else np.empty((len(self.basis), 0))
        both = np.column_stack([columns, self.basis])
        scale = np.linalg.norm(both, axis=0)
        scale = np.where(scale > 0, scale, 1.0)
        left, sizes, right = np.linalg.svd(both / scale, full_matrices=False)
        kept = sizes > FREE_SPLINES * sizes[0]
        inverse = right[kept].T / sizes[kept] / scale[:, None]
        weights = inverse @ (left[:, kept].T @ self.form.column(self.target))
        values = self.splines(points).T
        spread = np.linalg.norm(values @ inverse[len(places) :], axis=1)
        return values @ weights[len(places) :], spread, weights[: len(places)]


def _shrunk(made: Regression, share: float) -> Regression:
    sizes = np.append(np.ones(made.count), share)
    noise = None if made.noise is None else made.noise * np.outer(sizes, sizes)
    return replace(made, factor=made.factor * sizes, scales=made.scales / sizes, noise=noise)


def free_column(form: WeakForm, term: FreeTerm, function: Any) -> np.ndarray:
    """The integrals of a free term for a `function(values, order)`, its derivatives by order."""
    parts = [form.product(e, term.powers, ()) for e in range(len(form.field.experiments))]
    if term.variable in form.field.names:
        values = (one[term.variable].astype(np.float64) for one in form.field.experiments)
        return form.integrated([function(v, 0) * p for v, p in zip(values, parts, strict=True)], term.order)
    place = list(form.field.axes).index(term.variable)
    along = form.field.axes[term.variable]
    return form.beside(parts, term.order, place, lambda order: function(along, order))


def bases(form: WeakForm, terms: Sequence[FreeTerm], splines: Splines) -> dict[FreeTerm, np.ndarray]:
    """The integrals of terms with a free function of one variable, with each spline for it; each product is
    made once, and never more than one spline's values are held."""
    variable, experiments = terms[0].variable, form.field.experiments
    found: dict[FreeTerm, list[np.ndarray]] = {term: [] for term in terms}
    groups = {term.powers: [other for other in terms if other.powers == term.powers] for term in terms}
    parts = {p: [form.product(e, p, ()) for e in range(len(experiments))] for p in groups}
    if variable in form.field.names:
        for k in range(splines.count):
            values = [splines.one(e[variable].astype(np.float64), k) for e in experiments]
            for powers, some in groups.items():
                late = form.over_time([v * p for v, p in zip(values, parts[powers], strict=True)], 0)
                for term in some:
                    found[term].append(form.over_space(late, term.order))
    else:
        place = list(form.field.axes).index(variable)
        slopes = [splines(form.field.axes[variable], order) for order in range(3)]
        for powers, some in groups.items():
            late = form.over_time(parts[powers], 0)
            for k, term in itertools.product(range(splines.count), some):
                along = partial(_slope, slopes, k)
                found[term].append(form.beside(parts[powers], term.order, place, along, late))
    return {term: np.stack(columns, axis=1) for term, columns in found.items()}


def _slope(slopes: Sequence[np.ndarray], place: int, order: int) -> np.ndarray:
    return np.asarray(slopes[order][place])


def best_free(
    form: WeakForm,
    terms: Sequence[Term],
    target: Term,
    names: Names,
    most: int,
    known: dict[str, dict[FreeTerm, np.ndarray]],
) -> list[tuple[FreeFit, Subset, Standard]]:
    """Free terms with the best other terms beside them, the best first, by their scores at one width; the
    integrals of each variable's are kept in `known`."""
    found: list[tuple[FreeFit, list[Subset]]] = []
    settings = form.settings
    for variable, alike in itertools.groupby(free_terms(names), key=lambda term: term.variable):
        splines = Splines.over(values_of(form, variable), settings.knots, settings.spline_degree)
        if variable not in known:
            known[variable] = bases(form, list(alike), splines)
        for term, basis in known[variable].items():
            fit = FreeFit(form, term, splines, basis, terms, target)
            found.append((fit, best_sums(fit.regression, most, settings)))
    freest, some = min(found, key=lambda f: min(one.loss for one in f[1]))
    standard = Standard.of(freest.regression, some, settings)
    ranked = [(fit, one, standard) for fit, sums in found for one in sums]
    return sorted(ranked, key=lambda f: standard.score(f[1]))


def values_of(form: WeakForm, variable: str) -> np.ndarray:
    """All values of a field, or those of an axis that test functions see well."""
    if variable in form.field.axes:
        return form.field.axes[variable]
    return np.concatenate([one[variable].ravel() for one in form.field.experiments]).astype(np.float64)
