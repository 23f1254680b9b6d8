"""What sums and products of functions out of a dictionary share: its size, and which matches are sketched."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import takewhile

from eqlearn.discovery.atoms import Atom
from eqlearn.discovery.inversion import Inversion
from eqlearn.discovery.sketch import Sketch

# How many matches of a round become networks, and how many if one of them is exact.
TAKEN, TAKEN_IF_EXACT = 40, 6
# A match that leaves less than this fraction of the target's variance is exact.
EXACT_MATCH = 1e-22
# Matches are looked for on so many rows.
ROWS = 96
# What a dictionary may hold, in numbers of atoms; and for products of atoms, the factors of each side.
MOST_ATOMS, MOST_ARGUMENTS, MOST_FACTORS = 8_000, 100, 90


@dataclass(frozen=True)
class Matched:
    """A sketch, and how well the match that it comes from does."""

    sketch: Sketch
    key: tuple[str, ...]
    score: float
    error: float


def best_sketches(found: list[Matched], whole: dict[Inversion | None, Inversion | None]) -> list[Sketch]:
    """The best sketches that differ, for inversions of all rows; few of them if one is exact."""
    best: dict[tuple[int, tuple[str, ...]], Matched] = {}
    for each in found:
        key = (id(each.sketch.inversion), each.key)
        if key not in best or each.score < best[key].score:
            best[key] = each
    ranked = sorted(best.values(), key=lambda m: m.score)
    exact = [m for m in ranked if m.error < EXACT_MATCH]
    sizes = sorted({len(m.key) for m in ranked})
    fair = [m for n in sizes for m in [r for r in ranked if len(r.key) == n][: TAKEN // len(sizes)]]
    chosen = exact[:TAKEN_IF_EXACT] or fair
    return [Sketch(whole[m.sketch.inversion], m.sketch.readout) for m in chosen]


def until(stop: Callable[[], bool], atoms: Iterable[Atom]) -> Iterator[Atom]:
    """Atoms as long as there is time for more."""
    return takewhile(lambda atom: not stop(), atoms)


def simplest(atoms: list[Atom]) -> list[Atom]:
    """As many as a dictionary may hold."""
    return sorted(atoms, key=lambda a: a.cost)[:MOST_ATOMS]
