"""The encoder of digits behind which a law is searched for."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from eqlearn import InvalidArgument

SMALL = 28  # pixels; images of a smaller side are padded, so that convolutions do not use them up
CONVOLUTIONS = ((24, 5, True), (48, 3, False), (64, 3, True), (96, 3, False))  # channels, kernel, pooled


class SoftLevels(nn.Module):
    """The mean of some levels, all learned, each weighted by how likely it is: almost a step function, yet
    smooth. What an image shows is one of few things, and few images lie between two of them."""

    def __init__(self, features: int, levels: int = 16, largest: float = 1.6) -> None:
        super().__init__()
        self.logits = nn.Linear(features, levels)
        self.levels = nn.Parameter(torch.empty(levels))
        self.largest = largest
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Spreads the levels evenly; the logits draw their own weights."""
        self.levels.copy_(torch.linspace(-self.largest, self.largest, len(self.levels)))

    def forward(self, features: Float[Tensor, "rows features"]) -> Float[Tensor, "rows 1"]:
        likely: Tensor = self.logits(features).softmax(dim=1)
        return likely @ self.levels[:, None]


class DigitEncoder(nn.Module):
    """Images of one channel, bytes or floats up to `brightest`, to one latent each: convolutions with batch
    norm, then `SoftLevels`."""

    def __init__(
        self,
        side: int = SMALL,
        *,
        convolutions: Sequence[tuple[int, int, bool]] = CONVOLUTIONS,
        brightest: float = 255.0,
    ) -> None:
        super().__init__()
        parts: list[nn.Module] = []
        size, inner = side, 1
        for outer, kernel, pooled in convolutions:
            padding = kernel // 2 if side < SMALL else 0
            size += 2 * padding - kernel + 1
            # Pooling comes first, since the rest is then done for a quarter of the values.
            parts.append(nn.Conv2d(inner, outer, kernel, padding=padding, bias=False))
            parts += [nn.MaxPool2d(2)] if pooled else []
            parts += [nn.BatchNorm2d(outer), nn.ReLU()]
            size, inner = size // 2 if pooled else size, outer
        if size < 1:
            raise InvalidArgument(f"`side` {side} is too small for these convolutions; leave some out")
        self.features = nn.Sequential(*parts, nn.Flatten()).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.readout = SoftLevels(inner * size * size)
        self.brightest = brightest

    def forward(self, images: Shaped[Tensor, "rows height width"]) -> Float[Tensor, "rows 1"]:
        scaled = images[:, None].to(self.readout.levels.dtype) / self.brightest
        latent: Tensor = self.readout(self.features(scaled))
        return latent
