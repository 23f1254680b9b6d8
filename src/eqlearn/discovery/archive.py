"""What a search has found so far: networks to grow from, candidates to choose from."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import sympy as sp

from eqlearn.core.equation import Equation
from eqlearn.discovery.explore import Outcome
from eqlearn.discovery.finish import Finisher
from eqlearn.discovery.least_squares import EXACT, Fit
from eqlearn.discovery.select import Candidate, best_description, pareto_front

# An exact formula of at most this many nodes is taken at once; a longer one is given another round.
SHORT = 25


class Archive:
    """Candidates and the networks behind them, in the order in which rounds delivered them."""

    def __init__(self, finisher: Finisher) -> None:
        self.finisher = finisher
        self.fits: list[Fit] = []
        self.candidates: list[Candidate] = [_constant(finisher)]
        self.rounds_without_gain = 0
        self._exact_rounds = 0

    def add(self, outcome: Outcome) -> None:
        """Takes up a round's networks; those worth it become candidates."""
        before = self.best.description_length
        for fit in outcome.fits:
            if self._worth_reading(fit):
                candidate = self.finisher.candidate(fit, outcome.number)
                if candidate is not None:
                    self.candidates.append(candidate)
            self.fits.append(fit)
        gained = self.best.description_length < before - 1e-9
        self.rounds_without_gain = 0 if gained else self.rounds_without_gain + 1
        self._exact_rounds += self.best.exact

    def _worth_reading(self, fit: Fit) -> bool:
        """Exact, or better than every network as small: nothing else can reach the front."""
        smaller = [f.loss for f in self.fits if f.weights <= fit.weights]
        return fit.loss < EXACT or fit.loss < 0.999 * min(smaller, default=float("inf"))

    @property
    def best(self) -> Candidate:
        return best_description(self.candidates)

    @property
    def complete(self) -> bool:
        """An exact formula that is short, or that another round could not shorten."""
        return self.best.exact and (self.best.complexity <= SHORT or self._exact_rounds > 1)

    @property
    def parents(self) -> Sequence[Fit]:
        """The best networks of the best one's depth and way of joining."""
        rows = self.finisher.training.rows
        ranked = sorted((f for f in self.fits if f.weights), key=lambda f: f.score(rows))
        if not ranked:
            return ()
        kind = _kind(ranked[0])
        return [f for f in ranked if _kind(f) == kind][:6]

    def front(self) -> tuple[Candidate, ...]:
        return pareto_front(self.candidates)


def _kind(fit: Fit) -> tuple[int, bool]:
    structure = fit.population.structures[0]
    return len(structure.layers), structure.skip


def _constant(finisher: Finisher) -> Candidate:
    """The mean: what every equation has to beat."""
    table = finisher.training
    means = np.average(table.y, axis=0, weights=table.weight)
    equations = [Equation(sp.Float(float(m), 17), finisher.variables) for m in means]
    return finisher.measure(equations, [() for _ in equations])
