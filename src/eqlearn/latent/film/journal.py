"""Fits of laws on disk, from which a search that was killed goes on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from eqlearn.io.checksummed import read_checksummed, write_tensors
from eqlearn.latent.film.rollout import Motion

_ARRAYS = ("numbers", "shift", "bend", "starts", "number_errors")


@dataclass(frozen=True)
class FilmJournal:
    """A folder with a file for each fit, or none, in which case nothing is kept."""

    folder: Path | None = None

    def recall(self, name: str, motion: Motion) -> Motion | None:
        """The fit of that name of this motion's law, if it was made."""
        if self.folder is None or not (path := self.folder / f"{name}.safetensors").exists():
            return None
        plain, tensors = read_checksummed(path)
        if plain.get("law") != str(motion.structure):
            return None
        arrays: dict[str, Any] = {key: tensors[key].numpy() for key in _ARRAYS}
        pieces = tuple((int(k), int(a), int(b)) for k, a, b in plain["pieces"])
        return replace(motion, **arrays, scale=plain["scale"], error=plain["error"], pieces=pieces)

    def record(self, name: str, motion: Motion) -> None:
        """Keeps a fit."""
        if self.folder is None:
            return
        tensors = {key: torch.as_tensor(getattr(motion, key)).contiguous() for key in _ARRAYS}
        plain = {"law": str(motion.structure), "scale": motion.scale, "error": motion.error,
                 "pieces": [list(p) for p in motion.pieces]}  # fmt: skip
        write_tensors(self.folder / f"{name}.safetensors", plain, tensors)
