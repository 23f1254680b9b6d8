"""Sums inside a function with one number outside it, such as 5·log(g) or 3 + exp(g): the number by trial, the
sum by least squares. What is found is not exact, but near enough for a fit to go on from."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from torch import Tensor

from eqlearn.discovery.inversion import Inversion, inverted
from eqlearn.discovery.least_squares import never
from eqlearn.discovery.linear import allowed_banks, solved
from eqlearn.discovery.scene import Scene
from eqlearn.discovery.sketch import Sketch, Sum, Unit

# Factors before a logarithm, in units of the target's spread: with larger ones it is almost a straight line.
FACTORS = tuple(sign * 0.25 * 2 ** (k / 2) for k in range(13) for sign in (1, -1))
# How far an offset is from the nearest value of the target, in parts of the target's range.
GAPS = tuple(0.01 * 2**k for k in range(9))
# So many rows tell which number is best; an error above this fraction of the variance is no beginning.
ROWS = 200
WORTH = 1e-2
# Banks of more inputs take too long to solve so often.
WIDEST = 40

# An inversion, how much each row counts, and what is added to the unit.
Option: TypeAlias = tuple[Inversion, Tensor, float]


def scanned_sketches(scene: Scene, stop: Callable[[], bool] = never) -> Iterator[Sketch]:
    """For each bank, the best multiple of a logarithm and the best exponential with an offset."""
    if scene.problem.y.shape[0] != 1:
        return
    some = scene.thinned(ROWS)
    for bank in allowed_banks(scene, 1):
        if len(bank) <= WIDEST:
            for options in (_logarithms(some), _exponentials(some)):
                sketch = _nearest(some, bank, options, stop)
                if sketch is not None:
                    yield sketch


def _logarithms(scene: Scene) -> Iterator[Option]:
    """a·log(g), for many a."""
    unit, y = scene.vocabulary.named("log"), scene.problem.y
    if unit is None:
        return
    for factor in FACTORS:
        inversion = inverted(unit, y, factor)
        if inversion is not None:
            # A logarithm sees errors relative to its argument.
            yield inversion, inversion.target[0] ** -2, 0.0


def _exponentials(scene: Scene) -> Iterator[Option]:
    """c + exp(g) and c - exp(g), for many c."""
    unit, y = scene.vocabulary.named("exp"), scene.problem.y
    if unit is None:
        return
    low, high = float(y.min()), float(y.max())
    ends = [(low - gap * (high - low), 1.0) for gap in GAPS]
    ends += [(high + gap * (high - low), -1.0) for gap in GAPS]
    for offset, sign in ends:
        inversion = inverted(unit, y - offset, sign)
        if inversion is not None:
            # An error of g moves its exponential in proportion to it.
            yield inversion, (y - offset)[0].square(), offset


def _nearest(
    scene: Scene, bank: list[int], options: Iterator[Option], stop: Callable[[], bool]
) -> Sketch | None:
    y = scene.problem.y[0]
    best, least = None, WORTH * float(y.var())
    for inversion, relevance, offset in options:
        if stop():
            return None
        _, g = solved(scene, bank, inversion.target[0], relevance)
        if g is None:
            continue
        readout = Sum(units=((Unit(inversion.unit, (g,)), inversion.amplitude),), constant=offset)
        error = float((readout.value(scene.problem.x) - y).square().mean())
        if error < least:  # never, if the error is not a number: a logarithm may be of a negative sum
            best, least = readout, error
    return None if best is None else Sketch(None, best)
