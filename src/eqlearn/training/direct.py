"""The step of a network that fits data by its mean square, written out on arrays: for a few hundred weights,
autograd and a tensor for each of their maps cost more than the arithmetic."""

from __future__ import annotations

from math import isfinite
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from eqlearn.errors import InvalidArgument
from eqlearn.nn.by_hand import Propagation, arrays, on_arrays, transformed
from eqlearn.nn.eql import EQL
from eqlearn.nn.penalties import SmoothHalf, smooth_half_slope
from eqlearn.training.optimisers import RMSPropTF1
from eqlearn.training.schedule import Phase


class MeanSquaredError:
    """A loss for `train`: the mean of (network(X) - y)², one number or one for each member.

    Data are tensors, `(rows, in)` and `(rows, out)`, or with an axis of members before. With this loss, the
    penalty L0.5 and RMSProp, a step of an `EQL` without gates, hooks or a context on a CPU is written out:
    the same to rounding, and three times as fast for a small network.
    """

    def __init__(self, X: Tensor, y: Tensor) -> None:
        if min(X.dim(), y.dim()) < 2 or X.shape[-2] != y.shape[-2]:
            got = f"{tuple(X.shape)} and {tuple(y.shape)}"
            raise InvalidArgument(f"`X` must be (rows, in) and `y` (rows, out), got {got}")
        self.x, self.target = X.mT.contiguous(), y.mT.contiguous()

    def __call__(self, model: EQL, phase: Phase | None = None) -> Float[Tensor, "*members"]:
        return (model.propagate(self.x) - self.target).square().mean(dim=(-2, -1))


class DirectStep:
    """The step of a run, until someone else may have changed its network; all weights are in a row."""

    def __init__(self, run: Any, propagation: Propagation) -> None:
        network, loss, optimiser = run.model, run.loss, run.optimiser
        self.plan = propagation.plan(loss.x, propagation.inputs)
        network.scratch.append(self.plan)  # between two steps, anyone may have it
        self.members, self.a = run.members, run.penalty.a
        self.shapes = [raw.shape for raw in propagation.inputs]
        self.raws = [raw.reshape(-1) for raw in arrays(*propagation.inputs)]
        self.mask = np.concatenate([mask.reshape(-1) for mask in arrays(*propagation.masks)])
        self.w, self.used, self.slopes = (np.empty(len(self.mask), self.raws[0].dtype) for _ in range(3))
        (self.group,) = optimiser.param_groups
        squares = [optimiser.slot(raw, "mean_square", 1.0) for raw in propagation.inputs]
        self.squares = np.concatenate([square.numpy().reshape(-1) for square in squares])
        for raw, piece in zip(propagation.inputs, self._apart(self.squares), strict=True):
            optimiser.state[raw]["mean_square"] = torch.from_numpy(piece)
        self.weights, self.found, self.moved = map(self._apart, (self.used, self.slopes, self.w))
        *self.given, self.target = arrays(network.widen(loss.x, loss.x, 0), loss.x, loss.target)
        self.y = np.empty((*self.plan.lead, network.out_features, loss.x.shape[-1]), self.w.dtype)

    @classmethod
    def of(cls, run: Any) -> DirectStep | None:
        """The step of this run where it is of the one kind that is written out."""
        network, loss, optimiser = run.model, run.loss, run.optimiser
        kinds = (EQL, MeanSquaredError, SmoothHalf, RMSPropTF1)
        if (type(network), type(loss), type(run.penalty), type(optimiser)) != kinds:
            return None
        raws = [linear.raw for linear in network.linears if linear.gate is None]
        own = [raw for raw in raws if raw.is_leaf and raw.requires_grad and not raw._backward_hooks]
        groups, x, alive = optimiser.param_groups, loss.x, run.members.alive
        more = network.context is not None or network.hooked or len(own) < len(network.linears)
        if more or transformed(x) or len(groups) > 1 or groups[0]["momentum"] != 0:
            return None
        propagation = Propagation(network)
        lead = torch.broadcast_shapes(x.shape[:-2], propagation.inputs[0].shape[:-2])
        whole = (*alive.shape, network.out_features, x.shape[-1])
        fits = lead == alive.shape and np.broadcast_shapes(loss.target.shape, whole) == whole
        alike = loss.target.dtype == x.dtype and not (x.requires_grad or loss.target.requires_grad)
        return cls(run, propagation) if fits and alike and on_arrays(network, x, own) else None

    def __call__(self, weight: float, lr: float, told: bool) -> tuple[Tensor, Tensor | None] | None:
        """The loss and, if it is to be `told`, the penalty of the step that is taken; None where a member
        fails, and nothing is changed."""
        w, g, penalty = np.concatenate(self.raws, out=self.w), self.slopes, None
        np.multiply(w, self.mask, out=self.used)
        self.plan.forward(self.weights, self.given, self.y)
        with np.errstate(all="ignore"):
            off = self.y - self.target
            numbers = off.shape[-1] * off.shape[-2]
            fit = np.asarray(np.einsum("...or,...or->...", off, off) / numbers)
            off *= 2 / numbers
            self.plan.backward(self.weights, self.given, off, self.found)
            if weight > 0:
                root, slope = smooth_half_slope(w, self.a)
                slope *= weight
                g += slope
                each = [part.sum(axis=(-2, -1)) for part in self._apart(root * self.mask)] if told else []
                penalty = torch.as_tensor(sum(each)) if told else None
            g *= self.mask
            health = float(fit.sum()) + float(g @ g)
        if not isfinite(health):
            return None
        self._descend(lr)
        return torch.from_numpy(fit), penalty

    def _descend(self, lr: float) -> None:
        """RMSProp, as `RMSPropTF1` has it."""
        w, g, squares, decay = self.w, self.slopes, self.squares, self.group["decay"]
        try:
            self.members.keep_()
            squares *= decay
            squares += (1 - decay) * g * g
            w -= lr * g / np.sqrt(squares + self.group["eps"])
            for raw, moved in zip(self.raws, self.moved, strict=True):
                raw[:] = moved.reshape(-1)
        except BaseException:
            self.members.restore_()  # Ctrl-C between two maps must not leave half a step behind
            raise

    def _apart(self, row: Any) -> list[Any]:
        """What is in a row, as the map that each part belongs to."""
        ends = np.cumsum([shape.numel() for shape in self.shapes])
        return [part.reshape(s) for part, s in zip(np.split(row, ends[:-1]), self.shapes, strict=True)]
