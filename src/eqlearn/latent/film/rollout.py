"""A law of motion fitted through the motion itself, over longer and longer horizons.

The coordinate of a film is a straight line of the law's coordinate, and a little bent. Line, bend, the law's
numbers and the start of every piece of the film are fitted together (multiple shooting: Bock 1981).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product

import numpy as np
import torch
from numpy.polynomial import legendre

from eqlearn.dynamics.derivatives import choose_windows, filtered
from eqlearn.dynamics.segments import Segments
from eqlearn.dynamics.shooting import flow
from eqlearn.latent.film.film_settings import FILM, FilmSettings
from eqlearn.latent.film.laws import Structure
from eqlearn.latent.film.proposals import Proposal
from eqlearn.numerics.budget import never
from eqlearn.numerics.covariance import errors_from_slopes
from eqlearn.numerics.least_squares import Rule, SquareRoot, levenberg_marquardt


@dataclass(frozen=True, eq=False)
class Tracks:
    """Coordinates of films, series `(time, coordinates)` at steps of `dt`, smoothed places and speeds to
    begin with."""

    series: tuple[np.ndarray, ...]
    places: tuple[np.ndarray, ...]
    speeds: tuple[np.ndarray, ...]
    dt: float

    @classmethod
    def of(cls, series: Sequence[np.ndarray], dt: float) -> Tracks:
        windows = choose_windows(series)
        places, speeds = filtered(series, windows, 0), [v / dt for v in filtered(series, windows, 1)]
        return cls(tuple(series), tuple(places), tuple(speeds), dt)

    @property
    def longest(self) -> int:
        return max(len(one) for one in self.series)

    def substeps(self, settings: FilmSettings) -> float:
        """How often a frame's time is divided for integration; below 1, so many frames are taken at once."""
        spread = np.sqrt(np.concatenate(self.places).var(axis=0).sum())
        speed = np.quantile(np.linalg.norm(np.concatenate(self.speeds), axis=1), 0.98)  # where it is fast
        stride = settings.stride * spread / max(speed * self.dt, 1e-12)
        return 1 / min(4, int(stride)) if stride >= 1 else float(min(16, math.ceil(1 / stride)))

    @property
    def coordinates(self) -> int:
        return int(self.series[0].shape[1])

    def until(self, share: float) -> Tracks:
        """The first part of every film."""

        def cut(each: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
            return tuple(one[: max(4, math.ceil(share * len(one)))] for one in each)

        return replace(self, series=cut(self.series), places=cut(self.places), speeds=cut(self.speeds))

    def pieces(self, length: int) -> list[tuple[int, int, int]]:
        """Films cut into pieces of about this many frames: film, first frame, and the one after the last."""
        found = []
        for k, one in enumerate(self.series):
            count = max(1, round(len(one) / length))
            ends = np.linspace(0, len(one), count + 1).round().astype(int)
            found += [(k, int(a), int(b)) for a, b in pairwise(ends) if b > a]
        return found


@dataclass(frozen=True, eq=False)
class Motion:
    """A law with all that was fitted: its `numbers`, the read-out's `shift` and `scale`, the `bend`'s
    coefficients `(functions, coordinates)`, and the states at the beginning of each piece `starts`, of
    `pieces`; `error` is the root mean square that it misses the coordinates by, with what the bend is worth.
    The law's coordinates may have `axes` (columns) of their own in the plane.
    """

    structure: Structure
    numbers: np.ndarray
    shift: np.ndarray
    scale: float
    bend: np.ndarray
    pieces: tuple[tuple[int, int, int], ...]
    starts: np.ndarray
    error: float
    number_errors: np.ndarray
    axes: np.ndarray | None = None

    def read(self, places: np.ndarray, settings: FilmSettings = FILM) -> np.ndarray:
        """The film's coordinates at places of the law's coordinates `(rows, coordinates)`."""
        straight = self.shift + self.scale * (places if self.axes is None else places @ self.axes.T)
        return np.asarray(straight + bends(straight, settings)[0] @ self.bend)


def bends(u: np.ndarray, settings: FilmSettings) -> tuple[np.ndarray, np.ndarray]:
    """Products of Legendre polynomials of degree 2 and more at `(rows, coordinates)`: values
    `(rows, functions)`, and slopes `(rows, functions, coordinates)`. Beyond three spreads they go on straight
    ahead, and their slopes are those at the end."""
    count = u.shape[1]
    top = settings.bend_degree if count == 1 else 3
    x = np.clip(u / REACH, -1.2, 1.2)
    plain = [[legendre.Legendre.basis(n)(x[:, k]) for n in range(top + 1)] for k in range(count)]
    steep = [
        [legendre.Legendre.basis(n).deriv()(x[:, k]) / REACH for n in range(top + 1)] for k in range(count)
    ]
    values, slopes = [], []
    for powers in product(range(top + 1), repeat=count):
        if not 2 <= sum(powers) <= top:
            continue
        factors = [plain[k][n] for k, n in enumerate(powers)]
        values.append(np.prod(factors, axis=0))
        slopes.append([
            np.prod([steep[j][n] if j == k else factors[j] for j, n in enumerate(powers)], axis=0)
            for k in range(count)
        ])  # fmt: skip
    return np.stack(values, axis=1), np.array(slopes).transpose(2, 0, 1)


# Coordinates have spread 1, so that few are beyond twice as much, where the polynomials' range ends.
REACH = 2.0


def begun(proposal: Proposal, tracks: Tracks, settings: FilmSettings = FILM) -> Motion:
    """A proposal as a motion that has not been fitted yet."""
    count = tracks.coordinates
    functions = bends(np.zeros((1, count)), settings)[0].shape[1]
    return Motion(
        proposal.structure, proposal.numbers, proposal.shift, proposal.scale, np.zeros((functions, count)),
        (), np.empty((0, count * proposal.structure.order)), math.inf,
        np.full(len(proposal.numbers), math.inf),
    )  # fmt: skip


def fitted(
    motion: Motion,
    tracks: Tracks,
    length: int,
    *,
    steps: int = 12,
    settings: FilmSettings = FILM,
    stop: Callable[[], bool] = never,
) -> Motion:
    """The motion fitted to pieces of so many frames."""
    shooting = Shooting(motion, tracks, length, settings)
    point, system = levenberg_marquardt(
        shooting.linearise, shooting.start(), Rule(steps, damping=1e-3, gain=1e-3, least=1e-9),
        fixed=shooting.fixed, stop=stop,
    )  # fmt: skip
    return shooting.motion(point[0].numpy(), system)


class Shooting:
    """The least-squares problem of one law over pieces of one length.

    Common parameters are the law's numbers, the read-out's shift and scale, and the bend; each piece has its
    start. Pieces differ in length by a frame: what is not there counts nothing.
    """

    def __init__(self, motion: Motion, tracks: Tracks, length: int, settings: FilmSettings) -> None:
        self.before, self.tracks, self.settings = motion, tracks, settings
        self.structure = motion.structure
        self.pieces = tracks.pieces(length)
        times = max(b - a for _, a, b in self.pieces)
        count = tracks.coordinates
        self.observed = np.zeros((len(self.pieces), times, count))
        self.weights = np.zeros((len(self.pieces), times, 1))
        for row, (k, a, b) in enumerate(self.pieces):
            self.observed[row, : b - a] = tracks.series[k][a:b]
            self.weights[row, : b - a] = 1.0
        states = count * self.structure.order
        values = np.zeros((len(self.pieces), times, states))
        self.substeps = tracks.substeps(settings)
        self.segments = Segments(values, np.ones(states), tracks.dt, "ode")
        self.rows = float(self.weights.sum()) * count
        # A bend is worth a residual, the more so the more often it turns.
        degrees = np.arange(2, 2 + len(motion.bend)) if count == 1 else np.full(len(motion.bend), 2.0)
        self.stiff = settings.bend * degrees / 2 * math.sqrt(self.rows)
        self.ends = np.cumsum([len(motion.numbers), count, 1, motion.bend.size])

    @property
    def fixed(self) -> torch.Tensor:
        held = np.zeros(self.ends[-1] + self.starts_size, dtype=bool)
        if not self.structure.moved:
            held[self.ends[0] : self.ends[1]] = True
        if not self.structure.scaled:
            held[self.ends[1] : self.ends[2]] = True
        return torch.from_numpy(held)[None]

    @property
    def starts_size(self) -> int:
        return len(self.pieces) * int(self.segments.values.shape[2])

    def start(self) -> torch.Tensor:
        """Where a fit begins: pieces where an earlier fit has them begin, or else the smoothed places."""
        motion, tracks = self.before, self.tracks
        known = {p[:2]: start for p, start in zip(motion.pieces, motion.starts, strict=True)}
        starts = []
        for k, a, _ in self.pieces:
            place = (tracks.places[k][a] - motion.shift) / motion.scale
            speed = tracks.speeds[k][a] / motion.scale
            smoothed = np.concatenate([place, speed][: self.structure.order])
            starts.append(known.get((k, a), smoothed))
        scale = np.array([motion.scale])
        parts = [motion.numbers, motion.shift, scale, motion.bend.ravel(), np.ravel(starts)]
        return torch.from_numpy(np.concatenate(parts))[None]

    def linearise(self, point: torch.Tensor) -> SquareRoot:
        theta = point[0].numpy()
        numbers, shift, scale, bend, starts = np.split(theta, self.ends)
        count, states = self.tracks.coordinates, self.segments.values.shape[2]
        bend = bend.reshape(-1, count)
        pieces, times = self.observed.shape[:2]
        shares, at = self.structure.shares, starts.reshape(pieces, states)
        path = flow(self.structure.field, self.segments, shares @ numbers, at, self.substeps, slopes=True)[
            :, :, :count
        ]
        places, moves = path[..., 0], path[..., 1:]
        with np.errstate(all="ignore"):
            straight = shift + scale * places
            values, slopes = bends(straight.reshape(-1, count), self.settings)
            values = values.reshape(pieces, times, -1)
            # How the read-out follows the straight line, (pieces, times, coordinates, coordinates).
            follow = np.eye(count) + np.einsum("pfk,fc->pck", slopes, bend).reshape(
                pieces, times, count, count
            )
            residual = self.weights * (straight + values @ bend - self.observed)
            by_place = self.weights[..., None] * (follow * scale) @ moves
            common = np.zeros((pieces, times, count, self.ends[-1]))
            common[..., : self.ends[0]] = by_place[..., states:] @ shares
            common[..., self.ends[0] : self.ends[1]] = self.weights[..., None] * follow
            common[..., self.ends[1]] = self.weights * (follow @ places[..., None])[..., 0]
            for c in range(count):
                common[..., c, self.ends[2] + c : self.ends[3] : count] = self.weights * values
            own = by_place[..., :states]
        weight = np.repeat(self.stiff, count) / math.sqrt(pieces)
        rows = [residual.reshape(pieces, -1), np.tile(weight * bend.ravel(), (pieces, 1))]
        stiff = np.zeros((pieces, bend.size, self.ends[-1]))
        stiff[:, np.arange(bend.size), self.ends[2] + np.arange(bend.size)] = weight
        matrix = np.concatenate([common.reshape(pieces, times * count, -1), stiff], axis=1)
        nuisance = np.concatenate(
            [own.reshape(pieces, times * count, states), np.zeros((pieces, bend.size, states))], axis=1
        )
        everything = np.concatenate(rows, axis=1)
        if not (np.isfinite(matrix).all() and np.isfinite(nuisance).all()):
            everything[:] = np.nan
        return SquareRoot(everything, lambda: (matrix, nuisance), int(self.rows))

    def motion(self, theta: np.ndarray, system: SquareRoot) -> Motion:
        numbers, shift, scale, bend, starts = np.split(theta, self.ends)
        error = math.sqrt(float(system.loss))
        errors = np.full(len(numbers), math.inf)
        if math.isfinite(error):
            free = np.flatnonzero(~self.fixed[0, : self.ends[-1]].numpy())
            spread = errors_from_slopes(system.followed[:, free], error**2)
            errors = spread[: len(numbers)]
        states = self.segments.values.shape[2]
        return replace(
            self.before, numbers=numbers, shift=shift, scale=float(scale[0]),
            bend=bend.reshape(-1, self.tracks.coordinates), pieces=tuple(self.pieces),
            starts=starts.reshape(-1, states), error=error, number_errors=errors,
        )  # fmt: skip


def followed(motion: Motion, tracks: Tracks, settings: FilmSettings = FILM) -> list[np.ndarray]:
    """The law's states `(time, states)` at all times of every film, from the start of each of its pieces; the
    last one goes on to the end of the film."""
    states = motion.starts.shape[1]
    last = {k: i for i, (k, _, _) in enumerate(motion.pieces)}
    ends = [len(tracks.series[k]) if last[k] == i else b for i, (k, _, b) in enumerate(motion.pieces)]
    lengths = [end - a for end, (_, a, _) in zip(ends, motion.pieces, strict=True)]
    values = np.zeros((len(lengths), max(lengths), states))
    segments = Segments(values, np.ones(states), tracks.dt, "ode")
    law, numbers = motion.structure, motion.structure.shares @ motion.numbers
    path = flow(law.field, segments, numbers, motion.starts, tracks.substeps(settings))[..., 0]
    found: list[list[np.ndarray]] = [[] for _ in tracks.series]
    for row, length, (k, _, _) in zip(path, lengths, motion.pieces, strict=True):
        found[k].append(row[:length])
    return [np.concatenate(parts) for parts in found]
