"""Looking values up by their direction: which of many entries another value is a factor of, beside a sum."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import takewhile

import numpy as np

from eqlearn.numerics.budget import never
from eqlearn.numerics.criteria import NEGLIGIBLE, SAME_KEY

MOST_ALIKE = (
    60  # a direction that more entries have is that of one row far from all others, and tells nothing
)


class Keys:
    """Entries, in blocks `(entries, rows)`, by the direction of what they have outside of the span of a basis
    `(rows, dimensions)` with orthonormal columns: values that are a factor times an entry and a sum in the
    span have the same.

    A direction is told by three numbers, its components along three others. Once `stop()` holds, no more
    entries are taken up.
    """

    def __init__(
        self, basis: np.ndarray, blocks: Iterable[np.ndarray], stop: Callable[[], bool] = never
    ) -> None:
        directions = np.random.default_rng(0).normal(size=(len(basis), 3))
        directions -= basis @ (basis.T @ directions)
        constant = np.full((len(basis), 1), len(basis) ** -0.5)
        self.dimensions = basis.shape[1]
        self.seen_along = np.concatenate([basis, directions, constant], axis=1)
        seen = [self.seen(block)[1] for block in takewhile(lambda block: not stop(), blocks)]
        keys = np.concatenate([np.empty((0, 3)), *seen])
        self.order = np.argsort(keys[:, 0], kind="stable")  # those that are not numbers come last
        self.keys = keys[self.order]

    def seen(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The part of their variance that values `(many, rows)` have outside of the span, and their keys:
        both from one product; NaN for what hardly varies about a large mean."""
        along = values @ self.seen_along
        total = np.einsum("ij,ij->i", values, values)
        outside = total - np.square(along[:, : self.dimensions]).sum(axis=1)
        variance = total - along[:, -1] ** 2
        share = outside / np.where(variance > NEGLIGIBLE * total, variance, np.nan)
        keys = (
            along[:, self.dimensions : -1] / np.sqrt(np.where(share > NEGLIGIBLE, outside, np.nan))[:, None]
        )
        return share, keys * np.sign(keys[:, :1])

    def matches(self, asked: np.ndarray) -> list[tuple[int, int]]:
        """Which keys `(many, 3)` are those of entries: pairs of both."""
        first = self.keys[:, 0]
        low, high = (
            np.searchsorted(first, asked[:, 0] - SAME_KEY),
            np.searchsorted(first, asked[:, 0] + SAME_KEY),
        )
        found = []
        for k in np.flatnonzero((high > low) & np.isfinite(asked[:, 0])).tolist():
            near = np.flatnonzero(np.abs(self.keys[low[k] : high[k]] - asked[k]).max(axis=1) < SAME_KEY)
            if len(near) <= MOST_ALIKE:
                found += [(k, int(self.order[low[k] + i])) for i in near]
        return found
