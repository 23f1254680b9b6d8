"""Penalties that make a network sparse: smoothed L0.5, any Lq, relaxed L0, and their group forms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor, nn

from eqlearn.errors import InvalidArgument
from eqlearn.nn.sparse import SparseLinear, sparse_layers, sum_over
from eqlearn.validation.options import check_positive, checked_choice

Penalty: TypeAlias = Callable[[SparseLinear], Tensor]
"""A function from a sparse layer to its cost: one number, or one per member."""


def smooth_half(w: Float[Tensor, "*any"], a: float) -> Float[Tensor, "*any"]:
    """√|w|, smoothed below `a` so that its slope stays finite: the paper's L*₀.₅.

    The polynomial -w⁴/8a³ + 3w²/4a + 3a/8 under the root is written in u = w/a, clamped to ±1, so that it
    stays at a beyond `a`, where the rest of |w| is added.
    """
    u = (w / a).clamp(min=-1.0, max=1.0)
    root: Tensor = _root(w, u, u * u, a)
    return root


def smooth_half_slope(w: Any, a: float) -> tuple[Any, Any]:
    """The same on arrays, with its slope."""
    u = (w / a).clip(-1.0, 1.0)
    t = u * u
    root = _root(w, u, t, a)
    return root, (3 - t) * u / (4 * root)


def _root(w: Any, u: Any, t: Any, a: float) -> Any:
    return ((3 + t * (6 - t)) * (a / 8) + abs(w - a * u)) ** 0.5


@dataclass(frozen=True)
class SmoothHalf:
    """The paper's default, L*₀.₅, with its `a` = 0.01."""

    a: float = 0.01

    def __post_init__(self) -> None:
        check_positive("a", self.a)

    def of(self, w: Float[Tensor, "*any"]) -> Float[Tensor, "*any"]:
        return smooth_half(w, self.a)

    def __call__(self, layer: SparseLinear) -> Tensor:
        return _over_entries(self.of(layer.weight), layer)


@dataclass(frozen=True)
class Lq:
    """Σ|w|^q: the plain L0.5 for `q` = 0.5, the lasso for `q` = 1. The slope at zero is taken as zero."""

    q: float = 0.5

    def __post_init__(self) -> None:
        if not self.q > 0:
            raise InvalidArgument(f"`q` must be positive, got {self.q}; for q = 0 use L0()")

    def of(self, w: Float[Tensor, "*any"]) -> Float[Tensor, "*any"]:
        size = w.abs()
        away = size > 0
        return torch.where(away, torch.where(away, size, 1.0) ** self.q, 0.0)

    def __call__(self, layer: SparseLinear) -> Tensor:
        return _over_entries(self.of(layer.weight), layer)


@dataclass(frozen=True)
class L0:
    """The expected number of open hard-concrete gates; needs a network built with `gates=True`."""

    def __call__(self, layer: SparseLinear) -> Tensor:
        if layer.gate is None:
            raise InvalidArgument("the L0 penalty needs gates; build the network with `gates=True`")
        return _over_entries(layer.gate.open_probability(), layer)


_AXES = {"members": -3, "time": -3, "outputs": -2, "inputs": -1}


@dataclass(frozen=True)
class Group:
    """A penalty on the root mean square of each group of weights, so that a group is kept or pruned as one.

    `over` is "members" or "time", which is the same axis (one equation whose constants differ between members
    or contexts: SEQL and HEQL of Zhang, Kim et al. 2022), "outputs" (a unit is used by all outputs or by
    none) or "inputs".
    """

    penalty: SmoothHalf | Lq = SmoothHalf()
    over: Literal["members", "time", "outputs", "inputs"] = "members"

    def __post_init__(self) -> None:
        checked_choice("`over`", self.over, _AXES)

    def __call__(self, layer: SparseLinear) -> Tensor:
        axis, weight = _AXES[self.over], layer.weight
        if weight.dim() < -axis:
            raise InvalidArgument(f"`over={self.over!r}` needs a network with `members` or a `context`")
        # The smallest normal number keeps the slope of the root finite where a group is all zero.
        size = (weight.square().mean(dim=axis) + torch.finfo(weight.dtype).tiny).sqrt()
        mask = layer.mask if layer.mask.dim() < weight.dim() else layer.mask.any(dim=axis)
        values = torch.where(mask, self.penalty.of(size), 0.0)
        return values.sum() if axis == -3 or layer.members is None else values.sum(dim=-1)


PENALTIES: dict[str, Penalty] = {"half": SmoothHalf(), "plain-half": Lq(0.5), "l1": Lq(1.0), "l0": L0()}


def find_penalty(penalty: str | Penalty) -> Penalty:
    """The penalty of that name, or the penalty itself."""
    return penalty if callable(penalty) else PENALTIES[checked_choice("penalty", penalty, PENALTIES)]


def sparsity(model: nn.Module, penalty: str | Penalty = "half") -> Tensor:
    """The penalty summed over every sparse layer inside `model`: a number, or one per member."""
    return over_layers(list(sparse_layers(model)), find_penalty(penalty))


def over_layers(layers: Sequence[SparseLinear], rule: Penalty) -> Tensor:
    """The penalty summed over these layers."""
    return sum_over(layers, rule)


def _over_entries(values: Tensor, layer: SparseLinear) -> Tensor:
    return torch.where(layer.mask, values, 0.0).sum(dim=(-2, -1))
