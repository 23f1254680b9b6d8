"""Encoders of images, images a little turned, stretched and moved to train them on, and arithmetic."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import sympy as sp
import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from eqlearn.errors import InvalidArgument
from eqlearn.nn.eql import EQL
from eqlearn.symbolic.expressions import fitted
from eqlearn.training.state import at_rest


class ImageEncoder(nn.Module):
    """The paper's encoder: convolutions with pooling, dense layers, a batch-normalised latent, halved.

    Images come as bytes or floats, one channel; they are divided by `brightest` here, batch by batch, so that
    data stay small in memory. Without `affine` the latent's mean is 0 and its standard deviation ½, really:
    the scale that an equation expects, and one less that it has to share with the encoder. With `glorot`,
    weights start as in Keras (Glorot & Bengio 2010), biases at zero; without, as in torch.
    """

    def __init__(
        self,
        side: int = 28,
        latents: int = 1,
        *,
        channels: Sequence[int] = (32, 64),
        kernel: int = 5,
        dense: Sequence[int] = (128, 16),
        padding: Literal["valid", "same"] = "valid",
        affine: bool = False,
        brightest: float = 255.0,
        momentum: float = 0.1,
        epsilon: float = 1e-5,
        glorot: bool = False,
    ) -> None:
        super().__init__()
        parts: list[nn.Module] = []
        size, inner = side, 1
        for outer in channels:
            # Pooling before rectifying gives the same values from a quarter of the work.
            parts += [nn.Conv2d(inner, outer, kernel, padding=padding), nn.MaxPool2d(2), nn.ReLU()]
            size, inner = (size if padding == "same" else size - kernel + 1) // 2, outer
        if size < 1:
            raise InvalidArgument(
                f"`side` {side} is too small for {len(channels)} convolutions of `kernel` {kernel}, each "
                "with a pool; use a smaller `kernel` or `padding='same'`"
            )
        parts.append(nn.Flatten())
        width = inner * size * size
        for outer in dense:
            parts += [nn.Linear(width, outer), nn.ReLU()]
            width = outer
        # Channels last in memory: together with the order above, 1.8 times faster on a CPU.
        self.features = nn.Sequential(*parts).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.readout = nn.Linear(width, latents)
        self.normalise = nn.BatchNorm1d(latents, affine=affine, momentum=momentum, eps=epsilon)
        self.brightest = brightest
        if glorot:
            for part in (*self.features, self.readout):
                if isinstance(part, nn.Conv2d | nn.Linear):
                    nn.init.xavier_uniform_(part.weight)
                    nn.init.zeros_(part.bias)  # type: ignore[arg-type]

    def forward(self, images: Shaped[Tensor, "rows height width"]) -> Float[Tensor, "rows latents"]:
        scaled = images[:, None].to(self.readout.weight.dtype) / self.brightest
        # Standard deviation ½, so that most latents lie in [-1, 1], the range an equation is made for.
        latent: Tensor = self.normalise(self.readout(self.features(scaled))) / 2
        return latent


@torch.no_grad()
def encode(
    encoder: nn.Module, images: Shaped[Tensor, "rows height width"], batch: int = 1_000
) -> Float[Tensor, "rows latents"]:
    """The latents of all images, in `eval()`, a batch at a time; the encoder's mode is given back."""
    with at_rest(encoder):
        return torch.cat([encoder(piece) for piece in images.split(batch)])


@torch.no_grad()
def take_statistics_(
    encoder: nn.Module, images: Shaped[Tensor, "rows height width"], batch: int = 1_000
) -> None:
    """Takes the statistics of every batch normalisation from all images, each counted once.

    While training, they follow the last few batches, seen by weights that were still moving; a latent that is
    off by a hundredth shifts every prediction of the equation behind it.
    """
    layers = [m for m in encoder.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)]
    momenta = [layer.momentum for layer in layers]
    with at_rest(encoder):
        for layer in layers:
            layer.reset_running_stats()
            layer.momentum = None  # torch's word for: the mean over all batches
            layer.train()
        try:
            for piece in images.tensor_split(math.ceil(len(images) / batch)):
                encoder(piece)
        finally:
            for layer, momentum in zip(layers, momenta, strict=True):
                layer.momentum = momentum


class ImageArithmetic(nn.Module):
    """`scale · equation(z₁, z₂) + offset`, where `encoder` gives z of each image.

    Any encoder that maps images to `(rows, 1)` will do, and any module that maps `(*batch, 2)` to
    `(*batch, 1)`. With an `EQL` inside, `Equation.read(model, ["z_1", "z_2"])` gives the whole formula; with
    an `EQL` of several members, results are `(members, rows)`.
    """

    def __init__(
        self, encoder: nn.Module, equation: nn.Module, scale: float = 9.0, offset: float = 9.0
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.equation = equation
        self.scale = scale
        self.offset = offset

    def forward(
        self, first: Shaped[Tensor, "rows height width"], second: Shaped[Tensor, "rows height width"]
    ) -> Float[Tensor, "*members rows"]:
        return self.combine(self.encoder(first), self.encoder(second))

    def combine(
        self, first: Float[Tensor, "rows 1"], second: Float[Tensor, "rows 1"]
    ) -> Float[Tensor, "*members rows"]:
        """The result for latents that were computed before."""
        output: Tensor = self.equation(torch.cat([first, second], dim=-1))
        return self.scale * output[..., 0] + self.offset

    def symbolic(self, z: Sequence[sp.Expr] | sp.Matrix) -> sp.Matrix:
        """The formula in the two latents, in the units of the result."""
        if not isinstance(self.equation, EQL):
            raise InvalidArgument(f"a {type(self.equation).__name__} has no equation to read; use an EQL")
        inner = self.equation.symbolic(z)
        return sp.Matrix([fitted(self.scale) * inner[0] + fitted(self.offset)])
