"""Sparse sums of library terms: which few columns explain a target, over the whole path of sizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from eqlearn.dynamics.settings import MOTION, MotionSettings
from eqlearn.numerics.budget import never
from eqlearn.numerics.criteria import DISTINCT, information_criterion
from eqlearn.numerics.stepwise import saliencies


@dataclass(frozen=True)
class Support:
    """Places of the columns of a sum, and what the sum leaves of the target's mean square."""

    places: tuple[int, ...]
    loss: float

    def score(self, rows: int, inside: int = 0) -> float:
        """In nats; `inside` counts the constants inside the terms."""
        return information_criterion(rows, self.loss, len(self.places) + inside)


class Regression:
    """A target `(rows,)` and the columns `(rows, terms)` that it may be a sum of, all scaled to length 1."""

    def __init__(self, matrix: np.ndarray, target: np.ndarray) -> None:
        sizes = np.linalg.norm(matrix, axis=0)
        usable = np.isfinite(sizes) & (sizes > 0)
        self.sizes = np.where(usable, sizes, 1.0)
        self.matrix = np.where(usable, matrix, 0.0) / self.sizes
        self.unit = float(np.linalg.norm(target)) or 1.0
        self.target = target / self.unit
        self.rows = len(target)
        self.usable = np.flatnonzero(usable)

    def fit(self, places: Sequence[int]) -> tuple[np.ndarray, float]:
        """The coefficients in the units of the columns, and the share of the target that is left."""
        part = self.matrix[:, list(places)]
        factors = np.linalg.lstsq(part, self.target, rcond=None)[0]
        left = self.target - part @ factors
        return factors * self.unit / self.sizes[list(places)], float(left @ left)

    def support(self, places: Sequence[int]) -> Support:
        chosen = tuple(sorted(int(p) for p in places))
        return Support(chosen, self.fit(chosen)[1])

    def extended(self, places: Sequence[int], most: int) -> list[tuple[int, ...]]:
        """The sums of one more column that leave least."""
        basis = np.linalg.qr(self.matrix[:, list(places)])[0] if len(places) else np.empty((self.rows, 0))
        left = self.target - basis @ (basis.T @ self.target)
        rest = 1 - ((basis.T @ self.matrix) ** 2).sum(axis=0)
        allowed = rest > DISTINCT
        allowed[list(places)] = False
        gains = np.where(allowed, (left @ self.matrix) ** 2 / np.where(allowed, rest, 1.0), -1.0)
        gains[np.setdiff1d(np.arange(len(gains)), self.usable, assume_unique=True)] = -1.0
        best = np.argpartition(-gains, min(most, len(gains) - 1))[:most]
        return [tuple(sorted((*places, int(k)))) for k in best if gains[k] > 0]

    def pairs(self, most: int, given: int | None = None) -> list[tuple[int, ...]]:
        """The best of all sums of two columns, beside a `given` one: from products of columns, so to half of
        the digits."""
        matrix, target = self.matrix[:, self.usable], self.target
        if given is not None:
            first = self.matrix[:, given]
            matrix = matrix - np.outer(first, first @ matrix)
            target = target - first * float(first @ target)
        size = np.sqrt((matrix**2).sum(axis=0))
        alone = size**2 > DISTINCT
        matrix = matrix / np.where(alone, size, 1.0) * alone
        along, gram = matrix.T @ target, matrix.T @ matrix
        rest = 1 - gram**2
        # What a column adds to another: the part of the target along what is left of it.
        gains = (along[None, :] - gram * along[:, None]) ** 2
        both = along[:, None] ** 2 + np.where(rest > DISTINCT, gains / np.maximum(rest, DISTINCT), -np.inf)
        both[np.tril_indices(len(both))] = -np.inf
        best = np.argpartition(-both, min(most, both.size - 1), axis=None)[:most]
        beside = () if given is None else (given,)
        return [
            tuple(sorted({int(self.usable[i]), int(self.usable[j]), *beside}))
            for i, j in zip(*np.unravel_index(best, both.shape), strict=True)
            if both[i, j] > -np.inf
        ]

    def shortened(self, places: Sequence[int]) -> list[tuple[int, ...]]:
        """Ever smaller sums, each without the column that is missed least."""
        chosen, path = list(places), []
        while len(chosen) > 1:
            part = torch.as_tensor(self.matrix[:, chosen])
            factors = torch.linalg.lstsq(part, torch.as_tensor(self.target)[:, None], driver="gelsd").solution
            rise = saliencies(part.mT @ part, factors[:, 0], ridge=1e-14)
            del chosen[int(rise.argmin())]
            path.append(tuple(sorted(chosen)))
        return path


def sparse_path(
    regression: Regression,
    starts: Sequence[Sequence[int]] = (),
    settings: MotionSettings = MOTION,
    stop: Callable[[], bool] = never,
) -> list[Support]:
    """The best sums of each size, the shortest first: from below by a beam of sums that grow by one column at
    a time, all pairs and, of few columns, all triples among them, and from above, from the sums of all
    columns of each of `starts`, by backward elimination."""
    found: dict[tuple[int, ...], Support] = {}

    def enter(places: Sequence[int]) -> Support:
        key = tuple(sorted(places))
        if key not in found:
            found[key] = regression.support(key)
        return found[key]

    for start in starts:
        if len(start) <= 0.8 * regression.rows:
            for places in regression.shortened(start):
                if len(places) <= settings.max_terms:
                    enter(places)
    beam: list[tuple[int, ...]] = [()]
    count, few = len(regression.usable), settings.beam // 4 + 1
    for size in range(1, settings.max_terms + 1):
        if stop():
            break
        if size == 2 and count <= settings.max_pairs:
            for places in regression.pairs(8 * settings.beam):
                enter(places)
        if size == 3 and count <= settings.max_triples:
            for given in regression.usable:
                for places in regression.pairs(few, int(given)):
                    enter(places)
        trials = {t for places in beam for t in regression.extended(places, settings.beam)}
        known = sorted((s for s in found.values() if len(s.places) == size), key=lambda s: s.loss)
        every = sorted({*map(enter, trials), *known[: settings.beam]}, key=lambda s: s.loss)
        swapped = {
            t
            for s in every[:4]
            for gone in range(size)
            for t in regression.extended([p for i, p in enumerate(s.places) if i != gone], 2)
        }
        every = sorted({*every, *map(enter, swapped)}, key=lambda s: s.loss)
        beam = [s.places for s in every[: settings.beam]]
    return sorted(found.values(), key=lambda s: (len(s.places), s.loss))
