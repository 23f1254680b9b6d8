"""Laws compared by simulating them: over longer and longer horizons, and by what they foretell."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from eqlearn.latent.film.journal import FilmJournal
from eqlearn.latent.film.laws import Term
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
    def shortest(laws: Sequence[Compared], settings: FilmSettings = FILM) -> Compared:
    """The shortest law whose errors are near the least."""
    floor = settings.negligible
    least = max(min(c.error for c in laws), floor), max(min(c.ahead for c in laws), floor)
    near = [
        c for c in laws
        if c.error <= settings.close * least[0] and c.ahead <= settings.close**2 * least[1]
    ]  # fmt: skip
    return min(near, key=lambda c: (c.size, c.worst)) if near else min(laws, key=lambda c: c.worst)
