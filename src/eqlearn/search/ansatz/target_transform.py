"""Targets seen through the inverse of a last unit: the log of y is fitted where the truth may end in exp."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import sympy as sp
import torch
from torch import Tensor

from eqlearn.functions import TORCH
from eqlearn.nn.primitives import Plain, Primitive, lookup
from eqlearn.search.networks.fit import Fit
from eqlearn.search.networks.population import Population
from eqlearn.symbolic.tape import Tape, lower


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
        found.append(transformed(units[name], y, _amplitude(name, sign, unit)))
    return [transform for transform in found if transform is not None]


def _amplitude(name: str, sign: float, unit: float) -> float:
    """The factor before a last unit, by the sign of the target."""
    # A logarithm has both signs; an odd unit gives the same with either.
    signed = 1.0 if name == "log" else sign
    return signed if name in SCALE_FREE else signed / unit


@np.errstate(all="ignore")
def noisy_transforms(
    primitives: Sequence[Primitive], y: Tensor, unit: float, rows: int
) -> list[tuple[TargetTransform, np.ndarray]]:
    """Transforms of a single target that holds noise, and the weights of its rows: the unit's slope, by which
    noise of what is fitted comes to be that of the target. Rows count nothing that noise has put where a
    transform has no value, or that are as near to those as it put them off. At least so many `rows` have to
    count, by their weights."""
    sign = -1.0 if float(y.median()) < 0 else 1.0
    found = []
    for primitive in dict.fromkeys(p for p in primitives if p.name != "id"):
        amplitude = _amplitude(primitive.name, sign, unit)
        values = undone(primitive, (y[0] / amplitude).numpy())
        sure = _beyond_noise(y[0].numpy(), np.isfinite(values))
        weights = np.where(sure, np.abs(slope_of(primitive, np.nan_to_num(values))), 0.0)
        weights = np.where(np.isfinite(weights), weights, 0.0) ** 2
        if not weights.any() or weights.sum() ** 2 < rows * np.square(weights).sum():
            continue
        target = torch.from_numpy(np.where(weights > 0, np.nan_to_num(values), 0.0))[None]
        found.append((TargetTransform(primitive, target, amplitude), np.sqrt(weights / weights.mean())))
    return found


def _beyond_noise(y: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    """Which of the values that are `allowed` are farther from those that are not than the farthest of these
    is from them: noise may have moved them as far."""
    if allowed.all() or not allowed.any():
        return allowed
    off = np.abs(y[~allowed, None] - y[allowed])
    found = allowed.copy()
    found[allowed] = off.min(axis=0) > off.min(axis=1).max()
    return found


def transformed(unit: Primitive, y: Tensor, amplitude: float) -> TargetTransform | None:
    """The transform of `amplitude` times a unit, where the values allow it."""
    values = (y / amplitude).numpy()
    if unit.name == "inv" and not (values > 1e-3 * values.max()).all():
        return None
    target = torch.from_numpy(undone(unit, values))
    if not bool(torch.isfinite(target).all()):
        return None
    return TargetTransform(unit, target, amplitude, float(target.std()) or 1.0)


def slope_of(function: Primitive, values: np.ndarray) -> np.ndarray:
    """A function's derivative at each value: by its formula where there is one, else by back-propagation."""
    at, slope = torch.from_numpy(np.ascontiguousarray(values)), _derivative(function)
    if slope is not None:
        constants = [torch.tensor(float(c), dtype=torch.float64) for c in slope.constants]
        return np.broadcast_to(np.asarray(slope.run(TORCH, [at], constants)), values.shape)
    with torch.enable_grad():
        at.requires_grad_()
        (found,) = torch.autograd.grad(function(at).sum(), at)
    return found.numpy()


@cache
def _derivative(function: Primitive) -> Tape | None:
    g = sp.Symbol("g", real=True)
    slope = sp.diff(function.symbolic(g), g)
    return None if slope.has(sp.sign, sp.Derivative, sp.Subs) else lower(slope, [g])
