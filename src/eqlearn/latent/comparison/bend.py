"""Bends: the smooth change that an encoder may make of its latents, as a basis and coefficients."""

from __future__ import annotations

from itertools import combinations_with_replacement

import torch
from jaxtyping import Float
from torch import Tensor, nn


class Basis(nn.Module):
    """Smooth functions of one encoder's latents `(rows, n)`; a bend is a sum of them.

    Of one latent they are cubic B-splines with knots at its quantiles, continued straight beyond the ends; of
    several, polynomials in all of them, since the encoder may have mixed them.
    """

    knots: Tensor
    powers: Tensor
    limits: Tensor

    def __init__(self, z: Float[Tensor, "rows latents"], size: int = 10) -> None:
        super().__init__()
        z, self.latents = z.double(), z.shape[1]
        self.register_buffer("limits", torch.stack([z.amin(dim=0), z.amax(dim=0)]))
        powers = torch.zeros(0, self.latents, dtype=torch.int64)
        knots = torch.zeros(0, dtype=torch.float64)
        if self.latents == 1:
            # Quantiles would crowd where values do; half of the way to even ones keeps the ends supported.
            at = torch.linspace(0, 1, size - 2, dtype=torch.float64)
            even = torch.lerp(z.amin(), z.amax(), at)
            inner = 0.5 * (torch.quantile(z[:: max(1, len(z) // 10_000), 0], at) + even)
            inner[0], inner[-1] = even[0], even[-1]  # of many rows the ends may be left out
            knots = torch.cat([inner[:1].repeat(3), inner, inner[-1:].repeat(3)])
        else:
            degree = max(2, min(5, _degree(self.latents, 3 * size)))
            rows = [torch.zeros(self.latents, dtype=torch.int64)]
            for d in range(1, degree + 1):
                for chosen in combinations_with_replacement(range(self.latents), d):
                    rows.append(torch.bincount(torch.tensor(chosen), minlength=self.latents))
            powers = torch.stack(rows)
        self.register_buffer("knots", knots)
        self.register_buffer("powers", powers)

    @classmethod
    def of_size(cls, latents: int, functions: int) -> Basis:
        """A basis of so many functions on the unit box, for numbers that are loaded into it."""
        z = torch.rand(100, latents, generator=torch.Generator().manual_seed(0)) * 2 - 1
        return next(b for size in range(4, 4 * functions) if (b := cls(z, size)).size == functions)

    @property
    def size(self) -> int:
        """How many functions there are."""
        return len(self.knots) - 4 if self.latents == 1 else len(self.powers)

    def forward(self, z: Float[Tensor, "*rows latents"]) -> Float[Tensor, "*rows functions"]:
        low, high = self.limits.to(z)
        inside = torch.minimum(torch.maximum(z, low), high)
        if self.latents > 1:
            # Legendre's functions of each latent on its range, so that no two are nearly the same.
            unit = 2 * (inside - low) / (high - low).clamp(min=1e-12) - 1
            table = _legendre(unit, int(self.powers.max()))
            value = torch.ones_like(unit[..., :1])
            for i in range(self.latents):
                value = value * table[..., i, :][..., self.powers[:, i]]
            return value
        values = _splines(inside[..., 0], self.knots.to(z))
        beyond = z - inside
        if not bool((beyond != 0).any()):
            return values
        slopes = _end_slopes(self.knots.to(z))
        return values + torch.where(beyond < 0, beyond * slopes[0], beyond * slopes[1])

    def coefficients(
        self, z: Float[Tensor, "rows latents"], value: Float[Tensor, " rows"]
    ) -> Float[Tensor, " functions"]:
        """The bend that comes nearest to `value`."""
        design = self(z.double())
        ridge = 1e-9 * torch.eye(self.size, dtype=torch.float64) * len(z)
        solved: Tensor = torch.linalg.solve(design.mT @ design + ridge, design.mT @ value.double())
        return solved


class Bend(nn.Module):
    """An encoder's latents bent: `(rows, n)` to `(rows, slots)`, with trainable coefficients."""

    def __init__(self, basis: Basis, coefficients: Float[Tensor, "slots functions"]) -> None:
        super().__init__()
        self.basis = basis
        self.coefficients = nn.Parameter(coefficients.clone())

    def forward(self, z: Float[Tensor, "rows latents"]) -> Float[Tensor, "rows slots"]:
        bent: Tensor = self.basis(z) @ self.coefficients.to(z.dtype).mT
        return bent


def _degree(latents: int, most: int) -> int:
    """The highest degree whose polynomials number at most `most`."""
    degree, count = 1, 1 + latents
    while (count := count * (latents + degree + 1) // (degree + 1)) <= most:
        degree += 1
    return degree


def _splines(x: Tensor, knots: Tensor) -> Tensor:
    """Cubic B-splines by the recursion of Cox and de Boor."""
    x = x.unsqueeze(-1)
    last = x >= knots[-1]
    value = ((x >= knots[:-1]) & (x < knots[1:])).to(x.dtype)
    ends = torch.zeros_like(knots[:-1])
    ends[-4] = 1.0
    value = torch.where(last, ends, value)
    for degree in range(1, 4):
        left, right = knots[degree:-1] - knots[: -degree - 1], knots[degree + 1 :] - knots[1:-degree]
        # Where knots coincide a share is zero; divided by one, so that slopes are finite, too.
        rise = (x - knots[: -degree - 1]) * torch.where(left > 0, 1 / torch.where(left > 0, left, 1.0), 0.0)
        fall = (knots[degree + 1 :] - x) * torch.where(right > 0, 1 / torch.where(right > 0, right, 1.0), 0.0)
        value = rise * value[..., :-1] + fall * value[..., 1:]
    return value


def _end_slopes(knots: Tensor) -> Tensor:
    """The slopes of all splines at the two ends; only the outermost two are not zero."""
    slopes = torch.zeros(2, len(knots) - 4, dtype=knots.dtype)
    first, last = 3 / (knots[4] - knots[3]), 3 / (knots[-4] - knots[-5])
    slopes[0, 0], slopes[0, 1], slopes[1, -2], slopes[1, -1] = -first, first, -last, last
    return slopes


def _legendre(x: Tensor, degree: int) -> Tensor:
    """Legendre's polynomials up to `degree`, along a new last axis."""
    table = [torch.ones_like(x), x]
    for k in range(1, degree):
        table.append(((2 * k + 1) * x * table[-1] - k * table[-2]) / (k + 1))
    return torch.stack(table[: degree + 1], dim=-1)
