"""Dynamics with a hidden parameter, found whole: by the search, or by back-propagation as in the paper."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, Literal

import sympy as sp
import torch
from torch import Tensor, nn

from eqlearn.errors import Diverged, InvalidArgument, counted
from eqlearn.io.storage import opened_journal
from eqlearn.latent.motion.cells import CellShape, EQLCell
from eqlearn.latent.motion.finish import Follow, kept_in, plainly
from eqlearn.latent.motion.own import OwnEncoder, drawn_anew, fitted_in
from eqlearn.latent.motion.search import search_dynamics
from eqlearn.latent.motion.series import EncoderShape, SeriesEncoder
from eqlearn.latent.motion.system import DynamicsSystem, FoundDynamics, Pairs, PropagationLoss, encoder_scales
from eqlearn.latent.settings import SEARCH, DynamicsSearch
from eqlearn.latent.stages import LatentProgress
from eqlearn.nn.penalties import Penalty, SmoothHalf
from eqlearn.nn.sparse import settle_
from eqlearn.numerics.budget import never
from eqlearn.symbolic.equation import Equation
from eqlearn.training.loop import Record, Training, train
from eqlearn.training.optimisers import OptimiserFactory
from eqlearn.training.schedule import Phase, Schedule
from eqlearn.training.state import TrainingState
from eqlearn.validation.options import check_settings
from eqlearn.validation.trajectories import latent_names


@dataclass(frozen=True, kw_only=True)
class DynamicsSettings:
    """How encoder and equations are trained by gradients, as in the paper: all but data and seed.

    `scaling` is what observed and propagated states are divided by: nothing ("raw"), each state's spread
    ("state"), or, for the encoder's series, each state's spread at each time ("time"), for series that grow.
    """

    encoder: EncoderShape
    cell: CellShape
    schedule: Schedule
    optimiser: OptimiserFactory
    penalty: Penalty = field(default_factory=SmoothHalf)
    members: int = 1
    batch: int | None = None
    scaling: Literal["raw", "state", "time"] = "raw"


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
    settings: DynamicsSearch | DynamicsSettings = SEARCH,
    *,
    encoder: nn.Module | None = None,
    latents: int | None = None,
    seed: int = 0,
    follow: Follow | None = None,
    on_record: Callable[[Record], object] | None = None,
    record_every: int = 100,
    progress: Callable[[LatentProgress], object] | None = None,
    stop: Callable[[], bool] = never,
    journal: str | os.PathLike[str] | None = None,
) -> FoundDynamics:
    """Finds the equations of motion of `propagated` series, and an encoder that reads their hidden parameter
    off the `observed` ones.

    With a `DynamicsSearch`, the default, this is the search of `discover_latent` with a step of time in the
    place of the law: the encoder is trained with a smooth head, every small structure is compared with the
    latents free to bend, and what comes out is refined through the whole rollout. With `DynamicsSettings`,
    encoder and equations are trained by gradients, as in the paper. `discover_hidden` fits the parameter of
    each series without an encoder, and `discover_dynamics` is for series that all obey one law.

    `encoder` is any module from series `(rows, time, states)`, which it sees divided by their size at each
    time (or as `scaling` says), to `(rows, n)`; a copy of it is trained. By default it is a `SeriesEncoder`
    with 1 of `latents`. A search may use fewer latents than an encoder gives, if `latents` is not given.

    `progress` is called as a search goes on, `on_record` every `record_every` steps of a training by
    gradients. `journal` is a folder where trainings are kept, so that a call that was killed goes on from
    there when it is made again; `follow` runs a training in a way of one's own, see `followed`. Ctrl-C ends a
    search with the best law so far, as does `stop`; `ended` says so. Starts or members that diverge are
    counted in `failures`.

    **Raises:** `Diverged` when no member is left.
    """
    if not isinstance(settings, DynamicsSearch):
        check_settings(settings, DynamicsSettings)
    folder = None if journal is None else opened_journal(journal, _about(pairs, settings, latents, seed))
    follow = follow or (plainly if folder is None else kept_in(folder))
    if isinstance(settings, DynamicsSearch):
        return search_dynamics(
            pairs, settings, encoder=encoder, latents=latents, seed=seed, follow=follow, progress=progress,
            stop=stop, journal=folder,
        )  # fmt: skip
    tried: list[tuple[float, DynamicsSystem]] = []  # by the loss of the last phase
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
        tried += ranked
        if stop():
            break
    if not tried and diverged is not None:
        raise diverged
    return _as_trained(min(tried, key=lambda one: one[0])[1], pairs, failures)


def _about(
    pairs: Pairs, settings: DynamicsSearch | DynamicsSettings, latents: int | None, seed: int
) -> dict[str, Any]:
    """What tells a call from others, for its journal."""
    return {
        "format": "eqlearn-dynamics-journal",
        "seed": seed,
        "latents": latents,
        "series": len(pairs.observed.states),
        "states": list(pairs.observed.names),
        "sums": [float(one.states.sum()) for one in (pairs.observed, pairs.propagated)],
        "settings": {type(settings).__name__: _plain(settings)},
    }


def _plain(value: Any) -> Any:
    """A setting as JSON has it; functions and modules by their names."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Equation | sp.Basic):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, Sequence):
        return [_plain(one) for one in value]
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: _plain(getattr(value, each.name)) for each in fields(value)}
    return str(getattr(value, "__name__", type(value).__name__))


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
) -> tuple[list[tuple[float, DynamicsSystem]], int]:
    """The members that did not fail, the best first, and how many failed."""
    cell = system.cell
    scales = cell.scales if isinstance(cell, EQLCell) else None
    loss = PropagationLoss(pairs, scales=scales, batch=settings.batch, seed=seed)
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
) -> list[tuple[float, DynamicsSystem]]:
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
    return [(float(losses[i]), system.member(i)) for i in order]


def _as_trained(system: DynamicsSystem, pairs: Pairs, failures: int) -> FoundDynamics:
    """What training ends with: the network is the equation, however long."""
    # An encoder of one's own may compute in float32 whatever its weights are.
    cell = system.cell.double() if isinstance(system.encoder, OwnEncoder) else system.double().cell
    latents = cell.latents if isinstance(cell, EQLCell) else 0
    variables = [*pairs.observed.names, *latent_names(int(latents))]
    read = cell.right_hand_side if isinstance(cell, EQLCell) and cell.shape.form == "ode" else cell
    equations = Equation.read_all(read, variables)
    return FoundDynamics(_reader(system), cell, equations, equations, (), system, None, failures)
