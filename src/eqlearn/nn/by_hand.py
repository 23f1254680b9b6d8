"""Derivatives written by hand, each a single step for autograd; that of a whole network is here.

For tensors as small as those of an equation learner, what costs is the number of steps that autograd records.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor
from torch.autograd import forward_ad

from eqlearn.functions import NUMPY, TORCH

Gradients = Sequence[Tensor | None]


@runtime_checkable
class Rule(Protocol):
    """A function of tensors with a derivative of its own.

    `forward` gives the value and what `backward` wants to keep; `backward` the gradient of each input, or
    None where it is not `wanted`. `plain` is the same function in operations that autograd knows.
    """

    @property
    def plain(self) -> Callable[..., Tensor]: ...

    @property
    def forward(self) -> Callable[..., tuple[Tensor, Any]]: ...

    def backward(
        self, dy: Tensor, kept: Any, inputs: Sequence[Tensor], wanted: Sequence[bool]
    ) -> Gradients: ...


def by_hand(rule: Rule, *inputs: Tensor) -> Tensor:
    """The value of a rule, as one step of autograd.

    Where something else than a gradient is asked for (`torch.func`, `torch.compile`, forward mode, no
    gradient at all), it is `plain` that is computed.
    """
    if not torch.is_grad_enabled() or transformed(inputs[0]):
        return rule.plain(*inputs)
    y: Tensor = _Step.apply(rule, *inputs)
    return y


def transformed(x: Tensor) -> bool:
    """Whether something is under way that custom derivatives do not go through, or in another precision."""
    return (
        torch.compiler.is_compiling()
        or torch._C._are_functorch_transforms_active()
        or forward_ad._current_level >= 0
        or (x.device.type in ("cpu", "cuda") and torch.is_autocast_enabled(x.device.type))
    )


class _Step(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rule: Rule, *inputs: Tensor) -> Tensor:
        y, ctx.kept = rule.forward(*inputs)
        ctx.rule = rule
        ctx.save_for_backward(*inputs)
        return y

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:
        rule, inputs, wanted = ctx.rule, ctx.saved_tensors, ctx.needs_input_grad[1:]
        if torch.is_grad_enabled():  # the derivative will be differentiated in its turn
            asked = [x for x, w in zip(inputs, wanted, strict=True) if w]
            found = iter(torch.autograd.grad(rule.plain(*inputs), asked, dy, create_graph=True))
            return None, *(next(found) if w else None for w in wanted)
        # What was kept may be overwritten from here on; a second pass through a retained graph makes it anew.
        kept, ctx.kept = ctx.kept, None
        if kept is None:
            _, kept = rule.forward(*inputs)
        return None, *rule.backward(dy, kept, inputs, wanted)


@dataclass(frozen=True)
class MeanSquare:
    """The mean over the last axes of (x - `target`)²: one number, or one for each member."""

    target: Tensor
    axes: tuple[int, ...] = (-2, -1)

    def plain(self, x: Tensor) -> Tensor:
        return (x - self.target).square().mean(dim=self.axes)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        off = x - self.target
        return off.square().mean(dim=self.axes), off

    def backward(
        self, dy: Tensor, kept: Tensor, inputs: Sequence[Tensor], wanted: Sequence[bool]
    ) -> Gradients:
        numbers = kept.numel() // dy.numel()
        return (kept * (dy * (2 / numbers)).reshape(*dy.shape, *[1] * len(self.axes)),)


class Scratch(list[Any]):
    """Buffers that are free to be used again; no part of what is copied or saved."""

    def __reduce__(self) -> tuple[Callable[[], Scratch], tuple[()]]:
        return Scratch, ()


# Up to so many arguments of a layer, a call of NumPy's costs half of one of torch's, and the rest is nothing.
_FEW = 2**15


class _Room:
    """Buffers for one layer: arguments `g`, what the next map sees `h`, and their gradients, as tensors or as
    arrays. What is done block by block is laid out once."""

    def __init__(self, layer: Any, like: Tensor, lead: torch.Size, beside: int, arrays: bool) -> None:
        def room(size: int, value: float = 1.0) -> Any:
            self.tensor = like.new_full((*lead, size, like.shape[-1]), value)
            return self.tensor.numpy() if arrays else self.tensor

        maps, units = layer.linear.out_features, len(layer.units)
        self.g, self.dg, self.h, self.dh = room(maps), room(maps), room(units + beside), room(units + beside)
        m = NUMPY if arrays else TORCH
        self.values: list[Any] = []
        self.pulls: list[Any] = []
        end = 0
        for (primitive, count), places in zip(layer.blocks, layer.places, strict=True):
            start, end = end, end + count
            if primitive.arity == 0:
                self.values.append((partial(lambda one: one, room(count, float(primitive()))), ()))
                continue
            arguments = [self.g[..., rows, :] for rows in places]
            of_block = self.dh[..., start:end, :], self.h[..., start:end, :], *arguments
            self.values.append((partial(primitive.trained, m), arguments))
            self.pulls.append((partial(primitive.pull_back, m), of_block))


class Propagation:
    """`EQL.propagate` for inputs and the raw weights of each map, which the masks are applied to here."""

    def __init__(self, network: Any) -> None:
        linears = network.linears
        self.network = network
        self.inputs = [linear.product for linear in linears]
        self.masks = [linear.mask for linear in linears]

    def plain(self, x: Tensor, *raw: Tensor) -> Tensor:
        network, h = self.network, x
        weights = [torch.where(mask, w, 0.0) for mask, w in zip(self.masks, raw, strict=True)]
        for depth, (layer, weight) in enumerate(zip(network.layers, weights, strict=False)):
            h = layer.values(weight @ network.widen(h, x, depth))
        y: Tensor = weights[-1] @ network.widen(h, x, len(weights) - 1)
        return y

    def forward(self, x: Tensor, *raw: Tensor) -> tuple[Tensor, Any]:
        network, (key, rooms) = self.network, self._rooms(x, raw)
        m, arrays = (np, True) if key[-1] else (torch, False)
        given, tensors = network.widen(x, x, 0), [x, *raw, *self.masks]
        beside = network.beside(rooms[0].tensor, x, 1)
        if arrays:
            given, tensors = given.detach().numpy(), [t.detach().numpy() for t in tensors]
            beside = [t.detach().numpy() for t in beside]
        raws, masks = tensors[1 : len(raw) + 1], tensors[len(raw) + 1 :]
        weights = [m.where(mask, w, 0.0) for mask, w in zip(masks, raws, strict=True)]
        seen = [given]
        with np.errstate(all="ignore"):
            for weight, room in zip(weights, rooms, strict=False):
                m.matmul(weight, seen[-1], out=room.g)
                values = [value(*arguments) for value, arguments in room.values]
                m.concatenate([*values, *beside], axis=-2, out=room.h)
                seen.append(room.h)
            y = m.matmul(weights[-1], seen[-1])
        return torch.as_tensor(y), (weights, seen, (key, rooms))

    def backward(self, dy: Tensor, kept: Any, inputs: Sequence[Tensor], wanted: Sequence[bool]) -> Gradients:
        (x, *raw), (weights, seen, (key, rooms)) = inputs, kept
        network, found = self.network, [dy] * len(raw)
        dg, m = (dy.numpy(), np) if key[-1] else (dy, torch)
        dx = torch.zeros_like(x) if wanted[0] else None
        with np.errstate(all="ignore"):
            for depth in reversed(range(len(weights))):
                dw = torch.as_tensor(m.matmul(dg, seen[depth].swapaxes(-1, -2)))
                found[depth] = torch.where(self.masks[depth], dw.sum_to_size(raw[depth].shape), 0.0)
                if depth == 0:
                    break
                room, units = rooms[depth - 1], len(network.layers[depth - 1].units)
                m.matmul(weights[depth].swapaxes(-1, -2), dg, out=room.dh)
                if dx is not None and network.skip:
                    dx += torch.as_tensor(room.dh)[..., units : units + x.shape[-2], :].sum_to_size(x.shape)
                pulled = [d for pull, of_block in room.pulls for d in pull(*of_block)]
                dg = m.concatenate(pulled, axis=-2, out=room.dg)
            if dx is not None:
                from_map = torch.as_tensor(m.matmul(weights[0].swapaxes(-1, -2), dg))
                dx += from_map[..., : x.shape[-2], :].sum_to_size(x.shape)
        network.scratch.append((key, rooms))
        return dx, *found

    def _rooms(self, x: Tensor, raw: Sequence[Tensor]) -> Any:
        layers, scratch = self.network.layers, self.network.scratch
        lead = torch.broadcast_shapes(x.shape[:-2], raw[0].shape[:-2])
        few = math.prod(lead) * x.shape[-1] * max(w.shape[-1] for w in raw) <= _FEW
        known = x.device.type == "cpu" and x.dtype == raw[0].dtype in (torch.float32, torch.float64)
        blocks = [primitive for layer in layers for primitive, _ in layer.blocks]
        arrays = few and known and all(p.pullback is not None or p.arity == 0 for p in blocks)
        key = (x.dtype, x.device, lead, x.shape[-1], arrays)
        while scratch:
            known, rooms = scratch.pop()
            if known == key:
                return known, rooms
        beside = [w.shape[-1] - len(layer.units) for layer, w in zip(layers, raw[1:], strict=True)]
        return key, [_Room(layer, x, lead, n, arrays) for layer, n in zip(layers, beside, strict=True)]


@dataclass(frozen=True)
class SmoothedRoots:
    """The sum of the paper's L*₀.₅ over those entries of some weights that their masks leave."""

    a: float
    masks: Sequence[Tensor]

    def plain(self, *raw: Tensor) -> Tensor:
        w, mask = _in_a_row(raw), _in_a_row(self.masks)
        return torch.where(mask, smoothed_root(w, self.a), 0.0).sum(dim=-1)

    def forward(self, *raw: Tensor) -> tuple[Tensor, Tensor]:
        w, mask = _in_a_row(raw), _in_a_row(self.masks)
        root = smoothed_root(w, self.a)
        u = (w / self.a).clamp_(min=-1.0, max=1.0)
        slope = (3 - u * u).mul_(u).div_(root).mul_(mask)
        return root.mul_(mask).sum(dim=-1), slope

    def backward(
        self, dy: Tensor, kept: Tensor, inputs: Sequence[Tensor], wanted: Sequence[bool]
    ) -> Gradients:
        pieces = (kept * (dy / 4)[..., None]).split([w.shape[-2] * w.shape[-1] for w in inputs], dim=-1)
        return [piece.reshape(w.shape) for piece, w in zip(pieces, inputs, strict=True)]


def _in_a_row(tensors: Sequence[Tensor]) -> Tensor:
    return torch.cat([t.flatten(-2) for t in tensors], dim=-1)


def smoothed_root(w: Tensor, a: float) -> Tensor:
    """√|w|, smoothed below `a`: the polynomial -w⁴/8a³ + 3w²/4a + 3a/8 is written in u = w/a, clamped to ±1,
    so that it stays at a beyond `a`, where the rest of |w| is added."""
    u = (w / a).clamp(min=-1.0, max=1.0)
    t = u * u
    return ((3 + t * (6 - t)) * (a / 8) + (w - a * u).abs()).sqrt()
