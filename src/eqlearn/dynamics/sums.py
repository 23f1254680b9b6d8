"""Candidates for equations of motion: sparse sums of library terms, fitted in the weak form."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import sympy as sp
from scipy.optimize import least_squares

from eqlearn.dynamics.library import SHAPES, Atom, Term, columns, families, library
from eqlearn.dynamics.settings import MOTION, MotionSettings
from eqlearn.dynamics.weak import WeakForm
from eqlearn.numerics.budget import never
from eqlearn.numerics.criteria import EXACT_WEAK, information_criterion
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
    def atoms(self) -> list[Atom]:
        """The functions with constants inside."""
        return list(dict.fromkeys(a for term in self.terms for a in term.atoms if a.constants))

    @property
    def key(self) -> tuple[Term, ...]:
        """The terms, whatever the constants inside them."""
        terms = _exchanged(self.terms, {atom: atom.family for atom in self.atoms})
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
        plain = library(states, allowed, degree, settings)
        self.families = families(states, allowed, settings)
        self.plain = len(plain)
        atoms = [{term.atoms[0] for term in family} for family in self.families]
        last = {next(iter(some)).family: [abs(a.constants[-1]) for a in some] for some in atoms}
        reach = settings.tuning_reach
        self.reach = {atom: (min(tried) / reach, max(tried) * reach) for atom, tried in last.items()}
        self.terms = [*plain, *itertools.chain(*self.families)]
        self.columns = columns(self.terms, states)
        order = sorted(range(self.plain), key=lambda place: self.terms[place].nodes)
        self.simplest = order[: settings.max_given]
        # Beside terms with constants, monomials of low degree.
        self.few = [p for p in order if not plain[p].atoms][: settings.max_beside]

    def candidates(
        self, weak: WeakForm, stop: Callable[[], bool] = never, *, tune: bool = True
    ) -> list[SumOfTerms]:
        """The most promising sums, the best first, and of exact values the best of each number of terms; with
        constants inside terms, if these are to be tuned."""
        whole = Regression.of(weak.tests @ self.columns[:, : self.plain], weak.target)
        path = self._plain_path(whole, stop)
        every = [self._read(weak, whole, support) for support in self._ranked(path, weak)]
        if tune and not self._settled(every):
            every += self._with_constants(weak, stop)
        every = sorted({one.key: one for one in reversed(every)}.values(), key=lambda s: s.score)
        most = self.settings.max_sums
        chosen = [s for s in every if s.score <= every[0].score + self.settings.max_behind][:most]
        if chosen[0].loss > EXACT_WEAK:
            return chosen
        # The best of other numbers of terms, too: what looks exact here may not be so when it is simulated.
        sizes = {len(one.terms) for one in chosen}
        for support in path:
            if len(support) not in sizes and path[support] < chosen[0].loss:
                sizes.add(len(support))
                chosen.append(self._read(weak, whole, support))
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

    def _plain_path(self, whole: Regression, stop: Callable[[], bool]) -> dict[Places, float]:
        """Sums of terms without constants inside: pairs beside one or two of the simplest terms, and what is
        left of many monomials."""
        settings, tiers = self.settings, dict[int, list[int]]()
        for place, term in enumerate(self.terms[: self.plain]):
            if not term.atoms:
                tiers.setdefault(sum(term.powers), []).append(place)
        starts = [[p for d in range(degree + 1) for p in tiers[d]] for degree in tiers]
        ones = [(p,) for p in self.simplest]
        twos = list(itertools.combinations(self.simplest[: settings.max_twice_given], 2))
        path = sparse_path(
            whole, settings.max_terms, settings.beam, beside=[(), *ones, *twos], starts=starts, stop=stop
        )
        del path[()]
        return path

    def _with_constants(self, weak: WeakForm, stop: Callable[[], bool]) -> list[SumOfTerms]:
        """Sums with constants inside: of one family at first, then one more term at a time."""
        settings, found, end = self.settings, dict[tuple[Term, ...], SumOfTerms](), self.plain
        whole = Regression.of(weak.tests @ self.columns, weak.target)
        few = range(len(self.few))
        beside = [(), *((p,) for p in few), *itertools.combinations(few[: settings.max_few], 2)]
        for family in self.families:
            # One constant at a time: terms with several near by only make up for the right one.
            path: dict[Places, float] = {}
            alike: dict[tuple[Atom, ...], list[int]] = {}
            for place, term in enumerate(family, start=end):
                alike.setdefault(term.atoms, [*self.few]).append(place)
            for some in alike.values():
                if not stop():
                    own = sparse_path(whole.part(some), 4, settings.beam // 2, beside=beside, sweeps=0)
                    path |= {tuple(sorted(some[p] for p in support)): own[support] for support in own}
            end += len(family)
            self._tune(weak, whole, path, found, stop)
        for _ in range(settings.max_grown):
            best = sorted(found.values(), key=lambda one: one.score)
            for one in best[: 0 if best and self._settled(best) else settings.tuned]:
                for wider in [] if stop() else self._widened(one):
                    _keep(self._refined(weak, wider), found)
                if len(one.terms) < settings.max_tuned and not stop():
                    self._grow(weak, one, found, stop)
        return list(found.values())

    def _widened(self, one: SumOfTerms) -> Iterator[SumOfTerms]:
        """The sum with one more state in the argument of a function, of no weight as yet."""
        for atom in one.atoms:
            seen = {place for place, _ in atom.argument}
            for place in range(self.states.shape[1]) if SHAPES[atom.shape].weighted else ():
                if place not in seen:
                    argument, constants = (*atom.argument, (place, 1)), (*atom.constants, 0.0)
                    new = replace(atom, argument=argument, constants=constants)
                    yield replace(one, terms=_exchanged(one.terms, {atom: new}))

    def _grow(
        self, weak: WeakForm, one: SumOfTerms, found: dict[tuple[Term, ...], SumOfTerms],
        stop: Callable[[], bool],
    ) -> None:  # fmt: skip
        """A sum with one more term of the whole library, tuned again."""
        mine = weak.tests @ columns(one.terms, self.states)
        whole = Regression.of(np.column_stack([weak.tests @ self.columns, mine]), weak.target)
        count = len(self.terms)
        own = tuple(range(count, count + len(one.terms)))
        if not set(own) <= set(whole.usable.tolist()):
            return
        more = whole.grown(own, self.settings.beam)
        terms = [*self.terms, *one.terms]
        self._tune(weak, whole, more, found, stop, terms)

    def _tune(
        self, weak: WeakForm, whole: Regression, path: dict[Places, float],
        found: dict[tuple[Term, ...], SumOfTerms], stop: Callable[[], bool],
        terms: Sequence[Term] | None = None,
    ) -> None:  # fmt: skip
        """Of the sums with constants inside, a few of each number of terms, tuned; what is left of them
        without terms that they turn out not to need; all kept in `found`."""
        every = terms or self.terms
        tried, looked = dict[int, set[tuple[Term, ...]]](), Counter[int]()
        for support in sorted(path, key=lambda s: path[s]):
            shapes = tried.setdefault(len(support), set())
            looked[len(support)] += 1
            enough = len(shapes) >= self.settings.tuned or looked[len(support)] > self.settings.beam
            if enough or stop() or not any(every[p].constants for p in support):
                continue
            one = self._read(weak, whole, support, every)
            if one.key in shapes or one.key in found:
                continue
            shapes.add(one.key)
            start = self._merged(weak, one)
            for tuned in [] if start.key in found else self._shortened(weak, self._refined(weak, start)):
                _keep(tuned, found)

    def _ranked(self, path: dict[Places, float], weak: WeakForm) -> list[Places]:
        """The most promising supports without constants inside, and the best of each number of terms."""
        ranked = sorted(path, key=lambda s: self._score([self.terms[p] for p in s], path[s], weak))
        best = {len(support): support for support in reversed(path)}
        return list(dict.fromkeys([*ranked[: 2 * self.settings.max_sums], *best.values()]))

    def _settled(self, every: Sequence[SumOfTerms]) -> bool:
        """Whether the best sum is short, and many more terms hardly mend it: then it is the law."""
        best, least = every[0], min(one.loss for one in every)
        short = 2 * len(best.terms) <= self.settings.max_terms
        return best.loss < EXACT_WEAK and short and best.loss <= self.settings.settled * least

    def _read(
        self, weak: WeakForm, regression: Regression, places: Places, terms: Sequence[Term] | None = None
    ) -> SumOfTerms:
        fit, every = regression.fitted(places), terms or self.terms
        mine = [every[p] for p in fit.places]
        return SumOfTerms(
            tuple(mine), tuple(fit.coefficients.tolist()), fit.loss, self._score(mine, fit.loss, weak)
        )

    def _sum(self, weak: WeakForm, terms: Sequence[Term]) -> SumOfTerms:
        regression = Regression.of(weak.tests @ columns(terms, self.states), weak.target)
        return self._read(weak, regression, tuple(range(len(terms))), terms)

    def _score(self, terms: Sequence[Term], loss: float, weak: WeakForm) -> float:
        """The information criterion, where a term's place costs as much as it takes to write the term."""
        inside = sum(len(a.constants) for a in {atom for term in terms for atom in term.atoms})
        written = sum(term.nodes for term in terms) * math.log(self.settings.symbols)
        return information_criterion(weak.independent, loss, len(terms) + inside, placed=False) + written

    def _merged(self, weak: WeakForm, one: SumOfTerms) -> SumOfTerms:
        """The sum with one function in the place of several that differ in their constants only."""
        first: dict[Atom, Atom] = {}
        for atom in one.atoms:
            first.setdefault(atom.family, atom)
        terms = _exchanged(one.terms, {atom: first[atom.family] for atom in one.atoms})
        terms = tuple(dict.fromkeys(terms))
        return one if terms == one.terms else self._sum(weak, terms)

    def _refined(self, weak: WeakForm, one: SumOfTerms) -> SumOfTerms:
        """With the constants inside the terms at their best, all together (variable projection, Golub &
        Pereyra 1973)."""
        atoms, size = one.atoms, float(np.linalg.norm(weak.target))
        if not atoms:
            return one
        matrix = weak.tests @ columns(one.terms, self.states)
        mine = [k for k, term in enumerate(one.terms) if any(a.constants for a in term.atoms)]

        def with_constants(point: np.ndarray) -> tuple[Term, ...]:
            new: dict[Atom, Atom] = {}
            at = 0
            for atom in atoms:
                some = point[at : at + len(atom.constants)]
                at += len(some)
                values = some if SHAPES[atom.shape].free else np.copysign(np.exp(some), atom.constants)
                new[atom] = replace(atom, constants=tuple(values.tolist()))
            return _exchanged(one.terms, new)

        def left(point: np.ndarray) -> np.ndarray:
            with np.errstate(all="ignore"):
                terms = with_constants(point)
                matrix[:, mine] = weak.tests @ columns([terms[k] for k in mine], self.states)
                sizes = np.linalg.norm(matrix, axis=0)
            if not np.isfinite(sizes).all() or not sizes.all():
                return weak.target / size * 10
            basis = np.linalg.qr(matrix / sizes)[0]
            return np.asarray((weak.target - basis @ (basis.T @ weak.target)) / size)

        start = np.concatenate([
            np.array(a.constants) if SHAPES[a.shape].free else np.log(np.abs(a.constants)) for a in atoms
        ])  # fmt: skip
        tries = self.settings.max_tries * (1 + len(start))
        method = "lm" if len(weak.target) >= len(start) else "trf"
        found = least_squares(left, start, method=method, max_nfev=tries, xtol=1e-9, ftol=1e-3)
        tuned = self._sum(weak, with_constants(found.x))
        bent = tuned.loss < EXACT_WEAK or all(map(self._bends, tuned.atoms))
        return tuned if tuned.loss < one.loss and bent else one

    def _bends(self, atom: Atom) -> bool:
        """Whether a constant is about as large as those that were tried: far from them a function is a
        straight line or a parabola within the data, and others say the same with fewer constants."""
        low, high = self.reach.get(atom.family, (0.0, math.inf))
        return low <= abs(atom.constants[-1]) <= high

    def _shortened(self, weak: WeakForm, one: SumOfTerms) -> list[SumOfTerms]:
        """A sum with tuned constants, and what is left of it without terms that it turns out not to need."""
        path = [one]
        while len(path[-1].terms) > 1 and path[-1].atoms:
            terms = path[-1].terms
            regression = Regression.of(weak.tests @ columns(terms, self.states), weak.target)
            left = regression.shrunk(tuple(range(len(terms))))
            places = min(left, key=lambda p: left[p])
            shorter = self._refined(weak, self._sum(weak, [terms[p] for p in places]))
            if shorter.score > path[-1].score:
                break
            path.append(shorter)
        return path


def _keep(one: SumOfTerms, found: dict[tuple[Term, ...], SumOfTerms]) -> None:
    """Keeps a sum, if it is the best of its terms."""
    if one.key not in found or one.score < found[one.key].score:
        found[one.key] = one


def _exchanged(terms: Sequence[Term], new: dict[Atom, Atom]) -> tuple[Term, ...]:
    return tuple(replace(term, atoms=tuple(new.get(atom, atom) for atom in term.atoms)) for term in terms)
