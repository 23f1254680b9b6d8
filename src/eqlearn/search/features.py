"""What a search sees of a table: the columns that matter, scaled, their logarithms and products."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations_with_replacement

import numpy as np
import sympy as sp
import torch
from torch import Tensor

from eqlearn.search.settings import DEFAULTS, Screening


@dataclass(frozen=True)
class Features:
    """The inputs of a search: scaled columns first, then logarithms of columns, then products of columns.

    A shift would turn a sparse truth into a dense one, so there is none. With a logarithm among the inputs,
    an `exp` unit of the first layer is a product of powers; with products, a first layer of squares and
    products is already there. A level of the search sees one `bank` of them. Of a wide table, only the
    `columns` on which the target seems to depend are seen.
    """

    columns: tuple[int, ...]
    scales: tuple[float, ...]
    outputs: tuple[float, ...]
    logarithms: tuple[int, ...]
    products: tuple[tuple[int, ...], ...]  # of columns and logarithms, by their places

    @staticmethod
    def of(
        X: np.ndarray,
        y: np.ndarray,
        *,
        logarithms: bool,
        degree: int,
        columns: Sequence[int] | None = None,
        most: int = DEFAULTS.max_inputs,
    ) -> Features:
        """From `(rows, in)` and `(rows, out)`; logarithms only of columns that are positive throughout,
        products of up to `degree` columns as far as inputs are at most `most`; all columns by default."""
        columns = tuple(range(X.shape[1])) if columns is None else tuple(columns)
        X = X[:, columns]
        sizes = np.abs(X).max(axis=0)
        outputs = tuple(_unit(target) for target in y.reshape(len(y), -1).T)
        positive = tuple(int(i) for i in np.flatnonzero(X.min(axis=0) > 0)) if logarithms else ()
        terms: list[tuple[int, ...]] = []
        for factors in range(2, min(degree, 8 if X.shape[1] == 1 else 4) + 1):
            new = list(combinations_with_replacement(range(X.shape[1]), factors))
            if X.shape[1] + len(terms) + len(new) > most:
                break
            terms += new
        if degree > 1 and not terms:
            terms = [(i, i) for i in range(min(X.shape[1], most))]
        if X.shape[1] <= 3:  # x·log(y), whose exponential is y to the power x
            terms += [(i, X.shape[1] + k) for i in range(X.shape[1]) for k in range(len(positive))]
        scales = tuple(float(s) if s > 0 else 1.0 for s in sizes)
        return Features(columns, scales, outputs, positive, tuple(terms))

    @property
    def units(self) -> np.ndarray:
        """What each target is divided by, `(out,)`."""
        return np.array(self.outputs)

    @property
    def count(self) -> int:
        return len(self.scales) + len(self.logarithms) + len(self.products)

    @property
    def behind(self) -> int:
        """The place of the first product among the inputs."""
        return len(self.scales) + len(self.logarithms)

    @property
    def logarithm_inputs(self) -> range:
        """The places of the logarithms among the inputs."""
        return range(len(self.scales), self.behind)

    def bank(self, name: str) -> list[int]:
        """Which inputs a bank holds: "plain", "log", "rich" (logarithms and squares), "quadratic" (all
        products of two), "products" (of every degree there is) or "powers" (a column times a logarithm)."""
        logs = self.logarithm_inputs if name in ("log", "rich", "powers") else ()
        products = (self.behind + i for i in self._products.get(name, ()))
        return [*range(len(self.scales)), *logs, *products]

    @cached_property
    def _products(self) -> dict[str, list[int]]:
        """The products of each bank that has some, by number."""
        columns, numbered = len(self.scales), list(enumerate(self.products))
        return {
            "rich": [i for i, p in numbered if len(p) == 2 and p[0] == p[1]],
            "quadratic": [i for i, p in numbered if len(p) == 2 and p[1] < columns],
            "products": [i for i, p in numbered if p[-1] < columns],
            "powers": [i for i, p in numbered if p[-1] >= columns],
        }

    def polynomials(self, degree: int) -> list[int]:
        """The columns and their products of up to `degree` factors."""
        terms = (i for i in self._products["products"] if len(self.products[i]) <= degree)
        return [*range(len(self.scales)), *(self.behind + i for i in terms)]

    @property
    def squares(self) -> list[int]:
        """The squares of the columns, as far as there are products of two."""
        return [self.behind + i for i in self._products["rich"]]

    @property
    def degree(self) -> int:
        """Of how many columns the longest product is."""
        return max((len(self.products[i]) for i in self._products["products"]), default=1)

    def factors(self, place: int) -> tuple[int, ...]:
        """The columns (or logarithms) whose product an input is."""
        return (place,) if place < self.behind else self.products[place - self.behind]

    def size(self, place: int) -> float:
        """How many of the user's units one unit of a column or of a product of columns is."""
        return math.prod(self.scales[i] for i in self.factors(place))

    def layers(self, name: str) -> int:
        """How many hidden layers of squares and products a bank stands for: each can double the degree."""
        degree = max((len(self.products[i]) for i in self._products.get(name, ())), default=1)
        return math.ceil(math.log2(degree))

    def tensor(self, X: np.ndarray) -> Tensor:
        """The inputs, feature-major, `(in, rows)`."""
        scaled = (X[:, self.columns] / np.array(self.scales)).T
        inputs = np.stack([*scaled, *(np.log(scaled[i]) for i in self.logarithms)])
        products = [np.prod(inputs[list(p)], axis=0) for p in self.products]
        return torch.as_tensor(np.stack([*inputs, *products]))

    def names(self, variables: Sequence[str]) -> tuple[str, ...]:
        """The inputs by name, as a drawing of a network shows them."""
        seen = [variables[i] for i in self.columns]
        inputs = [*seen, *(f"log {seen[i]}" for i in self.logarithms)]
        return (*inputs, *("·".join(inputs[i] for i in p) for p in self.products))

    def symbolic(self, symbols: Sequence[sp.Symbol]) -> list[sp.Expr]:
        """The same inputs as expressions in the user's variables."""
        scaled = [symbols[i] / sp.Float(f, 17) for i, f in zip(self.columns, self.scales, strict=True)]
        inputs = [*scaled, *(sp.log(scaled[i]) for i in self.logarithms)]
        return [*inputs, *(sp.Mul(*(inputs[i] for i in p)) for p in self.products)]


def _unit(target: np.ndarray) -> float:
    """The unit of a target: its spread, unless it varies little about a large mean, which would be all mean
    in units of its spread."""
    spread, largest = float(target.std()), float(np.abs(target).max())
    return spread if spread > 1e-3 * largest else largest or 1.0


def screen(
    X: np.ndarray, y: np.ndarray, most: int, settings: Screening = DEFAULTS.screening
) -> tuple[int, ...]:
    """The columns of `(rows, in)` to search in, for targets `(rows, out)`: those that stand out of chance.

    A column shows by its part in a linear fit; by its square or its product with another column in what the
    linear fit leaves unexplained; or because the target's rank has another mean or spread at other values of
    the column.
    """
    columns = X.shape[1]
    if columns <= settings.max_unscreened:
        return tuple(range(columns))
    step = max(1, len(X) // settings.rows)
    z, targets = _standard(X[::step]), _standard(y[::step])
    gains = np.max([_twice(z, target, settings.bins) for target in targets.T], axis=0)
    # The largest gain of all columns and pairs by pure chance is seldom above this.
    chance = 1.5 * math.log(columns**2)
    count = min(max(settings.min_columns, int((gains > chance).sum())), most)
    return tuple(sorted(int(i) for i in np.argsort(-gains, kind="stable")[:count]))


def _twice(z: np.ndarray, y: np.ndarray, bins: int) -> np.ndarray:
    """The gains in the target, and in its residual after polynomials in its three best columns."""
    gains = _gains(z, y, bins)
    best = z[:, np.argsort(-gains, kind="stable")[:3]]
    curves = np.column_stack([best**power for power in range(5)])
    left = y - curves @ np.linalg.lstsq(curves, y, rcond=None)[0]
    return gains if len(y) < 100 else np.maximum(gains, _gains(z, _standard(left[:, None])[:, 0], bins))


def _gains(z: np.ndarray, y: np.ndarray, bins: int) -> np.ndarray:
    """Nats by which each column shortens the description of `y`, in the way that shortens it most."""
    rows, columns = z.shape
    alone, left = (z.T @ y / rows) ** 2, y
    if rows > 3 * columns:
        # What a column adds to all others: one that only resembles a column that matters adds nothing.
        left = y - z @ np.linalg.lstsq(z, y, rcond=None)[0]
        inverse = np.linalg.pinv(z.T @ z)
        part = (inverse @ (z.T @ y)) ** 2 / np.maximum(np.diag(inverse), 1e-300)
        alone = part / (part + left @ left + 1e-12 * rows)
    left = _standard(left[:, None])[:, 0]
    products = ((z * left[:, None]).T @ z / rows) ** 2
    ranks = _standard(_ranks(y)[:, None])[:, 0]
    binned = [[_explained(_ranks(x), values, bins) for x in z.T] for values in (ranks, np.abs(ranks))]
    nats = -0.5 * rows * np.log1p(-np.minimum([alone, products.max(axis=1), *binned], 1 - 1e-12))
    # Each bin is a constant, which gains half a nat by chance.
    nats[2:] -= 0.5 * (bins - 2)
    result: np.ndarray = nats.max(axis=0)
    return result


def _explained(places: np.ndarray, values: np.ndarray, count: int) -> float:
    """The share of the values' variance that lies between bins of rows by their place."""
    bins = (places * count // len(places)).astype(np.int64)
    counts = np.bincount(bins, minlength=count)
    means = np.bincount(bins, values, minlength=count) / np.maximum(counts, 1)
    spread = float(values.var())
    return float(counts @ (means - values.mean()) ** 2 / len(values)) / spread if spread > 0 else 0.0


def _ranks(values: np.ndarray) -> np.ndarray:
    """Each value's place in their order, as `scipy.stats.rankdata(values, "ordinal") - 1` gives it; by hand,
    since the import of `scipy.stats` alone would take longer than screening a table."""
    ranks = np.empty(len(values))
    ranks[np.argsort(values, kind="stable")] = np.arange(len(values))
    return ranks


def _standard(values: np.ndarray) -> np.ndarray:
    """Columns of mean 0 and mean square 1; constant ones are 0."""
    spread = values.std(axis=0)
    steady = spread <= 1e-12 * np.abs(values).max(axis=0)
    standard: np.ndarray = (values - values.mean(axis=0)) / np.where(steady, np.inf, spread)
    return standard
