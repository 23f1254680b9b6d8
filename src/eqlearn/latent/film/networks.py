"""From pictures to coordinates and back: radial basis networks (Broomhead & Lowe 1988), fitted in one
step."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from eqlearn.latent.film.film_settings import FILM, FilmSettings
from eqlearn.latent.film.pictures import Components


class Radial(nn.Module):
    """A sum of Gaussian bumps around centres, a straight line beside them."""

    centres: Tensor
    width: Tensor

    def __init__(self, centres: int, inputs: int, outputs: int) -> None:
        super().__init__()
        self.register_buffer("centres", torch.zeros(centres, inputs, dtype=torch.float64))
        self.register_buffer("width", torch.ones((), dtype=torch.float64))
        self.weights = nn.Parameter(torch.zeros(centres + inputs + 1, outputs, dtype=torch.float64))

    def features(self, x: Tensor) -> Tensor:
        bumps = torch.exp(-(torch.cdist(x, self.centres) ** 2) / (2 * self.width**2))
        return torch.cat([bumps, x, torch.ones(len(x), 1, dtype=x.dtype)], dim=1)

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.features(x) @ self.weights
        return found

    @classmethod
    def fitted(cls, x: np.ndarray, y: np.ndarray, settings: FilmSettings = FILM) -> Radial:
        """The ridge regression of y on x whose width and ridge foretell every fifth row best."""
        centres = spread(x, settings.units)
        gaps = np.linalg.norm(centres[:, None] - centres[None], axis=2)
        near = float(np.median(np.sort(gaps, axis=1)[:, min(2 * x.shape[1], len(gaps) - 1)]))
        made = cls(len(centres), x.shape[1], y.shape[1])
        made.centres.copy_(torch.from_numpy(centres))
        held = np.arange(len(x)) % 5 == 2
        best: tuple[float, float, float] | None = None
        for factor in settings.widths:
            made.width.fill_(max(factor * near, 1e-12))
            features = made.features(torch.from_numpy(x)).numpy()
            gram, along = features[~held].T @ features[~held], features[~held].T @ y[~held]
            for ridge in settings.ridges:
                weights = np.linalg.solve(gram + ridge * len(x) * np.eye(len(gram)), along)
                missed = float(np.square(features[held] @ weights - y[held]).mean())
                if best is None or missed < best[0]:
                    best = missed, factor, ridge
        assert best is not None
        made.width.fill_(max(best[1] * near, 1e-12))
        features = made.features(torch.from_numpy(x)).numpy()
        gram = features.T @ features + best[2] * len(x) * np.eye(features.shape[1])
        with torch.no_grad():
            made.weights.copy_(torch.from_numpy(np.linalg.solve(gram, features.T @ y)))
        return made


def spread(points: np.ndarray, most: int) -> np.ndarray:
    """At most so many of the points, each as far as can be from those before it (Gonzalez 1985)."""
    chosen = [0]
    gaps = np.linalg.norm(points - points[0], axis=1)
    while len(chosen) < min(most, len(points)) and gaps.max() > 1e-9:
        chosen.append(int(gaps.argmax()))
        gaps = np.minimum(gaps, np.linalg.norm(points - points[chosen[-1]], axis=1))
    return np.asarray(points[chosen])


class FilmModel(nn.Module):
    """The encoder, from frames to the law's coordinates, and the decoder back; frames as they were read,
    averaged down."""

    def __init__(
        self, encoder: Radial, decoder: Radial, components: Components, shape: Sequence[int]
    ) -> None:
        super().__init__()
        self.encoder, self.decoder, self.shape = encoder, decoder, tuple(shape)
        self.components = components

    def forward(self, frames: Tensor) -> Tensor:
        """Coordinates `(frames, coordinates)` of `(frames, height, width, colours)`."""
        points = self.components.points(frames.detach().double().numpy())
        z: Tensor = self.encoder(torch.from_numpy(points))
        return z

    def decode(self, z: Tensor) -> Tensor:
        """Pictures `(frames, height, width, colours)` of coordinates."""
        pictures: Tensor = self.decoder(z.double())
        return pictures.reshape(len(z), *self.shape)


def fitted_networks(
    films: Sequence[np.ndarray], components: Components, places: np.ndarray, settings: FilmSettings = FILM
) -> FilmModel:
    """Networks between pictures and the places `(frames, coordinates)` where a law says that they are."""
    points = np.concatenate([components.points(film) for film in films])
    pictures = np.concatenate([film.reshape(len(film), -1) for film in films])
    encoder = Radial.fitted(points, places, settings)
    decoder = Radial.fitted(places, pictures, settings)
    return FilmModel(encoder, decoder, components, films[0].shape[1:])
