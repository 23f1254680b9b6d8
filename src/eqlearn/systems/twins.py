"""The ReLU twin: an ordinary network to put where an `EQL` stands, for comparison."""

from __future__ import annotations

from itertools import pairwise

from torch import nn

from eqlearn.errors import InvalidArgument


def relu_network(in_features: int, out_features: int = 1, width: int = 50, depth: int = 2) -> nn.Sequential:
    """`depth` hidden layers of `width` ReLU units and a linear read-out, with torch's own start.

    It maps `(*batch, in)` to `(*batch, out)` as an `EQL` does, and has no sparse layer and no equation.
    """
    numbers = {"in_features": in_features, "out_features": out_features, "width": width, "depth": depth}
    if problems := [f"`{name}` must be at least 1, got {n}" for name, n in numbers.items() if n < 1]:
        raise InvalidArgument("; ".join(problems))
    widths = [in_features, *[width] * depth]
    hidden = [part for inner, outer in pairwise(widths) for part in (nn.Linear(inner, outer), nn.ReLU())]
    return nn.Sequential(*hidden, nn.Linear(width, out_features))
