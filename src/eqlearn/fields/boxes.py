"""Fields larger than memory: the box of them in which most happens."""

from __future__ import annotations

import itertools
import math

import numpy as np

from eqlearn.fields.settings import FieldSettings
from eqlearn.validation.fields import Field, thinned

# Of each box so many values are looked at.
SEEN = 2_000


def in_memory(field: Field, settings: FieldSettings) -> Field:
    """The field itself, or of one with more than `max_values` the box of so many that changes most in time.

    Boxes are cut alike along all axes; an axis that is cut is no longer periodic. Coordinates stay what they
    are.
    """
    share = settings.max_values / (len(field.names) * len(field.experiments) * math.prod(field.shape))
    if share >= 1:
        return field
    part = share ** (1 / len(field.shape))
    sizes = [min(n, max(settings.least_side, math.floor(n * part))) for n in field.shape]
    each = math.floor(settings.boxes ** (1 / len(sizes)))
    starts = [np.linspace(0, n - k, each).astype(int) for n, k in zip(field.shape, sizes, strict=True)]
    boxes = [
        tuple(slice(int(a), int(a) + k) for a, k in zip(corner, sizes, strict=True))
        for corner in itertools.product(*starts)
    ]
    best = max(boxes, key=lambda box: _liveliness(field, box))
    experiments = tuple(
        {n: np.ascontiguousarray(v[best], dtype=v.dtype.newbyteorder("=")) for n, v in one.items()}
        for one in field.experiments
    )
    axes = {a: v[part] for (a, v), part in zip(field.axes.items(), best, strict=True)}
    whole = frozenset(a for a in field.periodic if len(axes[a]) == len(field.axes[a]))
    return field.with_parts(experiments, axes, whole)


def _liveliness(field: Field, box: tuple[slice, ...]) -> float:
    """How much all fields change in time there, each by its spread."""
    total = 0.0
    for one in field.experiments:
        for name, values in one.items():
            few = thinned(values[box], SEEN).astype(np.float64)
            total += float(np.nanstd(few - few.mean(axis=-1, keepdims=True))) / (field.spreads[name] or 1.0)
    return total
