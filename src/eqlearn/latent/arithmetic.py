"""Arithmetic on images: one encoder reads both, an equation in the two latents gives the result."""

from __future__ import annotations

from collections.abc import Sequence

import sympy as sp
import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from eqlearn.errors import InvalidArgument
from eqlearn.nn.eql import EQL
from eqlearn.symbolic.expressions import fitted


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
