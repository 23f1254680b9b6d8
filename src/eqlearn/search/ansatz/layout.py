"""An ansatz: a formula of nested units with numbers in it, laid out in the layers of a network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from eqlearn.nn.eql import argument_rows
from eqlearn.nn.primitives import Primitive
from eqlearn.search.ansatz.target_transform import TargetTransform
from eqlearn.search.networks.starts import Start
from eqlearn.search.networks.structures import Structure


@dataclass(frozen=True)
class Sum:
    """A weighted sum of inputs (by their places), units and a constant: an argument, or a read-out."""

    inputs: tuple[tuple[int, float], ...] = ()
    units: tuple[tuple[Unit, float], ...] = ()
    constant: float = 0.0

    @staticmethod
    def of(unit: Unit) -> Sum:
        """One unit and nothing else."""
        return Sum(units=((unit, 1.0),))

    @cached_property
    def level(self) -> int:
        """The last layer it looks at; the inputs are layer 0."""
        return max((unit.level for unit, _ in self.units), default=0)

    def __mul__(self, factor: float) -> Sum:
        return Sum(
            tuple((place, w * factor) for place, w in self.inputs),
            tuple((unit, w * factor) for unit, w in self.units),
            self.constant * factor,
        )

    def __add__(self, other: Sum) -> Sum:
        inputs: dict[int, float] = {}
        for place, w in (*self.inputs, *other.inputs):
            inputs[place] = inputs.get(place, 0.0) + w
        return Sum(tuple(inputs.items()), (*self.units, *other.units), self.constant + other.constant)

    def value(self, x: Tensor) -> Tensor:
        """On feature-major inputs `(in, rows)`."""
        total = x.new_full((x.shape[1],), self.constant)
        for place, w in self.inputs:
            total = total + w * x[place]
        for unit, w in self.units:
            total = total + w * unit.value(x)
        return total


@dataclass(frozen=True)
class Unit:
    """A primitive of arguments that are sums."""

    primitive: Primitive
    arguments: tuple[Sum, ...]

    @cached_property
    def level(self) -> int:
        """The layer it stands in."""
        return 1 + max(argument.level for argument in self.arguments)

    def value(self, x: Tensor) -> Tensor:
        value: Tensor = self.primitive(*(argument.value(x) for argument in self.arguments))
        return value


@dataclass(frozen=True)
class Ansatz:
    """A formula for the target, or for a transform of it: where a network may start. With several `outputs`,
    each starts there."""

    transform: TargetTransform | None
    readout: Sum
    outputs: int = 1


def layout(readouts: Sequence[Sum], in_features: int, identity: Primitive) -> Start:
    """The network whose outputs are these sums; identities carry a unit to a layer further up.

    Inputs are at hand in every layer (`skip`), so all ansatzes of one depth can be solved together.
    """
    depth = max(1, *(readout.level for readout in readouts))
    layers: list[dict[Unit, None]] = [{} for _ in range(depth)]
    tops = [_lifted(readout, depth + 1, layers, identity) for readout in readouts]
    if not layers[0]:  # what is linear in the inputs has a unit that sees nothing
        layers[0][Unit(identity, (Sum(),))] = None
    ordered = [sorted(units, key=lambda u: (u.primitive.arity, u.primitive.name)) for units in layers]
    kinds = tuple(tuple(u.primitive for u in units) for units in ordered)
    structure = Structure(in_features, kinds, len(readouts), skip=True)
    weights = [torch.zeros(shape, dtype=torch.float64) for shape in structure.shapes()]
    for level, units in enumerate(ordered):
        for unit, rows in zip(units, argument_rows(structure.layers[level]), strict=True):
            for argument, row in zip(unit.arguments, rows, strict=True):
                _write(argument, weights[level][row], ordered[level - 1] if level else [])
    for top, row in zip(tops, weights[-1], strict=True):
        _write(top, row, ordered[-1])
    return Start(structure, weights)


def _lifted(term: Sum, level: int, layers: list[dict[Unit, None]], identity: Primitive) -> Sum:
    """The sum with every unit lifted to the layer just below `level`, and all of them entered there."""
    units = []
    for unit, w in term.units:
        own = Unit(unit.primitive, tuple(_lifted(a, unit.level, layers, identity) for a in unit.arguments))
        layers[own.level - 1][own] = None
        for above in range(own.level, level - 1):
            own = Unit(identity, (Sum.of(own),))
            layers[above][own] = None
        units.append((own, w))
    return Sum(term.inputs, tuple(units), term.constant)


def _write(term: Sum, row: Tensor, below: Sequence[Unit]) -> None:
    """Enters a sum's weights in its row of a sparse map: units of the layer below, inputs, constant."""
    place = {unit: i for i, unit in enumerate(below)}
    for unit, w in term.units:
        row[place[unit]] += w
    for i, w in term.inputs:
        row[len(below) + i] += w
    row[-1] += term.constant
