"""Structures of small networks: what they are, and how the search draws them, simplest first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from torch import Tensor

from eqlearn.errors import InvalidArgument
from eqlearn.nn.eql import EQL, layer_widths
from eqlearn.nn.primitives import Primitive, lookup


@dataclass(frozen=True)
class Structure:
    """What a network is before it has weights: its units, layer by layer, and how layers are joined."""

    in_features: int
    layers: tuple[tuple[Primitive, ...], ...]
    out_features: int = 1
    skip: bool = False
    bias: bool = True

    @staticmethod
    def of(network: EQL) -> Structure:
        layers = tuple(layer.units for layer in network.layers)
        return Structure(network.in_features, layers, network.out_features, network.skip, network.bias)

    @property
    def kind(self) -> tuple[int, bool]:
        """Depth and skip connections: networks of one kind can be solved together."""
        return len(self.layers), self.skip

    def shapes(self) -> list[tuple[int, int]]:
        """Rows and columns of each sparse map, first layer to read-out."""
        widths = layer_widths(self.in_features, [len(units) for units in self.layers], self.skip, self.bias)
        heights = [*(sum(p.arity for p in units) for units in self.layers), self.out_features]
        return list(zip(heights, widths, strict=True))

    def masks(self, inputs: Sequence[int] | None = None) -> list[Tensor]:
        """Masks that let everything through but the inputs that are not named."""
        masks = [torch.ones(shape, dtype=torch.bool) for shape in self.shapes()]
        if inputs is not None:
            hidden = [i for i in range(self.in_features) if i not in set(inputs)]
            masks[0][:, hidden] = False
            for units, mask in zip(self.layers, masks[1:], strict=True):
                if self.skip:
                    mask[:, [len(units) + i for i in hidden]] = False
        return masks

    def network(self, weights: Sequence[Tensor], masks: Sequence[Tensor]) -> EQL:
        """The network with these weights and masks, in float64."""
        depth = len(self.layers)
        network = EQL(
            self.in_features, self.out_features, self.layers, depth, skip=self.skip, bias=self.bias, seed=0
        ).double()
        with torch.no_grad():
            for linear, weight, mask in zip(network.linears, weights, masks, strict=True):
                linear.raw.copy_(weight)
                linear.keep_(mask)
        return network.eval()


@dataclass(frozen=True)
class Level:
    """How large a drawn network is: hidden layers, random units and binary units in each, what it sees."""

    depth: int
    units: int
    binaries: int
    bank: str = "plain"
    skip: bool = False


# Simplest first; after the last one the search begins again with fresh draws.
LEVELS = (
    Level(1, 3, 1),
    Level(1, 2, 1, "rich", skip=True),
    Level(2, 3, 1),
    Level(1, 2, 1, "log"),
    Level(1, 2, 1, "quadratic"),
    Level(2, 2, 1, "log", skip=True),
    Level(1, 2, 0, "products"),
    Level(2, 3, 2, skip=True),
    Level(2, 2, 1, "quadratic"),
    Level(1, 6, 2),
    Level(3, 3, 1),
    Level(2, 5, 2, skip=True),
    Level(3, 2, 1, "log", skip=True),
    Level(3, 3, 2, skip=True),
)


@dataclass(frozen=True)
class Vocabulary:
    """The kinds of units a search may draw: `unary` at random, `binary` by number; `id` always."""

    unary: tuple[Primitive, ...]
    binary: tuple[Primitive, ...]
    identity: Primitive = field(default_factory=lambda: lookup("id"))

    @staticmethod
    def of(primitives: Sequence[Primitive]) -> Vocabulary:
        kinds = tuple(dict.fromkeys(p for p in primitives if p.arity > 0))
        unary = tuple(p for p in kinds if p.arity == 1)
        binary = tuple(p for p in kinds if p.arity > 1)
        if not kinds:
            raise InvalidArgument("`primitives` holds constants only; add one that takes an argument")
        return Vocabulary(unary or (lookup("id"),), binary)

    def named(self, name: str) -> Primitive | None:
        """The kind of that name, if it may be drawn."""
        return next((p for p in (*self.unary, *self.binary, self.identity) if p.name == name), None)

    def favouring(self, name: str) -> Vocabulary:
        """The same kinds, but one of them drawn in about half of the cases."""
        favourite = [p for p in self.unary if p.name == name]
        return replace(self, unary=self.unary + tuple(favourite) * (len(self.unary) - 1))

    def draw(self, level: Level, in_features: int, out_features: int, rng: np.random.Generator) -> Structure:
        """A random structure of that size; units of one kind stand together.

        Half of the structures draw from two kinds only, since laws repeat themselves.
        """
        layers = []
        kinds = self.unary
        if rng.random() < 0.5:
            kinds = tuple(kinds[i] for i in rng.integers(len(kinds), size=2))
        for _ in range(level.depth):
            picks = [self.identity, *(kinds[i] for i in rng.integers(len(kinds), size=level.units))]
            if self.binary:
                picks += [self.binary[i] for i in rng.integers(len(self.binary), size=level.binaries)]
            layers.append(tuple(sorted(picks, key=lambda p: (p.arity, p.name))))
        return Structure(in_features, tuple(layers), out_features, skip=level.skip)
