"""ReLU networks to put where the equations stand, for comparison."""

from __future__ import annotations

from itertools import pairwise
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from eqlearn import InvalidArgument, seeded


def relu_network(in_features: int, out_features: int = 1, width: int = 50, depth: int = 2) -> nn.Sequential:
    """`depth` hidden layers of `width` ReLU units and a linear read-out, with torch's own start.

    It maps `(*batch, in)` to `(*batch, out)` as an `EQL` does, and has no sparse layer and no equation.
    """
    numbers = {"in_features": in_features, "out_features": out_features, "width": width, "depth": depth}
    if problems := [f"`{name}` must be at least 1, got {n}" for name, n in numbers.items() if n < 1]:
        raise InvalidArgument("; ".join(problems))
    widths = [in_features, *[width] * depth]
    hidden = [part for inner, outer in pairwise(widths) for part in (nn.Linear(inner, outer), nn.ReLU())]
    return nn.Sequential(*hidden, nn.Linear(width, out_features))


class ReLUCell(nn.Module):
    """States and latents to the states one `dt` later, as an `EQLCell`; one network for all steps.

    `form` "map" gives the next states, "residual" their change per unit of time.
    """

    scales: Tensor

    def __init__(
        self,
        states: int,
        latents: int = 1,
        *,
        width: int = 50,
        depth: int = 2,
        form: Literal["map", "residual"] = "map",
        dt: float = 1.0,
        scales: Tensor | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__()
        with seeded(seed):
            self.network = relu_network(states + latents, states, width, depth)
        self.form = form
        self.dt = dt
        self.register_buffer("scales", torch.ones(states) if scales is None else scales.clone())

    def forward(
        self, y: Float[Tensor, "states rows"], z: Float[Tensor, "latents rows"]
    ) -> Float[Tensor, "states rows"]:
        scales = self.scales[:, None]
        values: Tensor = scales * self.network(torch.cat([y / scales, z]).mT).mT
        return values if self.form == "map" else y + self.dt * values
