"""Dynamics with a hidden parameter, found whole: encoder and equations by back-propagation, then exactly."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from eqlearn.dynamics.settings import FINISH
from eqlearn.errors import Diverged, InvalidArgument
from eqlearn.latent.gauge import Gauge
from eqlearn.latent.motion.cells import CellShape, EQLCell, rollout
from eqlearn.latent.motion.finish import DistilLoss, finish, simulated
from eqlearn.latent.motion.law import Law
from eqlearn.latent.motion.refine import Refined
from eqlearn.latent.motion.series import EncoderShape, SeriesEncoder
from eqlearn.latent.motion.system import DynamicsSystem, Pairs, PropagationLoss
from eqlearn.nn.penalties import Penalty, SmoothHalf
from eqlearn.nn.sparse import settle_
from eqlearn.numerics.budget import never
from eqlearn.symbolic.equation import Equation
from eqlearn.training.loop import Beginning, Record, Training, train
from eqlearn.training.optimisers import OptimiserFactory
from eqlearn.training.schedule import Phase, Schedule
from eqlearn.training.state import TrainingState
from eqlearn.validation.trajectories import Trajectories, latent_names

Follow = Callable[[str, Beginning], Iterator[Record]]


def plainly(name: str, start: Beginning) -> Iterator[Record]:
    """Runs a training of that name from its beginning, without a file to resume from."""
    return iter(start(None))


@dataclass(frozen=True, kw_only=True)
class DynamicsSettings:
    """Everything that decides a run but data and seed.

    `scaling` is what observed and propagated states are divided by: nothing ("raw"), each state's spread
    ("state"), or, for the encoder's series, each state's spread at each time ("time"), for series that grow.
    `finished` adds what is beyond the paper: refinement of the law by second order, elimination, and the
    encoder's distillation over the phases of `distil` (its read-out alone, without any).
    """

    encoder: EncoderShape
    cell: CellShape
    schedule: Schedule
    optimiser: OptimiserFactory
    penalty: Penalty = field(default_factory=SmoothHalf)
    members: int = 1
    batch: int | None = None
    windows: bool = False
    scaling: Literal["raw", "state", "time"] = "raw"
    finished: bool = False
    orders: int = 1
    distil: Schedule = ()


@dataclass(frozen=True, eq=False)
class FoundDynamics:
    """An encoder and a step of time that belong together; `equations` say the step in the encoder's z.

    For an ODE, the equations are rates of change. `canonical` are they in the canonical gauge, and
    `gauges` lead there from z. `trained` is the system before it was finished, `refined` the law with every
    training series' own latent.
    """

    encoder: SeriesEncoder | None
    step: Callable[[Tensor, Tensor], Tensor]
    equations: tuple[Equation, ...]
    canonical: tuple[Equation, ...]
    gauges: tuple[Gauge, ...]
    trained: DynamicsSystem
    refined: Refined | None
    failures: int = 0

    @torch.no_grad()
    def latent(self, observed: Float[Tensor, "series time states"]) -> Float[Tensor, "latents series"]:
        """The latents of these series."""
        if self.encoder is None:
            return observed.new_zeros(0, len(observed)).double()
        z: Tensor = self.encoder.eval()(observed.to(self.encoder.biases[0]))
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


def build(pairs: Pairs, settings: DynamicsSettings, latents: int, seed: int) -> DynamicsSystem:
    """The untrained population; a seed's start depends on nothing else."""
    observed, shape, members, seed = pairs.observed, settings.encoder, settings.members, seed * 1000
    states, times = observed.states.shape[2], observed.states.shape[1]
    scales = torch.ones(states) if settings.scaling == "raw" else pairs.propagated.scales.float()
    encoder = None
    if latents:
        read = encoder_scales(observed, settings.scaling)
        encoder = SeriesEncoder(states, times, latents, shape=shape, scales=read, members=members, seed=seed)
    cell = EQLCell(
        states, latents, shape=settings.cell, dt=observed.dt, scales=scales, members=members, seed=seed
    )
    return DynamicsSystem(encoder, cell)


def train_dynamics(
    pairs: Pairs,
    settings: DynamicsSettings,
    *,
    latents: int = 1,
    seed: int = 0,
    follow: Follow = plainly,
    on_record: Callable[[Record], object] | None = None,
    record_every: int = 100,
    stop: Callable[[], bool] = never,
) -> FoundDynamics:
    """Trains encoder and equations through the rollout, then (if `finished`) makes the equations exact.

    This is gradient training, as in the paper, for an encoder that reads the hidden parameter off new series;
    `discover_hidden` searches for the law and fits the parameter of each series without an encoder, and
    `discover_dynamics` is for series that all obey one law. Only the propagated series are compared with
    the truth. `follow` runs a training, and may keep its state in a file; see `followed`. Members that
    diverge are counted in `failures`.

    **Raises:** `Diverged` when no member is left.
    """
    system = build(pairs, settings, latents, seed)
    cell = system.cell
    scales = cell.scales if isinstance(cell, EQLCell) else None
    loss = PropagationLoss(pairs, scales=scales, batch=settings.batch, windows=settings.windows, seed=seed)

    runs: list[Training] = []

    def start(state: TrainingState | None) -> Training:
        runs.append(
            train(
                system, loss, settings.schedule, penalty=settings.penalty, optimiser=settings.optimiser,
                record_every=record_every, on_record=on_record, resume=state,
            )
        )  # fmt: skip
        return runs[-1]

    for _ in follow("training", start):
        if stop():
            break
    failed = runs[-1].failures
    ranked = _ranked(system, pairs, settings.schedule[-1], scales, {f.member for f in failed})
    if not settings.finished:
        return _as_trained(ranked[0], pairs, len(failed))
    fits = _finished(ranked, pairs, settings, stop)
    best = min(range(len(fits)), key=lambda i: fits[i].score(pairs.propagated.states[:, 0].numel()))
    if not math.isfinite(fits[best].loss):
        raise InvalidArgument(
            "every member's equations came to nothing or diverged; lower the `penalty` of the schedule"
        )
    found = _assembled(ranked[best], fits[best], len(failed))
    if found.encoder is not None and not _distil_(found, pairs, settings, seed, follow):
        return replace(found, failures=found.failures + 1)
    return found


def _series_encoder(system: DynamicsSystem) -> SeriesEncoder | None:
    return system.encoder if isinstance(system.encoder, SeriesEncoder) else None


def _ranked(
    system: DynamicsSystem, pairs: Pairs, phase: Phase, scales: Tensor | None, failed: set[int | None]
) -> list[DynamicsSystem]:
    """The members that did not fail, the best first, their normalisation settled on all training series."""
    system.eval()
    settle_(system)
    observed = pairs.observed.states.float()
    if (encoder := _series_encoder(system)) is not None:
        encoder.take_statistics_(observed)
    with torch.no_grad():
        losses = PropagationLoss(pairs, scales=scales)(system, phase)
    order = [int(i) for i in losses.nan_to_num(nan=torch.inf).argsort() if int(i) not in failed]
    if not order:
        raise Diverged(phase.name, phase.steps)
    return [system.member(i) for i in order]


def _as_trained(system: DynamicsSystem, pairs: Pairs, failures: int) -> FoundDynamics:
    """What a preset without finish ends with: the network is the equation, however long."""
    cell = system.double().cell
    latents = cell.latents if isinstance(cell, EQLCell) else 0
    variables = [*pairs.observed.names, *latent_names(int(latents))]
    read = cell.right_hand_side if isinstance(cell, EQLCell) and cell.shape.form == "ode" else cell
    equations = Equation.read_all(read, variables)
    return FoundDynamics(_series_encoder(system), cell, equations, equations, (), system, None, failures)


def _finished(
    ranked: Sequence[DynamicsSystem], pairs: Pairs, settings: DynamicsSettings, stop: Callable[[], bool]
) -> list[Refined]:
    """Each member's law made exact, the best first, until one leaves no more than a thousandth."""
    fits: list[Refined] = []
    for system in ranked:
        cell = system.cell
        if not isinstance(cell, EQLCell):
            raise InvalidArgument("only a system with an `EQLCell` can be finished; it has the equations")
        with torch.no_grad():
            z = system.latent(pairs.observed.states.float()).double()
        law = Law.of_cell(cell, pairs.observed.names, latent_names(cell.latents))
        if not law.terms:
            fits.append(Refined(law, z, math.inf))
            continue
        fits.append(finish(law, z, pairs.propagated, orders=settings.orders, stop=stop))
        if fits[-1].loss < FINISH.enough:
            break
    return fits


def _assembled(system: DynamicsSystem, fit: Refined, failures: int) -> FoundDynamics:
    """Encoder and law with one z, the encoder's: standard deviation ½ over the training set."""
    gauges = tuple(Gauge(2 * float(p.std(correction=0)) or 1.0, float(p.mean())) for p in fit.latent)
    law, encoder = fit.law.regauged([gauge.inverse for gauge in gauges]), _series_encoder(system)
    return FoundDynamics(encoder, law, law.equations(), fit.law.equations(), gauges, system, fit, failures)


def _distil_(
    found: FoundDynamics, pairs: Pairs, settings: DynamicsSettings, seed: int, follow: Follow
) -> bool:
    """Makes the encoder, in place, give the latents that the law needs: its read-out by least squares, all of
    it over the phases of `distil`; false if that diverged."""
    fit, encoder = found.refined, found.encoder
    if fit is None or encoder is None:
        return True
    own, law = pairs.observed.states, fit.law
    series, latent = simulated(law, fit.latent, pairs.observed, FINISH.simulated * len(own), seed)
    kept = len(series) // 3  # back, for the calibration
    held, known = series[:kept], latent[:kept]
    series, latent = torch.cat([own, series[kept:]]), torch.cat([fit.latent.mT, latent[kept:]])
    target, truth = (
        torch.stack([g.latent(p) for g, p in zip(found.gauges, each.mT, strict=True)], dim=1)
        for each in (latent, known)
    )
    loss = DistilLoss(series, target, batch=settings.batch or len(own), seed=seed)
    encoder.solve_readout_(series.float(), target)

    def start(state: TrainingState | None) -> Training:
        return train(encoder, loss, settings.distil, optimiser=torch.optim.Adam, resume=state)

    stayed = True
    try:
        for _ in follow("distillation", start) if settings.distil else ():
            pass
    except Diverged:
        stayed = False
    encoder.eval().solve_readout_(series.float(), target)
    if len(held) > 2:
        encoder.calibrate_(held.float(), truth)
    return stayed
