"""A law of motion behind a film, found: its equations, the networks to pictures and back, and a forecast."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from eqlearn.dynamics.forms import simulate
from eqlearn.errors import InvalidArgument
from eqlearn.io.checksummed import atomic_write, write_json, write_tensors
from eqlearn.latent.film.film_page import film_page
from eqlearn.latent.film.networks import FilmModel
from eqlearn.latent.film.pictures import averaged
from eqlearn.latent.film.rollout import Motion
from eqlearn.search.candidate import Candidate
from eqlearn.symbolic.equation import Equation
from eqlearn.symbolic.parametric import Constant
from eqlearn.validation.options import check_whole

FORMAT, VERSION = "eqlearn-film", 1
LAW, MODEL, REPORT = "law.json", "model.safetensors", "report.html"


@dataclass(frozen=True, eq=False)
class FoundFilm:
    """What `discover_film` found.

    `equations` give each coordinate's rate of change (`order` 1) or acceleration (2; `dz` is the velocity of
    `z`), in the units in which the law is shortest, and seconds; `constants` are their fitted numbers with
    standard errors. `front` are the laws that were compared, the shortest first.

    `error` is the root mean square by which the law misses the films' coordinates over the whole of every
    film, and `ahead` that of the last part, foretold by a fit to the rest; both are in units of the
    coordinates' spread. `states` are the law's states at every frame of every film. If the law leaves too
    much, it is `unexplained`.
    """

    best: Candidate
    front: tuple[Candidate, ...]
    system: tuple[Equation, ...]
    constants: tuple[Constant, ...]
    order: int
    fps: float
    error: float
    ahead: float
    curve: float
    seconds: float
    ended: str
    model: FilmModel
    states: tuple[np.ndarray, ...]
    measured: tuple[np.ndarray, ...]
    motion: Motion
    unexplained: bool
    tried: int
    trained: float
    frames: tuple[np.ndarray, ...] = field(repr=False, default=())

    @property
    def equations(self) -> tuple[Equation, ...]:
        return self.best.equations

    @property
    def equation(self) -> Equation:
        """The first coordinate's equation."""
        return self.best.equations[0]

    @property
    def names(self) -> tuple[str, ...]:
        """The coordinates' names."""
        return self.motion.structure.names

    @property
    def targets(self) -> tuple[str, ...]:
        """What the equations give: dz/dt, or d²z/dt²."""
        return tuple(f"d{n}/dt" if self.order == 1 else f"d²{n}/dt²" for n in self.names)

    @torch.no_grad()
    def latents(self, frames: Any) -> np.ndarray:
        """The coordinates `(frames, coordinates)` that the encoder reads off frames of the size of the
        film's."""
        array = np.asarray(frames, dtype=np.float64)
        array = array[..., None] if array.ndim == 3 else array
        array = averaged(array / (255 if np.abs(array).max() > 2 else 1), max(self.model.shape[:2]))
        if array.shape[1:] != self.model.shape:
            raise InvalidArgument(
                f"`frames` must be of the film's size, {self.model.shape}, got {array.shape[1:]}"
            )
        return np.asarray(self.model(torch.from_numpy(array)).numpy())

    def simulate(self, start: Any, steps: int) -> np.ndarray:
        """The law's states at so many frames after a start `(states,)`: coordinates and, of second order,
        their velocities; `(steps + 1, states)`."""
        check_whole("steps", steps)
        path = simulate(self.system, np.asarray(start, dtype=float)[None], steps, 1 / self.fps, "ode")
        return np.asarray(path[0])

    @torch.no_grad()
    def forecast(self, steps: int, film: int = 0) -> np.ndarray:
        """The pictures `(steps, height, width, colours)` that follow the last frame of a film by the law."""
        states = self.simulate(self.states[film][-1], steps)[1:]
        return np.asarray(self.model.decode(torch.from_numpy(states[:, : len(self.names)])).numpy())

    @torch.no_grad()
    def pictures(self, film: int = 0) -> tuple[np.ndarray, np.ndarray]:
        """A film through encoder and decoder, and as the law moves it from its start on."""
        seen = self.model.decode(self.model(torch.from_numpy(self.frames[film])))
        moved = self.model.decode(torch.from_numpy(self.states[film][:, : len(self.names)]))
        return seen.numpy(), moved.numpy()

    def to_json(self) -> dict[str, Any]:
        """Everything but films and weights, as plain data."""
        return {
            "format": FORMAT, "version": VERSION, "targets": list(self.targets),
            "equations": [e.to_json() for e in self.equations], "text": str(self).splitlines(),
            "system": [e.to_json() for e in self.system],
            "constants": [[c.value, c.standard_error if np.isfinite(c.standard_error) else None]
                          for c in self.constants],
            "front": [{"equations": [str(e) for e in c.equations], "complexity": c.complexity,
                       "error": _plain(c.training_error), "ahead": _plain(c.validation_error)}
                      for c in self.front],
            **{n: _plain(getattr(self, n)) for n in ("error", "ahead", "curve", "seconds", "fps")},
            **{n: getattr(self, n) for n in ("order", "ended", "unexplained", "tried")},
        }  # fmt: skip

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Writes the law as JSON, and the networks' weights and the states as safetensors, into a folder."""
        path = Path(folder)
        path.mkdir(parents=True, exist_ok=True)
        tensors = dict(self.model.state_dict())
        parts = self.model.components
        tensors |= {f"components.{n}": torch.from_numpy(np.ascontiguousarray(getattr(parts, n)))
                    for n in ("mean", "axes")}  # fmt: skip
        tensors |= {
            f"states.{k}": torch.from_numpy(np.ascontiguousarray(s)) for k, s in enumerate(self.states)
        }
        write_tensors(path / MODEL, {"format": FORMAT, "version": VERSION}, tensors)
        write_json(path / LAW, self.to_json())

    def report(self, folder: str | os.PathLike[str]) -> Path:
        """Writes the report page, `report.html`, into a folder."""
        path = Path(folder)
        path.mkdir(parents=True, exist_ok=True)
        atomic_write(path / REPORT, film_page(self).encode())
        return path / REPORT

    def __str__(self) -> str:
        return "\n".join(f"{t} = {e}" for t, e in zip(self.targets, self.equations, strict=True))


def _plain(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
