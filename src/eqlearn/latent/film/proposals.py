"""Which laws the coordinates of a film might obey, ranked in the weak form."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product

import numpy as np
from scipy.linalg import block_diag

from eqlearn.dynamics.derivatives import choose_windows, filtered
from eqlearn.dynamics.weak import half_widths
from eqlearn.latent.film.film_settings import FILM, FilmSettings
from eqlearn.latent.film.laws import Structure, Term
from eqlearn.numerics.windows import Window


@dataclass(frozen=True, eq=False)
class Proposal:
    """A law with numbers to begin with: coordinates are `shift + scale * z`; `left` of the weak form."""

    structure: Structure
    numbers: np.ndarray
    shift: np.ndarray
    scale: float
    left: float


@dataclass(frozen=True, eq=False)
class Ranking:
    """The weak form of films' coordinates: `tests @ f = target` for each coordinate, where f are the values
    of a law at `places` and `speeds` `(coordinates, times)`."""

    tests: list[np.ndarray]
    target: np.ndarray
    places: np.ndarray
    speeds: np.ndarray
    order: int
    settings: FilmSettings = field(default=FILM)

    @classmethod
    def of(
        cls, series: Sequence[np.ndarray], dt: float, order: int, settings: FilmSettings = FILM
    ) -> Ranking:
        """Of series `(time, coordinates)`."""
        windows = choose_windows(series)
        places, speeds = (np.concatenate(filtered(series, windows, k)).T for k in (0, 1))
        tests, rates = _tests([len(one) for one in series], dt, order, series)
        target = np.concatenate(
            [rates @ np.concatenate([one[:, k] for one in series]) for k in range(len(places))]
        )
        return cls([tests] * len(places), target, places, speeds / dt, order, settings)

    def proposals(self, structures: Sequence[Structure]) -> list[Proposal]:
        """The best of each number of terms, the shortest first."""
        terms = list({id(t): t for s in structures for t in s.terms}.values())
        batches = list(_alike(structures, terms))
        best: dict[int, Proposal] = {}
        for shift, scale in self._frames(any(s.scaled for s in structures)):
            matrix, ends = self._matrix(terms, shift, scale)
            fine = np.isfinite(matrix).all(axis=0) & (np.square(matrix).sum(axis=0) > 0)
            matrix = np.where(fine, matrix, 0.0)
            sizes = np.where(fine, np.sqrt(np.square(matrix).sum(axis=0)), 1.0)
            unit = matrix / sizes
            gram, along = unit.T @ unit + 1e-9 * np.eye(len(sizes)), unit.T @ self.target
            for members, places in batches:
                columns = np.array(
                    [[c for t in some for c in range(ends[t], ends[t + 1])] for some in places]
                )
                numbers = np.linalg.solve(
                    gram[columns[:, :, None], columns[:, None]], along[columns][..., None]
                )[..., 0]
                left = 1 - np.einsum("sk,sk->s", numbers, along[columns]) / (self.target @ self.target)
                left = np.where(fine[columns].all(axis=1), left, np.inf)
                for k, one in enumerate(members):
                    structure = structures[one]
                    if self._asks(structure, shift, scale) and (one not in best or left[k] < best[one].left):
                        best[one] = Proposal(
                            structure, numbers[k] / sizes[columns[k]], shift, scale, float(left[k])
                        )
        chosen: list[Proposal] = []
        for length, most in enumerate(self.settings.proposed, 1):
            alike = [p for p in best.values() if len(p.structure.terms) == length and np.isfinite(p.left)]
            chosen += sorted(alike, key=lambda p: p.left)[:most]
        return chosen

    def _frames(self, scaled: bool) -> list[tuple[np.ndarray, float]]:
        """Shifts and scales to try, the plain ones first; the middle of places is 0 and their spread 1."""
        count, reach = len(self.places), np.abs(self.places).max(axis=1)
        number = (
            self.settings.shifts if count == 1 else self.settings.shifts // 2 | 1
        )  # odd: zero is among them
        shares = np.linspace(-1.2, 1.2, number)
        shares = shares[np.argsort(np.abs(shares), kind="stable")]
        shifts = [np.array(s) * reach for s in product(shares, repeat=count)]
        return [(shift, scale) for scale in (1.0, *self.settings.scales * scaled) for shift in shifts]

    @staticmethod
    def _asks(structure: Structure, shift: np.ndarray, scale: float) -> bool:
        return (scale == 1.0 or structure.scaled) and (not shift.any() or structure.moved)

    def _matrix(
        self, terms: Sequence[Term], shift: np.ndarray, scale: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """What each coefficient of each term adds to the conditions, and where each term's begin."""
        place, speed = (self.places - shift[:, None]) / scale, self.speeds / scale
        each = [term.values(place, speed) * scale for term in terms]
        values = np.concatenate(each)
        with np.errstate(all="ignore"):
            matrix = np.concatenate([test @ values[:, k].T for k, test in enumerate(self.tests)])
        return matrix, np.cumsum([0, *map(len, each)])


def _tests(
    lengths: Sequence[int], dt: float, order: int, series: Sequence[np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Integrals against test functions of values and of rates of change, `(conditions, times)`, of all films.

    They are not whitened, as for measured states: what a bent coordinate misses is no white noise.
    """
    halves = half_widths([one[:, 0] for one in series], order)[:2]
    blocks = []
    for length in lengths:
        points = dt * np.arange(length)
        windows = [Window.over(points, half, order) for half in halves if 2 * half + 1 < length]
        both = [[w.weights(k) for w in windows] for k in (0, order)]
        blocks.append([np.concatenate([np.empty((0, length)), *some]) for some in both])
    values, rates = (block_diag(*some) for some in zip(*blocks, strict=True))
    return np.asarray(values), np.asarray(rates)


def _alike(
    structures: Sequence[Structure], terms: Sequence[Term]
) -> Iterator[tuple[list[int], list[list[int]]]]:
    """Structures with as many coefficients each, and the places of their terms."""
    place = {id(t): k for k, t in enumerate(terms)}
    sizes = [sum(t.coefficients for t in s.terms) for s in structures]
    for size in sorted(set(sizes)):
        members = [k for k, n in enumerate(sizes) if n == size]
        yield members, [[place[id(t)] for t in structures[k].terms] for k in members]
