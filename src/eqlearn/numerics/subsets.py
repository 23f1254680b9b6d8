"""Which columns a sparse sum needs: the best subsets of each size, with the noise of columns allowed for."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from eqlearn.numerics.budget import never
from eqlearn.numerics.criteria import DEPENDENT, DISTINCT, FREE_IN_SQUARES, NO_NOISE, NOTHING_LEFT, credible

Places = tuple[int, ...]


@dataclass(frozen=True)
class Subset:
    """A sparse sum: which columns, their coefficients, the mean square of what it misses (`loss`, of the
    target's) and how much of that noise explains (`noise`)."""

    places: Places
    coefficients: np.ndarray
    loss: float
    noise: float = 0.0

    @property
    def misfit(self) -> float:
        """What noise does not explain."""
        return max(self.loss - self.noise, 0.0)


@dataclass(frozen=True, eq=False)
class Regression:
    """A target and the columns that it may be a sum of, each of size 1, target last: as they are where rows
    are few, else as the triangle of their QR decomposition, which has the same sums.

    `noise` are the products of columns that noise adds on average, if it is known, and `independent` is how
    many rows are. Columns that are not finite, or of which less than `min_signal` is more than noise, are
    not `usable`.
    """

    factor: np.ndarray
    scales: np.ndarray
    noise: np.ndarray | None
    independent: float
    usable: np.ndarray

    @classmethod
    def of(
        cls,
        columns: np.ndarray,
        target: np.ndarray,
        noise: np.ndarray | None = None,
        independent: float | None = None,
        min_signal: float = 0.0,
    ) -> Regression:
        """From columns `(rows, columns)`, and the products of noise with the target last."""
        both = np.column_stack([columns, target])
        with np.errstate(all="ignore"):
            scales = np.linalg.norm(both, axis=0)
        fine = np.isfinite(scales) & (scales > 0)
        scales = np.where(fine, scales, 1.0)
        both = np.where(fine, both, 0.0) / scales
        factor = np.asarray(np.linalg.qr(both, mode="r")) if len(both) > both.shape[1] else both
        if noise is not None:
            noise = noise / np.outer(scales, scales)
            noise = noise if np.diag(noise).max() > NO_NOISE else None
        if noise is not None:
            sizes = np.square(factor).sum(axis=0)
            fine &= sizes - np.diag(noise) > min_signal * sizes
        return cls(factor, scales, noise, independent or float(len(target)), np.flatnonzero(fine[:-1]))

    @property
    def count(self) -> int:
        return len(self.scales) - 1

    def part(self, places: Sequence[int]) -> Regression:
        """The same target and these columns only, in this order."""
        every, known = [*places, self.count], set(self.usable.tolist())
        noise = None if self.noise is None else self.noise[np.ix_(every, every)]
        usable = np.array([k for k, place in enumerate(places) if place in known], dtype=int)
        return Regression(self.factor[:, every], self.scales[every], noise, self.independent, usable)

    @cached_property
    def products(self) -> np.ndarray:
        """Of all columns with each other, without those that noise adds on average."""
        every = self.factor.T @ self.factor
        return np.asarray(every if self.noise is None else every - self.noise)

    @cached_property
    def corrected(self) -> np.ndarray:
        """A factor of the products without those of noise; directions that are nothing but noise count as
        little as what is known of them."""
        if self.noise is None:
            return self.factor
        values, vectors = np.linalg.eigh(self.products)
        chance = math.sqrt(2 / self.independent)
        least = chance * np.abs(np.einsum("ij,ik,jk->k", self.noise, vectors, vectors))
        return np.asarray(np.sqrt(np.maximum(values, np.maximum(least, NOTHING_LEFT)))[:, None] * vectors.T)

    def fitted(self, places: Sequence[int]) -> Subset:
        """The sum of these columns, by least squares without the bias that noise in the columns has."""
        some, last = sorted(int(p) for p in places), self.count
        matrix, target = self.factor[:, some], self.factor[:, last]
        weights = np.linalg.lstsq(matrix, target, rcond=DEPENDENT)[0] if some else np.empty(0)
        noise = 0.0
        if self.noise is not None:
            weights = self._unbiased(some, weights) if some else weights
            row, every = np.append(weights, -1.0), [*some, last]
            noise = float(max(row @ self.noise[np.ix_(every, every)] @ row, 0.0))
        left = float(np.square(matrix @ weights - target).sum())
        return Subset(tuple(some), weights * self.scales[last] / self.scales[some], left, noise)

    def _unbiased(self, some: list[int], plain: np.ndarray) -> np.ndarray:
        """Corrected least squares; where noise leaves nothing of the columns, as much of it as can be."""
        assert self.noise is not None
        noise, along = self.noise[np.ix_(some, some)], self.noise[some, self.count]
        gram, right = self.products[np.ix_(some, some)] + noise, self.products[some, self.count] + along
        for share in (1.0, 0.8, 0.5):
            left = gram - share * noise
            least = 0.1 * share * float(np.linalg.eigvalsh(noise)[0]) + NOTHING_LEFT
            if np.linalg.eigvalsh(left)[0] > least:
                return np.asarray(np.linalg.solve(left, right - share * along))
        return plain

    def refitted(self, places: Sequence[int], values: np.ndarray, held: dict[int, float]) -> np.ndarray:
        """Coefficients of these columns where some of them, by their place in `places`, have given values."""
        some = np.array(places)
        sizes = self.scales[some] / self.scales[self.count]
        found = np.array([held.get(k, v) for k, v in enumerate(values)]) * sizes
        free, fixed = [k for k in range(len(some)) if k not in held], list(held)
        if free:
            left = self.products[np.ix_(some[free], some[free])]
            right = self.products[some[free], self.count]
            right = right - self.products[np.ix_(some[free], some[fixed])] @ found[fixed]
            if np.linalg.eigvalsh(left)[0] > FREE_IN_SQUARES**2:
                found[free] = np.linalg.solve(left, right)
        return np.asarray(found / sizes)

    def grown(self, places: Places, most: int) -> dict[Places, float]:
        """The sums of one more column that leave least, and what they leave."""
        basis = np.linalg.qr(self.corrected[:, list(places)])[0]
        apart = self.corrected - basis @ (basis.T @ self.corrected)
        sizes, left = np.square(apart).sum(axis=0), apart[:, self.count]
        own = sizes > DISTINCT**2 * np.square(self.corrected).sum(axis=0)
        gains = np.where(own, np.square(left @ apart) / np.where(own, sizes, 1.0), 0.0)
        fresh = np.setdiff1d(self.usable, places)
        best = fresh[np.argsort(-gains[fresh], kind="stable")[:most]]
        rest = float(left @ left)
        return {tuple(sorted((*places, int(k)))): rest - float(gains[k]) for k in best if gains[k] > 0}

    def shrunk(self, places: Places) -> dict[Places, float]:
        """The sums of one column less, and what they leave: w²/[(AᵀA)⁻¹] more, for each column's weight w."""
        matrix, target = self.corrected[:, list(places)], self.corrected[:, self.count]
        left, sizes, right = np.linalg.svd(matrix, full_matrices=False)
        inverse = right.T / np.maximum(sizes, DEPENDENT * sizes[0])
        weights = inverse @ (left.T @ target)
        loss = float(np.square(target - matrix @ weights).sum())
        rise = np.square(weights) / np.square(inverse).sum(axis=1)
        return {(*places[:k], *places[k + 1 :]): loss + float(r) for k, r in enumerate(rise)}

    def pairs(self, most: int, given: Places = ()) -> dict[Places, float]:
        """The best of all sums of two columns, beside `given` ones: from products of columns, so to half of
        the digits."""
        target, (gram, along) = self.corrected[:, self.count], self._among
        length, whole = float(target @ target), np.diag(gram)
        if given:
            basis = np.linalg.qr(self.corrected[:, list(given)])[0]
            shared, own = basis.T @ self.corrected[:, self.usable], basis.T @ target
            gram, along, length = gram - shared.T @ shared, along - own @ shared, length - float(own @ own)
        sizes = np.diag(gram)
        alone = sizes > DISTINCT * whole
        unit = np.where(alone, 1 / np.sqrt(np.where(alone, sizes, 1.0)), 0.0)
        gram, along = gram * unit[:, None] * unit, along * unit
        rest = 1 - gram**2
        # What a column adds to another: the part of the target along what is left of it.
        alike = rest < DISTINCT
        squares = along**2
        both = squares[:, None] + squares - 2 * gram * (along[:, None] * along)
        both /= np.where(alike, 1.0, rest)
        both[alike] = -np.inf
        both[np.tri(len(both), dtype=bool)] = both[~alone] = both[:, ~alone] = -np.inf
        best = np.argpartition(-both, min(most, both.size - 1), axis=None)[:most]
        return {
            tuple(sorted({int(self.usable[i]), int(self.usable[j]), *given})): length - float(both[i, j])
            for i, j in zip(*np.unravel_index(best, both.shape), strict=True)
            if both[i, j] > -np.inf
        }

    @cached_property
    def _among(self) -> tuple[np.ndarray, np.ndarray]:
        """Products of usable columns with each other, and with the target."""
        some = self.corrected[:, self.usable]
        return some.T @ some, some.T @ self.corrected[:, self.count]


def sparse_path(
    regression: Regression,
    max_terms: int,
    beam: int,
    *,
    beside: Iterable[Places] = (),
    starts: Iterable[Sequence[int]] = (),
    sweeps: int = 2,
    stop: Callable[[], bool] = never,
) -> dict[Places, float]:
    """The best sums of each size and what they leave, the smallest first.

    The `beam` best of each size grow by one column at a time, then shrink, in several `sweeps`; the best of
    all pairs `beside` each of these sums are among them, and what backward elimination makes of `starts`,
    sums of many columns.
    """
    sizes = range(min(max_terms, len(regression.usable)) + 1)
    found: list[dict[Places, float]] = [{} for _ in sizes]
    found[0][()] = 1.0
    for start in starts:
        places = tuple(sorted(set(start) & set(regression.usable.tolist())))
        while len(places) > 1 and credible(len(places), round(regression.independent)):
            fewer = regression.shrunk(places)
            places = min(fewer, key=lambda p: fewer[p])
            if len(places) < len(sizes):
                found[len(places)][places] = fewer[places]
    for given in beside:
        if len(given) + 2 in sizes and set(given) <= set(regression.usable.tolist()) and not stop():
            found[len(given) + 2] |= regression.pairs(beam, given)
    for _ in range(sweeps):
        for size in sizes[:-1]:
            for places in _first(found[size], beam):
                found[size + 1] |= {} if stop() else regression.grown(places, beam)
        for size in reversed(sizes[2:]):
            for places in _first(found[size], beam):
                found[size - 1] |= {} if stop() else regression.shrunk(places)
    return {p: each[p] for each in found for p in sorted(each, key=lambda p: each[p])}


def _first(sums: dict[Places, float], most: int) -> list[Places]:
    return sorted(sums, key=lambda p: sums[p])[:most]
