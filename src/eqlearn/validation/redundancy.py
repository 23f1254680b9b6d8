"""Columns that say the same: copies, multiples, sums of others, columns that move together."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from eqlearn.validation.findings import Finding, Seen, named


def duplicates(seen: Seen) -> Iterator[Finding]:
    """Pairs of columns that are the same but for scale and shift, or that rise and fall together."""
    moving = [*seen.moving, *(t for t in seen.targets if seen.varies(t))]
    told: set[str] = set()
    for first, second in _suspects(seen, moving):
        if {first, second} & told or (first in seen.targets and second in seen.targets):
            continue
        pair = seen.whole([first, second])
        finding = _alike(pair, first, second, seen) if len(pair) >= seen.limits.rows else None
        if finding is not None:
            told.add(second)
            yield finding


def _suspects(seen: Seen, names: list[str]) -> Iterator[tuple[str, str]]:
    """Pairs of columns with a large correlation of values or ranks, missing ones taken for the mean."""
    columns = seen.values[:, [seen.names.index(name) for name in names]]
    there = np.isfinite(columns)
    ranks = np.argsort(
        np.argsort(np.where(there, columns, np.inf), axis=0, kind="stable"), axis=0, kind="stable"
    )
    close = np.zeros((len(names), len(names)), dtype=bool)
    for values in (columns, ranks.astype(np.float64)):
        filled = np.where(there, values, np.nan)
        filled = np.nan_to_num(filled - np.nanmean(filled, axis=0))
        size = np.sqrt((filled**2).sum(axis=0))
        filled /= np.where(size > 0, size, 1.0)
        close |= np.abs(filled.T @ filled) > 0.9  # what is meant is looked at closely later
    for second in range(len(names)):
        for first in np.flatnonzero(close[:second, second]):
            yield names[int(first)], names[second]


def _alike(pair: np.ndarray, first: str, second: str, seen: Seen) -> Finding | None:
    a, b = pair.T
    if not (np.ptp(a) and np.ptp(b)):
        return None
    limits = seen.limits
    slope, shift = _line(a, b)
    is_target = second in seen.targets
    if np.abs(slope * a + shift - b).max() <= limits.equal * np.ptp(b):
        if abs(shift) <= limits.equal * np.ptp(b):
            same = f"{second!r} is {first!r}" + ("" if math.isclose(slope, 1.0) else f" times {slope:.6g}")
        else:
            same = f"{second!r} is {slope:.6g} times {first!r} {'+' if shift > 0 else '-'} {abs(shift):.6g}"
        if is_target:
            advice = f"if {first!r} is the same quantity once more, leave {first!r} out"
            return Finding("warning", (), f"{same} in every row", advice)
        return Finding(
            "warning", (second,), f"{same} in every row", "leave it out: no law can tell which it is"
        )
    if is_target or not seen.targets:  # of which one may be the target
        return None
    if abs(np.corrcoef(a, b)[0, 1]) > limits.together or abs(_rank_correlation(a, b)) > limits.together:
        near = f"{first!r} and {second!r} rise and fall together in these rows"
        return Finding(
            "warning", (first, second), near, "which of them matters can't be told; vary them apart"
        )
    return None


def _line(a: np.ndarray, b: np.ndarray) -> tuple[float, float]:
    """Slope and shift of b over a, by least squares."""
    middle = a.mean()
    slope = float((a - middle) @ (b - b.mean()) / ((a - middle) @ (a - middle)))
    return slope, float(b.mean() - slope * middle)


def _rank_correlation(a: np.ndarray, b: np.ndarray) -> float:
    """Spearman's, for columns with hardly any ties; 0 for others, whose ranks say little."""
    if min(len(np.unique(a)), len(np.unique(b))) < 0.9 * len(a):
        return 0.0
    first, second = (np.argsort(np.argsort(v, kind="stable"), kind="stable") for v in (a, b))
    return float(np.corrcoef(first, second)[0, 1])


def sums(seen: Seen) -> Iterator[Finding]:
    """A column that is a sum of multiples of others."""
    names = seen.moving
    rows = seen.whole(names) if len(names) > 2 else np.empty((0, 0))
    if len(rows) < 3 * len(names) or not rows.size:
        return
    spread = rows.std(axis=0)
    if not spread.all():
        return
    standard = (rows - rows.mean(axis=0)) / spread
    _, singular, directions = np.linalg.svd(standard, full_matrices=False)
    for size, direction in zip(singular, directions, strict=True):
        parts = [n for n, weight in zip(names, direction, strict=True) if abs(weight) > 1e-4]
        if size < 1e-8 * singular[0] and len(parts) > 2:
            what = f"{named(parts)} depend on each other: one is a sum of multiples of the others"
            advice = f"leave one of them out, such as {parts[-1]!r}"
            yield Finding("warning", tuple(parts), what, advice)
