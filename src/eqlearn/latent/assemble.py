"""From a law that was decided to what users are given: gauges, constants, what the page draws."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from eqlearn.latent.comparison.canonical import Reduced
from eqlearn.latent.found import LatentModel
from eqlearn.latent.gauge import Gauge, fit_gauge
from eqlearn.latent.joint import encode_all
from eqlearn.latent.warm_start import Units
from eqlearn.symbolic.equation import Equation
from eqlearn.symbolic.parametric import Constant
from eqlearn.validation.latents import Batch


@torch.no_grad()
def predicted_by(network: LatentModel, batch: Batch) -> Tensor:
    """The model's targets `(rows, outputs)`, a piece at a time."""
    found = []
    for part in batch.pieces():
        columns = dict(zip(network.columns, part.columns.mT, strict=True))
        values = network(part.inputs, columns)
        found.append(values[:, None] if values.dim() == 1 else values)
    return torch.cat(found)


def share_left(predicted: Tensor, true: Tensor, units: Units) -> float:
    """The part of the targets' variance that is left."""
    return float(((predicted - true) / units.y_spreads).square().mean())


@torch.no_grad()
def gauges_of(network: LatentModel, batch: Batch) -> tuple[Tensor, dict[str, Gauge]]:
    """The latents of a batch `(rows, slots)`, and the line from the encoder's raw output to each."""
    latents = torch.cat([network.latents(part.inputs) for part in batch.pieces()])
    nearest = _nearest(network, batch, latents)
    return latents, {slot.name: line for slot, (_, line) in zip(network.slots, nearest, strict=True)}


def _nearest(network: LatentModel, batch: Batch, latents: Tensor) -> list[tuple[Tensor, Gauge]]:
    """Of each latent, the raw output of its encoder that is nearest to a straight line, and that line."""
    standard = encode_all(network.encoders, batch)
    found = []
    for slot, latent in zip(network.slots, latents.mT, strict=True):
        norm = network.encoders.norms[slot.group]
        assert isinstance(norm, nn.BatchNorm1d)
        assert norm.running_var is not None
        assert norm.running_mean is not None
        outputs = standard[slot.input] * (norm.running_var + norm.eps).sqrt() + norm.running_mean
        lines = [(each, fit_gauge(each, latent)) for each in outputs.mT if float(each.std()) > 0]
        found.append(max(lines, key=lambda line: abs(line[1].correlation or 0.0)))
    return found


def constants_of(equations: tuple[Equation, ...], reduced: Reduced) -> tuple[tuple[Constant, ...], ...]:
    """The fitted constants of each equation with their standard errors, the encoders free to bend; infinite
    for a number that simplification made of several."""
    numbers, errors = reduced.fit.numbers, reduced.errors
    found = []
    for equation in equations:
        each = []
        for value in equation.constants:
            near = np.flatnonzero(np.isclose(np.abs(numbers), abs(value), rtol=1e-9, atol=0))
            each.append(Constant(value, float(errors[near[0]]) if len(near) else math.inf))
        found.append(tuple(each))
    return tuple(found)


@torch.no_grad()
def shown_rows(
    network: LatentModel, batch: Batch, latents: Tensor, predicted: Tensor, true: Tensor
) -> dict[str, Any]:
    """What the report page draws: some rows of latents, raw outputs, predictions and truth."""
    rows = torch.linspace(0, len(batch) - 1, min(400, len(batch))).round().long()
    raw = [output[rows] for output, _ in _nearest(network, batch, latents)]

    def plain(values: Tensor) -> list[Any]:
        return [[float(f"{v:.5g}") for v in row] for row in values.tolist()]

    return {
        "latents": plain(latents[rows].mT),
        "raw": plain(torch.stack(raw)),
        "names": [s.name for s in network.slots],
        "predicted": plain(predicted[rows].mT),
        "true": plain(true[rows].mT),
    }
