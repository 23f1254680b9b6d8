"""Candidates for equations of motion: sparse sums of library terms, fitted in the weak form."""

from __future__ import annotations

import math
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
        rows = regression.rows
        path.sort(key=lambda s: self._score([self.terms[p] for p in s.places], s.loss, rows))
        chosen = [self._read(regression, support) for support in self._shortlist(path, rows)]
        refined = [self._refined(weak, one) if any(t.constants for t in one.terms) else one for one in chosen]
        return sorted(refined, key=lambda s: s.score)

    def _shortlist(self, path: Sequence[Support], rows: int) -> list[Support]:
        """Those not far behind the best, not too many, and the best of each number of terms up to that of
        the smallest loss: what looks exact here may not be so when it is simulated."""
        chosen: list[Support] = []
        sizes: set[int] = set()
        best = self._score([self.terms[p] for p in path[0].places], path[0].loss, rows)
        for one in path:
            score = self._score([self.terms[p] for p in one.places], one.loss, rows)
            near = score <= best + self.settings.max_behind and len(chosen) < self.settings.max_sums
            if near or (len(one.places) not in sizes and one.loss < path[0].loss):
                sizes.add(len(one.places))
                chosen.append(one)
        return chosen

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
