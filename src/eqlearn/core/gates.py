"""Hard-concrete gates: the relaxed L0 of Louizos et al. (2017), the paper's appendix B."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from eqlearn.errors import InvalidArgument

BETA, GAMMA, ZETA = 2 / 3, -0.1, 1.1


def counter_noise(seeds: Tensor, step: Tensor, numel: int) -> Tensor:
    """Uniform numbers in (0, 1), `(len(seeds), numel)`, that depend on nothing but seed, step and place.

    No generator is involved, so a member's noise is the same alone or among others, and a run taken up
    again from its buffers goes on as if it had never stopped. The mixer is SplitMix64's.
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
    """Gates without noise, as they are used once training is over."""
    return _stretched(torch.sigmoid(log_alpha))


def open_probability(log_alpha: Tensor) -> Tensor:
    """The chance of each gate to be non-zero, whose sum is the relaxed L0 norm."""
    return torch.sigmoid(log_alpha - BETA * math.log(-GAMMA / ZETA))


def _stretched(s: Tensor) -> Tensor:
    return (s * (ZETA - GAMMA) + GAMMA).clamp(0, 1)


class HardConcrete(nn.Module):
    """Stochastic gates in [0, 1] with a real chance of being exactly 0 or 1.

    While training, each call draws a new sample; in `eval()` the gates are deterministic.
    """

    seeds: Tensor
    step: Tensor

    def __init__(self, shape: tuple[int, ...], seeds: Tensor, open_at_start: float = 0.5) -> None:
        super().__init__()
        if not 0 < open_at_start < 1:
            raise InvalidArgument(f"`open_at_start` must lie between 0 and 1, got {open_at_start}")
        start = math.log(open_at_start / (1 - open_at_start))
        self.log_alpha = nn.Parameter(torch.full(shape, start))
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
        """The chance of each gate to be non-zero, whose sum is the relaxed L0 norm."""
        return open_probability(self.log_alpha)
