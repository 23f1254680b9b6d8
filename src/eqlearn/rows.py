"""Rows in an order of their own, so that neither their order in the file nor repetition matters."""

from __future__ import annotations

import numpy as np

from eqlearn.discovery.table import Table

# Whole numbers as weights are counts, and their rows are written out, up to so many times the rows there are.
_MOST_COPIES = 10


def arrange(X: np.ndarray, y: np.ndarray, weight: np.ndarray | None) -> Table:
    """The table sorted by its numbers; rows of weight 0 are left out, counted rows are repeated.

    So a table, the same table shuffled, and the same rows given once with how often they occur, all lead to
    the same search, digit for digit. Other weights say how much a row matters, not how many rows there are.
    """
    y = y.reshape(len(y), -1)
    if weight is not None:
        kept = weight > 0
        X, y, weight = X[kept], y[kept], weight[kept]
        counted = bool((weight == np.floor(weight)).all())
        if counted and weight.sum() <= _MOST_COPIES * len(weight):
            copies = weight.astype(np.int64)
            X, y, weight = X.repeat(copies, axis=0), y.repeat(copies, axis=0), None
    keys = [*y.T, *X.T] if weight is None else [weight, *y.T, *X.T]
    return Table(X, y, weight).take(np.lexsort(keys))
