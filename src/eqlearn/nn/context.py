"""Weights that are functions of a context, such as the time, given by a small network.

The hyper-network of HEQL (Zhang, Kim et al. 2022): one equation, whose constants change smoothly.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from jaxtyping import Float
from torch import Tensor, nn

from eqlearn.errors import InvalidArgument
from eqlearn.nn.sparse import SparseLinear
from eqlearn.validation.options import check_whole


class ContextWeights(nn.Module):
    """A network from a context `(contexts, features)` to what it adds to the weights of some layers, which
    are set for the contexts of the last call."""

    def __init__(
        self, features: int, layers: Sequence[SparseLinear], units: Sequence[int], generator: torch.Generator
    ) -> None:
        super().__init__()
        for width in (features, *units):
            check_whole("context", width)
        self.features, self.shapes = features, [layer.raw.shape for layer in layers]
        sizes = [features, *units, sum(shape.numel() for shape in self.shapes)]
        linears = [nn.Linear(a, b) for a, b in pairwise(sizes)]
        with torch.no_grad():
            for linear in linears:
                bound = linear.in_features**-0.5
                for tensor in linear.parameters():
                    drawn = torch.rand(tensor.shape, generator=generator, dtype=torch.float64)
                    tensor.copy_(bound * (2 * drawn - 1))
            linears[-1].bias.zero_()  # the layers' own weights are the offset
        parts: list[nn.Module] = [linears[0]]
        for linear in linears[1:]:
            parts += [nn.Tanh(), linear]
        self.network = nn.Sequential(*parts)

    def forward(self, context: Float[Tensor, "contexts features"]) -> list[Tensor]:
        """What each layer's weight has more in each context, `(contexts, out, in)`."""
        if context.dim() != 2 or context.shape[1] != self.features:
            raise InvalidArgument(
                f"`context` must be (contexts, {self.features}), got shape {tuple(context.shape)}"
            )
        flat = self.network(context).split([shape.numel() for shape in self.shapes], dim=1)
        return [part.view(-1, *shape) for part, shape in zip(flat, self.shapes, strict=True)]
