"""Dynamics with a hidden parameter, found whole: encoder and equations by back-propagation, then exactly."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from eqlearn.dynamics.settings import FINISH
from eqlearn.errors import Diverged, InvalidArgument, counted
from eqlearn.latent.gauge import Gauge
from eqlearn.latent.motion.cells import CellShape, EQLCell, rollout
from eqlearn.latent.motion.finish import DistilLoss, Follow, distil_, finish
from eqlearn.latent.motion.law import Law
from eqlearn.latent.motion.own import OwnEncoder, drawn_anew, fitted_in
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

    encoder: SeriesEncoder | OwnEncoder | None
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


def build(
    pairs: Pairs,
    settings: DynamicsSettings,
    latents: int,
    seed: int,
    encoder: SeriesEncoder | OwnEncoder | None = None,
) -> DynamicsSystem:
    """The untrained population, or one system with an encoder of one's own; a seed's start depends on nothing
    else."""
    observed, shape = pairs.observed, settings.encoder
    members = settings.members if encoder is None else encoder.members
    states, times = observed.states.shape[2], observed.states.shape[1]
    scales = torch.ones(states) if settings.scaling == "raw" else pairs.propagated.scales.float()
    cell = EQLCell(
        states, latents, shape=settings.cell, dt=observed.dt, scales=scales, members=members, seed=seed,
        names=observed.names,
    )  # fmt: skip
    if encoder is None and latents:
        read = encoder_scales(observed, settings.scaling)
        shape = replace(shape, affine=True) if cell.known else shape
        encoder = SeriesEncoder(states, times, latents, shape=shape, scales=read, members=members, seed=seed)
    elif isinstance(encoder, OwnEncoder) and cell.known:
        encoder.free_()
    return DynamicsSystem(encoder, cell)


def train_dynamics(
    pairs: Pairs,
    settings: DynamicsSettings,
    *,
    encoder: nn.Module | None = None,
    latents: int | None = None,
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

    `encoder` is any module from series `(rows, time, states)`, divided as `scaling` says, to `(rows, n)`; a
    copy of it is trained. By default it is the `SeriesEncoder` of the settings, with 1 of `latents`.
    The `members` of settings are starts of an own encoder that are tried one after the other, the first from
    its weights as they are, the next from weights drawn anew.

    **Raises:** `Diverged` when no member is left.
    """
    tried: list[_Tried] = []
    failures, diverged = 0, None
    for number, system in enumerate(_starts(pairs, settings, encoder, latents, seed)):
        name = "training" if number == 0 else f"training-{number + 1}"
        try:
            ranked, failed = _trained(
                system, pairs, settings, seed, name, follow, on_record, record_every, stop
            )
        except Diverged as error:
            diverged, failures = error, failures + 1
            continue
        failures += failed
        tried += _finished(ranked, pairs, settings, stop) if settings.finished else ranked
        if stop() or (settings.finished and tried[-1].loss < FINISH.enough):
            break
    if not tried and diverged is not None:
        raise diverged
    rows = pairs.propagated.states[:, 0].numel()
    best = min(tried, key=lambda one: one.score(rows))
    if best.fit is None:
        return _as_trained(best.system, pairs, failures)
    if not math.isfinite(best.loss):
        raise InvalidArgument(
            "every member's equations came to nothing or diverged; lower the `penalty` of the schedule"
        )
    found = _assembled(best.system, best.fit, failures)
    if found.encoder is None:
        return found
    loss = DistilLoss.of(best.fit, found.gauges, pairs.observed, batch=settings.batch, seed=seed)
    stayed = distil_(found.encoder, loss, settings.distil, follow)
    return found if stayed else replace(found, failures=failures + 1)


@dataclass(frozen=True, eq=False)
class _Tried:
    """A member after its training, by the loss of the last phase; or after its finish, by that of its fit."""

    system: DynamicsSystem
    loss: float
    fit: Refined | None = None

    def score(self, rows: int) -> float:
        return self.loss if self.fit is None else self.fit.score(rows)


def _starts(
    pairs: Pairs, settings: DynamicsSettings, encoder: nn.Module | None, latents: int | None, seed: int
) -> Iterator[DynamicsSystem]:
    """The untrained population; or, with an encoder of one's own, as many systems as there are members."""
    if encoder is None:
        yield build(pairs, settings, 1 if latents is None else latents, seed * 1000)
        return
    read = encoder_scales(pairs.observed, settings.scaling)
    own = fitted_in(encoder, pairs.observed.states.float(), read)
    if latents not in (None, own.latents):
        raise InvalidArgument(f"`encoder` gives {counted(own.latents, 'latent')}, but `latents` is {latents}")
    if own.members is not None and settings.members not in (1, own.members):
        raise InvalidArgument(f"`encoder` has {own.members} members, but the settings {settings.members}")
    for number in range(1 if own.members is not None else settings.members):
        start = seed * 1000 + number
        yield build(pairs, settings, own.latents, start, drawn_anew(own, start) if number else deepcopy(own))


def _trained(
    system: DynamicsSystem,
    pairs: Pairs,
    settings: DynamicsSettings,
    seed: int,
    name: str,
    follow: Follow,
    on_record: Callable[[Record], object] | None,
    record_every: int,
    stop: Callable[[], bool],
) -> tuple[list[_Tried], int]:
    """The members that did not fail, the best first, and how many failed."""
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

    for _ in follow(name, start):
        if stop():
            break
    failed = runs[-1].failures
    ranked = _ranked(system, pairs, settings.schedule[-1], scales, {f.member for f in failed})
    return ranked, len(failed)


def _reader(system: DynamicsSystem) -> SeriesEncoder | OwnEncoder | None:
    return system.encoder if isinstance(system.encoder, SeriesEncoder | OwnEncoder) else None


def _ranked(
    system: DynamicsSystem, pairs: Pairs, phase: Phase, scales: Tensor | None, failed: set[int | None]
) -> list[_Tried]:
    """The members that did not fail, the best first, their normalisation settled on all training series."""
    system.eval()
    settle_(system)
    observed = pairs.observed.states.float()
    if (encoder := _reader(system)) is not None:
        encoder.take_statistics_(observed)
    with torch.no_grad():
        losses = PropagationLoss(pairs, scales=scales)(system, phase).reshape(-1).nan_to_num(nan=torch.inf)
    order = [int(i) for i in losses.argsort() if int(i) not in failed]
    if not order:
        raise Diverged(phase.name, phase.steps)
    return [_Tried(system.member(i), float(losses[i])) for i in order]


def _as_trained(system: DynamicsSystem, pairs: Pairs, failures: int) -> FoundDynamics:
    """What a preset without finish ends with: the network is the equation, however long."""
    # An encoder of one's own may compute in float32 whatever its weights are.
    cell = system.cell.double() if isinstance(system.encoder, OwnEncoder) else system.double().cell
    latents = cell.latents if isinstance(cell, EQLCell) else 0
    variables = [*pairs.observed.names, *latent_names(int(latents))]
    read = cell.right_hand_side if isinstance(cell, EQLCell) and cell.shape.form == "ode" else cell
    equations = Equation.read_all(read, variables)
    return FoundDynamics(_reader(system), cell, equations, equations, (), system, None, failures)


def _finished(
    ranked: Sequence[_Tried], pairs: Pairs, settings: DynamicsSettings, stop: Callable[[], bool]
) -> list[_Tried]:
    """Each member's law made exact, the best first, until one leaves no more than a thousandth."""
    done: list[_Tried] = []
    for system in (one.system for one in ranked):
        cell = system.cell
        if not isinstance(cell, EQLCell):
            raise InvalidArgument("only a system with an `EQLCell` can be finished; it has the equations")
        with torch.no_grad():
            z = system.latent(pairs.observed.states.float()).double()
        law = Law.of_cell(cell, pairs.observed.names, latent_names(cell.latents))
        fit = Refined(law, z, math.inf)
        if law.terms:
            fit = finish(law, z, pairs.propagated, orders=settings.orders, stop=stop)
        done.append(_Tried(system, fit.loss, fit))
        if fit.loss < FINISH.enough:
            break
    return done


def _assembled(system: DynamicsSystem, fit: Refined, failures: int) -> FoundDynamics:
    """Encoder and law with one z, the encoder's: standard deviation ½ over the training set, or what a given
    law says."""
    named = zip(fit.law.latents, fit.latent, strict=True)
    known = fit.law.known
    gauges = tuple(
        Gauge(1.0, 0.0) if name in known else Gauge(2 * float(p.std(correction=0)) or 1.0, float(p.mean()))
        for name, p in named
    )
    law, encoder = fit.law.regauged([gauge.inverse for gauge in gauges]), _reader(system)
    return FoundDynamics(encoder, law, law.equations(), fit.law.equations(), gauges, system, fit, failures)
