"""The dynamical system: an encoder reads one series, a cell propagates another of the same parameter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from eqlearn.dynamics.derivatives import smooth
from eqlearn.dynamics.forms import FORMS, CellForm
from eqlearn.errors import InvalidArgument, counted
from eqlearn.latent.encoder import member_of, read_latents
from eqlearn.latent.gauge import Gauge
from eqlearn.latent.motion.cells import rollout
from eqlearn.latent.motion.own import OwnEncoder, fitted_in
from eqlearn.latent.motion.refine import Refined
from eqlearn.latent.motion.series import EncoderShape, SeriesEncoder
from eqlearn.symbolic.equation import Equation
from eqlearn.training.members import count_members
from eqlearn.training.schedule import Phase
from eqlearn.training.state import step_generator
from eqlearn.validation.latents import Batch, LatentData
from eqlearn.validation.options import check_place
from eqlearn.validation.trajectories import Trajectories


@dataclass(frozen=True, eq=False)
class Pairs:
    """Series in pairs of one parameter: what the encoder reads, and what the cell has to propagate; each of
    the two of one length."""

    observed: Trajectories
    propagated: Trajectories

    def __post_init__(self) -> None:
        mine, other = self.observed, self.propagated
        count, others = len(mine.states), len(other.states)
        if count != others:
            raise InvalidArgument(f"{count} `observed` series for {others} `propagated` ones; give pairs")
        if mine.names != other.names or mine.dt != other.dt:
            raise InvalidArgument("`observed` and `propagated` must have the same states and step of time")


class DynamicsSystem(nn.Module):
    """`forward(observed, initial, steps)`: the states that follow `initial` in the system that was observed.

    `encoder` is any module from series `(rows, time, states)` to latents `(rows, n)`, and `cell` any module
    `(y, z)` to the next `y`, feature-major: an `EQLCell` or a ReLU network. Without an encoder there is no
    latent. With members, the result is `(members, ...)`, and a part that has none is common to all members.
    """

    def __init__(self, encoder: nn.Module | None, cell: nn.Module) -> None:
        super().__init__()
        self.encoder = encoder
        self.cell = cell

    def latent(self, observed: Float[Tensor, "batch time states"]) -> Float[Tensor, "*members latents batch"]:
        """The latents of the series, feature-major."""
        if self.encoder is None:
            return observed.new_zeros(0, len(observed))
        return read_latents(self.encoder, observed, finite=not self.training).mT

    def forward(
        self, observed: Float[Tensor, "batch time states"], initial: Float[Tensor, "batch states"], steps: int
    ) -> Float[Tensor, "*members steps states batch"]:
        z = self.latent(observed)
        if z.dim() == 2 and (members := getattr(self.cell, "members", None)) is not None:
            z = z.expand(members, *z.shape)
        y = initial.mT.expand(*z.shape[:-2], *initial.mT.shape)
        return rollout(self.cell, y, z, steps)

    def member(self, index: int) -> DynamicsSystem:
        """One system of the population, as a system of its own (a copy).

        A part without members is common to all of them; a system without any has the one member 0.
        """
        check_place("member", index, count_members(self) or 1)
        encoder = None if self.encoder is None else member_of(self.encoder, index)
        return DynamicsSystem(encoder, member_of(self.cell, index)).train(self.training)


class PropagationLoss(nn.Module):
    """The mean square error of the propagated states over the phase's `horizon`, one number per member.

    States are compared in units of `scales`. With `batch`, each step sees that many pairs, drawn as a pure
    function of `seed` and of the step's number, which is part of the state: a resumed run is identical.
    """

    step: Tensor
    observed: Tensor
    target: Tensor
    scales: Tensor

    def __init__(
        self,
        pairs: Pairs,
        *,
        scales: Tensor | None = None,
        batch: int | None = None,
        seed: int = 0,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__()
        self.batch = batch
        self.seed = seed
        self.register_buffer("step", torch.zeros((), dtype=torch.int64))
        scales = torch.ones(len(pairs.observed.names)) if scales is None else scales
        self.register_buffer("observed", pairs.observed.states.to(dtype), persistent=False)
        self.register_buffer("target", pairs.propagated.states.to(dtype), persistent=False)
        self.register_buffer("scales", scales.to(dtype), persistent=False)

    def forward(self, model: DynamicsSystem, phase: Phase) -> Float[Tensor, "*members"]:
        horizon = phase.horizon or self.target.shape[1] - 1
        if not 1 <= horizon < self.target.shape[1]:
            raise InvalidArgument(
                f"phase {phase.name!r}: `horizon` {horizon} does not fit in series of "
                f"{self.target.shape[1] - 1} steps"
            )
        observed, series = self._draw(horizon)
        predicted = model(observed, series[:, 0], horizon)
        truth = series[:, 1:].permute(1, 2, 0)
        scales = self.scales[:, None]
        error: Tensor = (predicted - truth) / scales
        return error.square().mean(dim=(-3, -2, -1))

    def _draw(self, horizon: int) -> tuple[Tensor, Tensor]:
        """The series of this step: `(batch, time, states)` to read and `(batch, horizon + 1, states)`."""
        generator = step_generator(self.seed, self.step)
        self.step += 1
        observed, target = self.observed, self.target
        if self.batch is not None and self.batch < len(target):
            rows = torch.randperm(len(target), generator=generator)[: self.batch]
            observed, target = observed[rows], target[rows]
        return observed, target[:, : horizon + 1]


@dataclass(frozen=True, eq=False)
class FoundDynamics:
    """An encoder and a step of time that belong together; `equations` say the step in the encoder's z.

    For an ODE, the equations are rates of change. `canonical` are they in the canonical gauge, and `gauges`
    lead there from z. After a search, `refined` is the law with every training series' own latent, and
    `agreement` how many of the independent starts came to this law, and of how many (none for a sum of
    products); after training by gradients, `trained` is the system as it was trained. `ended` is "complete",
    "interrupted" (by Ctrl-C: the best so far) or "stopped" (by `stop`).
    """

    encoder: SeriesEncoder | OwnEncoder | None
    step: Callable[[Tensor, Tensor], Tensor]
    equations: tuple[Equation, ...]
    canonical: tuple[Equation, ...]
    gauges: tuple[Gauge, ...] = ()
    trained: DynamicsSystem | None = None
    refined: Refined | None = None
    failures: int = 0
    agreement: tuple[int, int] | None = None
    ended: str = "complete"

    @torch.no_grad()
    def latent(self, observed: Float[Tensor, "series time states"]) -> Float[Tensor, "latents series"]:
        """The latents of these series."""
        if self.encoder is None:
            return observed.new_zeros(0, len(observed)).double()
        z: Tensor = self.encoder.eval()(observed.to(self.encoder.scales))
        return z.mT.double()

    @torch.no_grad()
    def predict(
        self,
        observed: Float[Tensor, "series time states"],
        initial: Float[Tensor, "series states"],
        steps: int,
    ) -> Float[Tensor, "series after states"]:
        """The states from `initial` on, `steps` of them after it, each in the system that was observed."""
        first = initial.mT.double()
        after = rollout(self.step, first, self.latent(observed), steps)
        return torch.cat([first[None], after]).permute(2, 0, 1)


def encoder_scales(observed: Trajectories, scaling: str) -> Tensor:
    """What an encoder divides its series by."""
    if scaling == "time":
        by_time = observed.states.square().mean(dim=0).sqrt()
        return by_time.clamp(min=1e-6 * observed.scales).float()
    return (observed.scales if scaling == "state" else torch.ones_like(observed.scales)).float()


def reader_of(
    pairs: Pairs, shape: EncoderShape | None, encoder: nn.Module | None, latents: int | None, seed: int
) -> SeriesEncoder | OwnEncoder | None:
    """The encoder before it is trained: a copy of one's own, or one that suits the series."""
    observed = pairs.observed
    scales = encoder_scales(observed, "time")
    if encoder is not None:
        own = fitted_in(encoder, observed.states.float(), scales)
        if own.members is not None:
            raise InvalidArgument("`encoder` has members; a search takes one, and starts it anew by itself")
        if latents is not None and not 1 <= latents <= own.latents:
            raise InvalidArgument(
                f"`encoder` gives {counted(own.latents, 'latent')}, but `latents` is {latents}"
            )
        return own
    if latents == 0:
        return None
    count, times, states = (1 if latents is None else latents), *observed.states.shape[1:]
    shape = shape or EncoderShape.suited(times)
    return SeriesEncoder(states, times, count, shape=shape, scales=scales, seed=seed)


def single_steps(series: Trajectories, form: CellForm) -> tuple[Tensor, Tensor, Tensor]:
    """States `(rows, states)`, what the equations should give there, and the number of each row's series.

    Rates of change are smoothed as `discover_dynamics` does; of series too short for it, they are differences
    and stand for the middle of a step.
    """
    before, after = [one[:-1] for one in series.series], [one[1:] for one in series.series]
    changes = [(b - a) / series.dt for a, b in zip(before, after, strict=True)]
    if form == "map":
        states, targets = before, after
    elif form == "residual":
        states, targets = before, changes
    elif series.steps + 1 < FORMS["ode"].min_times:
        states, targets = [(a + b) / 2 for a, b in zip(before, after, strict=True)], changes
    else:
        states, targets = smooth(series.series, series.dt)
    index = torch.arange(len(states)).repeat_interleave(len(states[0]))
    return torch.from_numpy(np.concatenate(states)), torch.from_numpy(np.concatenate(targets)), index


class SeriesRows(LatentData):
    """Rows that are times of series; a batch has many times of few series, since series are what costs."""

    series, times = 64, 16

    def __init__(self, training: Batch, held: Batch, columns: tuple[str, ...], index: Tensor) -> None:
        super().__init__(training, held, columns)
        self.order = index.argsort(stable=True)
        self.counts = torch.bincount(index)
        self.first = self.counts.cumsum(0) - self.counts

    def draw(self, size: int, generator: torch.Generator) -> Batch:
        present = self.counts.nonzero()[:, 0]
        series = present[torch.randperm(len(present), generator=generator)[: self.series]]
        within = torch.rand(len(series), self.times, generator=generator) * self.counts[series, None]
        rows = self.order[(self.first[series, None] + within.long()).flatten()]
        return self.training[rows]
