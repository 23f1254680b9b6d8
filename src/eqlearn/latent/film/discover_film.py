"""A law of motion from films, by one call: coordinates, laws in the weak form, rollouts, choice, networks.

What others train at once (SINDy autoencoders: Champion et al. 2019, with derivatives of pixels supplied) is
taken in turn, each step decided by least squares. Pictures of a thing that moves change evenly with its place
or angle, so the coordinate is known up to a unit and a small bend before any law is. Laws are then compared
by simulating them, with the bend free, and the shortest is kept; the networks between pictures and
coordinates are fitted to where the law says that the thing is, which leaves a coordinate no way to collapse.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any, Literal

import numpy as np

from eqlearn.errors import InvalidArgument
from eqlearn.io.storage import opened_journal
from eqlearn.latent.film.contest import Compared, Contest, piece_length, shortest
from eqlearn.latent.film.coordinates import Coordinates, film_coordinates
from eqlearn.latent.film.film_settings import FILM, FilmSettings
from eqlearn.latent.film.found_film import FoundFilm
from eqlearn.latent.film.journal import FilmJournal
from eqlearn.latent.film.laws import known_terms, structures
from eqlearn.latent.film.networks import fitted_networks
from eqlearn.latent.film.pictures import Components, averaged
from eqlearn.latent.film.proposals import Ranking
from eqlearn.latent.film.rollout import Motion, Tracks, fitted, followed
from eqlearn.latent.film.units import canonical
from eqlearn.nn.primitives import PrimitivesLike, parse_kinds
from eqlearn.numerics.budget import one_thread
from eqlearn.search.candidate import Candidate
from eqlearn.search.search import Progress
from eqlearn.search.settings import SCIENCE
from eqlearn.validation.films import Films, read_films
from eqlearn.validation.options import check_budget, check_settings


@one_thread()
def discover_film(
    frames: Any,
    fps: float | int | None = None,
    *,
    latents: int | Literal["auto"] = "auto",
    order: int | Literal["auto"] = "auto",
    primitives: PrimitivesLike = SCIENCE,
    seconds: float | None = 600.0,
    settings: FilmSettings = FILM,
    progress: Callable[[Progress], object] | None = None,
    journal: str | os.PathLike[str] | None = None,
) -> FoundFilm:
    """Finds the law of motion of what moves in a film.

    **Main arguments:** `frames`, one film `(frames, height, width)`, with three colours last if it has any,
    or several as a list; `fps`, the frames a second, which give the law its unit of time.

    **Other arguments:** `latents`, how many coordinates the pictures have, 1 or 2, and `order` of the law,
    1 or 2, both as the film tells by default; `primitives`, what the law may be made of; `seconds`, for
    everything; `progress`, called as it goes; `journal`, a folder where fits are kept, so that a search that
    was killed goes on from there.

    Nothing is drawn at random: a film has one answer. Ctrl-C ends the search with the best law so far.
    """
    began = time.time()
    check_budget(seconds, None)
    check_settings(settings, FilmSettings)
    parse_kinds(primitives)
    films = frames if isinstance(frames, Films) else read_films(frames, fps)
    for name, value in (("latents", latents), ("order", order)):
        if value not in ("auto", 1, 2):
            raise InvalidArgument(f"`{name}` must be 1, 2 or 'auto', got {value!r}")
    about = {"format": "eqlearn-film-journal", "fps": films.fps, "frames": films.count,
             "pixels": float(sum(film.sum() for film in films.frames)),
        "settings": asdict(settings)}  # fmt: skip
    kept = FilmJournal(None if journal is None else opened_journal(journal, about))
    return _Task(films, latents, order, primitives, seconds, settings, progress, kept, began).found()


class _Task:
    """A search under way."""

    def __init__(
        self, films: Films, latents: Any, order: Any, primitives: PrimitivesLike, seconds: float | None,
        settings: FilmSettings, progress: Callable[[Progress], object] | None, journal: FilmJournal,
        began: float,
    ) -> None:  # fmt: skip
        self.films, self.latents, self.order, self.primitives = films, latents, order, primitives
        self.settings, self.progress, self.journal, self.began = settings, progress, journal, began
        self.end = math.inf if seconds is None else began + 0.9 * seconds
        self.frames = [averaged(film, settings.side) for film in films.frames]
        self.interrupted, self.tried, self.best = False, 0, None

    def stop(self) -> bool:
        return self.interrupted or time.time() > self.end

    def found(self) -> FoundFilm:
        components = Components.of(self.frames, self.settings)
        points = np.concatenate([components.points(film) for film in self.frames])
        count = None if self.latents == "auto" else self.latents
        coordinates = film_coordinates(self.frames, points, count, self.settings)
        ends = np.cumsum([len(film) for film in self.frames])[:-1]
        tracks = Tracks.of(np.split(coordinates.values, ends), self.films.dt)
        laws = self.compared(tracks)
        chosen = shortest(laws, self.settings)
        motion = self.refined(chosen.motion, tracks)
        return self.assembled(laws, chosen, motion, tracks, components, coordinates)

    def compared(self, tracks: Tracks) -> list[Compared]:
        """Laws of each order that the coordinates may obey, the best of each length."""
        found: list[Compared] = []
        for order in (1, 2) if self.order == "auto" else (self.order,):
            ranking = Ranking.of(tracks.series, tracks.dt, order, self.settings)
            terms = known_terms(tracks.coordinates, order, self.primitives)
            every = list(structures(terms, self.settings.most_terms, tracks.coordinates, order))
            proposals = ranking.proposals(every)
            if self.order == "auto" and order == 1 and min(p.left for p in proposals) > self.settings.first:
                continue
            contest = Contest(terms, tracks, self.settings, self.stop, self.tell, self.journal)
            found += contest.compared(proposals)
            self.interrupted = self.interrupted or contest.interrupted
        if not found:
            raise InvalidArgument("no law could be simulated over this film; look at it with `latents=2`")
        return sorted(found, key=lambda c: c.size)

    def refined(self, motion: Motion, tracks: Tracks) -> Motion:
        """The chosen law fitted to the whole of the films."""
        if self.interrupted:
            return motion
        try:
            length, steps = piece_length(1.0, tracks, self.settings), 2 * self.settings.steps
            again = fitted(motion, tracks, length, steps=steps, settings=self.settings)
        except KeyboardInterrupt:
            self.interrupted = True
            return motion
        return again if math.isfinite(again.error) else motion

    def tell(self, motion: Motion) -> None:
        """Reports the best law so far."""
        self.tried += 1
        if self.progress is not None:
            best = _candidate(Compared(motion, motion.error, math.nan))
            self.progress(Progress(self.tried, self.tried, time.time() - self.began, best))

    def assembled(
        self, laws: list[Compared], chosen: Compared, motion: Motion, tracks: Tracks, components: Components,
        coordinates: Coordinates,
    ) -> FoundFilm:  # fmt: skip
        law = canonical(motion)
        states = followed(law.motion, tracks, self.settings)
        count = tracks.coordinates
        model = fitted_networks(
            self.frames, components, np.concatenate([s[:, :count] for s in states]), self.settings
        )
        front = tuple(_candidate(c) for c in laws)
        best = replace(_candidate(chosen), equations=law.equations, constants=(law.constants,))
        ended = "interrupted" if self.interrupted else "out of time" if self.stop() else "no further gain"
        return FoundFilm(
            best=best, front=front, system=law.system, constants=law.constants, order=motion.structure.order,
            fps=self.films.fps, error=motion.error, ahead=chosen.ahead, curve=coordinates.left,
            seconds=time.time() - self.began, ended=ended, model=model,
            states=tuple(states), measured=tracks.series, motion=law.motion,
            unexplained=max(chosen.error, motion.error) > self.settings.unexplained, tried=self.tried,
            frames=tuple(self.frames), trained=self.settings.trained,
        )  # fmt: skip


def _candidate(law: Compared) -> Candidate:
    shown = canonical(law.motion)
    return Candidate(
        shown.equations, law.error, law.error, False, law.ahead, constants=(shown.constants,),
        method="rollout",
    )  # fmt: skip
