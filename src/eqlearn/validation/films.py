"""Films that users hand over: frames of one or more films, checked once and in one form."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from eqlearn.errors import InvalidArgument, NotFinite, WrongType, counted

# Seven values are the fewest of which a rate of change can be judged, and a film needs more than one such.
FEWEST = 20


@dataclass(frozen=True, eq=False)
class Films:
    """Films `(frames, height, width, colours)` with values from 0 to 1 or about that, at `fps` frames a
    second."""

    frames: tuple[np.ndarray, ...]
    fps: float

    @property
    def dt(self) -> float:
        return 1 / self.fps

    @property
    def count(self) -> int:
        """How many frames there are in all."""
        return sum(map(len, self.frames))


def read_films(frames: Any, fps: Any) -> Films:
    """One film `(frames, height, width)`, with three or four colours last where there are such, several of
    the same as an array with one dimension more, or as a list."""
    films = tuple(_film(one, k) for k, one in enumerate(_listed(frames)))
    kinds = {("grey" if film.shape[3] == 1 else "colour") for film in films}
    if len(kinds) > 1:
        raise InvalidArgument("`frames` holds films in grey and films in colour; give all of one kind")
    if len(sizes := {film.shape[1:] for film in films}) > 1:
        shown = " and ".join(sorted(f"{h} x {w}" for h, w, _ in sizes)[:2])
        raise InvalidArgument(f"`frames` holds films of different sizes, {shown}; crop or scale them alike")
    values = np.concatenate([film.reshape(len(film), -1) for film in films])
    largest = float(np.abs(values).max())
    if not float(np.ptp(values, axis=0).max(initial=0.0)) > 1e-9 * (largest or 1.0):
        raise InvalidArgument("nothing moves in `frames`: all pictures are the same")
    # Values from 0 to 255 are shares of 255.
    return Films(tuple(film / 255 if largest > 2 else film for film in films), checked_fps(fps))


def checked_fps(fps: Any) -> float:
    """Frames a second, refused if they are none."""
    if isinstance(fps, bool) or not isinstance(fps, (int, float, np.integer, np.floating)):
        raise WrongType(f"`fps` must be a number, the frames a second, got {fps!r}")
    if not 0 < fps < math.inf:
        raise InvalidArgument(f"`fps` must be positive and finite, got {fps}")
    return float(fps)


def _listed(frames: Any) -> Sequence[Any]:
    if isinstance(frames, (list, tuple)) and len(frames) and np.ndim(frames[0]) >= 3:
        return frames
    array = _array(frames)
    several = array.ndim == 5 or (array.ndim == 4 and array.shape[3] not in (1, 3, 4))
    return list(array) if several else [array]


def _array(frames: Any) -> np.ndarray:
    try:
        array = np.asarray(frames)
    except ValueError as error:
        raise InvalidArgument(
            "`frames` must be pictures of one size; give several films as a list"
        ) from error
    if array.dtype.kind not in "uifb":
        raise WrongType(f"`frames` must be numbers, got an array of {array.dtype}")
    return array


def _film(frames: Any, place: int) -> np.ndarray:
    film = _array(frames)
    if film.ndim == 3:
        film = film[..., None]
    if film.ndim != 4 or film.shape[3] not in (1, 3, 4) or min(film.shape) < 1:
        raise InvalidArgument(
            f"`frames` must be (frames, height, width), or that with 3 colours last; film {place + 1} is "
            f"{np.shape(frames)}"
        )
    if len(film) < FEWEST:
        few = counted(len(film), "frame")
        raise InvalidArgument(f"film {place + 1} has {few}; a law of motion takes {FEWEST} of each at least")
    if min(film.shape[1:3]) < 4:
        raise InvalidArgument(
            f"pictures of {film.shape[1]} x {film.shape[2]} pixels are too small; 4 x 4 at least"
        )
    if not np.isfinite(film).all():
        raise NotFinite(
            f"film {place + 1} holds NaN or infinite values; fill such pixels or leave out the frames"
        )
    return film[..., :3].astype(np.float64)
