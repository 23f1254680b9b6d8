"""The rollout: a cell applied to its own output, step by step."""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from eqlearn.errors import InvalidArgument


def rollout(
    cell: Any,
    state: Float[Tensor, "*any states rows"],
    latent: Float[Tensor, "*any latents rows"],
    steps: int,
) -> Float[Tensor, "*more steps states rows"]:
    """The `steps` states after `state`; `cell(state, latent)` gives the next one.

    Nothing is clipped: a cell that explodes gives infinities, which the training loop treats as that
    member's failure.
    """
    if steps < 1:
        raise InvalidArgument(f"`steps` must be at least 1, got {steps}")
    states = []
    for _ in range(steps):
        state = cell(state, latent)
        states.append(state)
    return torch.stack(states, dim=-3)
