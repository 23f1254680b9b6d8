"""The sparse linear map: a weight, a mask that holds pruned entries at exactly zero, optional gates."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import sympy as sp
import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from eqlearn.core.gates import HardConcrete, settled
from eqlearn.errors import InvalidArgument, NotFinite
from eqlearn.words import counted


class SparseLinear(nn.Module):
    """`weight @ x` on feature-major activations, `(in, rows)` or `(members, in, rows)`.

    `raw` is what the optimiser moves; `weight` is what the map uses: `raw` where `mask` is true (times its
    gate, if there are gates), exactly zero elsewhere. Momentum or weight decay may stir a masked entry of
    `raw`; it can't reach the map.
    """

    mask: Tensor

    def __init__(
        self,
        in_features: int,
        out_features: int,
        *,
        members: int | None = None,
        gates: bool = False,
        seeds: Sequence[int] | None = None,
    ) -> None:
        super().__init__()
        for name, value in (("in_features", in_features), ("out_features", out_features)):
            if value < 1:
                raise InvalidArgument(f"`{name}` must be at least 1, got {value}")
        if members is not None and members < 1:
            raise InvalidArgument(f"`members` must be None or at least 1, got {members}")
        if seeds is not None and len(seeds) != (members or 1):
            raise InvalidArgument(
                f"`seeds` holds {counted(len(seeds), 'number')} for {counted(members or 1, 'member')}"
            )
        shape = (out_features, in_features) if members is None else (members, out_features, in_features)
        self.in_features = in_features
        self.out_features = out_features
        self.members = members
        self.raw = nn.Parameter(torch.zeros(shape))
        self.register_buffer("mask", torch.ones(shape, dtype=torch.bool))
        self.gate: HardConcrete | None = None
        if gates:
            self.gate = HardConcrete(shape, torch.tensor(list(seeds or range(members or 1))))

    @property
    def weight(self) -> Float[Tensor, "*members out in"]:
        raw = self.raw if self.gate is None else self.raw * self.gate()
        return torch.where(self.mask, raw, 0.0)

    def forward(self, x: Float[Tensor, "*any in rows"]) -> Float[Tensor, "*more out rows"]:
        return self.weight @ x if self.training else _silent_product(self.weight, x)

    def symbolic(self, x: sp.Matrix) -> sp.Matrix:
        """The same map on a column of SymPy expressions; entries that are zero leave no trace."""
        weight = self.settled()
        if not bool(torch.isfinite(weight).all()):
            raise NotFinite("a weight is NaN or infinite, so the network has no equation; train it again")
        rows = [
            sp.Add(*(sp.Float(w, 17) * h for w, h in zip(row, x, strict=True) if w != 0))
            for row in weight.tolist()
        ]
        return sp.Matrix([_as_float64(row) for row in rows])

    @torch.no_grad()
    def settled(self) -> Float[Tensor, "*members out in"]:
        """The weight with deterministic gates, whatever the mode the module is in."""
        if self.gate is None:
            return self.weight
        return torch.where(self.mask, self.raw * settled(self.gate.log_alpha), 0.0)

    @torch.no_grad()
    def keep_(self, keep: Bool[Tensor, "*members out in"]) -> None:
        """Prunes every entry that is not in `keep`, for good."""
        if keep.shape != self.mask.shape:
            raise InvalidArgument(f"`keep` has shape {tuple(keep.shape)}, the layer {tuple(self.mask.shape)}")
        self.mask &= keep
        self.raw.masked_fill_(~self.mask, 0.0)

    def extra_repr(self) -> str:
        members = "" if self.members is None else f", members={self.members}"
        return f"{self.in_features}, {self.out_features}{members}, gates={self.gate is not None}"


def _as_float64(expression: sp.Expr) -> sp.Expr:
    """A sum whose constant overflows float64 is infinite, as it is on tensors; SymPy would compute the
    exponential of such a number for ever."""
    constant = expression.as_coeff_Add()[0]
    if constant.is_Float and math.isinf(float(constant)):
        return sp.sign(constant) * sp.oo
    return expression


def _silent_product(weight: Tensor, x: Tensor) -> Tensor:
    """`weight @ x` in which a zero weight silences even NaN and infinity, as it does in the formula."""
    broken = ~torch.isfinite(x)
    y = weight @ x.masked_fill(broken, 0.0)
    with torch.no_grad():
        sign = weight.sign()
        count = sign.abs() @ broken.to(x.dtype)
        net = sign @ x.masked_fill(~broken, 0.0).nan_to_num(nan=0.0, posinf=1.0, neginf=-1.0)
        lost = torch.where(net.abs() == count, net * torch.inf, torch.nan)
    return torch.where(count == 0, y, lost)


def sparse_layers(model: nn.Module) -> Iterator[SparseLinear]:
    """Every sparse layer inside `model`, however deep; everything else is left alone."""
    return (m for m in model.modules() if isinstance(m, SparseLinear))


@torch.no_grad()
def prune_(model: nn.Module, *, below: float | Float[Tensor, " members"]) -> Tensor:
    """Zeroes and freezes every weight smaller than `below`; returns how many are left, per member.

    `below` is one threshold, or one per member. Gated weights are judged by their deterministic value; a
    weight that is NaN is not small, so that a member that diverged stays seen as one.
    """
    if not bool((torch.as_tensor(below) >= 0).all()):
        raise InvalidArgument(f"`below` must be at least 0, got {below}")
    for layer in sparse_layers(model):
        threshold = torch.as_tensor(below, dtype=layer.raw.dtype, device=layer.raw.device)
        if threshold.dim() == 1:
            if layer.members != len(threshold):
                raise InvalidArgument(
                    f"`below` holds {len(threshold)} thresholds for a layer of {layer.members} members"
                )
            threshold = threshold[:, None, None]
        layer.keep_(~(layer.settled().abs() < threshold))
    return weights_left(model)


@torch.no_grad()
def settle_(model: nn.Module) -> None:
    """Replaces gates by what they have decided: closed ones prune their weight, others scale it.

    After training with L0; a network without gates stays as it is.
    """
    for layer in sparse_layers(model):
        if layer.gate is not None:
            weight = layer.settled()
            layer.raw.copy_(weight)
            layer.gate = None
            layer.keep_(weight != 0)


@torch.no_grad()
def weights_left(model: nn.Module) -> Tensor:
    """How many weights are neither pruned nor behind a closed gate, a number, or one number per member."""

    def left(layer: SparseLinear) -> Tensor:
        open_ = layer.mask if layer.gate is None else layer.mask & (settled(layer.gate.log_alpha) > 0)
        return open_.sum(dim=(-2, -1))

    return sum_over_layers(model, left)


def sum_over_layers(model: nn.Module, measure: Callable[[SparseLinear], Tensor]) -> Tensor:
    """The sum of a measure of each sparse layer, which is one number, or one per member."""
    values = [measure(layer) for layer in sparse_layers(model)]
    if not values:
        raise InvalidArgument("the model holds no sparse layer; is there an EQL in it?")
    if len({v.shape for v in values}) > 1:
        raise InvalidArgument("the model mixes sparse layers of different `members`")
    return torch.stack(values).sum(dim=0)
