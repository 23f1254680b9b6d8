"""Laws compared by simulating them: over longer and longer horizons, and by what they foretell."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from eqlearn.latent.film.laws import Structure, Term
from eqlearn.latent.film.proposals import Proposal
from eqlearn.latent.film.rollout import Motion, Shooting, Tracks, begun, fitted, followed
from eqlearn.latent.film.settings import FILM, FilmSettings
from eqlearn.numerics.budget import never


@dataclass(frozen=True, eq=False)
class Compared:
    """A law fitted to the first part of every film: what it misses there with its bend's worth, and what it
    misses of the rest that it foretells, both in units of the coordinates' spread."""

    motion: Motion
    error: float
    ahead: float

    @property
    def worst(self) -> float:
        return max(self.error, self.ahead)


def compared(
    proposals: Sequence[Proposal],
    terms: Sequence[Term],
    tracks: Tracks,
    settings: FilmSettings = FILM,
    *,
    stop: Callable[[], bool] = never,
    on_best: Callable[[Motion], object] = lambda motion: None,
) -> list[Compared]:
    """Laws fitted over growing horizons, the best of each length kept and grown by a term, the shortest first."""
    train = tracks.until(settings.trained)
    motions = [begun(p, train, settings) for p in proposals]
    for turn, share in enumerate(settings.horizons):
        length = max(settings.shortest, math.ceil(share * train.longest))
        motions = _fitted(motions, train, length, settings, stop, on_best)
        if parents := settings.parents[turn]:
            more = _grown(motions[:parents], terms, train, length, settings)
            motions = _unique([*motions, *_fitted(more, train, length, settings, stop, on_best)])
        motions = _kept(motions, settings.survivors[turn])
    found = [Compared(m, m.error, foretold(m, tracks, settings)) for m in motions]
    return sorted(found, key=lambda c: (size(c.motion.structure), c.worst))


def _fitted(
    motions: Iterable[Motion],
    tracks: Tracks,
    length: int,
    settings: FilmSettings,
    stop: Callable[[], bool],
    on_best: Callable[[Motion], object],
) -> list[Motion]:
    """Fitted and sorted by error. Once it is time to stop, what has no fit yet is left out."""
    found: list[Motion] = []
    for motion in motions:
        if stop() and found:
            break
        fit = fitted(motion, tracks, length, steps=settings.steps, settings=settings)
        if math.isfinite(fit.error):
            found.append(fit)
            on_best(min(found, key=lambda m: m.error))
    return sorted(found, key=lambda m: m.error)


def _kept(motions: Sequence[Motion], most: int) -> list[Motion]:
    """The best of each number of terms."""
    kept: list[Motion] = []
    for length in sorted({len(m.structure.terms) for m in motions}):
        kept += [m for m in motions if len(m.structure.terms) == length][:most]
    return sorted(kept, key=lambda m: m.error)


def _unique(motions: Iterable[Motion]) -> list[Motion]:
    """The best fit of each structure."""
    best: dict[frozenset[str], Motion] = {}
    for motion in sorted(motions, key=lambda m: m.error):
        best.setdefault(motion.structure.key, motion)
    return list(best.values())


def _grown(
    motions: Sequence[Motion], terms: Sequence[Term], tracks: Tracks, length: int, settings: FilmSettings
) -> list[Motion]:
    """Motions with one term more, those from which a step of the fit promises most (a score test: Rao 1948)."""
    promising: list[tuple[float, Motion]] = []
    known = {m.structure.key for m in motions}
    for motion in motions:
        for term in terms:
            structure = replace(motion.structure, terms=(*motion.structure.terms, term))
            if structure.key in known or structure.longer_than_needed or len(structure.terms) > settings.grown:
                continue
            known.add(structure.key)
            more = replace(
                motion, structure=structure,
                numbers=np.concatenate([motion.numbers, np.full(term.coefficients, 1e-9)]),
            )  # fmt: skip
            shooting = Shooting(more, tracks, length, settings)
            point = shooting.start(again=True)
            system = shooting.linearise(point)
            move = system.solve(torch.full_like(point, 1e-6), point, None, shooting.fixed)
            fall = float(system.promised(move)) if torch.isfinite(system.loss).all() else -math.inf
            promising.append((motion.error**2 - fall, more))
    promising.sort(key=lambda each: each[0])
    return [motion for _, motion in promising[: settings.children]]


def foretold(motion: Motion, tracks: Tracks, settings: FilmSettings = FILM) -> float:
    """The root mean square that a law misses the rest of the films by, which it was not fitted to."""
    missed = []
    ends = {k: b for k, _, b in motion.pieces}
    for k, states in enumerate(followed(motion, tracks, settings)):
        places = motion.read(states[:, : tracks.coordinates], settings)
        missed.append((places - tracks.series[k])[ends[k] :])
    error = math.sqrt(float(np.square(np.concatenate(missed)).mean()))
    return error if math.isfinite(error) else math.inf


def size(structure: Structure) -> tuple[int, int]:
    """How long a law is: its numbers, and what it takes to write it."""
    numbers = sum(t.coefficients for t in structure.terms)
    return numbers, sum(e.complexity for e in structure.equations([1.5 + k for k in range(numbers)]))


def shortest(laws: Sequence[Compared], settings: FilmSettings = FILM) -> Compared:
    """The shortest law whose errors are near the least."""
    floor = settings.negligible
    least = max(min(c.error for c in laws), floor), max(min(c.ahead for c in laws), floor)
    near = [
        c for c in laws
        if c.error <= settings.close * least[0] and c.ahead <= settings.close**2 * least[1]
    ]  # fmt: skip
    return min(near or laws, key=lambda c: (size(c.motion.structure), c.worst) if near else ((0, 0), c.worst))
