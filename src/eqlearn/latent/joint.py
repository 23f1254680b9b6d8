"""Encoders and a law trained on together, its form held: what decides between laws, and refines one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from eqlearn.errors import Diverged
from eqlearn.latent.comparison.bend import Basis, Bend
from eqlearn.latent.comparison.served import Comparison, Served, Slot
from eqlearn.latent.comparison.structures import by_output, operation
from eqlearn.latent.settings import LATENT, LatentSettings
from eqlearn.latent.warm_start import Encoders, FitLoss, Units, fitted_by, left_over
from eqlearn.numerics.budget import never
from eqlearn.training.loop import Record
from eqlearn.training.state import seeded
from eqlearn.validation.latents import Batch, LatentData


class JointModel(nn.Module):
    """Encoders, a bend of each one's latents, and structures with their constants, all trainable but the
    constants that are `fixed`. Gives the standardised targets."""

    fixed: Tensor

    def __init__(
        self,
        encoders: Encoders,
        bases: Sequence[Basis],
        slots: Sequence[Slot],
        fit: Served,
        units: Units,
        fixed: np.ndarray | None = None,
    ) -> None:
        super().__init__()
        self.encoders, self.units, self.slots, self.trees = encoders.hold_(), units, tuple(slots), fit.trees
        self.bends = nn.ModuleList(
            Bend(basis, coefficients.float()) for basis, coefficients in zip(bases, fit.bends, strict=True)
        )
        numbers = torch.tensor(fit.numbers)
        # Each is trained as a factor of where it starts, so that one learning rate suits all.
        self.register_buffer("sizes", torch.where(numbers.abs() > 1e-6, numbers.abs(), 1.0))
        self.constants = nn.Parameter((numbers / self.sizes).float())
        held = torch.zeros(len(numbers), dtype=torch.bool) if fixed is None else torch.from_numpy(fixed)
        self.register_buffer("fixed", held)
        self.register_buffer("start", (numbers / self.sizes).float())

    sizes: Tensor
    start: Tensor

    def numbers(self) -> Float[Tensor, " numbers"]:
        """Factors of columns, constants, factor and offset of each output, as they are now."""
        return torch.where(self.fixed, self.start, self.constants).double() * self.sizes

    def latents(self, batch: Batch) -> list[Tensor]:
        """The bent latent of each slot."""
        z = self.encoders(batch)
        bent = [self.bends[g](z[i].float()) for i, g in enumerate(self.encoders.groups)]
        return [bent[slot.input][:, slot.place] for slot in self.slots]

    def forward(self, batch: Batch) -> Float[Tensor, "rows outputs"]:
        latents, found = self.latents(batch), []
        parts = by_output(self.trees, self.numbers())
        for output, (program, factors, constants, (factor, offset)) in enumerate(parts):
            scaled = [(c * x).float() for c, x in zip(factors, batch.columns.mT, strict=True)]
            value = program.values([*latents, *scaled], constants.float(), self._applied)[-1]
            spread = self.units.y_spreads[output]
            shift = (offset - self.units.y[output]) / spread
            found.append((factor / spread).float() * value + shift.float())
        return torch.stack(found, dim=1)

    def _applied(self, name: str, args: Sequence[Tensor]) -> Any:
        return operation(name)(*args, guarded=self.training)


def compare_on(
    encoders: Encoders, batch: Batch, slots_of: Sequence[int], settings: LatentSettings = LATENT
) -> tuple[Comparison, list[Basis]]:
    """What structures are compared on, for encoders as they are: `slots_of` says how many latents of each
    group the equation may use."""
    z = encode_all(encoders, batch)
    bases, identities = [], []
    for group, _ in enumerate(encoders.encoders):
        mine = torch.cat([z[i] for i, g in enumerate(encoders.groups) if g == group])
        bases.append(Basis(mine, settings.functions))
        identities.append(torch.stack([bases[group].coefficients(mine, column) for column in mine.mT]))
    slots = []
    for i, (name, group) in enumerate(zip(encoders.names, encoders.groups, strict=True)):
        for k in range(slots_of[group]):
            slots.append(Slot(name if slots_of[group] == 1 else f"{name}_{k + 1}", i, group, k))
    designs = tuple(bases[g](z[i]) for i, g in enumerate(encoders.groups))
    spreads = Units.of(batch).y_spreads
    return (
        Comparison(
            designs,
            tuple(slots),
            tuple(identities),
            tuple(slots_of),
            batch.columns.mT.contiguous(),
            batch.y.mT.contiguous(),
            spreads,
        ),
        bases,
    )


@torch.no_grad()
def encode_all(encoders: Encoders, batch: Batch) -> list[Tensor]:
    """The standardised latents of each input, in float64, in `eval()`, a piece at a time."""
    encoders.eval()
    parts = [encoders(piece) for piece in batch.pieces()]
    return [torch.cat(each).double() for each in zip(*parts, strict=True)]


def train_law(
    encoders: Encoders,
    bases: Sequence[Basis],
    slots: Sequence[Slot],
    fit: Served,
    data: LatentData,
    *,
    steps: int,
    fixed: np.ndarray | None = None,
    seed: int = 0,
    settings: LatentSettings = LATENT,
    stop: Callable[[], bool] = never,
    on_record: Callable[[Record], object] | None = None,
    path: Path | None = None,
) -> tuple[JointModel, float, float]:
    """A law trained on with copies of its encoders; and what it leaves of the variance on rows that training
    saw and on rows held back. Both are infinite if the training diverged."""
    units = Units.of(data.sample(settings.measured))
    law = JointModel(deepcopy(encoders), deepcopy(list(bases)), slots, fit, units, fixed)
    huber = settings.huber or _robust(law, data.sample(settings.measured), units, settings)
    loss = FitLoss(data, units, batch=settings.batch, seed=seed, huber=huber)
    rate = settings.refine_rate
    with seeded(seed):
        try:
            fitted_by(
                law, loss, steps, settings, name="joint", rate=rate, stop=stop, on_record=on_record, path=path
            )
        except Diverged:
            return law, float("inf"), float("inf")
    law.eval()
    return law, left_over(law, data.sample(settings.measured), units), left_over(law, data.held, units)


@torch.no_grad()
def _robust(law: JointModel, batch: Batch, units: Units, settings: LatentSettings) -> float | None:
    """Where errors begin to count by their size: that many robust standard deviations of the residuals."""
    if settings.robust is None:
        return None
    law.eval()
    left = torch.cat([(law(p) - units.standard_targets(p)).abs().flatten() for p in batch.pieces()])
    finite = left[torch.isfinite(left)]
    return max(settings.robust * 1.4826 * float(finite.median()), settings.exact) if len(finite) else None
