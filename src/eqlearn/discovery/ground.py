"""Where a formula is compared with a truth: points, true values, and the scale of a deviation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from eqlearn.discovery.formula import Formula
from eqlearn.errors import InvalidArgument

Box: TypeAlias = Mapping[str, tuple[float, float]]

SEED = 2019
NEAR, WIDE, AFAR = 256, 1024, 256
REACH = 4.0
REACHES_AFAR = (4e2, 4e4)


@dataclass(frozen=True, eq=False)
class Ground:
    """Points, the truth's values at them, and the scale to which deviations there are relative.

    The scale is the truth's distance from its median on the training box, but at least the typical
    distance: a zero of the truth asks for nothing impossible, and a large constant hides nothing.
    """

    truth: Formula
    points: np.ndarray
    values: np.ndarray
    scale: np.ndarray

    def some(self, keep: Any) -> Ground:
        """The same at a selection of the points."""
        return Ground(self.truth, self.points[:, keep], self.values[keep], self.scale[keep])

    def __len__(self) -> int:
        return len(self.values)


@dataclass(frozen=True, eq=False)
class Survey:
    """Where to compare with one truth: `near` (the training box), `wide` (it, and one four times as wide),
    and `afar` (boxes hundreds of times as wide), which is None for a truth that is not real there."""

    near: Ground
    wide: Ground
    afar: Ground | None

    @property
    def variables(self) -> tuple[str, ...]:
        return self.wide.truth.variables

    @staticmethod
    def of(truth: Formula, box: Box) -> Survey:
        rng = np.random.default_rng(SEED)
        near = _draw(box, 1.0, NEAR, rng)
        near = near[:, np.isfinite(truth(near))]
        if near.shape[1] < NEAR // 4:
            raise InvalidArgument(
                f"the truth is real and finite at only {near.shape[1]} of {NEAR} points of `box`; "
                "give the ranges from which its data were drawn"
            )
        outside = _followed(truth, _draw(box, REACH, 4 * WIDE, rng), box)
        ground = _measured(truth, near, outside[:, :WIDE])
        steady = _steady(ground, 1e-9, rng)
        steady[: near.shape[1]] = True
        return Survey(ground.some(slice(0, near.shape[1])), ground.some(steady), _afar(truth, near, box, rng))


def _draw(box: Box, factor: float, rows: int, rng: np.random.Generator) -> np.ndarray:
    low, high = np.array(list(box.values()), dtype=float).T[:, :, None]
    unit = rng.uniform(-1.0, 1.0, (len(box), rows))
    return np.asarray((low + high) / 2 + factor * (high - low) / 2 * unit)


def _followed(truth: Formula, points: np.ndarray, box: Box) -> np.ndarray:
    """Those of the points at which the truth is real and finite, and on the branch of the training box."""
    values = truth(points)
    points = points[:, np.isfinite(values)]
    if not np.isnan(values).any():
        return points
    # Beyond a stretch without real values lies another branch: sqrt(p/rho) is real at p, rho < 0 as well,
    # but sqrt(p)/sqrt(rho), the same formula to whoever measured p, rho > 0, is not. So the walk along each
    # variable, from the training box to its value at the point, must stay real; such stretches lie about
    # zero more often than anywhere else, and are looked for there.
    low, high = np.array(list(box.values()), dtype=float).T[:, :, None]
    start = np.clip(points, low, high)
    real = np.ones(points.shape[1], dtype=bool)
    for k, (here, there) in enumerate(zip(start, points, strict=True)):
        steps = here + np.linspace(0.0, 1.0, 17)[1:, None] * (there - here)
        about_zero = here * np.array([0.5, 0.1, 0.01, -0.01, -0.1, -0.5])[:, None]
        walk = np.concatenate([steps, np.clip(about_zero, np.minimum(here, there), np.maximum(here, there))])
        paths = np.repeat(start[:, None, :], len(walk), axis=1)
        paths[k] = walk
        real &= ~np.isnan(truth(paths)).any(axis=0)
    return points[:, real]


def _afar(truth: Formula, near: np.ndarray, box: Box, rng: np.random.Generator) -> Ground | None:
    points = np.concatenate([_draw(box, reach, AFAR, rng) for reach in REACHES_AFAR], axis=1)
    ground = _measured(truth, near, _followed(truth, points, box))
    steady = _steady(ground, 1e-7, rng)
    steady[: near.shape[1]] = False
    return ground.some(steady) if steady.sum() >= AFAR // 8 else None


def _measured(truth: Formula, near: np.ndarray, outside: np.ndarray) -> Ground:
    points = np.concatenate([near, outside], axis=1)
    values = truth(points)
    inside = values[: near.shape[1]]
    distance = np.abs(values - np.median(inside))
    largest = float(np.abs(inside).max())
    typical = float(np.median(distance[: len(inside)]))
    if distance[: len(inside)].max() <= 1e-12 * largest:
        typical = largest  # a constant
    # Constants have 16 digits: below a millionth of the largest value, 9 of them can't be asked for.
    floor = max(typical, 1e-6 * largest) or 1.0
    return Ground(truth, points, values, np.maximum(distance, floor))


def _steady(ground: Ground, tolerance: float, rng: np.random.Generator) -> np.ndarray:
    # Where rounding the arguments upsets the truth itself (beside a pole, or thousands of periods away), no
    # formula with rounded constants can agree with it.
    nudge = 1.0 + 1e-13 * rng.choice([-1.0, 1.0], ground.points.shape)
    with np.errstate(all="ignore"):
        change = np.abs(ground.truth(ground.points * nudge) - ground.values) / ground.scale
    return np.asarray(change <= tolerance)
