"""How well data determine what was fitted to them: standard errors, from s²(JᵀJ)⁻¹."""

from __future__ import annotations

import math

import numpy as np

from eqlearn.numerics.criteria import FREE, FREE_IN_SQUARES, LOOSE


def errors_from_slopes(slopes: np.ndarray, variance: float) -> np.ndarray:
    """The standard error of each constant, from slopes `(observations, constants)` and the residuals'
    variance; infinite for a constant that another can make up for, and for all of them where there are fewer
    observations than constants.
    """
    observations, count = slopes.shape
    with np.errstate(all="ignore"):
        scale = np.sqrt((slopes**2).sum(axis=0))
    if not 0 < count <= observations or not math.isfinite(variance) or not np.isfinite(scale).all():
        return np.full(count, math.inf)
    scale[scale == 0] = 1.0
    _, singular, directions = np.linalg.svd(slopes / scale, full_matrices=False)
    return _errors(singular, directions, scale, variance, FREE)


def errors_from_curvature(curvature: np.ndarray, variance: float) -> np.ndarray:
    """The same from JᵀJ, for slopes that are added up in pieces; infinite for all where one moves nothing."""
    scale = np.sqrt(np.diag(curvature))
    if not (scale > 0).all() or not np.isfinite(curvature).all() or not math.isfinite(variance):
        return np.full(len(scale), math.inf)
    squares, vectors = np.linalg.eigh(curvature / np.outer(scale, scale))
    singular = np.sqrt(np.maximum(squares[::-1], 0.0))
    return _errors(singular, vectors.T[::-1], scale, variance, FREE_IN_SQUARES)


def _errors(
    singular: np.ndarray, directions: np.ndarray, scale: np.ndarray, variance: float, cut: float
) -> np.ndarray:
    free = singular <= cut * singular[:1]
    with np.errstate(divide="ignore"):  # slopes may be so small that their squares are 0
        inverse = (directions[~free] ** 2 / singular[~free, None] ** 2).sum(axis=0)
    loose = (np.abs(directions[free]) > LOOSE).any(axis=0)
    return np.where(loose, math.inf, np.sqrt(variance * inverse) / scale)
