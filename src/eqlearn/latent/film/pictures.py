"""Pictures as points: averaged, blurred and turned to their principal components."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.ndimage import gaussian_filter1d

from eqlearn.latent.film.film_settings import FILM, FilmSettings


def averaged(frames: np.ndarray, side: int) -> np.ndarray:
    """Frames `(frames, height, width, colours)` averaged over squares of pixels, to at most `side` a side."""
    factor = -(-max(frames.shape[1:3]) // side)
    if factor == 1:
        return frames
    height, width = (n // factor * factor for n in frames.shape[1:3])
    blocks = frames[:, :height, :width].reshape(
        len(frames), height // factor, factor, width // factor, factor, frames.shape[3]
    )
    return np.asarray(blocks.mean(axis=(2, 4)))


@dataclass(frozen=True, eq=False)
class Components:
    """Principal components of blurred pictures: `mean` `(pixels,)` and `axes` `(pixels, components)`."""

    mean: np.ndarray
    axes: np.ndarray
    blur: float

    @classmethod
    def of(
        cls, films: Sequence[np.ndarray], settings: FilmSettings = FILM, blur: float | None = None
    ) -> Components:
        """Those that hold most of the variance of films `(frames, height, width, colours)` and that are the
        same, nearly, from one frame to the next."""
        blur = settings.blur if blur is None else blur
        pixels = np.concatenate([_blurred(film, blur) for film in films])
        mean = pixels.mean(axis=0)
        about = pixels - mean
        _, sizes, axes = np.linalg.svd(
            about if len(about) < 3000 else _some(about, 3000), full_matrices=False
        )
        share = np.cumsum(sizes**2) / np.sum(sizes**2)
        count = min(settings.components, int(np.searchsorted(share, settings.kept)) + 1, len(sizes))
        points = about @ axes[:count].T
        ends = np.cumsum([len(film) for film in films])[:-1]
        steady = [k == 0 or _follows(np.split(points[:, k], ends)) > settings.steady for k in range(count)]
        return cls(mean, axes[:count][np.array(steady)].T, blur)

    def points(self, frames: np.ndarray) -> np.ndarray:
        """Frames as points `(frames, components)`."""
        return np.asarray((_blurred(frames, self.blur) - self.mean) @ self.axes)


def _blurred(frames: np.ndarray, blur: float) -> np.ndarray:
    smooth = frames
    for axis in (1, 2):
        smooth = gaussian_filter1d(smooth, blur, axis=axis, mode="nearest")
    return np.asarray(smooth.reshape(len(frames), -1))


def _some(rows: np.ndarray, count: int) -> np.ndarray:
    return np.asarray(rows[np.linspace(0, len(rows) - 1, count).round().astype(int)])


def _follows(series: Sequence[np.ndarray]) -> float:
    """The correlation of a component with itself a frame later."""
    before, after = (
        np.concatenate([one[cut] for one in series]) for cut in (slice(None, -1), slice(1, None))
    )
    return float(before @ after / max(np.sqrt((before @ before) * (after @ after)), 1e-300))
