"""Derivatives written by hand, each a single step for autograd; that of a whole network is here.

For tensors as small as those of an equation learner, what costs is the number of steps that autograd records.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor
from torch.autograd import forward_ad

from eqlearn.functions import TORCH, Algebra

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


# SciPy's sigmoid takes three times as long, to be right also where exponentials overflow: to zero, here.
_ARRAYS = Algebra("numpy", sigmoid=lambda g: 1 / (1 + np.exp(-g)))
# A chunk's buffers hold about so many numbers each, so that what one step needs of them stays in a core's
# cache (1 MB). 200 members there and back take 5.0 ms; by 2**15, with many more calls, 6.5; by 2**20, 6.0.
_IN_CACHE = 2**18


class _Room:
    """Buffers of one layer for some members, arrays or tensors: the arguments `g`, what the next map sees
    `h`, and their gradients, whose memory other rooms may use, too. What never changes is filled in once."""

    def __init__(self, layer: Any, m: Algebra, dg: Any, dh: Any) -> None:
        empty_like, units = (np.empty_like if m is _ARRAYS else torch.empty_like), len(layer.units)
        self.g, self.dg, self.h, self.dh = empty_like(dg), dg, empty_like(dh), dh
        self.units = units
        self.h[..., units:, :] = 1.0
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
            self.values.append((h, partial(primitive.trained, m), arguments))
            self.pulls.append((pulled, partial(primitive.pull_back, m), [dh, h, *arguments]))


class _Plan:
    """How a network is propagated for inputs and weights of given shapes: with arrays or tensors, for which
    members at a time (`chunks`), and in which buffers."""

    chunks: list[tuple[Any, list[_Room]]]

    def __init__(self, network: Any, x: Tensor, raw: Sequence[Tensor]) -> None:
        layers = network.layers
        self.shapes, self.skip = _shapes(x, raw), network.skip
        self.lead = torch.broadcast_shapes(x.shape[:-2], raw[0].shape[:-2])
        rows, beside = x.shape[-1], [w.shape[-1] - len(g.units) for g, w in zip(layers, raw[1:], strict=True)]
        widest = rows * max(max(w.shape[-2:]) for w in raw)
        known = x.device.type == "cpu" and x.dtype == raw[0].dtype in (torch.float32, torch.float64)
        blocks = [primitive for layer in layers for primitive, _ in layer.blocks]
        written = all(p.pullback is not None or p.arity == 0 for p in blocks)
        self.arrays = known and written and widest <= _IN_CACHE
        self.m: Any = np if self.arrays else torch
        members = self.lead[0] if len(self.lead) == 1 else 0
        apart = self.arrays and members > 1 and all(w.shape[:-2] == self.lead for w in raw)
        size = min(max(1, _IN_CACHE // max(1, widest)), members)
        lead = (size,) if apart else self.lead
        heights = [(g.linear.out_features, len(g.units) + n) for g, n in zip(layers, beside, strict=True)]
        backward = [self.native(*(x.new_empty((*lead, n, rows)) for n in pair)) for pair in heights]
        algebra, self.chunks = _ARRAYS if self.arrays else TORCH, []
        for start in range(0, members if apart else 1, size or 1):
            count = min(size, members - start)
            part, some = (slice(start, start + count), slice(count)) if apart else (..., ...)
            pairs = [(dg[some], dh[some]) for dg, dh in backward]
            rooms = [_Room(layer, algebra, *pair) for layer, pair in zip(layers, pairs, strict=True)]
            self.chunks.append((part, rooms))

    def forward(self, weights: Sequence[Any], given: Sequence[Any], y: Any) -> None:
        """Fills `y` and the buffers; `given` is for the first layer and, where inputs skip, all others."""
        m, (first, beside) = self.m, given
        with np.errstate(all="ignore"):
            for part, rooms in self.chunks:
                seen = _of(first, part)
                for room, weight in zip(rooms, weights, strict=False):
                    m.matmul(weight[part], seen, out=room.g)
                    for h, value, arguments in room.values:
                        h[...] = value(*arguments)
                    if self.skip:
                        room.h[..., room.units : room.units + beside.shape[-2], :] = _of(beside, part)
                    seen = room.h
                m.matmul(weights[-1][part], seen, out=y[part])

    def backward(
        self, weights: Sequence[Any], given: Sequence[Any], dy: Any, found: Sequence[Any], dx: Any = None
    ) -> None:
        """Fills the gradient of each weight and, if it is wanted, that of the inputs."""
        m, (first, beside) = self.m, given
        with np.errstate(all="ignore"):
            for part, rooms in self.chunks:
                dg, skipped = dy[part], 0
                for depth in reversed(range(1, len(weights))):
                    room = rooms[depth - 1]
                    m.matmul(dg, room.h.swapaxes(-1, -2), out=found[depth][part])
                    across = m.multiply if dg.shape[-2] == 1 else m.matmul  # of a column and a row
                    across(weights[depth][part].swapaxes(-1, -2), dg, out=room.dh)
                    if dx is not None and self.skip:
                        skipped = skipped + room.dh[..., room.units : room.units + beside.shape[-2], :]
                    for pulled, pull, of_block in room.pulls:
                        for place, d in zip(pulled, pull(*of_block), strict=True):
                            place[...] = d
                    dg = room.dg
                m.matmul(dg, _of(first, part).swapaxes(-1, -2), out=found[0][part])
                if dx is not None:
                    back = m.matmul(weights[0][part].swapaxes(-1, -2), dg)
                    dx[part] = back[..., : beside.shape[-2], :] + skipped

    def native(self, *tensors: Tensor) -> list[Any]:
        return [t.detach().numpy() for t in tensors] if self.arrays else list(tensors)

    def empty(self, like: Tensor, *shape: int) -> Any:
        return self.native(like.new_empty((*self.lead, *shape)))[0]

    def summed(self, values: Any, like: Tensor) -> Any:
        """Over those axes that `like` has not."""
        if values.shape == like.shape:
            return values
        return self.native(torch.as_tensor(values).sum_to_size(like.shape))[0]


def _shapes(x: Tensor, raw: Sequence[Tensor]) -> Any:
    return x.dtype, raw[0].dtype, x.device, x.shape, [w.shape for w in raw]


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
        plan = self.plan(x, raw)
        masks, raws = plan.native(*self.masks), plan.native(*raw)
        weights = [plan.m.where(mask, w, 0.0) for mask, w in zip(masks, raws, strict=True)]
        given = plan.native(self.network.widen(x, x, 0), x)
        y = plan.empty(x, raw[-1].shape[-2], x.shape[-1])
        plan.forward(weights, given, y)
        return torch.as_tensor(y), (plan, weights, masks, given)

    def backward(self, dy: Tensor, kept: Any, inputs: Sequence[Tensor], wanted: Sequence[bool]) -> Gradients:
        (x, *raw), (plan, weights, masks, given) = inputs, kept
        found = [plan.empty(x, *w.shape[-2:]) for w in raw]
        dx = plan.empty(x, *x.shape[-2:]) if wanted[0] else None
        plan.backward(weights, given, plan.native(dy)[0], found, dx)
        self.network.scratch.append(plan)
        own = (plan.summed(d, w) for d, w in zip(found, raw, strict=True))
        shaped = [torch.as_tensor(plan.m.where(mask, d, 0.0)) for mask, d in zip(masks, own, strict=True)]
        return None if dx is None else torch.as_tensor(dx).sum_to_size(x.shape), *shaped

    def plan(self, x: Tensor, raw: Sequence[Tensor]) -> _Plan:
        scratch, shapes = self.network.scratch, _shapes(x, raw)
        while scratch:
            plan: _Plan = scratch.pop()
            if plan.shapes == shapes:
                return plan
        return _Plan(self.network, x, raw)


def _of(values: Any, part: Any) -> Any:
    """Those members' own values, or those of all where they are not told apart."""
    return values[part] if part is ... or (values.ndim > 2 and len(values) > 1) else values


@dataclass(frozen=True)
class SmoothedRoots:
    """The sum of the paper's L*₀.₅ over those entries of some weights that their masks leave."""

    a: float
    masks: Sequence[Tensor]

    def plain(self, *raw: Tensor) -> Tensor:
        w, mask = _in_a_row(raw), _in_a_row(self.masks)
        return torch.where(mask, smoothed_root(w, self.a), 0.0).sum(dim=-1)

    def forward(self, *raw: Tensor) -> tuple[Tensor, Any]:
        w: Any = _in_a_row(raw).detach()
        mask: Any = _in_a_row(self.masks)
        if w.device.type == "cpu" and w.dtype in (torch.float32, torch.float64):
            w, mask = w.numpy(), mask.numpy()  # half the cost for so few numbers
        root, slope = smoothed_slope(w, self.a)
        return torch.as_tensor((root * mask).sum(-1)), torch.as_tensor(slope * mask)

    def backward(self, dy: Tensor, kept: Any, inputs: Sequence[Tensor], wanted: Sequence[bool]) -> Gradients:
        pieces = (kept * dy[..., None]).split([w.shape[-2] * w.shape[-1] for w in inputs], dim=-1)
        return [piece.reshape(w.shape) for piece, w in zip(pieces, inputs, strict=True)]


def _in_a_row(tensors: Sequence[Tensor]) -> Tensor:
    return torch.cat([t.flatten(-2) for t in tensors], dim=-1)


def smoothed_root(w: Tensor, a: float) -> Tensor:
    """√|w|, smoothed below `a`: the polynomial -w⁴/8a³ + 3w²/4a + 3a/8 is written in u = w/a, clamped to ±1,
    so that it stays at a beyond `a`, where the rest of |w| is added."""
    u = (w / a).clamp(min=-1.0, max=1.0)
    root: Tensor = _root(w, u, u * u, a)
    return root


def smoothed_slope(w: Any, a: float) -> tuple[Any, Any]:
    """The same on tensors or arrays, with its slope."""
    u = (w / a).clip(-1.0, 1.0)
    t = u * u
    with np.errstate(invalid="ignore", over="ignore"):
        root = _root(w, u, t, a)
        return root, (3 - t) * u / (4 * root)


def _root(w: Any, u: Any, t: Any, a: float) -> Any:
    return ((3 + t * (6 - t)) * (a / 8) + abs(w - a * u)) ** 0.5
