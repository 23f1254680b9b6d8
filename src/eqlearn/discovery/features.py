"""What a network sees of a table: columns scaled by factors, never centred, their logarithms and products."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement

import numpy as np
import sympy as sp
import torch
from torch import Tensor

# A bank of more inputs than this would make every network of it a large one.
MOST = 36


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
        X: np.ndarray, y: np.ndarray, *, logarithms: bool, degree: int, columns: Sequence[int] | None = None
    ) -> Features:
        """From `(rows, in)` and `(rows, out)`; logarithms only of columns that are positive throughout,
        products of up to `degree` columns; all columns unless told."""
        columns = tuple(range(X.shape[1])) if columns is None else tuple(columns)
        X = X[:, columns]
        sizes = np.abs(X).max(axis=0)
        outputs = tuple(_unit(target) for target in y.reshape(len(y), -1).T)
        positive = tuple(int(i) for i in np.flatnonzero(X.min(axis=0) > 0)) if logarithms else ()
        terms: list[tuple[int, ...]] = []
        for factors in range(2, min(degree, 8 if X.shape[1] == 1 else 4) + 1):
            new = list(combinations_with_replacement(range(X.shape[1]), factors))
            if X.shape[1] + len(terms) + len(new) > MOST:
                break
            terms += new
        if degree > 1 and not terms:
            terms = [(i, i) for i in range(min(X.shape[1], MOST))]
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
    def logarithm_inputs(self) -> range:
        """The places of the logarithms among the inputs."""
        return range(len(self.scales), len(self.scales) + len(self.logarithms))

    def bank(self, name: str) -> list[int]:
        """Which inputs a bank holds: "plain", "log", "rich" (logarithms and squares), "quadratic" (all
        products of two), "products" (of every degree there is) or "powers" (a column times a logarithm)."""
        logs = self.logarithm_inputs if name in ("log", "rich", "powers") else ()
        behind = len(self.scales) + len(self.logarithms)
        return [*range(len(self.scales)), *logs, *(behind + i for i in self._products_of(name))]

    def _products_of(self, name: str) -> list[int]:
        columns = len(self.scales)
        wanted = {
            "rich": lambda p: len(p) == 2 and p[0] == p[1],
            "quadratic": lambda p: len(p) == 2 and p[1] < columns,
            "products": lambda p: p[-1] < columns,
            "powers": lambda p: p[-1] >= columns,
        }.get(name, lambda p: False)
        return [i for i, p in enumerate(self.products) if wanted(p)]

    def polynomials(self, degree: int) -> list[int]:
        """The columns and their products of up to `degree` factors."""
        columns, behind = len(self.scales), len(self.scales) + len(self.logarithms)
        terms = (i for i, p in enumerate(self.products) if len(p) <= degree and p[-1] < columns)
        return [*range(columns), *(behind + i for i in terms)]

    @property
    def squares(self) -> list[int]:
        """The squares of the columns, as far as there are products of two."""
        behind = len(self.scales) + len(self.logarithms)
        return [behind + i for i, p in enumerate(self.products) if len(p) == 2 and p[0] == p[1]]

    @property
    def degree(self) -> int:
        """Of how many columns the longest product is."""
        return max((len(p) for p in self.products if p[-1] < len(self.scales)), default=1)

    def factors(self, place: int) -> tuple[int, ...]:
        """The columns (or logarithms) whose product an input is."""
        behind = len(self.scales) + len(self.logarithms)
        return (place,) if place < behind else self.products[place - behind]

    def size(self, place: int) -> float:
        """How many of the user's units one unit of a column or of a product of columns is."""
        return math.prod(self.scales[i] for i in self.factors(place))

    def layers(self, name: str) -> int:
        """How many hidden layers of squares and products a bank stands for: each can double the degree."""
        degree = max((len(self.products[i]) for i in self._products_of(name)), default=1)
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
