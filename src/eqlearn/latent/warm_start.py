"""Warm starts: encoders trained with a smooth head in the place of the equation.

A head's error says what any law could reach with these encoders. Heads are smooth, so a latent comes out as a
smooth, mostly monotone function of the quantity that it stands for.

Where the target depends on the *interaction* of two quantities and also on each alone, as (a - b)**2 does, an
encoder learns first what each alone tells, |a - mean|, and stays there. So every second start is of another
kind: main effects are fitted first, by other encoders (functional ANOVA), the interactions next, on what they
leave, and the whole last.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from eqlearn.errors import Diverged
from eqlearn.io.storage import followed
from eqlearn.latent.encoder import in_precision_of
from eqlearn.latent.settings import LATENT, LatentSettings
from eqlearn.numerics.budget import never
from eqlearn.training.loop import Record, Training, train
from eqlearn.training.optimisers import adamw
from eqlearn.training.schedule import Phase
from eqlearn.training.state import TrainingState, seeded, step_generator
from eqlearn.validation.latents import Batch, Gathered, LatentData


@dataclass(frozen=True)
class Units:
    """Means and spreads of columns and targets, in which networks see them."""

    columns: Tensor
    column_spreads: Tensor
    y: Tensor
    y_spreads: Tensor

    @classmethod
    def of(cls, batch: Batch) -> Units:
        def spread(values: Tensor) -> Tensor:
            found = (values - values.mean(dim=0)).square().mean(dim=0).sqrt()
            return torch.where(found > 0, found, 1.0)

        return cls(batch.columns.mean(dim=0), spread(batch.columns), batch.y.mean(dim=0), spread(batch.y))

    def standard_columns(self, batch: Batch) -> Tensor:
        return ((batch.columns - self.columns) / self.column_spreads).float()

    def standard_targets(self, batch: Batch) -> Tensor:
        return ((batch.y - self.y) / self.y_spreads).float()


class Encoders(nn.Module):
    """The users' encoders, each held once however many inputs it reads, and the scale of their latents: a
    batch norm without weights keeps mean 0 and spread 1.

    `groups` says which encoder reads each input; inputs of one group are encoded in one batch.
    """

    def __init__(self, encoders: Mapping[str, nn.Module], latents: Mapping[str, int]) -> None:
        super().__init__()
        distinct = {id(encoder): encoder for encoder in encoders.values()}
        places = {one: group for group, one in enumerate(distinct)}
        self.names = tuple(encoders)
        self.groups = tuple(places[id(encoder)] for encoder in encoders.values())
        sizes = {group: latents[name] for name, group in zip(self.names, self.groups, strict=True)}
        self.sizes = tuple(sizes.values())
        self.encoders = nn.ModuleList(distinct.values())
        self.norms = nn.ModuleList(nn.BatchNorm1d(size, affine=False) for size in self.sizes)
        self.held = False

    def train(self, mode: bool = True) -> Encoders:
        """As for any module; a scale that is held stays as it is."""
        super().train(mode)
        if self.held:
            self.norms.eval()
        return self

    def forward(self, batch: Batch) -> list[Tensor]:
        """The standardised latents of each input `(rows, n)`, in the order of names."""
        found: dict[str, Tensor] = {}
        for group, (encoder, norm) in enumerate(zip(self.encoders, self.norms, strict=True)):
            names = [n for n, g in zip(self.names, self.groups, strict=True) if g == group]
            for name, z in zip(names, _encoded(encoder, norm, [batch.inputs[n] for n in names]), strict=True):
                found[name] = z
        return [found[name] for name in self.names]

    def of_group(self, group: int, x: Tensor | Gathered) -> Tensor:
        """The standardised latents of one input of a group."""
        return _encoded(self.encoders[group], self.norms[group], [x])[0]

    def hold_(self) -> Encoders:
        """Keeps the scale of the latents as it is from now on, in `train()` too."""
        self.held = True
        return self.train(self.training)

    def reset_(self) -> None:
        """Draws the weights of all encoders anew, where their layers can and are not frozen."""
        for module in self.encoders.modules():
            # Attention has its own under a private name.
            reset = getattr(module, "reset_parameters", getattr(module, "_reset_parameters", None))
            if callable(reset) and all(p.requires_grad for p in module.parameters()):
                reset()


def _encoded(encoder: nn.Module, norm: nn.Module, inputs: Sequence[Tensor | Gathered]) -> list[Tensor]:
    """The latents of several inputs of one encoder, in one batch; a value that repeats is encoded once."""

    def read(x: Tensor) -> Tensor:
        z: Tensor = norm(encoder(in_precision_of(encoder, x)))
        return z

    first = inputs[0]
    if isinstance(first, Gathered):
        gathered = [x for x in inputs if isinstance(x, Gathered)]
        if len(gathered) == len(inputs) and all(x.values is first.values for x in gathered):
            # Only the values that stand in these rows.
            index, back = torch.cat([x.index for x in gathered]).unique(return_inverse=True)
            z = read(first.values[index])[back]
            return list(z.split([len(x) for x in inputs]))
    plain = [x.values[x.index] if isinstance(x, Gathered) else x for x in inputs]
    if all(x.shape[1:] == plain[0].shape[1:] and x.dtype == plain[0].dtype for x in plain):
        return list(read(torch.cat(plain)).split([len(x) for x in plain]))
    return [read(x) for x in plain]


def _network(inputs: int, outputs: int, width: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(inputs, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, outputs)
    )


class Headed(nn.Module):
    """Encoders with a smooth head: what a warm start trains. Gives the standardised targets."""

    def __init__(self, encoders: Encoders, units: Units, width: int) -> None:
        super().__init__()
        self.encoders, self.units = encoders, units
        latents = sum(encoders.sizes[g] for g in encoders.groups)
        self.head = _network(latents + len(units.columns), len(units.y), width)

    def forward(self, batch: Batch) -> Float[Tensor, "rows outputs"]:
        seen = [*self.encoders(batch), self.units.standard_columns(batch)]
        predicted: Tensor = self.head(torch.cat([s.float() for s in seen], dim=1))
        return predicted


class MainEffects(nn.Module):
    """A sum of what each input alone tells, and all columns together, by encoders of their own."""

    def __init__(self, encoders: Encoders, units: Units, width: int) -> None:
        super().__init__()
        self.encoders, self.units = encoders, units
        outputs = len(units.y)
        self.effects = nn.ModuleList(_network(encoders.sizes[g], outputs, width) for g in encoders.groups)
        self.columns = _network(len(units.columns), outputs, width) if len(units.columns) else None

    def forward(self, batch: Batch) -> Float[Tensor, "rows outputs"]:
        latents = self.encoders(batch)
        total: Tensor = sum(effect(z.float()) for effect, z in zip(self.effects, latents, strict=True))
        if self.columns is not None:
            total = total + self.columns(self.units.standard_columns(batch))
        return total


class FitLoss(nn.Module):
    """The mean squared error of a model's standardised targets on batches drawn by seed and step; `beside` is
    what another model explains already. Where the batches are a stream, `step` counts all that were drawn of
    it, so that a training that was killed goes on with those that would have come."""

    step: Tensor

    def __init__(
        self,
        data: LatentData,
        units: Units,
        *,
        batch: int,
        seed: int,
        huber: float | None = None,
        beside: nn.Module | None = None,
    ) -> None:
        super().__init__()
        self.data, self.units, self.batch, self.seed, self.huber = data, units, batch, seed, huber
        self._beside = [beside]  # in a list, so that it is no part of this module's state
        self.register_buffer("step", torch.tensor(data.drawn))

    def forward(self, model: nn.Module, phase: Phase | None) -> Float[Tensor, ""]:
        self.data.skip_to(int(self.step))
        batch = self.data.draw(self.batch, step_generator(self.seed, self.step))
        self.step += 1
        target = self.units.standard_targets(batch)
        if (beside := self._beside[0]) is not None:
            with torch.no_grad():
                target = target - beside(batch)
        predicted: Tensor = model(batch)
        if self.huber is None:
            return (predicted - target).square().mean()
        return 2 * F.huber_loss(predicted, target, delta=self.huber)


@dataclass(frozen=True, eq=False)
class Start:
    """A warm start: its model, in `eval()`, and the part of the variance that is left on rows that training
    saw and on rows held back; for each output, how much each column matters."""

    model: Headed
    error: float
    held_error: float
    importance: tuple[tuple[float, ...], ...]


@torch.no_grad()
def left_of_each(model: nn.Module, batch: Batch, units: Units) -> Float[Tensor, " outputs"]:
    """The mean square that a model leaves of each standardised target, a piece at a time, in `eval()`."""
    model.eval()
    left = (model(part) - units.standard_targets(part) for part in batch.pieces())
    squares = [each.double().square().sum(dim=0) for each in left]
    return torch.stack(squares).sum(dim=0) / len(batch)


def left_over(model: nn.Module, batch: Batch, units: Units) -> float:
    """The mean square that a model leaves of all standardised targets."""
    return float(left_of_each(model, batch, units).mean())


def fitted_by(
    model: nn.Module,
    loss: FitLoss,
    steps: int,
    settings: LatentSettings,
    *,
    name: str,
    rate: float | None = None,
    stop: Callable[[], bool] = never,
    on_record: Callable[[Record], object] | None = None,
    path: Path | None = None,
) -> None:
    """Trains a model by one cycle of the learning rate; a stop ends it where it stands. With a `path`, the
    state is kept in that file, and a training that was killed goes on from there."""
    phase = Phase(
        name=name, steps=max(1, steps), lr=rate or settings.rate, decay="one-cycle", clip=settings.clip
    )
    optimiser = partial(adamw, weight_decay=settings.decay)

    def begin(state: TrainingState | None) -> Training:
        # In a search with a budget, there may have been time for more steps before a kill than there is now.
        whole = phase if state is None else replace(phase, steps=max(phase.steps, state.step))
        return train(model, loss, (whole,), optimiser=optimiser, record_every=25, resume=state)

    for record in begin(None) if path is None else followed(path, begin):
        if on_record is not None:
            on_record(record)
        if stop():
            return
    loss.data.skip_to(int(loss.step))  # what was trained before a kill drew its batches, too


def warm_start(
    encoders: Mapping[str, nn.Module],
    latents: Mapping[str, int],
    data: LatentData,
    *,
    kind: str = "plain",
    fresh: bool = True,
    seed: int = 0,
    settings: LatentSettings = LATENT,
    stop: Callable[[], bool] = never,
    on_record: Callable[[Record], object] | None = None,
    journal: Path | None = None,
) -> Start | None:
    """Copies of the encoders trained with a smooth head, from weights drawn anew (`fresh`) or as they are.

    `kind` is "plain", or "interactions": main effects first, then what they leave, then the whole. None if
    the training diverged.
    """
    copies = deepcopy(dict(encoders))
    units = Units.of(data.sample(settings.measured))

    def run(model: nn.Module, steps: int, number: int, beside: nn.Module | None = None) -> None:
        loss = FitLoss(
            data, units, batch=settings.batch, seed=4 * seed + number, huber=settings.huber, beside=beside
        )
        path = None if journal is None else journal / f"start-{seed}-{number}.safetensors"
        fitted_by(model, loss, steps, settings, name=kind, stop=stop, on_record=on_record, path=path)

    with seeded(seed):
        reading = Encoders(copies, latents)
        if fresh:
            reading.reset_()
        model = Headed(reading, units, settings.width)
        try:
            if kind == "interactions":
                others = Encoders(deepcopy(copies), latents)
                others.reset_()
                effects = MainEffects(others, units, settings.width)
                run(effects, settings.warm_steps // 3, 1)
                run(model, settings.warm_steps // 2, 2, effects.eval())
            run(model, settings.warm_steps, 3)
        except Diverged:
            return None
        model.eval()
        sample, held = data.sample(settings.measured), data.held
        return Start(
            model,
            left_over(model, sample, units),
            left_over(model, held, units),
            _importance(model, held, units),
        )


def _importance(model: Headed, batch: Batch, units: Units) -> tuple[tuple[float, ...], ...]:
    """How much more is left of each target when each column's rows are mixed up (Breiman 2001)."""
    whole = left_of_each(model, batch, units)
    order = torch.randperm(len(batch), generator=torch.Generator().manual_seed(0))
    rises = [torch.zeros(0, len(whole), dtype=torch.float64)]
    for j in range(batch.columns.shape[1]):
        mixed = batch.columns.clone()
        mixed[:, j] = mixed[order, j]
        rises.append((left_of_each(model, Batch(batch.inputs, mixed, batch.y), units) - whole)[None])
    return tuple(tuple(each) for each in torch.cat(rises).mT.tolist())
