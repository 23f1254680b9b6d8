"""Distillation: the encoder learns the latents that suit the law, also from series that the law makes."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from eqlearn.systems.law import Law
from eqlearn.systems.rollout import rollout
from eqlearn.systems.series import SeriesEncoder
from eqlearn.systems.trajectories import Trajectories
from eqlearn.training.schedule import Phase
from eqlearn.training.seeding import step_generator

MOVED = 0.1  # of the way from one series' latents to another's


@torch.no_grad()
def simulated(
    law: Law, latent: Float[Tensor, "latents series"], observed: Trajectories, count: int, seed: int
) -> tuple[Float[Tensor, "some time states"], Float[Tensor, "some latents"]]:
    """Up to `count` new series as long as the observed ones, and their latents, made by the law.

    Each has the initial value of some observed series for each state, and the latents of another, moved a
    little towards those of a third: further would thin out the ends of their range, where the encoder would
    then be worst. What leaves the range of the observed series is left out.
    """
    generator = torch.Generator().manual_seed(seed)
    series = len(observed.states)

    def some() -> Tensor:
        return torch.randint(series, (count,), generator=generator)

    initial = torch.stack([observed.states[some(), 0, i] for i in range(observed.states.shape[2])])
    near = MOVED * torch.rand(count, generator=generator, dtype=torch.float64)
    z = torch.lerp(latent[:, some()], latent[:, some()], near)
    states = torch.cat([initial[None], rollout(law, initial, z, observed.steps)]).permute(2, 0, 1)
    limit = 1.2 * observed.states.abs().amax(dim=(0, 1))
    inside = (states.abs() <= limit).all(dim=2).all(dim=1)  # false for what is not finite, too
    return states[inside], z.mT[inside]


class DistilLoss(nn.Module):
    """The mean square error of an encoder's latents; batches are drawn by `seed` and the step's number."""

    step: Tensor
    series: Tensor
    latent: Tensor

    def __init__(self, series: Tensor, latent: Tensor, *, batch: int, seed: int = 0) -> None:
        super().__init__()
        self.batch = batch
        self.seed = seed
        self.register_buffer("step", torch.zeros((), dtype=torch.int64))
        self.register_buffer("series", series.float(), persistent=False)
        self.register_buffer("latent", latent.float(), persistent=False)

    def forward(self, encoder: SeriesEncoder, phase: Phase) -> Float[Tensor, ""]:
        generator = step_generator(self.seed, self.step)
        self.step += 1
        rows = torch.randint(len(self.series), (min(self.batch, len(self.series)),), generator=generator)
        # The target has its units already: standardising each batch anew would blur them.
        encoder.norm.eval()
        z: Tensor = encoder(self.series[rows])
        return (z - self.latent[rows]).square().mean()
