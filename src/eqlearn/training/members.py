"""Members stay independent while they train: each is clipped, checked and stopped by itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from eqlearn.errors import InvalidArgument
from eqlearn.nn.sparse import SparseLinear


@dataclass(frozen=True)
class Failure:
    """Where the loss or gradient of a member (None: of the only model) stopped being finite."""

    member: int | None
    phase: str
    step: int


def count_members(model: nn.Module) -> int | None:
    """The number of members of the parts of `model`, or None for a single model."""
    counts: set[Any] = {getattr(module, "members", None) for module in model.modules()} - {None}
    if len(counts) > 1:
        raise InvalidArgument(
            f"the model mixes parts of {sorted(counts)} `members`; give all the same number"
        )
    return counts.pop() if counts else None


def owned_parameters(model: nn.Module) -> list[nn.Parameter]:
    """The parameters with members along the first axis: those held by a module with `members` itself."""
    owned: dict[nn.Parameter, None] = {}
    for module in model.modules():
        members = getattr(module, "members", None)
        if members is not None:
            own = module.parameters(recurse=isinstance(module, SparseLinear))  # its gates are its own, too
            owned.update(dict.fromkeys(p for p in own if p.dim() > 0 and len(p) == members))
    return list(owned)


class Members:
    """Guards the gradients of one run, so that the failure of one member does not affect another.

    A member fails when its loss or the norm of its gradient is not finite. It returns to its last parameters
    with finite ones and stays there. Parameters shared by all members, such as an encoder's, skip the step at
    which a member fails; in a single model everything is shared, and a failure ends the run.
    """

    def __init__(self, model: nn.Module) -> None:
        self.count = count_members(model)
        self.owned = [] if self.count is None else owned_parameters(model)
        mine = set(self.owned)
        self.shared = [p for p in model.parameters() if p not in mine]
        self.parameters: list[Tensor] = [*self.owned, *self.shared]
        if not self.parameters:
            raise InvalidArgument("the model has no parameters, so there is nothing to train")
        shape = () if self.count is None else (self.count,)
        self.alive = torch.ones(shape, dtype=torch.bool, device=self.parameters[0].device)
        self.all_alive = True
        names: dict[Tensor, str] = {p: name for name, p in model.named_parameters()}
        self.kept = {names[p]: p.detach().clone() for p in self.parameters}

    def stop(self, members: list[int | None]) -> None:
        """Marks these members as failed."""
        for member in members:
            self.alive[... if member is None else member] = False
        self.all_alive = bool(self.alive.all())

    def forget_(self) -> None:
        """Drops the gradients of the last step."""
        for p in self.parameters:
            p.grad = None

    @contextmanager
    def understudied(self) -> Iterator[None]:
        """Replaces the parameters of failed members by a healthy member's, inside the block.

        A failed member has no weight in the objective, but zero times NaN is NaN: its values must be finite
        for the gradient of shared parameters to be finite.
        """
        if self.all_alive or not self.shared:
            yield
            return
        donor = int(self.alive.nonzero()[0])
        with torch.no_grad():
            for p in self.owned:
                p[~self.alive] = p[donor].clone()
        try:
            yield
        finally:
            self.hold_()

    @torch.no_grad()
    def guard_(self, loss: Tensor, clip: float | None) -> list[int | None]:
        """Clips the gradients and zeroes those of failed members; returns the members that failed now."""
        owned = [p.grad for p in self.owned if p.grad is not None]
        shared = [p.grad for p in self.shared if p.grad is not None]
        health, shared_norm = loss.detach(), loss.new_zeros(())
        if owned:
            norms = torch.linalg.vector_norm(torch.cat([g.flatten(1) for g in owned], dim=1), dim=1)
            health = health + norms
            if clip is not None:
                scale = (clip / norms).clamp(max=1)
                torch._foreach_mul_(owned, [_aligned(scale, g) for g in owned])
        if shared:
            shared_norm = torch.linalg.vector_norm(torch.stack(torch._foreach_norm(shared)))
            if clip is not None:
                torch._foreach_mul_(shared, (clip / shared_norm).clamp(max=1))
        failed: list[int | None] = []
        if not (self.all_alive and bool(torch.isfinite(health.sum() + shared_norm))):
            failed = self._part(health, shared_norm, owned, shared)
        self.keep_()
        return failed

    def _part(
        self, health: Tensor, shared_norm: Tensor, owned: list[Tensor], shared: list[Tensor]
    ) -> list[int | None]:
        broken = ~torch.isfinite(health)
        if not bool(torch.isfinite(shared_norm)):
            torch._foreach_zero_(shared)
            broken |= ~broken.any()  # no single member is the cause, so all fail
        now = broken & self.alive
        failed: list[int | None] = []
        if bool(now.any()):
            failed = [None] if self.count is None else list(now.nonzero().flatten().tolist())
            self._put_back_(now)
            self.stop(failed)
        for grad in owned:
            grad.masked_fill_(_aligned(~self.alive, grad), 0.0)
        return failed

    @torch.no_grad()
    def keep_(self) -> None:
        """Stores the present parameters as the ones to return to."""
        torch._foreach_copy_(list(self.kept.values()), self.parameters)

    @torch.no_grad()
    def hold_(self) -> None:
        """Returns failed members to the parameters at which they stopped."""
        if not self.all_alive:
            self._put_back_(~self.alive)

    @torch.no_grad()
    def restore_(self) -> None:
        """Returns all members to the parameters stored last."""
        torch._foreach_copy_(self.parameters, list(self.kept.values()))

    def _put_back_(self, members: Tensor) -> None:
        for p, kept in zip(self.owned, self.kept.values(), strict=False):
            p.copy_(torch.where(_aligned(members, p), kept, p))
        if self.count is None:
            self.restore_()


def _aligned(per_member: Tensor, like: Tensor) -> Tensor:
    return per_member.view(-1, *(1,) * (like.dim() - 1))
