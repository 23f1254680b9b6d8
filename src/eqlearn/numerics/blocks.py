"""Which terms a sparse sum needs where coefficients may be functions of a coordinate: a constant, or splines.

A term enters with one column or with a block of them (group sparsity: Yuan & Lin 2006; for equations, Rudy et
al. 2019). Blocks are added and taken away as a whole; each step is an exact least squares, so nothing is
shrunk. What decides is the information criterion with every spline a parameter.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from eqlearn.numerics.budget import never
from eqlearn.numerics.criteria import DISTINCT, information_criterion
from eqlearn.numerics.subsets import Regression, Subset

# Terms by their place, each with whether its coefficient varies.
Support = tuple[tuple[int, bool], ...]


@dataclass(frozen=True, eq=False)
class Blocks:
    """A regression whose columns are those of `terms` with constant coefficients, then a block of `size`
    columns for each of them; `floor` is the part of the target's square that is a solver's or a grid's."""

    regression: Regression
    terms: int
    size: int
    floor: float
    _known: dict[Support, Subset] = field(default_factory=dict, repr=False)

    def places(self, support: Support) -> list[int]:
        """The columns of a support."""
        found: list[int] = []
        for term, varies in support:
            first = self.terms + term * self.size
            found += range(first, first + self.size) if varies else [term]
        return found

    def fitted(self, support: Support) -> Subset:
        """The least squares of a support."""
        if support not in self._known:
            self._known[support] = self.regression.fitted(self.places(support))
        return self._known[support]

    def score(self, support: Support) -> float:
        """Nats for the data, the coefficients and the choice of terms."""
        one = self.fitted(support)
        count = max(round(self.regression.independent), 2)
        columns = len(self.places(support))
        if columns > count / 2:
            return np.inf
        loss = one.misfit + one.noise * (1 + columns / count) + self.floor
        fit = information_criterion(count, loss, columns, placed=False)
        return fit + len(support) * float(np.log(2 * self.terms))

    def grown(self, support: Support, most: int) -> list[Support]:
        """The supports with one more block, or a constant made a block, the most promising first."""
        matrix = self.regression.corrected
        basis = np.linalg.qr(matrix[:, self.places(support)])[0]
        apart = matrix - basis @ (basis.T @ matrix)
        left, rest = apart[:, -1], float(np.square(apart[:, -1]).sum())
        count, usable = max(round(self.regression.independent), 2), set(self.regression.usable.tolist())
        ranked = []
        varying = {term for term, varies in support if varies}
        for other in (term for term in range(self.terms) if term not in varying):
            places = [p for p in self.places(((other, True),)) if p in usable]
            if other not in usable:
                continue
            for some, varies in ((places, True), ([other], False)):
                if not some or (not varies and (other, False) in support):
                    continue
                gain = _gain(apart[:, some], left, np.square(matrix[:, some]).sum(axis=0))
                loss = max(rest - gain, 0.0) + self.floor
                score = information_criterion(count, loss, len(some), placed=False)
                kept = (pair for pair in support if pair[0] != other)
                ranked.append((score, tuple(sorted((*kept, (other, varies))))))
        return [s for _, s in sorted(ranked)[:most]]

    def shrunk(self, support: Support) -> list[Support]:
        """The supports with one block less, or one made a constant."""
        found = []
        for k, (term, varies) in enumerate(support):
            found.append((*support[:k], *support[k + 1 :]))
            if varies:
                found.append((*support[:k], (term, False), *support[k + 1 :]))
        return found

    def best(self, most: int, beam: int, stop: Callable[[], bool] = never) -> list[Support]:
        """Supports of up to `most` terms, the best first."""
        every: dict[Support, float] = {(): self.score(())}
        front: list[Support] = [()]
        for _ in range(most):
            grown = {s for f in front for s in self.grown(f, beam)} - set(every)
            fresh = {s: self.score(s) for s in grown if len(s) <= most and not stop()}
            if not fresh:
                break
            every |= fresh
            front = sorted(fresh, key=lambda s: fresh[s])[:beam]
        for start in sorted(every, key=lambda s: every[s])[:beam]:
            here = start
            while not stop() and here:
                fewer = {s: self.score(s) for s in self.shrunk(here)}
                every |= fewer
                better = min(fewer, key=lambda s: fewer[s])
                if fewer[better] >= every[here]:
                    break
                here = better
        return sorted(every, key=lambda s: every[s])


def _gain(apart: np.ndarray, left: np.ndarray, sizes: np.ndarray) -> float:
    """What columns explain of what is left, as far as others do not make up for them."""
    scaled = apart / np.sqrt(np.where(sizes > 0, sizes, 1.0))
    values, vectors = np.linalg.eigh(scaled.T @ scaled)
    kept = values > DISTINCT**2
    along = vectors[:, kept].T @ (scaled.T @ left)
    return float((np.square(along) / values[kept]).sum())
