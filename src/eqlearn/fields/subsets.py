"""Which columns a sparse sum needs: the best subsets of each size, with the noise of columns allowed for."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from eqlearn.fields.settings import FieldSettings
from eqlearn.numerics.criteria import DISTINCT, information_criterion

# Noise below this part of a column's square changes no digit that matters.
NO_NOISE = 1e-9


@dataclass(frozen=True)
class Subset:
    """A sparse sum: which columns, their coefficients, the mean square of what it misses (`loss`, of the
    target's) and how much of that noise explains (`noise`)."""

    places: tuple[int, ...]
    coefficients: np.ndarray
    loss: float
    noise: float

    @property
    def misfit(self) -> float:
        """What noise does not explain."""
        return max(self.loss - self.noise, 0.0)


@dataclass(frozen=True, eq=False)
class Regression:
    """A target and columns with noise, each of size 1, as the triangle of their QR decomposition (target
    last), the products that noise adds on average, and how many rows are independent."""

    triangle: np.ndarray
    noise: np.ndarray
    scales: np.ndarray
    independent: float
    settings: FieldSettings

    @classmethod
    def of(
        cls,
        columns: np.ndarray,
        target: np.ndarray,
        noise: np.ndarray,
        independent: float,
        settings: FieldSettings,
    ) -> Regression:
        """From columns `(rows, columns)`, and the products of noise with the target last."""
        both = np.column_stack([columns, target])
        scales = np.sqrt(np.square(both).sum(axis=0))
        scales = np.where(scales > 0, scales, 1.0)
        triangle = np.asarray(np.linalg.qr(both / scales, mode="r"))
        return cls(triangle, noise / np.outer(scales, scales), scales, independent, settings)

    @property
    def count(self) -> int:
        return len(self.scales) - 1

    @cached_property
    def products(self) -> np.ndarray:
        return np.asarray(self.triangle.T @ self.triangle)

    @cached_property
    def noisy(self) -> bool:
        return bool(np.diag(self.noise).max() > NO_NOISE)

    @cached_property
    def corrected(self) -> np.ndarray:
        """A factor of the products without those of noise; directions that are nothing but noise count as
        little as what is known of them."""
        if not self.noisy:
            return self.triangle
        values, vectors = np.linalg.eigh(self.products - self.noise)
        least = math.sqrt(2 / self.independent) * np.abs(
            np.einsum("ij,ik,jk->k", self.noise, vectors, vectors)
        )
        return np.asarray(np.sqrt(np.maximum(values, np.maximum(least, 1e-14)))[:, None] * vectors.T)

    def fitted(self, places: Sequence[int]) -> Subset:
        """The sum of these columns, by least squares without the bias that noise in the columns has."""
        some, last = list(places), self.count
        matrix = self.triangle[:, some]
        weights = np.linalg.lstsq(matrix, self.triangle[:, last], rcond=1e-12)[0] if some else np.empty(0)
        if some and self.noisy:
            weights = self._unbiased(some, weights)
        left = np.square(matrix @ weights - self.triangle[:, last]).sum()
        row = np.append(weights, -1.0)
        noise = row @ self.noise[np.ix_([*some, last], [*some, last])] @ row
        real = weights * self.scales[last] / self.scales[some]
        return Subset(tuple(sorted(some)), real[np.argsort(some)], float(left), float(max(noise, 0.0)))

    def _unbiased(self, some: list[int], plain: np.ndarray) -> np.ndarray:
        """Corrected least squares; where noise leaves nothing of the columns, as much of it as can be."""
        gram, noise = self.products[np.ix_(some, some)], self.noise[np.ix_(some, some)]
        right, along = self.products[some, self.count], self.noise[some, self.count]
        for share in (1.0, 0.8, 0.5):
            left = gram - share * noise
            if np.linalg.eigvalsh(left)[0] > 0.1 * share * float(np.linalg.eigvalsh(noise)[0]) + 1e-13:
                return np.asarray(np.linalg.solve(left, right - share * along))
        return plain

    def refitted(self, places: Sequence[int], values: np.ndarray, held: dict[int, float]) -> np.ndarray:
        """Coefficients of these columns where some of them, by their place in `places`, have given values."""
        some = list(places)
        sizes = self.scales[some] / self.scales[self.count]
        found = np.array([held.get(k, v) for k, v in enumerate(values)]) * sizes
        free = [k for k in range(len(some)) if k not in held]
        if free:
            gram = self.products - (self.noise if self.noisy else 0.0)
            fixed = list(held)
            left = gram[np.ix_([some[k] for k in free], [some[k] for k in free])]
            right = gram[[some[k] for k in free], self.count] - gram[
                np.ix_([some[k] for k in free], [some[k] for k in fixed])
            ] @ found[fixed]  # fmt: skip
            if np.linalg.eigvalsh(left)[0] > 1e-10:
                found[free] = np.linalg.solve(left, right)
        return np.asarray(found / sizes)

    def best(self, most: int, allowed: Iterable[int] | None = None) -> list[Subset]:
        """The best sums of each number of columns, forwards and backwards, `beam` of each."""
        beam = self.settings.beam
        usable = [j for j in (range(self.count) if allowed is None else allowed) if self._alive[j]]
        most = min(most, len(usable))
        kept: dict[int, dict[tuple[int, ...], float]] = {k: {} for k in range(most + 1)}
        kept[0][()] = 1.0
        for _ in range(2):
            for size in range(most):
                grown = [g for places in self._first(kept[size], beam) for g in self._grown(places, usable)]
                kept[size + 1].update(dict(sorted(grown, key=lambda g: g[1])[: 2 * beam]))
            for size in range(most, 1, -1):
                for places in self._first(kept[size], beam):
                    kept[size - 1].update(self._shrunk(places))
        return [self.fitted(p) for size in kept.values() for p in self._first(size, beam)]

    @cached_property
    def _alive(self) -> np.ndarray:
        """Columns that hold more than noise."""
        signal = np.diag(self.products) - np.diag(self.noise)
        return signal > self.settings.min_signal * np.diag(self.products)

    @staticmethod
    def _first(sums: dict[tuple[int, ...], float], beam: int) -> list[tuple[int, ...]]:
        return sorted(sums, key=lambda p: sums[p])[:beam]

    def _grown(self, places: tuple[int, ...], usable: list[int]) -> list[tuple[tuple[int, ...], float]]:
        """Sums with one more column, and what they leave."""
        factor = self.corrected
        basis = np.linalg.qr(factor[:, list(places)])[0] if places else np.empty((len(factor), 0))
        apart = factor - basis @ (basis.T @ factor)
        sizes = np.square(apart).sum(axis=0)
        whole = np.square(factor).sum(axis=0)
        left = apart[:, self.count]
        gains = np.square(left @ apart) / np.where(sizes > DISTINCT**2 * whole, sizes, np.inf)
        rest = float(left @ left)
        fresh = [j for j in usable if j not in places and gains[j] > 0]
        fresh.sort(key=lambda j: -gains[j])
        return [(tuple(sorted((*places, j))), rest - float(gains[j])) for j in fresh[: self.settings.beam]]

    def _shrunk(self, places: tuple[int, ...]) -> dict[tuple[int, ...], float]:
        """Sums with one column less, and what they leave."""
        factor, found = self.corrected, {}
        for place in places:
            rest = [p for p in places if p != place]
            basis = np.linalg.qr(factor[:, rest])[0]
            left = factor[:, self.count] - basis @ (basis.T @ factor[:, self.count])
            found[tuple(rest)] = float(left @ left)
        return found

    def standard(self, sums: Sequence[Subset]) -> Standard:
        """What sums of this regression are compared by: the noise of the best one, and how many independent
        observations decide: all rows as far as noise explains its misfit, a few where that is systematic."""
        floor = self.settings.systematic_error**2
        fullest = min(sums, key=lambda s: s.loss)
        share = min(1.0, fullest.noise / (fullest.misfit + fullest.noise + floor))
        few = min(self.settings.systematic_rows, self.independent)
        observations = few + share * (self.independent - few)
        return Standard(observations, fullest.noise, floor, self.independent, self.count)


@dataclass(frozen=True)
class Standard:
    """How sums are compared: independent `observations`, the `noise` that is in any of them, the `floor`
    below which misfit is a solver's or a grid's, and among how many `places` a term is chosen."""

    observations: float
    noise: float
    floor: float
    independent: float
    places: int

    def score(self, one: Subset) -> float:
        """Nats for the data and the terms. Noise that a sum amplifies counts as far as it is uncertain: a
        sum is not better for cancelling noise."""
        amplified = max(one.noise - self.noise, 0.0) * math.sqrt(2 / self.independent)
        loss = one.misfit + self.noise + self.floor + amplified
        count = max(round(self.observations), 2)
        return information_criterion(count, loss, len(one.places), places=max(self.places, 2))
