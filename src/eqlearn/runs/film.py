"""A search of a film in a run folder: started or resumed, saved after every fit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass

from eqlearn.io.source import fingerprint
from eqlearn.latent.film.discover_film import discover_film
from eqlearn.latent.film.found_film import FoundFilm
from eqlearn.runs.folder import PROGRESS, ROUNDS, RUN, STOP, RunFolder
from eqlearn.runs.session import begin, nothing_left_behind
from eqlearn.runs.under_way import stoppable
from eqlearn.search.search import Progress
from eqlearn.search.settings import SCIENCE
from eqlearn.validation.films import Films

FORMAT = "eqlearn-film-run"


@dataclass(frozen=True)
class FilmPlan:
    """How a film is searched, as plain data."""

    latents: int | str = "auto"
    order: int | str = "auto"
    primitives: str = SCIENCE
    seconds: float | None = 600.0


def search_film(
    folder: RunFolder,
    films: Films,
    plan: FilmPlan,
    *,
    name: str = "film",
    resume: bool = False,
    progress: Callable[[Progress], None] | None = None,
) -> FoundFilm:
    """Searches, and saves law, networks and page in the folder; `resume` continues the run in it, if any.
    Ctrl-C ends the search and saves what was found."""
    with folder.locked(), nothing_left_behind(folder):
        digest = fingerprint(None, films.frames)
        data = {"name": name, "fingerprint": digest, "fps": films.fps, "frames": films.count}
        begin(folder, data, f"{films.count} frames", asdict(plan), resume, FORMAT)
        latest = ""

        def told(state: Progress) -> None:
            nonlocal latest
            if str(state.best) != latest:
                latest = str(state.best)
                folder.log(f"fit {state.round}: misses {state.best.training_error:.3g}, {latest}")
            if progress is not None:
                progress(state)

        with stoppable(folder):
            found = discover_film(
                films, latents=plan.latents, order=plan.order, primitives=plan.primitives,  # type: ignore[arg-type]
                seconds=plan.seconds, progress=told, journal=folder.path / ROUNDS,
            )  # fmt: skip
        found.save(folder.path)
        found.report(folder.path)
        ended = {"status": "finished", "ended": found.ended, "text": str(found).splitlines()}
        folder.write_json(RUN, {**folder.read_status(), **ended})
        for name in (PROGRESS, STOP):
            (folder.path / name).unlink(missing_ok=True)
        folder.log(f"ended: {found.ended}; chosen: {found.best}")
    return found
