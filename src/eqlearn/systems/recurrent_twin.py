"""The ReLU twin of the EQL cell: an ordinary network in its place, recurrent with shared weights."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from eqlearn.systems.cells import Form, step_once
from eqlearn.systems.twins import relu_network
from eqlearn.training.seeding import seeded


class ReLUCell(nn.Module):
    """States and latents to the states one `dt` later, as an `EQLCell`; one network for all steps."""

    scales: Tensor

    def __init__(
        self,
        states: int,
        latents: int = 1,
        *,
        width: int = 50,
        depth: int = 2,
        form: Form = "map",
        dt: float = 1.0,
        scales: Tensor | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__()
        with seeded(seed):
            self.network = relu_network(states + latents, states, width, depth)
        self.form: Form = form
        self.dt = dt
        self.register_buffer("scales", torch.ones(states) if scales is None else scales.clone())

    def forward(
        self, y: Float[Tensor, "states rows"], z: Float[Tensor, "latents rows"]
    ) -> Float[Tensor, "states rows"]:
        scales = self.scales[:, None]

        def law(at: Tensor) -> Tensor:
            values: Tensor = self.network(torch.cat([at / scales, z]).mT)
            return scales * values.mT

        after: Tensor = step_once(law, y, form=self.form, stepper="euler", dt=self.dt)
        return after
