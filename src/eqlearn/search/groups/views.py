"""What coefficients that vary are found from: views of terms in rows of numbers, and the coordinate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from eqlearn.numerics.splines import Splines
from eqlearn.numerics.subsets import Regression
from eqlearn.validation.options import check_fields


@dataclass(frozen=True)
class CoefficientSettings:
    """How coefficients that vary are looked for.

    Sums of up to `max_terms` terms, of which the best `beam` of each number are carried on, are chosen with
    coefficients that are splines of `degree`: as many as the first of `splines`, then the others as long as
    that is shorter to tell, for the terms of the best `shortlist`. A view is used where it has `per_spline`
    independent rows for each spline; terms of which less than `min_signal` is not noise are not seen there.
    Misfit below `floor`, of the target, is a solver's or a grid's. Formulas
    are searched in tables of `points`, without those that are `max_spread` times as uncertain as most, and
    the `formulas` shortest fitted, as splines `finer` times as many as the others, at least `min_fine`; they
    are snapped in `steps`.
    """

    max_terms: int = 6
    beam: int = 6
    degree: int = 5
    splines: tuple[int, ...] = (12, 24, 48)
    shortlist: int = 10
    per_spline: float = 3.0
    floor: float = 3e-4
    min_signal: float = 0.3
    points: int = 40
    max_spread: float = 5.0
    formulas: int = 8
    finer: int = 2
    min_fine: int = 60
    steps: int = 30

    def __post_init__(self) -> None:
        check_fields(self, ("max_terms", "beam", "degree", "shortlist", "points", "formulas", "steps"))


@runtime_checkable
class View(Protocol):
    """What shows the terms of an equation in rows of numbers, such as integrals over test functions, with
    functions of a coordinate for their coefficients."""

    @property
    def independent(self) -> float: ...

    @property
    def target(self) -> np.ndarray: ...

    def blocks(self, terms: Sequence[int], splines: Splines) -> np.ndarray:
        """The terms with each spline for their coefficient, `(rows, terms·splines)`."""

    def noise(self, terms: Sequence[int]) -> np.ndarray | None:
        """What noise adds on average to the products of these terms and the target, the last, from each value
        of the coordinate, `(values, terms + 1, terms + 1)`."""


@dataclass(frozen=True)
class Axis:
    """The coordinate that coefficients are functions of: its name, its values, and its period if any."""

    name: str
    values: np.ndarray
    period: float | None = None

    def splines(self, count: int, degree: int) -> Splines:
        return Splines.over(self.values, count, degree, self.period)

    def points(self, count: int) -> np.ndarray:
        """So many over the whole range, or once around."""
        low, high = float(self.values.min()), float(self.values.max())
        if self.period is not None:
            return low + self.period * np.arange(count) / count
        return np.linspace(low, high, count)


def regression(
    view: View, terms: Sequence[int], axis: Axis, splines: Splines, min_signal: float = 0.0
) -> Regression:
    """Columns of the terms with constant coefficients, then with each spline."""
    blocks = view.blocks(terms, splines)
    constants = blocks.reshape(len(blocks), len(terms), splines.count).sum(axis=2)  # splines sum to one
    noise = view.noise(terms)
    if noise is not None:
        design = splines.design(axis.values)
        both = np.column_stack([np.ones(len(design)), design])
        count, size = len(terms), splines.count
        # By terms and then by splines, the constant before them; the target as a constant.
        pairs = (both[:, :, None] * both[:, None]).reshape(len(both), -1).T
        whole = (pairs @ noise.reshape(len(both), -1)).reshape((size + 1,) * 2 + (count + 1,) * 2)
        whole = whole.transpose(2, 0, 3, 1)
        order = [(k, 0) for k in range(count)]
        order += [(k, 1 + j) for k in range(count) for j in range(size)] + [(count, 0)]
        rows, columns = (np.array(part) for part in zip(*order, strict=True))
        noise = whole[rows[:, None], columns[:, None], rows[None], columns[None]]
    both_kinds = np.column_stack([constants, blocks])
    return Regression.of(both_kinds, view.target, noise, view.independent, min_signal)
