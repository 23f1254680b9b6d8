"""Targets seen through the inverse of a last unit: the log of y is fitted where the truth may end in exp."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from eqlearn.functions import TORCH
from eqlearn.nn.primitives import Plain, Primitive, lookup
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
        # The old read-out feeds the unit; the new one reads only the unit.
        last = torch.zeros(deeper.shapes()[-1], dtype=torch.float64)
        last[0, 0] = self.amplitude
        return Population.started([deeper], [[*fit.population.weights(0, fit.theta), last]])


@np.errstate(all="ignore")
def undone(unit: Primitive, values: np.ndarray, principal: bool = False) -> np.ndarray:
    """The arguments at which a unit has these values, NaN where there are none, or many: of a sine or cosine
    the `principal` ones if asked."""
    if unit.name == "inv":
        return np.asarray(1 / values)
    if unit.name == "square":
        return np.asarray(np.sqrt(values))
    if unit.name == "cube":
        return np.asarray(np.cbrt(values))
    if unit.name == "sigmoid":
        return undone(lookup("logistic"), values) / 20
    if not isinstance(unit.formula, Plain):
        return np.full_like(values, np.nan)
    if principal and unit.formula.function.name in ("sin", "cos"):
        return np.asarray((np.arcsin if unit.formula.function.name == "sin" else np.arccos)(values))
    if unit.formula.function.inverse is None:
        return np.full_like(values, np.nan)
    function = unit.formula.function
    low, high = function.image
    inside = np.where((values >= low) & (values <= high), values, np.nan)
    found: Tensor = function.undo(TORCH, torch.from_numpy(inside))
    return found.numpy()


# The most common in nature; other units with an inverse come after them, as they stand.
_COMMON = ("exp", "inv", "sqrt", "square", "log", "sigmoid", "tanh", "asin", "atan")
# A factor in front of these is as good as one inside; the others are tried as they are in the user's units.
SCALE_FREE = ("exp", "inv", "sqrt", "square", "cube")


def transforms(primitives: Sequence[Primitive], y: Tensor, unit: float = 1.0) -> list[TargetTransform]:
    """The transforms that the signs of a single target allow, the most common in nature first; one of `y` is
    `unit` in the user's units."""
    if y.shape[0] != 1 or bool((y == y[0, 0]).all()):
        return []
    sign = -1.0 if bool((y <= 0).all()) else 1.0
    units = {p.name: p for p in primitives}
    found = []
    for name in (name for name in dict.fromkeys([*_COMMON, *units]) if name in units):
        # A logarithm has both signs; an odd unit gives the same with either.
        amplitude = 1.0 if name == "log" else sign
        found.append(transformed(units[name], y, amplitude if name in SCALE_FREE else amplitude / unit))
    return [transform for transform in found if transform is not None]


def transformed(unit: Primitive, y: Tensor, amplitude: float) -> TargetTransform | None:
    """The transform of `amplitude` times a unit, where the values allow it."""
    values = (y / amplitude).numpy()
    if unit.name == "inv" and not (values > 1e-3 * values.max()).all():
        return None
    target = torch.from_numpy(undone(unit, values))
    if not bool(torch.isfinite(target).all()):
        return None
    return TargetTransform(unit, target, amplitude, float(target.std()) or 1.0)
