"""Candidates for equations of motion: sparse sums of library terms, fitted in the weak form."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import sympy as sp
from scipy.optimize import minimize_scalar

from eqlearn.dynamics.library import Atom, Term, columns, library
from eqlearn.dynamics.settings import MOTION, MotionSettings
from eqlearn.dynamics.supports import Regression, Support, sparse_path
from eqlearn.dynamics.weak import WeakForm
from eqlearn.numerics.budget import never
from eqlearn.numerics.criteria import WEAK_ROUNDING, information_criterion
from eqlearn.symbolic.equation import Equation
from eqlearn.symbolic.expressions import fitted, real_symbol


@dataclass(frozen=True)
class SumOfTerms:
    """A sum of library terms, what it leaves of the target, and how many nats it takes in all."""

    terms: tuple[Term, ...]
    factors: tuple[float, ...]
    loss: float
    score: float

    def equation(self, variables: Sequence[str]) -> Equation:
        symbols = [real_symbol(name) for name in variables]
        parts = (
            sp.Mul(fitted(f), t.expression(symbols)) for f, t in zip(self.factors, self.terms, strict=True)
        )
        return Equation(sp.Add(*parts), variables)


class TermSearch:
    """Looks for sums of terms in the states `(rows, variables)`, which are those of all states' weak forms.

    The terms are monomials up to a `degree`, and what the `allowed` primitives make of the states.
    """

    def __init__(
        self, states: np.ndarray, allowed: frozenset[str], degree: int, settings: MotionSettings = MOTION
    ) -> None:
        self.states, self.settings = states, settings
        self.terms = library(states, allowed, degree, settings)
        self.columns = columns(self.terms, states)

    def candidates(self, weak: WeakForm, stop: Callable[[], bool] = never) -> list[SumOfTerms]:
        """The most promising sums, the best first, and the best of each number of terms."""
        regression = Regression(weak.tests @ self.columns, weak.target)
        tiers: dict[int, list[int]] = {}
        for place, term in enumerate(self.terms):
            if not term.atoms:
                tiers.setdefault(sum(term.powers), []).append(place)
        starts = [[p for d in range(degree + 1) for p in tiers[d]] for degree in tiers]
        path = sparse_path(regression, starts, self.settings, stop)
        every = self._tuned_first(regression, weak, path, stop)
        near = [s for s in every if s.score <= every[0].score + self.settings.max_behind]
        chosen = near[: self.settings.max_sums]
        # The best of other numbers of terms, too: what looks exact here may not be so when it is simulated.
        sizes = {len(one.terms) for one in chosen}
        for one in every:
            if len(one.terms) not in sizes and one.loss < chosen[0].loss:
                sizes.add(len(one.terms))
                chosen.append(one)
        return chosen

    def _tuned_first(
        self, regression: Regression, weak: WeakForm, path: Sequence[Support], stop: Callable[[], bool]
    ) -> list[SumOfTerms]:
        """All sums, by their score; of those with constants inside, some of each size are tuned."""
        found, tuned = [], Counter[int]()
        most = self.settings.tuned
        for support in sorted(path, key=lambda s: s.loss):
            terms, size = [self.terms[p] for p in support.places], len(support.places)
            inside = any(term.constants for term in terms)
            if inside and tuned[size] < most and not stop():
                tuned[size] += 1
                found += self._shortened(weak, self._refined(weak, self._read(regression, support)))
            elif not inside or tuned[size] < 4 * most:
                tuned[size] += inside
                found.append(self._read(regression, support))
        return sorted(found, key=lambda s: s.score)

    def _read(self, regression: Regression, support: Support) -> SumOfTerms:
        terms = tuple(self.terms[p] for p in support.places)
        factors, loss = regression.fit(support.places)
        return SumOfTerms(terms, tuple(factors.tolist()), loss, self._score(terms, loss, regression.rows))

    def _score(self, terms: Sequence[Term], loss: float, rows: int) -> float:
        """The information criterion, where a term's place costs as much as it takes to write the term."""
        inside = len({atom for term in terms for atom in term.atoms if atom.constant is not None})
        written = sum(term.nodes for term in terms) * math.log(self.settings.symbols)
        floor = max(loss, WEAK_ROUNDING)
        return information_criterion(rows, floor, len(terms) + inside, placed=False) + written

    def _refined(self, weak: WeakForm, one: SumOfTerms) -> SumOfTerms:
        """With the constants inside the terms at their best, one after the other."""
        terms, best = list(one.terms), one
        for _ in range(2):
            for atom in dict.fromkeys(a for t in terms for a in t.atoms if a.constant is not None):
                terms = self._tuned(weak, terms, atom)
        matrix = weak.tests @ columns(terms, self.states)
        regression = Regression(matrix, weak.target)
        factors, loss = regression.fit(range(len(terms)))
        if loss < best.loss:
            score = self._score(terms, loss, regression.rows)
            best = SumOfTerms(tuple(terms), tuple(factors.tolist()), loss, score)
        return best

    def _shortened(self, weak: WeakForm, one: SumOfTerms) -> list[SumOfTerms]:
        """A sum with tuned constants, and what is left of it without terms that it turns out not to need."""
        path = [one]
        while len(path[-1].terms) > 1 and any(term.constants for term in path[-1].terms):
            regression = Regression(weak.tests @ columns(path[-1].terms, self.states), weak.target)
            places = regression.shortened(range(len(path[-1].terms)))[0]
            terms = tuple(path[-1].terms[p] for p in places)
            factors, loss = regression.fit(places)
            score = self._score(terms, loss, regression.rows)
            shorter = self._refined(weak, SumOfTerms(terms, tuple(factors.tolist()), loss, score))
            if shorter.score > path[-1].score:
                break
            path.append(shorter)
        return path

    def _tuned(self, weak: WeakForm, terms: list[Term], atom: Atom) -> list[Term]:
        mine = [k for k, term in enumerate(terms) if atom in term.atoms]
        matrix = weak.tests @ columns(terms, self.states)

        def changed(logarithm: float) -> list[Term]:
            new = Atom(
                atom.shape, atom.argument, float(np.copysign(math.exp(logarithm), atom.constant or 1.0))
            )
            return [term.with_atom(atom, new) for term in terms]

        def loss(logarithm: float) -> float:
            some = changed(logarithm)
            matrix[:, mine] = weak.tests @ columns([some[k] for k in mine], self.states)
            if not np.isfinite(matrix).all():
                return math.inf
            return Regression(matrix, weak.target).fit(range(len(terms)))[1]

        middle, reach = math.log(abs(atom.constant or 1.0)), math.log(self.settings.tuning_reach)
        found = minimize_scalar(
            loss, bounds=(middle - reach, middle + reach), method="bounded", options={"maxiter": 24}
        )
        return changed(float(found.x)) if found.fun < loss(middle) else terms
