"""Which of many columns a target depends on, judged in an instant, so that networks need not see them all."""

from __future__ import annotations

import math

import numpy as np

# A table of so few columns is seen whole; of a wider one at least so many columns.
FEW, LEAST = 12, 7
# So many rows tell which columns matter, in so many bins of equal count.
_ROWS, _BINS = 4000, 8


def screen(X: np.ndarray, y: np.ndarray, most: int) -> tuple[int, ...]:
    """The columns of `(rows, in)` to search in, for targets `(rows, out)`: those that stand out of chance.

    A column shows by its part in a linear fit; by its square or its product with another column in what the
    linear fit leaves over; or because the target's rank is another, or wider spread, where the column is.
    """
    columns = X.shape[1]
    if columns <= FEW:
        return tuple(range(columns))
    step = max(1, len(X) // _ROWS)
    z, targets = _standard(X[::step]), _standard(y[::step])
    gains = np.max([_twice(z, target) for target in targets.T], axis=0)
    # The largest gain of so many columns and pairs by pure chance is seldom above this.
    chance = 1.5 * math.log(columns**2)
    count = min(max(LEAST, int((gains > chance).sum())), most)
    return tuple(sorted(int(i) for i in np.argsort(-gains, kind="stable")[:count]))


def _twice(z: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The gains in the target, and in what curves in its three best columns leave over of it."""
    gains = _gains(z, y)
    best = z[:, np.argsort(-gains, kind="stable")[:3]]
    curves = np.column_stack([best**power for power in range(5)])
    left = y - curves @ np.linalg.lstsq(curves, y, rcond=None)[0]
    return gains if len(y) < 100 else np.maximum(gains, _gains(z, _standard(left[:, None])[:, 0]))


def _gains(z: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Nats by which each column shortens the telling of `y`, in the way in which it does so most."""
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
    binned = [[_explained(_ranks(x), values) for x in z.T] for values in (ranks, np.abs(ranks))]
    told = -0.5 * rows * np.log1p(-np.minimum([alone, products.max(axis=1), *binned], 1 - 1e-12))
    # Bins are as many constants, each of which gains half a nat by chance.
    told[2:] -= 0.5 * (_BINS - 2)
    result: np.ndarray = told.max(axis=0)
    return result


def _explained(places: np.ndarray, values: np.ndarray) -> float:
    """The share of the values' variance that lies between bins of rows by their place."""
    bins = (places * _BINS // len(places)).astype(np.int64)
    counts = np.bincount(bins, minlength=_BINS)
    means = np.bincount(bins, values, minlength=_BINS) / np.maximum(counts, 1)
    spread = float(values.var())
    return float(counts @ (means - values.mean()) ** 2 / len(values)) / spread if spread > 0 else 0.0


def _ranks(values: np.ndarray) -> np.ndarray:
    return np.argsort(np.argsort(values, kind="stable"), kind="stable").astype(np.float64)


def _standard(values: np.ndarray) -> np.ndarray:
    """Columns of mean 0 and mean square 1; constant ones are 0."""
    spread = values.std(axis=0)
    steady = spread <= 1e-12 * np.abs(values).max(axis=0)
    standard: np.ndarray = (values - values.mean(axis=0)) / np.where(steady, np.inf, spread)
    return standard
