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
from eqlearn.dynamics.weak import WeakForm
from eqlearn.numerics.budget import never
from eqlearn.numerics.criteria import EXACT_WEAK, WEAK_ROUNDING, information_criterion
from eqlearn.numerics.subsets import Places, Regression, sparse_path
from eqlearn.symbolic.equation import Equation
from eqlearn.symbolic.expressions import fitted, real_symbol


@dataclass(frozen=True)
class SumOfTerms:
    """A sum of library terms, what it leaves of the target, and how many nats it takes in all."""

    terms: tuple[Term, ...]
    factors: tuple[float, ...]
    loss: float
    score: float

    @property
    def key(self) -> tuple[Term, ...]:
        """The terms, whatever the constants inside them."""
        atoms = {
            a: Atom(a.shape, a.argument, 1.0) for t in self.terms for a in t.atoms if a.constant is not None
        }
        terms = self.terms
        for old, new in atoms.items():
            terms = tuple(term.with_atom(old, new) for term in terms)
        return tuple(sorted(terms, key=repr))

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

    def candidates(
        self, weak: WeakForm, stop: Callable[[], bool] = never, *, tune: bool = True
    ) -> list[SumOfTerms]:
        """The most promising sums, the best first, and of exact values the best of each number of terms; with
        constants inside terms where they were tried, unless they are to be tuned."""
        regression = Regression.of(weak.tests @ self.columns, weak.target)
        tiers: dict[int, list[int]] = {}
        for place, term in enumerate(self.terms):
            if not term.atoms:
                tiers.setdefault(sum(term.powers), []).append(place)
        starts = [[p for d in range(degree + 1) for p in tiers[d]] for degree in tiers]
        settings = self.settings
        path = sparse_path(
            regression, settings.max_terms, settings.beam, max_pairs=settings.max_pairs,
            max_triples=settings.max_triples, starts=starts, stop=stop,
        )  # fmt: skip
        del path[()]
        every = self._tuned_ones(regression, weak, path, stop) if tune else []
        most = settings.max_sums
        plain = sorted(path, key=lambda s: self._score([self.terms[p] for p in s], path[s], weak.rows))
        every += [self._read(regression, support) for support in plain[: 2 * most]]
        every = sorted({one.key: one for one in reversed(every)}.values(), key=lambda s: s.score)
        chosen = [s for s in every if s.score <= every[0].score + settings.max_behind][:most]
        if chosen[0].loss > EXACT_WEAK:
            return chosen
        # The best of other numbers of terms, too: what looks exact here may not be so when it is simulated.
        sizes = {len(one.terms) for one in chosen}
        for support in plain:
            if len(support) not in sizes and path[support] < chosen[0].loss:
                sizes.add(len(support))
                chosen.append(self._read(regression, support))
        return chosen

    def slopes(self, one: SumOfTerms) -> np.ndarray:
        """The slopes of a sum by each state, `(rows, states)`, as differences over a small part of its
        spread."""
        found = np.empty_like(self.states)
        factors = np.array(one.factors)
        for k, spread in enumerate(self.states.std(axis=0)):
            step = np.zeros(self.states.shape[1])
            step[k] = 1e-4 * spread
            high, low = (columns(one.terms, self.states + sign * step) @ factors for sign in (1, -1))
            found[:, k] = (high - low) / (2e-4 * spread)
        return np.asarray(np.nan_to_num(found, nan=0.0, posinf=0.0, neginf=0.0))

    def _tuned_ones(
        self, regression: Regression, weak: WeakForm, path: dict[Places, float], stop: Callable[[], bool]
    ) -> list[SumOfTerms]:
        """Of the sums with constants inside, the best of each number of terms, tuned; only fewer terms than
        an exact sum has without any can be worth their constants."""
        inside = {s: any(self.terms[p].constants for p in s) for s in path}
        exact = [len(s) for s, loss in path.items() if loss < WEAK_ROUNDING and not inside[s]]
        longest = min([self.settings.max_tuned, *(size - 1 for size in exact)])
        found = []
        for size in range(1, longest + 1):
            shapes: set[tuple[Term, ...]] = set()
            for support in (s for s in path if len(s) == size and inside[s]):
                if stop() or len(shapes) >= self.settings.tuned:
                    break
                one = self._read(regression, support)
                if one.key not in shapes:  # else the same terms with constants near by
                    shapes.add(one.key)
                    found += self._shortened(weak, self._refined(weak, one))
        return found

    def _read(self, regression: Regression, places: Places) -> SumOfTerms:
        return self._sum([self.terms[p] for p in places], regression, places)

    def _sum(self, terms: Sequence[Term], regression: Regression, places: Places) -> SumOfTerms:
        fit = regression.fitted(places)
        score = self._score(terms, fit.loss, round(regression.independent))
        return SumOfTerms(tuple(terms), tuple(fit.coefficients.tolist()), fit.loss, score)

    def _regression(self, weak: WeakForm, terms: Sequence[Term]) -> Regression:
        return Regression.of(weak.tests @ columns(terms, self.states), weak.target)

    def _score(self, terms: Sequence[Term], loss: float, rows: int) -> float:
        """The information criterion, where a term's place costs as much as it takes to write the term."""
        inside = len({atom for term in terms for atom in term.atoms if atom.constant is not None})
        written = sum(term.nodes for term in terms) * math.log(self.settings.symbols)
        floor = max(loss, WEAK_ROUNDING)
        return information_criterion(rows, floor, len(terms) + inside, placed=False) + written

    def _refined(self, weak: WeakForm, one: SumOfTerms) -> SumOfTerms:
        """With the constants inside the terms at their best, one after the other."""
        terms = list(one.terms)
        for _ in range(2):
            for atom in dict.fromkeys(a for t in terms for a in t.atoms if a.constant is not None):
                terms = self._tuned(weak, terms, atom)
        tuned = self._sum(terms, self._regression(weak, terms), tuple(range(len(terms))))
        return tuned if tuned.loss < one.loss else one

    def _shortened(self, weak: WeakForm, one: SumOfTerms) -> list[SumOfTerms]:
        """A sum with tuned constants, and what is left of it without terms that it turns out not to need."""
        path = [one]
        while len(path[-1].terms) > 1 and any(term.constants for term in path[-1].terms):
            regression = self._regression(weak, path[-1].terms)
            left = regression.shrunk(tuple(range(len(path[-1].terms))))
            places = min(left, key=lambda p: left[p])
            terms = [path[-1].terms[p] for p in places]
            shorter = self._refined(weak, self._sum(terms, regression, places))
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
            return Regression.of(matrix, weak.target).fitted(range(len(terms))).loss

        middle, reach = math.log(abs(atom.constant or 1.0)), math.log(self.settings.tuning_reach)
        found = minimize_scalar(
            loss, bounds=(middle - reach, middle + reach), method="bounded", options={"maxiter": 24}
        )
        return changed(float(found.x)) if found.fun < loss(middle) else terms
