"""Targets seen through the inverse of a last unit: the log of y is fitted where the truth may end in exp."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from eqlearn.nn.primitives import Primitive
from eqlearn.search.networks.fit import Fit
from eqlearn.search.networks.population import Population


@dataclass(frozen=True, eq=False)
class TargetTransform:
    """A last layer of one unit, undone on the target: fitting `target` fits `unit` of the network's output.

    The true target is `amplitude` times the unit's value.
    """

    unit: Primitive
    target: Tensor
    amplitude: float = 1.0
    scale: float = 1.0  # the target's spread: what is fitted is the target in units of it

    def outer(self, fit: Fit) -> tuple[Population, Tensor]:
        """The fitted network with the unit as its last layer."""
        structure = fit.population.structures[0]
        deeper = replace(structure, layers=(*structure.layers, (self.unit,)))
        inner = fit.population.weights(0, fit.theta)
        extra = deeper.shapes()[-1][1]
        # The old read-out feeds the unit; the new one reads only the unit.
        last = torch.zeros(1, extra, dtype=torch.float64)
        last[0, 0] = self.amplitude
        masks = [*(w != 0 for w in inner), last != 0]
        population = Population([deeper], [masks])
        values = torch.cat([w[m] for w, m in zip([*inner, last], masks, strict=True)])
        return population, values[None]


def _logit(y: Tensor) -> Tensor:
    return torch.log(y) - torch.log1p(-y)


_INVERSES: dict[str, tuple[Callable[[Tensor], bool], Callable[[Tensor], Tensor]]] = {
    "exp": (lambda y: bool((y > 0).all()), torch.log),
    "inv": (lambda y: bool((y > 1e-3 * y.max()).all()), torch.reciprocal),
    "sqrt": (lambda y: bool((y >= 0).all()), torch.square),
    "square": (lambda y: bool((y >= 0).all()), torch.sqrt),
    "log": (lambda y: bool((y.abs() < 30).all()), torch.exp),
    "sigmoid": (lambda y: bool(((y > 1e-9) & (y < 1 - 1e-9)).all()), lambda y: _logit(y) / 20),
    "tanh": (lambda y: bool((y.abs() < 1 - 1e-9).all()), torch.atanh),
    "asin": (lambda y: bool((y.abs() <= math.pi / 2).all()), torch.sin),
    "atan": (lambda y: bool((y.abs() < 1.57).all()), torch.tan),
}
# A factor in front of these is as good as one inside; the others are tried as they are in the user's units.
SCALE_FREE = ("exp", "inv", "sqrt", "square")


def transforms(primitives: Sequence[Primitive], y: Tensor, unit: float = 1.0) -> list[TargetTransform]:
    """The transforms that the signs of a single target allow, the most common in nature first; one of `y` is
    `unit` in the user's units."""
    if y.shape[0] != 1 or bool((y == y[0, 0]).all()):
        return []
    sign = -1.0 if bool((y <= 0).all()) else 1.0
    found = []
    units = {p.name: p for p in primitives}
    for name in _INVERSES:
        if name in units:
            # A logarithm has both signs; the other odd units do not mind.
            amplitude = 1.0 if name == "log" else sign
            transform = transformed(units[name], y, amplitude if name in SCALE_FREE else amplitude / unit)
            found += [transform] if transform is not None else []
    return found


def transformed(unit: Primitive, y: Tensor, amplitude: float) -> TargetTransform | None:
    """The transform of `amplitude` times a unit, where the values allow it."""
    allowed, inverse = _INVERSES[unit.name]
    if not allowed(y / amplitude):
        return None
    target = inverse(y / amplitude)
    return TargetTransform(unit, target, amplitude, float(target.std()) or 1.0)
