"""Coordinates of the pictures of a film, such that pictures change evenly with them.

A thing that moves or turns without changing its shape is moved by a one-parameter group that leaves distances
between pictures as they are, so the length of the path through pictures is its place, or its angle, but for a
unit. Lengths of paths are those of a graph of neighbours (Isomap: Tenenbaum, de Silva & Langford 2000). A
curve through noisy pictures is then followed to its middle (principal curves: Hastie & Stuetzle 1989).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from scipy.interpolate import BSpline
from scipy.sparse import coo_array, csc_array, csr_array, diags_array
from scipy.sparse.csgraph import connected_components, dijkstra
from scipy.sparse.linalg import splu
from scipy.spatial import cKDTree

from eqlearn.latent.film.film_settings import FILM, FilmSettings
from eqlearn.latent.film.networks import Radial
from eqlearn.latent.film.pictures import Components
from eqlearn.numerics.least_squares import Rule, SquareRoot, levenberg_marquardt


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


def two_coordinates(
    frames: Sequence[np.ndarray], points: np.ndarray, settings: FilmSettings = FILM
) -> Coordinates:
    """Coordinates in a plane, in which frames are as far apart as their pictures are.

    Pictures blurred until their spots overlap change almost linearly with place, so a polynomial of their
    first two components is a beginning. From there each frame is moved by itself, pairs that are far apart
    counting first and those that are near last, as paths may have to go around where no frame is.
    """
    broad = Components.of(frames, settings, blur=settings.broad * max(frames[0].shape[1:3]))
    plain = np.concatenate([broad.points(film) for film in frames])[:, :2]
    some = np.unique(np.linspace(0, len(points) - 1, min(len(points), settings.embedded)).astype(int))
    values = plain[some] / np.sqrt(np.square(plain[some]).mean())
    for turn, (blur, reach, steps) in enumerate(settings.moves):
        soft = Components.of(frames, settings, blur=blur)
        pixels = np.concatenate([soft.points(film) for film in frames])[some]
        pairs = _pairs(pixels, reach, settings)
        values = _moved(values if turn else _unbent(values, *pairs, settings), *pairs, steps)
    if len(some) < len(points):
        network = Radial.fitted(points[some], values, settings)
        values = network(torch.from_numpy(points)).detach().numpy()
    return Coordinates(_standard(values), 0.0)


def _unbent(
    plain: np.ndarray, first: np.ndarray, second: np.ndarray, apart: np.ndarray, settings: FilmSettings
) -> np.ndarray:
    """The polynomial of `plain` `(frames, 2)` in which pairs come nearest to being so far `apart`."""
    powers = [(a, b) for a in range(4) for b in range(4) if 1 <= a + b <= 3]
    terms = np.stack([plain[:, 0] ** a * plain[:, 1] ** b for a, b in powers], axis=1)
    steps = terms[first] - terms[second]
    factors = np.zeros((len(powers), 2))
    factors[powers.index((1, 0)), 0] = factors[powers.index((0, 1)), 1] = 1.0
    unit = float(np.median(np.linalg.norm(steps @ factors, axis=1) / apart))
    ridge = np.where([a + b > 1 for a, b in powers], settings.flat, 0.0)[:, None] * np.ones(2)

    def linearise(point: torch.Tensor) -> SquareRoot:
        turned = steps @ point[0].numpy().reshape(-1, 2)
        length = np.maximum(np.linalg.norm(turned, axis=1), 1e-12)
        slope = turned / (length * unit * apart)[:, None]
        slopes = (steps[:, :, None] * slope[:, None]).reshape(len(steps), -1)
        held = math.sqrt(len(steps)) * np.diag(ridge.ravel())
        residual = np.concatenate([length / (unit * apart) - 1, held @ point[0].numpy()])
        return SquareRoot(residual[None], lambda: (np.concatenate([slopes, held])[None], None))

    start = torch.from_numpy(factors.ravel())[None]
    point, _ = levenberg_marquardt(linearise, start, Rule(30, damping=1e-2, gain=1e-6))
    return np.asarray(terms @ point[0].numpy().reshape(-1, 2)) / unit


def _moved(
    places: np.ndarray, first: np.ndarray, second: np.ndarray, apart: np.ndarray, steps: int
) -> np.ndarray:
    """Places `(frames, coordinates)` moved so that pairs are so far `apart`: metric scaling by majorising the
    stress (SMACOF: de Leeuw 1977), with steps of nearly twice the length (de Leeuw & Heiser 1980)."""
    count = len(places)
    weight = coo_array((np.ones(len(apart)), (first, second)), shape=(count, count)).tocsc()
    weight = weight + weight.T
    solver = splu(csc_array(diags_array(weight.sum(axis=1) + 1e-9) - weight))
    entries = (np.concatenate([first, second]), np.tile(np.arange(len(apart)), 2))
    pull = csr_array((np.repeat([1.0, -1.0], len(apart)), entries), shape=(count, len(apart)))
    for left in reversed(range(steps)):
        gap = places[first] - places[second]
        long = np.maximum(np.linalg.norm(gap, axis=1), 1e-12)
        best = solver.solve(pull @ (gap * (apart / long)[:, None]))
        places = places + (1.9 if left else 1.0) * (best - places)
    return places


def _pairs(
    points: np.ndarray, reach: float, settings: FilmSettings
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Frames that overlap and how far apart they are, in some unit.

    The distance of two pictures of a spot grows with its shift d as the root of 1 - exp(-d²) does, and ends
    where they do not overlap any more.
    """
    generator = np.random.default_rng(0)
    first = np.arange(len(points))
    seconds = [generator.permutation(len(points)) for _ in range(settings.partners)]
    squares = np.stack([np.square(points - points[second]).sum(axis=1) for second in seconds])
    share = squares / (1.02 * np.quantile(squares, 0.98))
    near = (share > settings.nearest**2) & (share < reach**2)
    apart = np.sqrt(-np.log1p(-share[near]))
    return np.broadcast_to(first, near.shape)[near], np.stack(seconds)[near], apart


def film_coordinates(
    frames: Sequence[np.ndarray], points: np.ndarray, count: int | None, settings: FilmSettings = FILM
) -> Coordinates:
    """As many coordinates as are asked for, or else one, unless no curve goes through the pictures."""
    if count == 2:
        return two_coordinates(frames, points, settings)
    one = one_coordinate(points, settings)
    if count == 1 or one.left <= settings.curved:
        return one
    return two_coordinates(frames, points, settings)
