"""The equation learner: a stack of symbolic layers and a linear read-out, as an ordinary module."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import accumulate, groupby, islice
from numbers import Integral
from typing import Any

import sympy as sp
import torch
from jaxtyping import Float
from torch import Tensor, nn

from eqlearn.errors import InvalidArgument, WrongType, counted
from eqlearn.nn.by_hand import Propagation, Scratch, by_hand, on_arrays, transformed
from eqlearn.nn.context import ContextWeights
from eqlearn.nn.inits import INITS, Init
from eqlearn.nn.primitives import PAPER, Primitive, PrimitivesLike, format_set, parse_layers
from eqlearn.nn.sparse import SparseLinear
from eqlearn.validation.options import check_place, check_single, check_whole, checked_choice


class SymbolicLayer(nn.Module):
    """`h = f(W x)`: a sparse linear map followed by one primitive per unit."""

    def __init__(self, in_features: int, units: Sequence[Primitive], **options: Any) -> None:
        super().__init__()
        self.units = tuple(units)
        arguments = sum(p.arity for p in self.units)
        if arguments == 0:
            raise InvalidArgument("`primitives` holds constants only; add one that takes an argument")
        self.linear = SparseLinear(in_features, arguments, **options)
        # Neighbours of one kind form a block: its first arguments, then its second ones, ...
        self.blocks = tuple((p, len(list(run))) for p, run in groupby(self.units))
        self.written = all(p.pullback is not None or p.arity == 0 for p in self.units)
        self._sizes = [count for p, count in self.blocks for _ in range(p.arity)]
        ends = iter(accumulate(self._sizes))
        self.places = [[slice((end := next(ends)) - n, end) for _ in range(p.arity)] for p, n in self.blocks]

    def forward(self, x: Float[Tensor, "*any in rows"]) -> Float[Tensor, "*more units rows"]:
        return self.values(self.linear(x))

    def values(self, g: Float[Tensor, "*any arguments rows"]) -> Float[Tensor, "*any units rows"]:
        """The values of all units from the arguments of all."""
        # One split for all arguments: its backward pass is one copy, where slices cost a buffer each.
        arguments = iter(g.split(self._sizes, dim=-2))
        out = []
        for primitive, count in self.blocks:
            if primitive.arity == 0:
                out.append(g.new_full((*g.shape[:-2], count, g.shape[-1]), primitive()))
            else:
                out.append(primitive(*islice(arguments, primitive.arity), guarded=self.training))
        return torch.cat(out, dim=-2)

    def symbolic(self, x: sp.Matrix) -> sp.Matrix:
        g = self.linear.symbolic(x)
        places = zip(self.units, argument_rows(self.units), strict=True)
        return sp.Matrix([unit.symbolic(*(g[row] for row in rows)) for unit, rows in places])


@cache
def argument_rows(units: tuple[Primitive, ...]) -> tuple[tuple[int, ...], ...]:
    """For each unit of a layer, the rows of the linear map that feed it."""
    rows, start = [], 0
    for primitive, run in groupby(units):
        count = len(list(run))
        rows += [tuple(start + i + k * count for k in range(primitive.arity)) for i in range(count)]
        start += primitive.arity * count
    return tuple(rows)


def layer_widths(in_features: int, units: Sequence[int], skip: bool, bias: bool) -> list[int]:
    """How many inputs each linear map has, first layer to read-out, given the `units` of each layer."""
    extra = (in_features if skip else 0) + int(bias)
    return [in_features + int(bias), *(count + extra for count in units)]


class EQL(nn.Module):
    """An equation as a layer: `x` `(*batch, in)` to `(*batch, out)`.

    It goes after any encoder or inside any recurrent cell; it holds no optimiser, data or random state. With
    `members` it is several independent networks in one tensor program; the output is then
    `(members, *batch, out)`.

    `skip` lets later layers, the read-out included, see the inputs too; `bias` gives every layer a constant
    input; `gates` adds hard-concrete gates for the L0 penalty. With `shared`, members are one equation whose
    constants differ (SEQL): they share gates and are pruned together. With a `context` of so many features,
    such as the time, weights are functions of it by a small network of `context_units` (HEQL): `forward(x,
    context)` takes `(contexts, rows, in)` and `(contexts, features)`, and `at(context)` is the network of
    one context. `init` is a name or an `Init`. `seed` is one
    number (member `i` starts from `seed + i`) or one per member; by default, torch's own generator decides.
    """

    def __init__(
        self,
        in_features: int,
        out_features: int = 1,
        primitives: PrimitivesLike = PAPER,
        hidden_layers: int = 2,
        *,
        members: int | None = None,
        skip: bool = False,
        bias: bool = False,
        gates: bool = False,
        shared: bool = False,
        context: int | None = None,
        context_units: Sequence[int] = (32, 32),
        init: str | Init = "default",
        seed: int | Sequence[int] | None = None,
    ) -> None:
        super().__init__()
        for name, count in (("in_features", in_features), ("out_features", out_features)):
            check_whole(name, count)
        sets = parse_layers(primitives, hidden_layers)
        seeds = member_seeds(seed, members)
        self.in_features, self.out_features, self.members = in_features, out_features, members
        self.skip, self.bias = skip, bias
        *widths, last = layer_widths(in_features, [len(units) for units in sets], skip, bias)
        options: list[dict[str, Any]] = [
            {"members": members, "gates": gates, "shared": shared, "seeds": [s * 64 + depth for s in seeds]}
            for depth in range(len(sets) + 1)
        ]
        self.hidden = nn.ModuleList(
            SymbolicLayer(width, units, **o) for width, units, o in zip(widths, sets, options, strict=False)
        )
        self.readout = SparseLinear(last, out_features, **options[-1])
        self.scratch = Scratch()
        self.reset(init, seeds)
        if shared and members is None:
            raise InvalidArgument("`shared` is for a network with `members`")
        if context is not None and members is not None:
            raise InvalidArgument("a network has `members` or a `context`, not both")
        self.context: ContextWeights | None = None
        if context is not None:
            generator = torch.Generator().manual_seed(_in_32_bits(seeds[0] + 2**31))
            self.context = ContextWeights(context, self.linears, context_units, generator)

    @torch.no_grad()
    def reset(self, init: str | Init, seeds: Sequence[int]) -> None:
        """Draws all weights anew, each member from its own seed; masks are left as they are."""
        seeds = member_seeds(seeds, self.members)
        if isinstance(init, str):
            init = INITS[checked_choice("`init`", init, INITS)]
        generators = [torch.Generator().manual_seed(_in_32_bits(int(s))) for s in seeds]
        layers = self.linears
        for depth, layer in enumerate(layers):
            last = depth == len(layers) - 1
            spread = init.last if last else init.first if depth == 0 else init.middle
            shape = (layer.out_features, layer.in_features)
            for i, generator in enumerate(generators):
                if last and init.uniform_readout:
                    drawn = torch.rand(shape, generator=generator, dtype=torch.float64)
                else:
                    drawn = init.draw(layer.in_features, spread, shape, generator)
                (layer.raw if self.members is None else layer.raw[i]).copy_(drawn)
            layer.raw.masked_fill_(~layer.mask, 0.0)
        # After the weights, so that a seed gives the same weights with and without gates.
        for layer in layers:
            if layer.gate is not None:
                shape = (layer.out_features, layer.in_features)
                draws = [torch.randn(shape, generator=g, dtype=torch.float64) for g in generators]
                some = draws[:1] if layer.shared else draws
                layer.gate.log_alpha.copy_(0.01 * torch.stack(some).view(layer.gate.log_alpha.shape))

    @property
    def linears(self) -> list[SparseLinear]:
        """The sparse maps, first layer to read-out."""
        return [*(layer.linear for layer in self.layers), self.readout]

    @property
    def layers(self) -> list[SymbolicLayer]:
        """The hidden layers."""
        return list(self.hidden)  # type: ignore[arg-type]

    def forward(
        self, x: Float[Tensor, "*batch in"], context: Tensor | None = None
    ) -> Float[Tensor, "*out_batch out"]:
        if not isinstance(x, Tensor):
            raise WrongType(
                f"`x` must be a tensor, got {type(x).__name__}; convert it with `torch.as_tensor`"
            )
        if x.shape[-1:] != (self.in_features,):
            raise InvalidArgument(
                f"the last axis of `x` must have {self.in_features} features, got shape {tuple(x.shape)}"
            )
        if x.dtype != self.readout.raw.dtype and not torch.is_autocast_enabled(x.device.type):
            raise WrongType(
                f"`x` is {x.dtype}, the network {self.readout.raw.dtype}; convert one with `.to(...)`"
            )
        if self.context is not None or context is not None:
            return self._in_context(x, context)
        # Contiguous rows make the first layer's weight gradient several times faster.
        rows = x.reshape(-1, self.in_features).mT.contiguous()
        y = self.propagate(rows).mT
        return y.reshape(*(() if self.members is None else (self.members,)), *x.shape[:-1], self.out_features)

    def _in_context(self, x: Tensor, context: Tensor | None) -> Tensor:
        if self.context is None or context is None:
            raise InvalidArgument(
                "`context` is for a network that was built with a `context`, and needed there"
            )
        if x.dim() != 3 or len(x) != len(context):
            raise InvalidArgument(
                f"`x` must be (contexts, rows, {self.in_features}) with the {len(context)} of `context`, got "
                f"shape {tuple(x.shape)}"
            )
        for layer, moved in zip(self.linears, self.context(context), strict=True):
            layer.moved = moved
        return self.propagate(x.mT.contiguous()).mT

    @torch.no_grad()
    def at(self, context: Tensor) -> EQL:
        """The network of one context `(features,)`, as an ordinary one (a copy)."""
        if self.context is None:
            raise InvalidArgument("this network has no `context`; it is the same everywhere")
        single = self._like_one().to(self.readout.raw)
        moved = self.context(torch.as_tensor(context).to(self.readout.raw).reshape(1, -1))
        for own, layer, more in zip(single.linears, self.linears, moved, strict=True):
            layer.moved = more
            own.raw.copy_(layer.settled()[0])
            own.mask.copy_(layer.mask)
            own.gate = None
        return single.train(self.training)

    def _like_one(self) -> EQL:
        """A single network of the same layers."""
        sets, sizes = [layer.units for layer in self.layers], (self.in_features, self.out_features)
        gates = any(layer.gate is not None for layer in self.linears)
        return EQL(*sizes, sets, len(sets), skip=self.skip, bias=self.bias, gates=gates, seed=0)

    def propagate(self, x: Float[Tensor, "*any in rows"]) -> Float[Tensor, "*more out rows"]:
        """The network on feature-major data: `(in, rows)`, or `(members, in, rows)` for separate inputs."""
        if x.dim() > 2 and self.members is not None and x.shape[0] != self.members:
            raise InvalidArgument(f"`x` has inputs for {x.shape[0]} members, the network has {self.members}")
        known = on_arrays(self, x, [linear.raw for linear in self.linears]) and not self.hooked
        if self.training and torch.is_grad_enabled() and known and not transformed(x):
            rule = Propagation(self)
            return by_hand(rule, x, *rule.inputs)
        h = x
        for depth, layer in enumerate(self.layers):
            h = layer(self.widen(h, x, depth))
        y: Tensor = self.readout(self.widen(h, x, len(self.hidden)))
        return y

    @property
    def hooked(self) -> bool:
        """Whether someone looks at the layers while they compute."""
        inside = (m for layer in self.layers for m in (layer, layer.linear))
        return any(
            m._forward_hooks or m._forward_pre_hooks or m._backward_hooks for m in (*inside, self.readout)
        )

    def widen(self, h: Tensor, x: Tensor, depth: int) -> Tensor:
        """What layer `depth` sees: the layer before, then the inputs (skip), then the constant (bias)."""
        beside = self.beside(h, x, depth)
        return torch.cat([h, *beside], dim=-2) if beside else h

    def beside(self, h: Tensor, x: Tensor, depth: int) -> list[Tensor]:
        """What layer `depth` sees beside the layer before."""
        skipped = [x.expand(*h.shape[:-2], *x.shape[-2:])] if self.skip and depth > 0 else []
        return [*skipped, torch.ones_like(h[..., :1, :])] if self.bias else skipped

    def symbolic(self, x: Sequence[sp.Expr] | sp.Matrix) -> sp.Matrix:
        """The network on SymPy expressions: a column with one expression per output."""
        check_single("equation", self.members)
        if self.context is not None:
            raise InvalidArgument("a network with a `context` has an equation in each; take `at(context)`")
        x = sp.Matrix(list(x))
        if len(x) != self.in_features:
            raise InvalidArgument(f"{len(x)} variables for a network of {self.in_features} inputs")
        h = x
        for depth, layer in enumerate(self.layers):
            h = layer.symbolic(self._widen_symbolic(h, x, depth))
        return self.readout.symbolic(self._widen_symbolic(h, x, len(self.hidden)))

    def _widen_symbolic(self, h: sp.Matrix, x: sp.Matrix, depth: int) -> sp.Matrix:
        skipped = list(x) if self.skip and depth > 0 else []
        return sp.Matrix([*h, *skipped, *([sp.S.One] if self.bias else [])])

    def member(self, index: int) -> EQL:
        """One network of the population, as a network of its own (a copy)."""
        if self.members is None:
            raise InvalidArgument("this network has no `members`; it is a single one already")
        check_place("member", index, self.members)
        gated = [layer.gate is not None for layer in self.linears]
        single = self._like_one().to(self.readout.raw)
        for layer, keeps in zip(single.linears, gated, strict=True):
            layer.gate = layer.gate if keeps else None
        state = self.state_dict()
        for name, tensor in single.state_dict().items():
            every = state[name]  # shared gates have one for all
            tensor.copy_(every[index if len(every) > 1 else 0] if every.dim() else every)
        return single.train(self.training)

    def extra_repr(self) -> str:
        sets = " | ".join(format_set(layer.units) for layer in self.layers)
        return f"{self.in_features}, {self.out_features}, {sets!r}, members={self.members}, skip={self.skip}"


def member_seeds(seed: int | Sequence[int] | None, members: int | None) -> list[int]:
    """One seed for each member: those given, or `seed`, `seed + 1`, ...; without any, torch's own choice."""
    count = max(members or 1, 1)
    if seed is None:
        return [int(s) for s in torch.randint(2**31 - 1, (count,))]
    seeds = list(range(int(seed), int(seed) + count) if isinstance(seed, int | Integral) else map(int, seed))
    if len(seeds) != count:
        raise InvalidArgument(f"`seed` holds {counted(len(seeds), 'number')} for {counted(count, 'member')}")
    if not all(0 <= s < 2**56 for s in seeds):
        raise InvalidArgument(f"`seed` must lie between 0 and 2**56, got {seed}")
    return seeds


def _in_32_bits(seed: int) -> int:
    """The seed itself where it has 32 bits, all that torch's generator looks at; else mixed down to them."""
    return (seed + (seed >> 32) * 0x9E3779B1) % 2**32
