"""Where a network's weights start: at random, at frequencies the data show, or grown from a good network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import sympy as sp
import torch
from torch import Tensor

from eqlearn.functions import FUNCTIONS
from eqlearn.nn.eql import argument_rows
from eqlearn.nn.primitives import Primitive
from eqlearn.search.features import Features
from eqlearn.search.networks.fit import Fit
from eqlearn.search.networks.structures import Level, Structure, Vocabulary
from eqlearn.search.settings import DEFAULTS, Drawing
from eqlearn.validation.options import tuned
from eqlearn.validation.table import some_rows


@cache
def angular_frequency(primitive: Primitive) -> float | None:
    """How fast a periodic primitive turns with its argument; none if it is not periodic."""
    if primitive.arity != 1:
        return None
    g = sp.Symbol("g")
    waves = primitive.symbolic(g).atoms(*(f.sympy for f in FUNCTIONS.values() if f.wave))
    slopes = [wave.args[0].diff(g) for wave in waves]
    rates = [abs(float(slope)) for slope in slopes if slope.is_number and slope.is_real]
    return max((rate for rate in rates if rate > 0), default=None)


@tuned
class Waves:
    """Sines and cosines of each input at a range of frequencies, ready to be compared with any target."""

    rows: np.ndarray  # which rows are looked at, by number
    frequencies: np.ndarray
    projectors: np.ndarray  # (in, frequencies, 2, rows): orthonormal, and orthogonal to 1, x and x²

    @staticmethod
    def of(x: np.ndarray, most: int = 400) -> Waves:
        """From feature-major inputs `(in, rows)` of size about 1; `most` of the rows suffice."""
        rows = some_rows(x.shape[1], most)
        x = x[:, rows]
        frequencies = np.geomspace(0.5, 40.0, 60)
        projectors = np.empty((len(x), len(frequencies), 2, x.shape[1]))
        for i, column in enumerate(x):
            smooth = np.linalg.qr(np.stack([np.ones_like(column), column, column**2], axis=1))[0]
            angles = frequencies[:, None] * column
            waves = np.stack([np.sin(angles), np.cos(angles)], axis=2)  # (frequencies, rows, 2)
            waves -= smooth @ (smooth.T @ waves)
            gram = np.einsum("frw,frv->fwv", waves, waves) + 1e-6 * x.shape[1] * np.eye(2)
            root = np.linalg.inv(np.linalg.cholesky(gram))
            projectors[i] = np.einsum("fwv,frv->fwr", root, waves)
        return Waves(rows, frequencies, projectors)

    def spectrum(self, y: np.ndarray) -> Spectrum:
        """Of targets `(out, rows)`, rows in the same order."""
        power = np.square(self.projectors @ y[:, self.rows].T).sum(axis=(2, 3))
        sharp = power**2
        total = sharp.sum()
        chances = sharp / total if np.isfinite(total) and total > 0 else np.full(sharp.shape, 1 / sharp.size)
        return Spectrum(self.frequencies, chances)


@dataclass(frozen=True)
class Spectrum:
    """How strongly a target oscillates along each input: angular frequencies and their chances."""

    frequencies: np.ndarray
    chances: np.ndarray  # (in, frequencies), the whole sums to 1

    def draw(self, rng: np.random.Generator) -> tuple[int, float]:
        """An input and an angular frequency."""
        column, place = divmod(
            int(rng.choice(self.chances.size, p=self.chances.ravel())), len(self.frequencies)
        )
        return column, float(self.frequencies[place] * rng.uniform(0.96, 1.04))


@dataclass(frozen=True)
class Start:
    """A structure, and weights to begin with; a weight of zero is not there."""

    structure: Structure
    weights: list[Tensor]


# Units that may see a logarithm, to form products of powers; a sine or root of a logarithm is no law.
OF_LOGARITHMS = frozenset({"id", "exp", "mul"})


def random_start(
    structure: Structure,
    inputs: Sequence[int],
    features: Features,
    spectrum: Spectrum,
    rng: np.random.Generator,
    drawing: Drawing = DEFAULTS.drawing,
) -> Start:
    """Normal weights on the named inputs, narrower where many meet; most periodic units of the first layer
    start at a frequency of the data along one input."""
    weights = []
    masks = structure.masks(inputs)
    for depth, units in enumerate(structure.layers):
        before = 0 if depth == 0 else len(structure.layers[depth - 1])
        logs = [before + i for i in features.logarithm_inputs] if depth == 0 or structure.skip else []
        for primitive, rows in zip(units, argument_rows(units), strict=True):
            if primitive.name not in OF_LOGARITHMS:
                for row in rows:
                    masks[depth][row, logs] = False
    for mask in masks:
        spread = drawing.spread / max(1, int(mask[0].sum())) ** 0.25
        weights.append(torch.where(mask, torch.as_tensor(rng.normal(size=mask.shape) * spread), 0.0))
    units = structure.layers[0]
    for primitive, rows_ in zip(units, argument_rows(units), strict=True):
        rate = angular_frequency(primitive)
        if rate is not None and rng.random() < drawing.waves:
            column, frequency = spectrum.draw(rng)
            wave = rng.normal(size=masks[0].shape[1]) * drawing.aside * masks[0][rows_[0]].numpy()
            wave[column] = frequency / rate
            if structure.bias:
                wave[-1] = rng.uniform(-np.pi, np.pi) / rate
            weights[0][rows_[0]] = torch.as_tensor(wave)
    return Start(structure, weights)


def grown_start(
    parent: Fit,
    level: Level,
    inputs: Sequence[int],
    features: Features,
    vocabulary: Vocabulary,
    spectrum: Spectrum,
    rng: np.random.Generator,
    drawing: Drawing = DEFAULTS.drawing,
) -> Start:
    """The parent's units, with its weights a little moved, beside fresh units that also see `inputs`."""
    old = parent.population.structures[0]
    old_weights = parent.population.weights(0, parent.theta)
    level = replace(level, depth=len(old.layers), skip=old.skip)
    extra = vocabulary.draw(level, old.in_features, old.out_features, rng)
    kept = [_used_units(old, old_weights, depth) for depth in range(len(old.layers))]
    layers, places = [], []
    for depth, fresh in enumerate(extra.layers):
        mine = [(old.layers[depth][j], j) for j in kept[depth]]
        new = list(fresh)
        new.remove(vocabulary.identity)  # a fresh network needs one; the parent has what it needs
        mixed: list[tuple[Primitive, int | None]] = [*mine, *((p, None) for p in new)]
        mixed.sort(key=lambda pair: (pair[0].arity, pair[0].name))
        layers.append(tuple(p for p, _ in mixed))
        places.append([j for _, j in mixed])
    structure = Structure(old.in_features, tuple(layers), old.out_features, old.skip, old.bias)
    seen = sorted({*inputs, *_visible(old, old_weights)})
    *weights, readout = random_start(structure, seen, features, spectrum, rng, drawing).weights
    weights.append(readout * drawing.fresh_readout)
    for depth, weight in enumerate(weights):
        source = old_weights[depth]
        columns = _columns(old, structure, places, depth)
        if depth < len(layers):
            theirs, ours = argument_rows(old.layers[depth]), argument_rows(layers[depth])
            pairs = [
                (theirs[j][k], ours[i][k])
                for i, j in enumerate(places[depth])
                if j is not None
                for k in range(layers[depth][i].arity)
            ]
        else:
            pairs = [(k, k) for k in range(structure.out_features)]
        for row_old, row_new in pairs:
            fresh_row = weight[row_new] * drawing.fresh_weight
            for column_old, column_new in columns:
                value = source[row_old, column_old]
                if value != 0:
                    moves = rng.random() < drawing.moved
                    fresh_row[column_new] = value * (1 + drawing.wobble * rng.normal() if moves else 1.0)
            weight[row_new] = fresh_row
    return Start(structure, weights)


def _visible(structure: Structure, weights: list[Tensor]) -> list[int]:
    """The inputs that a network uses."""
    used = (weights[0][:, : structure.in_features] != 0).any(dim=0)
    if structure.skip:
        for units, weight in zip(structure.layers, weights[1:], strict=True):
            used |= (weight[:, len(units) : len(units) + structure.in_features] != 0).any(dim=0)
    return [int(i) for i in used.nonzero()]


def _used_units(structure: Structure, weights: list[Tensor], depth: int) -> list[int]:
    width = len(structure.layers[depth])
    return [int(j) for j in (weights[depth + 1][:, :width] != 0).any(dim=0).nonzero()]


def _columns(
    old: Structure, new: Structure, places: list[list[int | None]], depth: int
) -> list[tuple[int, int]]:
    """Pairs of columns, old and new, that carry the same input of layer `depth`."""
    if depth == 0:
        return [(c, c) for c in range(old.in_features + int(old.bias))]
    pairs = [(j, i) for i, j in enumerate(places[depth - 1]) if j is not None]
    tail = (old.in_features if old.skip else 0) + int(old.bias)
    before, after = len(old.layers[depth - 1]), len(new.layers[depth - 1])
    return [*pairs, *((before + t, after + t) for t in range(tail))]
