"""Is what a law leaves over noise? Not if smooth functions of the columns explain more of it than chance."""

from __future__ import annotations

import math
from itertools import combinations_with_replacement

import numpy as np
from scipy.special import fdtrc, ndtri
from scipy.stats import rankdata

from eqlearn.numerics.criteria import LEAST_NOISE, NEGLIGIBLE, NO_NOISE_CHANCE

MAX_DEGREE = 12


def looks_like_noise(
    columns: np.ndarray, residual: np.ndarray, *, waves: int = 40, rows: int = 400, fewest: int = 60
) -> bool:
    """Whether residuals `(rows,)` could be noise to columns `(rows, columns)`, by an F test of the part that
    the columns, their squares and waves of random frequencies (Rahimi & Recht 2007) explain, of them and of
    their ranks, in which a few large ones do not hide the others. Of fewer than `fewest` rows it is not said:
    anything could be noise to so few."""
    if len(residual) < fewest:
        return False
    x, left = _thinned(columns, residual, rows)
    features = np.column_stack([np.ones(len(x)), x, x**2, _waves(x, waves)])[:, : len(x) // 4]
    return all(_by_chance(features, values, 0)[0] for values in (left, _scores(left)))


def noise_seen(columns: np.ndarray, y: np.ndarray, *, rows: int = 1000, fewest: int = 150) -> float | None:
    """The part of the spread of values `(rows,)` that is noise, whatever their law may be, 0 where they are
    exact: what a polynomial with a sixth as many terms as there are rows leaves of noise is explained by as
    many waves no better than by chance; what it leaves of exact values is smooth. None of fewer than `fewest`
    rows, which don't tell."""
    if len(y) < fewest:
        return None
    x, values = _thinned(columns, y, rows)
    spread = float(values.std())
    if np.ptp(values) == 0:
        return 0.0
    polynomial, _ = np.linalg.qr(_monomials(x, len(x) // 6))

    def beside(v: np.ndarray) -> np.ndarray:
        left: np.ndarray = v - polynomial @ (polynomial.T @ v)
        left -= polynomial @ (polynomial.T @ left)
        return left

    waves = beside(_waves(x, (len(x) // 3 - polynomial.shape[1]) // 2))
    chance, noise = _by_chance(waves, beside(values), polynomial.shape[1])
    return noise / spread if chance and noise > LEAST_NOISE * spread else 0.0


def _by_chance(features: np.ndarray, left: np.ndarray, used: int) -> tuple[bool, float]:
    """Whether features explain no more of what is left after `used` others than of noise, and how large that
    noise is."""
    if not features.shape[1]:
        return False, 0.0
    basis, sizes, _ = np.linalg.svd(features, full_matrices=False)
    basis = basis[:, sizes > NEGLIGIBLE * sizes[0]]
    count, free = basis.shape[1], len(left) - basis.shape[1] - used
    explained = float(np.square(basis.T @ left).sum())
    rest = float(left @ left) - explained
    if free <= 0 or rest <= 0:
        return False, 0.0
    by_chance = fdtrc(count, free, explained / count * free / rest) > NO_NOISE_CHANCE
    return bool(by_chance), math.sqrt(rest / free)


def _scores(values: np.ndarray) -> np.ndarray:
    """Normal values in the order of these."""
    return np.asarray(ndtri(rankdata(values) / (len(values) + 1)))


def _thinned(columns: np.ndarray, values: np.ndarray, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """At most so many rows, the columns that vary brought to mean zero and spread one."""
    some = np.linspace(0, len(values) - 1, min(len(values), rows)).round().astype(int)
    x = columns[some]
    x = x[:, x.std(axis=0) > 0]
    return (x - x.mean(axis=0)) / x.std(axis=0), values[some]


def _waves(x: np.ndarray, count: int) -> np.ndarray:
    """Sines and cosines in so many random directions, `(rows, 2 * count)`, slow and fast ones."""
    rng = np.random.default_rng(0)
    frequencies = rng.normal(size=(x.shape[1], count)) / math.sqrt(max(x.shape[1], 1))
    phases = x @ (frequencies * rng.choice([1.0, 2.0, 4.0], size=count))
    return np.column_stack([np.sin(phases), np.cos(phases)])


def _monomials(x: np.ndarray, most: int) -> np.ndarray:
    """Products of columns of all degrees of which there are at most so many, `(rows, terms)`."""
    x = x / np.abs(x).max(axis=0, initial=1.0)
    values = [np.ones(len(x))]
    for degree in range(1, MAX_DEGREE + 1):
        if math.comb(x.shape[1] + degree, degree) > most:
            break
        values += [
            x[:, t].prod(axis=1) for t in map(list, combinations_with_replacement(range(x.shape[1]), degree))
        ]
    return np.stack(values, axis=1)
