"""Laws compared by simulating them: over longer and longer horizons, and by what they foretell."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch

from eqlearn.latent.film.film_settings import FILM, FilmSettings
from eqlearn.latent.film.journal import FilmJournal
from eqlearn.latent.film.laws import Term
from eqlearn.latent.film.proposals import Proposal
from eqlearn.latent.film.rollout import Motion, Shooting, Tracks, begun, fitted, followed
from eqlearn.numerics.budget import never


@dataclass(frozen=True, eq=False)
class Compared:
    """A law fitted to the first part of every film: what it misses there with its bend's worth, and what it
    misses of the rest that it foretells, both in units of the coordinates' spread."""

    motion: Motion
    error: float
    ahead: float

    @property
    def size(self) -> tuple[int, int, int]:
        """How long the law is."""
        return self.motion.structure.size

    def missed(self, trained: float) -> float:
        """The root mean square of both, by the share of the films that it was fitted to."""
        return math.sqrt(trained * self.error**2 + (1 - trained) * self.ahead**2)


@dataclass(eq=False)
class Contest:
    """Laws fitted over growing horizons, the best of each length kept and grown by a term."""

    terms: Sequence[Term]
    tracks: Tracks
    settings: FilmSettings = FILM
    stop: Callable[[], bool] = never
    on_best: Callable[[Motion], object] = lambda motion: None
    journal: FilmJournal = field(default_factory=FilmJournal)
    interrupted: bool = False

    def compared(self, proposals: Sequence[Proposal]) -> list[Compared]:
        """The laws that are left, with what they miss."""
        settings, train = self.settings, self.tracks.until(self.settings.trained)
        motions = [begun(p, train, settings) for p in proposals]
        for turn, share in enumerate(settings.horizons):
            length = piece_length(share, train, settings)
            motions = self._fitted(motions, train, length, f"{turn}")
            if (parents := settings.parents[turn]) and not self.over:
                more = self._grown(_kept(motions, parents, settings), train, length)
                motions = _unique([*motions, *self._fitted(more, train, length, f"{turn}-more")])
            motions = _kept(motions, settings.survivors[turn], settings)
        if self.over:  # what was not simulated over whole films is fitted to them in haste
            length = piece_length(1.0, train, settings)
            whole = tuple(train.pieces(length))
            motions = [m if m.pieces == whole else self._last(m, train, length) for m in motions[:2]]
        return [Compared(m, m.error, foretold(m, self.tracks, settings)) for m in motions]

    @property
    def over(self) -> bool:
        return self.interrupted or self.stop()

    def _fitted(self, motions: Sequence[Motion], tracks: Tracks, length: int, turn: str) -> list[Motion]:
        """Fitted and sorted by error. Once it is time to stop, what has no fit yet is left out, but for
        one."""
        found: list[Motion] = []
        for number, motion in enumerate(motions):
            if self.over and (found or math.isfinite(motion.error)):
                return found or list(motions)
            name = f"{motion.structure.order}-{turn}-{number}"
            try:
                fit = self.journal.recall(name, motion) or fitted(
                    motion, tracks, length, steps=self.settings.steps, settings=self.settings
                )
            except KeyboardInterrupt:
                self.interrupted = True
                continue
            self.journal.record(name, fit)
            if math.isfinite(fit.error):
                found = sorted([*found, fit], key=lambda m: m.error)
                self.on_best(found[0])
        return found

    def _last(self, motion: Motion, tracks: Tracks, length: int) -> Motion:
        fit = fitted(motion, tracks, length, steps=3, settings=self.settings)
        return fit if math.isfinite(fit.error) else motion

    def _grown(self, motions: Sequence[Motion], tracks: Tracks, length: int) -> list[Motion]:
        """Motions with one term more, for each those from which a step of the fit promises most (a score
        test: Rao 1948)."""
        found: list[Motion] = []
        known = {m.structure.key for m in motions}
        for motion in motions:
            promising: list[tuple[float, Motion]] = []
            for term in self.terms:
                structure = replace(motion.structure, terms=(*motion.structure.terms, term))
                if structure.key in known or structure.longer_than_needed:
                    continue
                if len(structure.terms) > self.settings.grown:
                    continue
                numbers = np.concatenate([motion.numbers, np.full(term.coefficients, 1e-9)])
                more = replace(motion, structure=structure, numbers=numbers)
                shooting = Shooting(more, tracks, length, self.settings)
                point = shooting.start()
                system = shooting.linearise(point)
                if math.isfinite(float(system.loss)):
                    move = system.solve(torch.full_like(point, 1e-4), point, None, shooting.fixed)
                    promising.append((-float(system.promised(move)), more))
            promising.sort(key=lambda each: each[0])
            chosen = [more for _, more in promising[: self.settings.children]]
            known |= {m.structure.key for m in chosen}
            found += chosen
        return found


def piece_length(share: float, tracks: Tracks, settings: FilmSettings) -> int:
    """How long a piece is, in frames, that is this share of a film."""
    return min(settings.longest, max(settings.shortest, math.ceil(share * tracks.longest)))


def _kept(motions: Sequence[Motion], most: int, settings: FilmSettings) -> list[Motion]:
    """The best of each number of terms; of those that are as good, the shortest: short pieces tell little."""
    kept: list[Motion] = []
    for length in sorted({len(m.structure.terms) for m in motions}):
        alike = [m for m in motions if len(m.structure.terms) == length]
        enough = settings.close * max(min(m.error for m in alike), settings.negligible)
        near = sorted((m for m in alike if m.error <= enough), key=lambda m: m.structure.size)
        kept += [*near, *(m for m in alike if m.error > enough)][:most]
    return sorted(kept, key=lambda m: m.error)


def _unique(motions: Iterable[Motion]) -> list[Motion]:
    """The best fit of each structure."""
    best: dict[frozenset[str], Motion] = {}
    for motion in sorted(motions, key=lambda m: m.error):
        best.setdefault(motion.structure.key, motion)
    return list(best.values())


def foretold(motion: Motion, tracks: Tracks, settings: FilmSettings = FILM) -> float:
    """The root mean square that a law misses the rest of the films by, which it was not fitted to."""
    missed = []
    ends = {k: b for k, _, b in motion.pieces}
    for k, states in enumerate(followed(motion, tracks, settings)):
        places = motion.read(states[:, : tracks.coordinates], settings)
        missed.append((places - tracks.series[k])[ends[k] :])
    with np.errstate(all="ignore"):
        error = math.sqrt(float(np.square(np.concatenate(missed)).mean()))
    return error if math.isfinite(error) else math.inf


def shortest(laws: Sequence[Compared], settings: FilmSettings = FILM) -> Compared:
    """The law that is shortest to tell: each number more has to make what is missed so much smaller."""

    def length(law: Compared) -> float:
        order, numbers, written = law.size
        missed = max(law.missed(settings.trained), settings.negligible)
        return order + numbers + settings.node * written + math.log(missed) / math.log(settings.close)

    return min(laws, key=lambda law: (round(length(law), 2), law.size))
