"""Randomness by seed: of torch's global generator, and of each step of a training."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seeds torch inside the block and gives the caller's random state back after it."""
    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        torch.manual_seed(seed)
        yield


def step_generator(seed: int, step: int | torch.Tensor) -> torch.Generator:
    """The generator of one step, so that what a step draws does not depend on how it was reached."""
    # torch's generator looks at 32 bits of a seed only; a prime keeps the steps of two seeds apart.
    return torch.Generator().manual_seed((seed * 1_000_003 + int(step)) % 2**32)
