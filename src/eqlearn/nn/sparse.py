"""The sparse linear map: a weight, a mask that keeps pruned entries at zero, and hard-concrete gates.

The gates are the relaxed L0 norm of Louizos et al. (2017), as in appendix B of the paper.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import sympy as sp
import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from eqlearn.errors import InvalidArgument, NotFinite, counted
from eqlearn.validation.options import check_least

# Temperature and ends of the stretched interval, those of Louizos et al. and of the paper.
BETA, GAMMA, ZETA = 2 / 3, -0.1, 1.1


def counter_noise(seeds: Tensor, step: Tensor, numel: int) -> Tensor:
    """Uniform numbers in (0, 1), `(len(seeds), numel)`, that depend on nothing but seed, step and place.

    Without a generator, a member's noise is the same alone or among others, and a resumed run draws the same
    numbers. The mixing function is that of SplitMix64.
    """
    place = torch.arange(numel, device=seeds.device, dtype=torch.int64)
    # The place is only added: `torch.compile` breaks on a product of an index that overflows.
    x = _mix(seeds[:, None] * 0x632BE59BD9B4E019 + (step << 20) * 0x1B873593) + place
    # 52 bits and a half fit a double exactly, so that neither 0 nor 1 is ever reached.
    bits = (_mix(x) >> 12) & ((1 << 52) - 1)
    return (bits.double() + 0.5) / 2.0**52


def _mix(x: Tensor) -> Tensor:
    x = (x ^ ((x >> 30) & ((1 << 34) - 1))) * -0x40A7B892E31B1A47
    x = (x ^ ((x >> 27) & ((1 << 37) - 1))) * -0x6B2FB644ECCEEE15
    return x ^ ((x >> 31) & ((1 << 33) - 1))


def sampled(log_alpha: Tensor, u: Tensor) -> Tensor:
    """Gates drawn with uniform numbers `u` in (0, 1)."""
    u = u.clamp(1e-6, 1 - 1e-6)
    return _stretched(torch.sigmoid((torch.log(u) - torch.log1p(-u) + log_alpha) / BETA))


def settled(log_alpha: Tensor) -> Tensor:
    """Gates without noise, as used once training is over."""
    return _stretched(torch.sigmoid(log_alpha))


def open_probability(log_alpha: Tensor) -> Tensor:
    """The probability that each gate is non-zero; the sum is the relaxed L0 norm."""
    return torch.sigmoid(log_alpha - BETA * math.log(-GAMMA / ZETA))


def _stretched(s: Tensor) -> Tensor:
    return (s * (ZETA - GAMMA) + GAMMA).clamp(0, 1)


class HardConcrete(nn.Module):
    """Stochastic gates in [0, 1] that are exactly 0 or 1 with positive probability; fixed in `eval()`."""

    seeds: Tensor
    step: Tensor

    def __init__(self, shape: tuple[int, ...], seeds: Tensor, open_at_start: float = 0.5) -> None:
        super().__init__()
        if not 0 < open_at_start < 1:
            raise InvalidArgument(f"`open_at_start` must lie between 0 and 1, got {open_at_start}")
        self.log_alpha = nn.Parameter(torch.full(shape, math.log(open_at_start / (1 - open_at_start))))
        self.register_buffer("seeds", seeds.clone())
        self.register_buffer("step", torch.zeros((), dtype=torch.int64))

    def forward(self) -> Tensor:
        if not self.training:
            return settled(self.log_alpha)
        numel = self.log_alpha.numel() // len(self.seeds)
        u = counter_noise(self.seeds, self.step, numel).to(self.log_alpha.dtype)
        # A new tensor: counting up in place would change the noise under a compiled backward pass.
        self.step = self.step + 1
        return sampled(self.log_alpha, u.view(self.log_alpha.shape))

    def open_probability(self) -> Tensor:
        return open_probability(self.log_alpha)


class SparseLinear(nn.Module):
    """`weight @ x` on feature-major activations, `(in, rows)` or `(members, in, rows)`.

    The optimiser moves `raw`; the map uses `weight`, which is `raw` (times its gate, if any) where `mask` is
    true and exactly zero elsewhere, whatever momentum or weight decay do to masked entries. With `shared`,
    members have one gate for each entry, and are pruned together. What `moved` `(contexts, out, in)` holds is
    added to `raw`: weights that depend on a context have one more axis.
    """

    mask: Tensor
    moved: Tensor | None

    def __init__(
        self,
        in_features: int,
        out_features: int,
        *,
        members: int | None = None,
        gates: bool = False,
        shared: bool = False,
        seeds: Sequence[int] | None = None,
    ) -> None:
        super().__init__()
        for name, value in (("in_features", in_features), ("out_features", out_features)):
            check_least(name, value)
        if members is not None and members < 1:
            raise InvalidArgument(f"`members` must be None or at least 1, got {members}")
        if seeds is not None and len(seeds) != (members or 1):
            raise InvalidArgument(
                f"`seeds` holds {counted(len(seeds), 'number')} for {counted(members or 1, 'member')}"
            )
        shape = (out_features, in_features) if members is None else (members, out_features, in_features)
        self.in_features, self.out_features, self.members = in_features, out_features, members
        self.raw = nn.Parameter(torch.zeros(shape))
        self.register_buffer("mask", torch.ones(shape, dtype=torch.bool))
        self.gate: HardConcrete | None = None
        if gates:
            first = list(seeds or range(members or 1))
            one = (1, *shape[1:]) if shared else shape
            self.gate = HardConcrete(one, torch.tensor(first[:1] if shared else first))
        self.shared, self.moved = shared, None

    @property
    def product(self) -> Float[Tensor, "*members out in"]:
        """`raw`, moved by a context and times its gate, if any: the weight before its mask."""
        raw = self.raw if self.moved is None else self.raw + self.moved
        return raw if self.gate is None else raw * self.gate()

    @property
    def weight(self) -> Float[Tensor, "*members out in"]:
        return torch.where(self.mask, self.product, 0.0)

    def forward(self, x: Float[Tensor, "*any in rows"]) -> Float[Tensor, "*more out rows"]:
        return self.weight @ x if self.training else _silent_product(self.weight, x)

    def symbolic(self, x: sp.Matrix) -> sp.Matrix:
        """The same map on a column of SymPy expressions; entries that are zero leave no trace."""
        weight = self.settled()
        if not bool(torch.isfinite(weight).all()):
            raise NotFinite("a weight is NaN or infinite, so the network has no equation; train it again")
        terms = ([sp.Float(w, 17) * h for w, h in zip(row, x, strict=True) if w] for row in weight.tolist())
        return sp.Matrix([_as_float64(sp.Add(*row)) for row in terms])

    @torch.no_grad()
    def settled(self) -> Float[Tensor, "*members out in"]:
        """The weight with deterministic gates, also in training mode."""
        if self.gate is None:
            return self.weight
        raw = self.raw if self.moved is None else self.raw + self.moved
        return torch.where(self.mask, raw * settled(self.gate.log_alpha), 0.0)

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
    """Infinity for a sum whose constant overflows float64, as on tensors: SymPy would never finish computing
    the exponential of such a number."""
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
    """Every sparse layer inside `model`, however deep."""
    return (m for m in model.modules() if isinstance(m, SparseLinear))


@torch.no_grad()
def prune_(model: nn.Module, *, below: float | Float[Tensor, " members"]) -> Tensor:
    """Zeroes and freezes every weight smaller than `below`; returns how many are left, per member.

    `below` is one threshold, or one per member. Gated weights are judged by their deterministic value. NaN is
    not small, so that a diverged member remains visible.
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
        keep = ~(layer.settled().abs() < threshold)
        if layer.shared or keep.dim() > layer.mask.dim():  # what is needed in one member or context is kept
            keep = keep.any(dim=0).expand(layer.mask.shape)
        layer.keep_(keep)
    return weights_left(model)


@torch.no_grad()
def settle_(model: nn.Module) -> None:
    """Folds gates into weights after L0 training: a closed gate prunes its weight, another scales it."""
    for layer in sparse_layers(model):
        if layer.gate is not None:
            weight = layer.settled()
            if weight.shape != layer.raw.shape:
                raise InvalidArgument("weights that depend on a context are settled by `at(context)`")
            layer.raw.copy_(weight)
            layer.gate = None
            layer.keep_(weight != 0)


@torch.no_grad()
def weights_left(model: nn.Module) -> Tensor:
    """The number of weights that are neither pruned nor behind a closed gate, in all or per member."""

    def left(layer: SparseLinear) -> Tensor:
        open_ = layer.mask if layer.gate is None else layer.mask & (settled(layer.gate.log_alpha) > 0)
        return open_.sum(dim=(-2, -1))

    return sum_over(list(sparse_layers(model)), left)


def sum_over(layers: Sequence[SparseLinear], measure: Callable[[SparseLinear], Tensor]) -> Tensor:
    """The sum of `measure` over these layers."""
    values = [measure(layer) for layer in layers]
    if not values:
        raise InvalidArgument("the model holds no sparse layer; is there an EQL in it?")
    if len({v.shape for v in values}) > 1:
        raise InvalidArgument("the model mixes sparse layers of different `members`")
    return torch.stack(values).sum(dim=0)
