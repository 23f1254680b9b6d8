"""One trial of MNIST arithmetic by search: the law behind the encoder, by one call of `discover_latent`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Shaped
from torch import Tensor, nn

from eqlearn import FoundLatent, ImageArithmetic, LatentProgress, discover_latent, seeded
from eqlearn.paper.mnist.digits import Digits
from eqlearn.paper.mnist.encoder import DigitEncoder
from eqlearn.paper.mnist.pairs import LATENTS, Pairs
from eqlearn.paper.mnist.recipes import SEARCHES, Condition


def searched(
    condition: Condition,
    digits: Digits,
    seed: int,
    *,
    journal: Path | None = None,
    progress: Callable[[LatentProgress], object] | None = None,
) -> FoundLatent:
    """One search from start to end; with a `journal`, one that was killed goes on from there."""
    search = SEARCHES[condition.dataset]
    with seeded(seed):
        encoder = DigitEncoder(digits.side)
    pairs = Pairs(
        digits.train.images, digits.train.labels, condition.operation, seed=seed, batch=search.batch,
        pairs=search.pairs, augmentation=search.augmentation, below=condition.below,
    )  # fmt: skip
    return discover_latent(
        dict.fromkeys(LATENTS, encoder), data=pairs, primitives=search.primitives, seconds=None,
        seed=seed, settings=search.settings_for(condition.below), progress=progress, journal=journal,
    )  # fmt: skip


class _Latent(nn.Module):
    """The encoder of a law that was found: images to latents, in the law's own gauge."""

    def __init__(self, found: FoundLatent) -> None:
        super().__init__()
        self.found = found

    def forward(self, images: Shaped[Tensor, "rows height width"]) -> Tensor:
        return self.found.latent(LATENTS[0], images)[:, None]


def as_system(found: FoundLatent) -> ImageArithmetic:
    """The encoder and the law as one system, to be measured as others are."""
    return ImageArithmetic(_Latent(found), found.equation.torch(), scale=1.0, offset=0.0).eval()


def told(found: FoundLatent) -> dict[str, Any]:
    """What is told of a search beside its law, ready for JSON."""
    front = [{"law": str(c), "nodes": c.complexity, "error": c.error} for c in found.front]
    kept = {name: getattr(found, name) for name in ("error", "held_error", "head_error", "ended")}
    equivalent = ["; ".join(map(str, each)) for each in found.equivalent]
    agreed, starts = found.agreement
    return {
        **kept, "agreed": agreed, "starts": starts, "front": front, "equivalent": equivalent,
        "threads": torch.get_num_threads(),
    }  # fmt: skip
