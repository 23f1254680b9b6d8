"""RMSProp as in TensorFlow 1, with which the paper's figures were made; AdamW as fast as it goes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from eqlearn.errors import InvalidArgument

OptimiserFactory: TypeAlias = Callable[[Iterable[nn.Parameter]], Optimizer]


def adamw(parameters: Iterable[nn.Parameter], weight_decay: float = 0.0) -> Optimizer:
    """AdamW (Loshchilov & Hutter 2019) with all weights in one kernel where there is one: a loop over the
    weights of a small network takes an eighth of its training."""
    given = list(parameters)
    fused = all(p.is_floating_point() and p.device.type in ("cpu", "cuda") for p in given)
    return torch.optim.AdamW(given, weight_decay=weight_decay, fused=fused)


class RMSPropTF1(Optimizer):
    """`p -= lr * g / sqrt(s + eps)`, where `s` is a running mean of `g²` that starts at one.

    In PyTorch `s` starts at zero and `eps` is outside the root, so its first steps are about
    `lr / sqrt(1 - decay)` for every weight, however small the gradient.
    """

    def __init__(
        self,
        params: Iterable[nn.Parameter] | Iterable[dict[str, Any]],
        lr: float = 1e-3,
        decay: float = 0.9,
        eps: float = 1e-10,
        momentum: float = 0.0,
    ) -> None:
        rules = (
            ("lr", lr, lr >= 0, "zero or positive"),
            ("decay", decay, 0 <= decay < 1, "at least 0 and below 1"),
            ("eps", eps, eps >= 0, "zero or positive"),
            ("momentum", momentum, 0 <= momentum < 1, "at least 0 and below 1"),
        )
        if problems := [f"`{n}` must be {rule}, got {value}" for n, value, holds, rule in rules if not holds]:
            raise InvalidArgument("; ".join(problems))
        super().__init__(params, {"lr": lr, "decay": decay, "eps": eps, "momentum": momentum})

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        self.update()
        return loss

    @torch.no_grad()
    def update(self) -> None:
        """The step itself, without torch's hooks and profiler, which cost as much as the arithmetic."""
        for group in self.param_groups:
            params = [p for p in group["params"] if p.grad is not None]
            if not params:
                continue
            grads = [p.grad for p in params]
            squares = [self.slot(p, "mean_square", 1.0) for p in params]
            torch._foreach_mul_(squares, group["decay"])
            torch._foreach_addcmul_(squares, grads, grads, 1 - group["decay"])
            root = torch._foreach_add(squares, group["eps"])
            torch._foreach_sqrt_(root)
            if group["momentum"] == 0:
                torch._foreach_addcdiv_(params, grads, root, -group["lr"])
                continue
            speeds = [self.slot(p, "momentum", 0.0) for p in params]
            torch._foreach_mul_(speeds, group["momentum"])
            torch._foreach_addcdiv_(speeds, grads, root, group["lr"])
            torch._foreach_sub_(params, speeds)

    def slot(self, p: Tensor, name: str, start: float) -> Tensor:
        """What is kept of this parameter under that name, at first `start`."""
        state: dict[str, Tensor] = self.state[p]
        if name not in state:
            state[name] = torch.full_like(p, start, memory_format=torch.preserve_format)
        return state[name]
