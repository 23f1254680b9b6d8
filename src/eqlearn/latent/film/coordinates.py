"""Coordinates of the pictures of a film, such that pictures change evenly with them.

A thing that moves or turns without changing its shape is moved by a one-parameter group that leaves distances
between pictures as they are, so the length of the path through pictures is its place, or its angle, but for a
unit. Lengths of paths are those of a graph of neighbours (Isomap: Tenenbaum, de Silva & Langford 2000). A curve
through noisy pictures is then followed to its middle (principal curves: Hastie & Stuetzle 1989).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.interpolate import BSpline
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components, dijkstra
from scipy.spatial import cKDTree

from eqlearn.latent.film.settings import FILM, FilmSettings


@dataclass(frozen=True, eq=False)
class Coordinates:
    """Coordinates `(frames, coordinates)` of all frames, of mean 0 and spread about 1, and the part of the
    pictures' variance that they leave."""

    values: np.ndarray
    left: float


def along_paths(points: np.ndarray, count: int, settings: FilmSettings = FILM) -> np.ndarray:
    """The first `count` coordinates of Isomap of points `(frames, components)`, with landmarks (de Silva &
    Tenenbaum 2003)."""
    some = np.unique(np.linspace(0, len(points) - 1, min(len(points), settings.embedded)).astype(int))
    graph = _neighbours(points[some], settings.neighbours)
    marks = np.linspace(0, len(some) - 1, min(settings.landmarks, len(some))).astype(int)
    squares = dijkstra(graph, directed=False, indices=marks) ** 2
    about = squares[:, marks] - squares[:, marks].mean(axis=0)
    size, vectors = np.linalg.eigh(-0.5 * (about - about.mean(axis=1, keepdims=True)))
    first = np.argsort(size)[::-1][:count]
    level = squares[:, marks].mean(axis=1, keepdims=True)
    found = -0.5 * (squares - level).T @ vectors[:, first] / np.sqrt(np.maximum(size[first], 1e-12))
    if len(some) == len(points):
        return np.asarray(found)
    nearest = cKDTree(points[some]).query(points)[1]
    return np.asarray(found[nearest])


def _neighbours(points: np.ndarray, count: int) -> csr_array:
    """The graph of nearest neighbours, with as many as it takes to join all frames."""
    tree = cKDTree(points)
    while True:
        count = min(count, len(points) - 1)
        lengths, places = tree.query(points, count + 1)
        rows = np.repeat(np.arange(len(points)), count)
        entries = np.maximum(lengths[:, 1:].ravel(), 1e-12)
        graph = csr_array((entries, (rows, places[:, 1:].ravel())), shape=(len(points),) * 2)
        if count == len(points) - 1 or connected_components(graph, directed=False)[0] == 1:
            return graph
        count = count * 3 // 2 + 1


def one_coordinate(points: np.ndarray, settings: FilmSettings = FILM) -> Coordinates:
    """The length along the principal curve of the points."""
    place = along_paths(points, 1, settings)[:, 0]
    left = np.inf
    for _ in range(settings.rounds):
        curve, lengths = _curve(points, place, settings)
        place, left = _nearest(points, curve, lengths)
    return Coordinates(_standard(place[:, None]), left / float(points.var(axis=0).sum()))


def _curve(points: np.ndarray, place: np.ndarray, settings: FilmSettings) -> tuple[np.ndarray, np.ndarray]:
    """A smoothing spline through points in order of their place, finely, and the length up to there."""
    span = float(np.ptp(place)) or 1.0
    inner = np.linspace(0, 1, settings.knots)
    knots = np.concatenate([[0.0] * 3, inner, [1.0] * 3])
    design = BSpline.design_matrix(np.clip((place - place.min()) / span, 0, 1), knots, 3).toarray()
    count = design.shape[1]
    rough = np.diff(np.eye(count), 2, axis=0)
    penalty = settings.smoothing * len(points) / count * rough.T @ rough
    factors = np.linalg.solve(design.T @ design + penalty, design.T @ points)
    curve = BSpline.design_matrix(np.linspace(0, 1, 1501), knots, 3) @ factors
    steps = np.linalg.norm(np.diff(curve, axis=0), axis=1)
    return curve, np.concatenate([[0.0], np.cumsum(steps)])


def _nearest(points: np.ndarray, curve: np.ndarray, lengths: np.ndarray) -> tuple[np.ndarray, float]:
    """Where along a curve each point is nearest to it, and the mean squared distance."""
    _, at = cKDTree(curve).query(points)
    at = np.clip(at, 1, len(curve) - 2)
    before, here, after = (np.square(points - curve[at + k]).sum(axis=1) for k in (-1, 0, 1))
    bent = np.maximum(before - 2 * here + after, 1e-300)
    shift = np.clip(0.5 * (before - after) / bent, -1, 1)
    return np.interp(at + shift, np.arange(len(curve)), lengths), float(here.mean())


def _standard(values: np.ndarray) -> np.ndarray:
    """Mean 0 and, for all coordinates together, spread 1."""
    about = values - values.mean(axis=0)
    return np.asarray(about / (np.sqrt(np.square(about).mean()) or 1.0))
