"""Derivatives written by hand, each a single step for autograd; that of a whole network is here.

For tensors as small as those of an equation learner, what costs is the number of steps that autograd records.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd import forward_ad

from eqlearn.functions import Algebra

Gradients = Sequence[Tensor | None]


def by_hand(rule: Any, *inputs: Tensor) -> Tensor:
    """The value of a rule, as one step of autograd.

    Its `forward` gives the value and what `backward(dy, kept, inputs, wanted)` wants to keep, to give the
    gradient of each input from that of the value; `plain` is it in operations that autograd knows.
    """
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
    def forward(ctx: Any, rule: Any, *inputs: Tensor) -> Tensor:
        value: tuple[Tensor, Any] = rule.forward(*inputs)
        ctx.rule, ctx.kept = rule, value[1]
        ctx.save_for_backward(*inputs)
        return value[0]

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


class Scratch(list[Any]):
    """Buffers that are free to be used again; no part of what is copied or saved."""

    def __reduce__(self) -> tuple[Callable[[], Scratch], tuple[()]]:
        return Scratch, ()


# SciPy's sigmoid takes three times as long, to be right also where exponentials overflow: to zero, here.
_ARRAYS = Algebra("numpy", sigmoid=lambda g: 1 / (1 + np.exp(-g)))
# A chunk's buffers hold about so many numbers each, so that what one step needs of them stays in a core's
# cache (1 MB). 200 members there and back take 5.0 ms; by 2**15, with many more calls, 6.5; by 2**20, 6.0.
_IN_CACHE = 2**18


class _Room:
    """Buffers of one layer for some members: the arguments `g`, what the next map sees `h`, and their
    gradients, whose memory other rooms may use, too. What never changes is filled in once."""

    def __init__(self, layer: Any, dg: Any, dh: Any) -> None:
        self.g, self.dg, self.h, self.dh = np.empty_like(dg), dg, np.empty_like(dh), dh
        self.units = len(layer.units)
        self.h[..., self.units :, :] = 1.0
        self.values: list[tuple[Any, Callable[..., Any], list[Any]]] = []
        self.pulls: list[tuple[list[Any], Callable[..., Any], list[Any]]] = []
        end = 0
        for (primitive, count), places in zip(layer.blocks, layer.places, strict=True):
            start, end = end, end + count
            h, dh = self.h[..., start:end, :], self.dh[..., start:end, :]
            if primitive.arity == 0:
                h[...] = float(primitive())
                continue
            arguments, pulled = ([of[..., rows, :] for rows in places] for of in (self.g, self.dg))
            self.values.append((h, partial(primitive.trained, _ARRAYS), arguments))
            self.pulls.append((pulled, partial(primitive.pullback, _ARRAYS), [dh, h, *arguments]))


class _Plan:
    """How a network is propagated for inputs and weights of given shapes: for which members at a time
    (`chunks`), and in which buffers."""

    chunks: list[tuple[Any, list[_Room]]]

    def __init__(self, network: Any, x: Tensor, raw: Sequence[Tensor], shapes: Any) -> None:
        layers = network.layers
        self.shapes, self.skip = shapes, network.skip
        self.lead = torch.broadcast_shapes(x.shape[:-2], raw[0].shape[:-2])
        rows, beside = x.shape[-1], [w.shape[-1] - len(g.units) for g, w in zip(layers, raw[1:], strict=True)]
        members = self.lead[0] if len(self.lead) == 1 else 0
        apart = members > 1 and all(w.shape[:-2] == self.lead for w in raw)
        widest = rows * max(max(w.shape[-2:]) for w in raw)
        size = min(max(1, _IN_CACHE // max(1, widest)), members)
        lead = (size,) if apart else self.lead
        heights = [(g.linear.out_features, len(g.units) + n) for g, n in zip(layers, beside, strict=True)]
        sides = [[x.new_empty((*lead, n, rows)).numpy() for n in pair] for pair in heights]
        self.chunks = []
        for start in range(0, members if apart else 1, size or 1):
            count = min(size, members - start)
            part, some = (slice(start, start + count), slice(count)) if apart else (..., ...)
            rooms = [_Room(layer, dg[some], dh[some]) for layer, (dg, dh) in zip(layers, sides, strict=True)]
            self.chunks.append((part, rooms))

    def forward(self, weights: Sequence[Any], given: Sequence[Any], y: Any) -> None:
        """Fills `y` and the buffers; `given` is for the first layer and, where inputs skip, the others."""
        first, beside = given
        with np.errstate(all="ignore"):
            for part, rooms in self.chunks:
                seen = _of(first, part)
                for room, weight in zip(rooms, weights, strict=False):
                    np.matmul(weight[part], seen, out=room.g)
                    for h, value, arguments in room.values:
                        h[...] = value(*arguments)
                    if self.skip:
                        room.h[..., room.units : room.units + beside.shape[-2], :] = _of(beside, part)
                    seen = room.h
                np.matmul(weights[-1][part], seen, out=y[part])

    def backward(
        self, weights: Sequence[Any], given: Sequence[Any], dy: Any, found: Sequence[Any], dx: Any = None
    ) -> None:
        """Fills the gradient of each weight and, if it is wanted, that of the inputs."""
        first, beside = given
        with np.errstate(all="ignore"):
            for part, rooms in self.chunks:
                dg, skipped = dy[part], 0
                for depth in reversed(range(1, len(weights))):
                    room = rooms[depth - 1]
                    np.matmul(dg, room.h.swapaxes(-1, -2), out=found[depth][part])
                    across = np.multiply if dg.shape[-2] == 1 else np.matmul  # of a column and a row
                    across(weights[depth][part].swapaxes(-1, -2), dg, out=room.dh)
                    if dx is not None and self.skip:
                        skipped = skipped + room.dh[..., room.units : room.units + beside.shape[-2], :]
                    for pulled, pull, of_block in room.pulls:
                        for place, d in zip(pulled, pull(*of_block), strict=True):
                            place[...] = d
                    dg = room.dg
                np.matmul(dg, _of(first, part).swapaxes(-1, -2), out=found[0][part])
                if dx is not None:
                    back = np.matmul(weights[0][part].swapaxes(-1, -2), dg)
                    dx[part] = back[..., : beside.shape[-2], :] + skipped


def arrays(*tensors: Tensor) -> list[Any]:
    """The tensors as NumPy sees them, in the same memory."""
    return [t.detach().numpy() for t in tensors]


def on_arrays(network: Any, x: Tensor, raw: Sequence[Tensor]) -> bool:
    """Whether NumPy computes it: small tensors on a CPU, through primitives whose derivatives are written."""
    written = all(layer.written for layer in network.layers)
    known = x.device.type == "cpu" and x.dtype == raw[0].dtype in (torch.float32, torch.float64)
    return known and written and x.shape[-1] * max(max(w.shape[-2:]) for w in raw) <= _IN_CACHE


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
        plan, masks = self.plan(x, raw), arrays(*self.masks)
        weights = [np.where(mask, w, 0.0) for mask, w in zip(masks, arrays(*raw), strict=True)]
        given = arrays(self.network.widen(x, x, 0), x)
        y = x.new_empty((*plan.lead, raw[-1].shape[-2], x.shape[-1]))
        plan.forward(weights, given, y.numpy())
        return y, (plan, weights, given)

    def backward(self, dy: Tensor, kept: Any, inputs: Sequence[Tensor], wanted: Sequence[bool]) -> Gradients:
        (x, *raw), (plan, weights, given) = inputs, kept
        found = [x.new_empty((*plan.lead, *w.shape[-2:])) for w in raw]
        dx = x.new_empty((*plan.lead, *x.shape[-2:])) if wanted[0] else None
        plan.backward(weights, given, dy.numpy(), arrays(*found), None if dx is None else dx.numpy())
        self.network.scratch.append(plan)
        own = (d.sum_to_size(w.shape) for d, w in zip(found, raw, strict=True))  # of inputs that are apart
        shaped = [torch.where(mask, d, 0.0) for mask, d in zip(self.masks, own, strict=True)]
        return None if dx is None else dx.sum_to_size(x.shape), *shaped

    def plan(self, x: Tensor, raw: Sequence[Tensor]) -> _Plan:
        scratch, shapes = self.network.scratch, (x.dtype, x.shape, [w.shape for w in raw])
        while scratch:
            plan: _Plan = scratch.pop()
            if plan.shapes == shapes:
                return plan
        return _Plan(self.network, x, raw, shapes)


def _of(values: Any, part: Any) -> Any:
    """Those members' own values, or those of all where they are not told apart."""
    return values[part] if part is ... or (values.ndim > 2 and len(values) > 1) else values
