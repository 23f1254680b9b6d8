"""First weights of a network: how widely they spread, by layer."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from eqlearn.errors import InvalidArgument


@dataclass(frozen=True)
class Init:
    """How weights start: a spread for the first, the middle and the last layer.

    With `fan_in`, spreads are divided by the fourth root of the number of inputs. `truncate` redraws
    beyond that many standard deviations; `uniform_readout` draws the last layer from [0, 1).
    """

    first: float = 0.5
    middle: float = 0.5
    last: float = 0.5
    fan_in: bool = False
    truncate: float | None = None
    uniform_readout: bool = False

    def __post_init__(self) -> None:
        for name in ("first", "middle", "last", "truncate"):
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                raise InvalidArgument(f"`{name}` must be positive and finite, got {value}")

    def draw(self, fan_in: int, spread: float, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
        if self.fan_in:
            spread /= fan_in**0.25
        bound = math.inf if self.truncate is None else self.truncate
        # Inverse transform sampling: one draw per entry, whatever the truncation.
        edge = 0.5 * math.erfc(bound / math.sqrt(2))
        u = torch.rand(shape, generator=generator, dtype=torch.float64) * (1 - 2 * edge) + edge
        drawn: Tensor = spread * torch.special.ndtri(u.clamp(1e-12, 1 - 1e-12))
        return drawn


INITS = {
    "default": Init(fan_in=True),
    "released": Init(first=0.1, middle=0.5, last=1.0, truncate=2.0),
    "released-l0": Init(first=0.5, middle=0.5, last=0.5, truncate=2.0),
    "released-systems": Init(first=0.1, middle=0.1, uniform_readout=True),
    "released-systems-l0": Init(first=0.5, middle=0.5, uniform_readout=True),
}
"""First weights by name: ours, and those of the authors' code."""
