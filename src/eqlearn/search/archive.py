"""What a search has found so far: networks to grow from, candidates to choose from."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Sequence

import numpy as np

from eqlearn.errors import NotFinite
from eqlearn.numerics.budget import Deadline
from eqlearn.numerics.residuals import looks_like_noise, noise_seen
from eqlearn.search.ansatz.stepwise import stepwise_sums
from eqlearn.search.candidate import (
    Candidate,
    best_description,
    best_predictions,
    pareto_front,
    shortest_description,
    united,
)
from eqlearn.search.finish import Finisher
from eqlearn.search.networks.fit import Fit
from eqlearn.search.settings import DEFAULTS, Settings
from eqlearn.search.step import StepResult


class Archive:
    """Candidates and the networks behind them, in the order in which rounds delivered them.

    Reading a formula out of a network takes longer than fitting it, so during the search only exact
    networks and new leaders are read; `front` reads the others that could matter. No reading is begun that
    would not be done before the deadline, if it took as long as the last ones.
    """

    def __init__(self, finisher: Finisher, settings: Settings = DEFAULTS) -> None:
        self.finisher, self.settings = finisher, settings
        self.fits: list[Fit] = []
        self.candidates: list[Candidate] = [finisher.constant()]
        self.failures: Counter[str] = Counter()
        self.rounds_without_gain = 0
        self._unread: list[tuple[str, Fit]] = []
        self._leader = math.inf
        self._exact_rounds = 0
        self._judged: Candidate | None = None  # the best candidate when `settled` was last asked
        self._settled = False
        self._pace = 0.0  # seconds that a reading takes, by the last ones

    def add(self, result: StepResult, deadline: Deadline) -> None:
        """Takes up a round's networks, and reads what has to be read at once."""
        gained, rows, before = False, self.finisher.training.rows, self.best
        for fit in sorted(result.fits, key=self._score):
            if not self._in_time(deadline):
                break
            small = fit.weights <= self.settings.reading.max_weights
            leads = small and self._score(fit) < self._leader - 1e-6
            if leads:
                self._leader, gained = self._score(fit), True
            if leads or fit.exact(rows):
                self._read(result.method, fit)
            elif small and fit.credible(rows):
                self._unread.append((result.method, fit))
            self.fits.append(fit)
        # In noise a longer law always fits a little better.
        gained = gained and not (self.best is before and self.settled)
        self.rounds_without_gain = 0 if gained else self.rounds_without_gain + 1
        self._exact_rounds += self.best.exact

    def _score(self, fit: Fit) -> float:
        return fit.score(self.finisher.training.rows)

    def _read(self, method: str, fit: Fit, snap: bool = True) -> None:
        began = time.time()
        try:
            candidate = self.finisher.candidate(fit, method, snap)
            # A law in a long form would have the search go on for a shorter one.
            if (
                candidate is not None
                and candidate.exact
                and candidate.complexity > self.settings.reading.max_brief
            ):
                candidate = self.finisher.in_brief(candidate)
        except NotFinite:
            candidate = None
        if candidate is None:
            self.failures["no formula could be read"] += 1
        elif not self.finisher.demands.met_by(candidate.equations):
            self.failures["not what is known"] += 1
        else:
            self.candidates.append(candidate)
        # The first one is of a short formula, but loads what reading needs: as long as that of a long one.
        self._pace = max(0.5 * self._pace, time.time() - began)

    def _in_time(self, deadline: Deadline) -> bool:
        """Whether there is time for another reading; each time that there is not, less is expected of it."""
        enough = deadline.leaves(self._pace)
        self._pace *= 1.0 if enough else 0.5
        return enough

    @property
    def best(self) -> Candidate:
        return shortest_description(self.candidates)

    @property
    def settled(self) -> bool:
        """Whether the best candidate is short, and what it leaves is little and looks like noise."""
        best, table = self.best, self.finisher.training
        if best is not self._judged:
            left = [table.y[:, k] - equation(table.X) for k, equation in enumerate(best.equations)]
            reading = self.settings.reading
            little = not best.exact and best.training_error < reading.max_noise
            little = little and best.complexity <= reading.max_brief
            self._judged = best
            self._settled = little and all(self._only_noise(one) for one in left)
        return self._settled

    def _only_noise(self, left: np.ndarray) -> bool:
        """Whether what a law leaves is noise, and no more, to both tests of it."""
        X = self.finisher.training.X
        return looks_like_noise(X, left) and noise_seen(X, left) != 0

    @property
    def seen_front(self) -> tuple[Candidate, ...]:
        """The Pareto front of what was read so far, and the best if it is not among them."""
        return united(pareto_front(self.candidates), [self.best])

    @property
    def complete(self) -> bool:
        """An exact formula that is short, or that another round could not shorten."""
        return self.best.exact and (
            self.best.complexity <= self.settings.reading.max_short or self._exact_rounds > 1
        )

    @property
    def parents(self) -> Sequence[Fit]:
        """The best networks of the best one's depth and skip connections."""
        ranked = sorted((f for f in self.fits if f.weights), key=self._score)
        return [f for f in ranked if f.kind == ranked[0].kind][: self.settings.parents] if ranked else ()

    def front(self, deadline: Deadline) -> tuple[Candidate, ...]:
        """The Pareto front of everything found, and the equation to choose if it is not among them; exact
        searches need no more reading."""
        if not self.best.exact:
            for method, fit in self._worth_reading():
                if not self._in_time(deadline):
                    break
                self._read(method, fit)
            self._unread.clear()
            # Sums of columns that scored low in the linear round for their length, but may predict well.
            features, table = self.finisher.features, self.finisher.training
            for fit in stepwise_sums(features, table, self.settings.reading, deadline):
                if not self._in_time(deadline):
                    break
                self._read("stepwise", fit, snap=False)
            reading = self.settings.reading
            laws = [c for c in self.candidates if c.training_error < reading.max_noise]
            for candidate in sorted(laws, key=lambda c: c.description_length)[: reading.max_pruned]:
                pruned = self.finisher.pruned(candidate) if self._in_time(deadline) else candidate
                if pruned is not candidate and self.finisher.demands.met_by(pruned.equations):
                    self.candidates.append(pruned)
        front = pareto_front(self.candidates)
        if self.best.exact:
            front = self._in_brief(front, deadline)
            dear = [self.best] if self.finisher.demands.prices else []
            return united(pareto_front(front), dear) if dear else pareto_front(front)
        # What predicts best may be longer than something that fits better.
        best = self._in_brief(united(front, best_predictions(self.candidates)), deadline)
        fitted = self._on_all_rows(best, deadline)
        return united(pareto_front(fitted), [best_description(fitted)])

    def _in_brief(self, front: tuple[Candidate, ...], deadline: Deadline) -> tuple[Candidate, ...]:
        """The same candidates in their shortest forms, the shortest description first as long as there is
        time."""
        short = {id(c): c for c in front}
        for candidate in sorted(front, key=lambda c: c.description_length):
            if deadline():
                break
            short[id(candidate)] = self.finisher.in_brief(candidate)
        return tuple(short.values())

    def _on_all_rows(self, front: tuple[Candidate, ...], deadline: Deadline) -> tuple[Candidate, ...]:
        """The same candidates, fitted to the rows held out as well: few rows decide better than fewer."""
        held_out, table = self.finisher.validation, self.finisher.training
        if held_out is None or table.rows > self.settings.reading.max_refit_rows:
            return front
        whole, fitted = table.join(held_out), []
        for candidate in front:
            if not self._in_time(deadline):
                return front  # lengths compare only over the same rows
            fitted.append(self.finisher.refit(candidate, whole))
        return tuple(fitted)

    def _worth_reading(self) -> list[tuple[str, Fit]]:
        """The best by score, and for each size the best fit; small ones first, which take least time and are
        most likely to be laws."""
        ranked, most = sorted(self._unread, key=lambda i: self._score(i[1])), self.settings.reading.max_last
        chosen = ranked[:most]
        for size in sorted({fit.weights for _, fit in ranked}):
            chosen.append(min((i for i in ranked if i[1].weights == size), key=lambda item: item[1].loss))
        once = list({id(fit): (method, fit) for method, fit in chosen}.values())
        return sorted(once[: 2 * most], key=lambda item: item[1].weights)
