"""A search of a film in a run folder: started or resumed, saved after every fit."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import asdict, dataclass

import numpy as np

from eqlearn.errors import InvalidArgument
from eqlearn.io.checksummed import write_json
from eqlearn.latent.film.discover_film import discover_film
from eqlearn.latent.film.found_film import FoundFilm
from eqlearn.report.record import environment
from eqlearn.runs.folder import PROGRESS, ROUNDS, RUN, STOP, RunFolder
from eqlearn.runs.session import nothing_left_behind
from eqlearn.runs.under_way import stoppable
from eqlearn.search.search import Progress
from eqlearn.search.settings import SCIENCE
from eqlearn.validation.films import Films

FORMAT, VERSION = "eqlearn-film-run", 1


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
        state = _begun(folder, films, plan, name, resume)
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
        write_json(folder.path / RUN, {**state, "status": "finished", "ended": found.ended,
                                       "text": str(found).splitlines()})  # fmt: skip
        for name in (PROGRESS, STOP):
            (folder.path / name).unlink(missing_ok=True)
        folder.log(f"ended: {found.ended}; chosen: {found.best}")
    return found


def _begun(folder: RunFolder, films: Films, plan: FilmPlan, name: str, resume: bool) -> dict[str, object]:
    """Records that a run is in progress; refuses to mix it with another."""
    if folder.holds_run and not resume:
        raise InvalidArgument(
            f"{folder} holds a run already; continue it with `--resume`, or choose another folder"
        )
    digest = hashlib.sha256(b"".join(np.ascontiguousarray(film).tobytes() for film in films.frames))
    data = {"name": name, "fingerprint": digest.hexdigest(), "fps": films.fps, "frames": films.count}
    if folder.holds_run:
        before = folder.read_status()
        if before.get("data") != data:
            raise InvalidArgument(f"the run in {folder} was made from another film, so it can't be continued")
        then = before.get("settings")
        others = {k: v for k, v in asdict(plan).items() if k != "seconds"}
        if not isinstance(then, dict) or any(then.get(k) != v for k, v in others.items()):
            raise InvalidArgument(
                f"the run in {folder} was made with other options; give the same to continue it"
            )
    state: dict[str, object] = {
        "format": FORMAT, "version": VERSION, "status": "running", "settings": asdict(plan), "data": data,
        "environment": environment(),
    }  # fmt: skip
    folder.write_json(RUN, state)
    folder.log(f"started: {films.count} frames of {name}, {asdict(plan)}")
    return state
