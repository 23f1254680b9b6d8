"""The choice of terms by test functions of several widths together."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby, islice

import numpy as np

from eqlearn.fields.likelihood import Likelihood, is_heavy
from eqlearn.fields.settings import FieldSettings
from eqlearn.fields.terms import Term
from eqlearn.fields.weak import WeakForm
from eqlearn.numerics.criteria import (
    AS_GOOD,
    CHANCE_DEVIATIONS,
    FLOORS,
    STRONG,
    chance_deviations,
    information_criterion,
)
from eqlearn.numerics.subsets import Regression, Subset, sparse_path


@dataclass(frozen=True)
class Standard:
    """How sums are compared: independent `observations`, the `noise` that is in any of them, the `floor`
    below which misfit is a solver's or a grid's, among how many `places` a term is chosen, and what
    no sum at all leaves, `none`."""

    observations: float
    noise: float
    floor: float
    independent: float
    places: int
    none: Subset

    @classmethod
    def of(cls, regression: Regression, sums: Sequence[Subset], settings: FieldSettings) -> Standard:
        """From sums of a regression: the noise of the best one, and how many independent observations
        decide: all rows as far as noise explains its misfit, a few where that is systematic."""
        floor = settings.systematic_error**2
        fullest = min(sums, key=lambda s: s.loss)
        share = min(1.0, fullest.noise / (fullest.misfit + fullest.noise + floor))
        few = min(settings.systematic_rows, regression.independent)
        observations = few + share * (regression.independent - few)
        none = replace(regression.fitted(()), loss=1.0)  # also where coefficients of experiments are left out
        return cls(observations, fullest.noise, floor, regression.independent, regression.count, none)

    def unexplained(self, loss: float, noise: float) -> bool:
        """Whether a sum that leaves `loss`, of which `noise` is noise, misses more than chance and the floor
        explain."""
        chance = noise * CHANCE_DEVIATIONS * math.sqrt(2 / self.independent)
        return max(loss - noise, 0.0) > chance + FLOORS * self.floor

    def score(self, one: Subset) -> float:
        """Nats for what noise does not explain, and for the terms: a sum is neither better for cancelling
        noise nor worse for holding more of it, and no better than none where it leaves more than that."""
        seen = self.none if one.loss > self.none.loss else one
        misfit = seen.misfit / (max(seen.noise, self.noise) + self.floor)
        count = max(round(self.observations), 2)
        return information_criterion(count, 1 + misfit, len(one.places), places=max(self.places, 2))


def best_sums(
    regression: Regression, most: int, settings: FieldSettings, backwards: bool = False
) -> list[Subset]:
    """The best sums of each number of columns up to `most`, `beam` of each, without the bias of noise; with
    `backwards`, what backward elimination leaves of all columns is among them."""
    starts = [regression.usable.tolist()] if backwards else []
    path = sparse_path(regression, most, settings.beam, starts=starts)
    sizes = groupby(path, key=len)
    return [regression.fitted(places) for _, some in sizes for places in islice(some, settings.beam)]


@dataclass(frozen=True, eq=False)
class Evidence:
    """One target and its possible terms, seen through test functions of several widths."""

    forms: tuple[WeakForm, ...]
    terms: tuple[Term, ...]
    target: Term
    regressions: tuple[Regression, ...]
    standards: tuple[Standard, ...]
    ranked: tuple[tuple[int, ...], ...]  # supports, the best first

    @classmethod
    def of(cls, forms: Sequence[WeakForm], terms: Sequence[Term], target: Term) -> Evidence:
        """Supports are found at each width, and ranked by what they score on average."""
        settings = forms[0].settings
        regressions: list[Regression] = []
        standards: list[Standard] = []
        shortlist: set[tuple[int, ...]] = set()
        for form in forms:
            columns, noise = form.columns(terms), form.noise_products([*terms, target])
            goal, least = form.column(target), settings.min_signal
            regression = Regression.of(columns, goal, noise, form.independent, least)
            sums = best_sums(regression, settings.max_terms, settings, backwards=True)
            standard = Standard.of(regression, sums, settings)
            first = sorted(sums, key=standard.score)[: settings.shortlist]
            of_size = {len(one.places): one for one in sorted(sums, key=lambda s: -s.misfit)}
            shortlist |= {one.places for one in (*first, *of_size.values())}
            regressions.append(regression)
            standards.append(standard)
        every = cls(tuple(forms), tuple(terms), target, tuple(regressions), tuple(standards), ())
        # In heavy noise, a width that drowns in the noise of what the wider ones see tells nothing, and would
        # choose what holds little noise there.
        counts = range(2, len(forms) + 1) if is_heavy(forms[0]) else [len(forms)]
        kept = every.kept([0]) if is_heavy(forms[0]) else every
        for count in counts:
            fits = [r.fitted(min(shortlist, key=kept.score)) for r in regressions[:count]]
            left = [max(one.noise, one.loss) for one in fits]
            bound = max(settings.max_noise, settings.as_quiet * min(left))
            quiet = [k for k, noise in enumerate(left) if noise <= bound]
            most = min(settings.min_independent, max(standards[k].independent for k in quiet))
            kept = every.kept([k for k in quiet if standards[k].independent >= most])
        return replace(kept, ranked=tuple(sorted(shortlist, key=kept.score)))

    def kept(self, places: Sequence[int]) -> Evidence:
        """The same with only some of the widths."""
        return replace(
            self,
            forms=tuple(self.forms[k] for k in places),
            regressions=tuple(self.regressions[k] for k in places),
            standards=tuple(self.standards[k] for k in places),
        )

    def score(self, places: Sequence[int]) -> float:
        """The mean score of a support over the widths."""
        pairs = zip(self.regressions, self.standards, strict=True)
        return float(np.mean([standard.score(r.fitted(places)) for r, standard in pairs]))

    @cached_property
    def best(self) -> tuple[int, ...]:
        """The best support of which no term may be zero as far as its standard error says (chance alone puts
        some among so many supports). Of those that are nearly as good, where noise is heavy and explains
        them, the likeliest (coordinates, which it hides least, must win by more); elsewhere, where a solver's
        errors count, which no likelihood knows of, the shortest of those as good as it."""
        best, form = next((p for p in self.ranked if self.sure(p)), self.ranked[0]), self.forms[-1]
        if is_heavy(form) and not self.unexplained(best):
            near = (p for p in self.ranked if self.score(p) < self.score(best) + STRONG and self.sure(p))
            likelihood = Likelihood(form, self.target)
            lengths = ((p, self.length(p, likelihood)) for p in islice(near, form.settings.compared))
            found = {p: length for p, length in lengths if length is not None}
            if found:
                return min(found, key=lambda p: found[p])
        near = (p for p in self.ranked if self.score(p) < self.score(best) + AS_GOOD)
        return min((p for p in near if len(p) <= len(best) and self.sure(p)), key=len, default=best)

    def length(self, places: Sequence[int], likelihood: Likelihood) -> float | None:
        """Nats for what a support leaves at the last width and for its terms, if noise in it is followed."""
        terms = [self.terms[k] for k in places]
        if not all(likelihood.follows(t) for t in terms):
            return None
        price = 0.5 * math.log(likelihood.form.independent) + math.log(max(len(self.terms), 2))
        values = self.fitted(len(self.forms) - 1, places)[0].tolist()
        return likelihood.nats([likelihood.part(t) for t in terms], values) + len(places) * price

    def sure(self, places: Sequence[int]) -> bool:
        """Whether all coefficients are further from zero than chance puts some of so many terms, at the width
        that determines them best."""
        fits = [self.fitted(k, places) for k in range(len(self.forms))]
        worst = min(float(np.max(errors / np.abs(values), initial=0.0)) for values, errors in fits)
        return worst * chance_deviations(len(self.terms)) < 1

    def fitted(self, width: int, places: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
        """Coefficients of a support at one width, and their standard errors from leaving out blocks."""
        form, some = self.forms[width], [self.terms[p] for p in places]
        if not some:
            return np.empty(0), np.empty(0)
        columns, target = form.columns(some), form.column(self.target)
        noise = form.noise_products([*some, self.target])

        def fit(rows: np.ndarray) -> np.ndarray:
            part = Regression.of(columns[rows], target[rows], noise * rows.mean(), form.independent)
            return part.fitted(range(len(some))).coefficients

        return fit(np.ones(len(target), dtype=bool)), jackknife(fit, form.blocks())

    @property
    def settled(self) -> bool:
        """Whether the best support leaves nothing that a further term could explain, and noise hides none."""
        fits = [r.fitted(self.best) for r in self.regressions]
        quiet = all(one.noise <= FLOORS * s.floor for one, s in zip(fits, self.standards, strict=True))
        return quiet and not self.unexplained(self.best)

    @property
    def front(self) -> list[tuple[int, ...]]:
        """The best support of each size, the smallest first."""
        sizes = {len(places): places for places in reversed(self.ranked)}
        return [sizes[k] for k in sorted(sizes)]

    def unexplained(self, places: Sequence[int]) -> bool:
        """Whether a support misses more than noise and the grid explain, at every width."""
        pairs = [(r.fitted(places), s) for r, s in zip(self.regressions, self.standards, strict=True)]
        return all(standard.unexplained(one.loss, one.noise) for one, standard in pairs)


def jackknife(fit: Callable[[np.ndarray], np.ndarray], blocks: np.ndarray) -> np.ndarray:
    """Standard errors of what `fit` makes of some rows, from leaving out each block in turn (Tukey 1958)."""
    names = np.unique(blocks)
    each = np.stack([fit(blocks != b) for b in names])
    squares = np.square(each - each.mean(axis=0)).sum(axis=0)
    return np.asarray(np.sqrt((len(names) - 1) / len(names) * squares))
