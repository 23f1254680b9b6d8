"""Targets seen through the inverse of a last unit: the log of y is fitted where the truth may end in exp."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from eqlearn.core.primitives import Primitive
from eqlearn.discovery.least_squares import Fit
from eqlearn.discovery.population import Population


@dataclass(frozen=True, eq=False)
class Inversion:
    """A last layer of one unit, undone on the target: fitting `target` fits `unit` of the network's output.

    The true target is `sign` times the unit's value.
    """

    unit: Primitive
    target: Tensor
    sign: float = 1.0
    scale: float = 1.0  # the target's spread: what is fitted is the target in units of it

    def outer(self, fit: Fit) -> tuple[Population, Tensor]:
        """The fitted network with the unit as its last layer."""
        structure = fit.population.structures[0]
        deeper = replace(structure, layers=(*structure.layers, (self.unit,)))
        inner = fit.population.weights(0, fit.theta)
        extra = deeper.shapes()[-1][1]
        # The old read-out feeds the unit; the new one reads only the unit.
        last = torch.zeros(1, extra, dtype=torch.float64)
        last[0, 0] = self.sign
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
}


def inversions(primitives: Sequence[Primitive], y: Tensor) -> list[Inversion]:
    """The inversions that the signs of a single target allow, the most common in nature first."""
    if y.shape[0] != 1 or bool((y == y[0, 0]).all()):
        return []
    sign = -1.0 if bool((y <= 0).all()) else 1.0
    found = []
    units = {p.name: p for p in primitives}
    for name, (allowed, inverse) in _INVERSES.items():
        if name not in units:
            continue
        unit = units[name]
        if allowed(sign * y):
            target = inverse(sign * y)
            found.append(Inversion(unit, target, sign, float(target.std()) or 1.0))
    return found
