"""Sums inside a function with one number outside it, such as 5·log(g) or 3 + exp(g): the number by trial, the
sum by least squares. What is found is not exact, but near enough for a fit to go on from."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from torch import Tensor

from eqlearn.discovery.inversion import Inversion, inverted
from eqlearn.discovery.least_squares import never
from eqlearn.discovery.linear import allowed_banks, solved
from eqlearn.discovery.scene import Scene, Sketch
from eqlearn.discovery.sketch import Sum, Unit

# Factors before a logarithm, in units of the target's spread: with larger ones it is almost a straight line.
FACTORS = tuple(sign * 0.25 * 2 ** (k / 2) for k in range(13) for sign in (1, -1))
# How far an offset is from the nearest value of the target, in parts of the target's range.
GAPS = tuple(0.01 * 2**k for k in range(9))
# So many rows tell which number is best; an error above this fraction of the variance is no beginning.
ROWS = 200
WORTH = 1e-2


def scanned_sketches(scene: Scene, stop: Callable[[], bool] = never) -> Iterator[Sketch]:
    """For each bank, the best multiple of a logarithm and the best exponential with an offset."""
    if scene.problem.y.shape[0] != 1:
        return
    some = scene.thinned(ROWS)
    for bank in allowed_banks(scene, 1):
        for search in (_logarithm, _exponential):
            if stop():
                return
            sketch = search(some, bank)
            if sketch is not None:
                yield sketch


def _logarithm(scene: Scene, bank: list[int]) -> Sketch | None:
    """The nearest a·log(g)."""
    unit, y = scene.vocabulary.named("log"), scene.problem.y
    if unit is None:
        return None
    options = (inverted(unit, y, factor) for factor in FACTORS)
    # A logarithm sees errors relative to its argument.
    return _nearest(scene, bank, ((i, i.target[0] ** -2, 0.0) for i in options if i is not None))


def _exponential(scene: Scene, bank: list[int]) -> Sketch | None:
    """The nearest c ± exp(g)."""
    unit, y = scene.vocabulary.named("exp"), scene.problem.y
    if unit is None:
        return None
    low, high = float(y.min()), float(y.max())
    ends = [(low - gap * (high - low), 1.0) for gap in GAPS]
    ends += [(high + gap * (high - low), -1.0) for gap in GAPS]
    options = ((inverted(unit, y - offset, sign), offset) for offset, sign in ends)
    # An error of g moves its exponential in proportion to it.
    return _nearest(
        scene, bank, ((i, (y - offset)[0].square(), offset) for i, offset in options if i is not None)
    )


def _nearest(
    scene: Scene, bank: list[int], options: Iterator[tuple[Inversion, Tensor, float]]
) -> Sketch | None:
    y = scene.problem.y[0]
    best, least = None, WORTH * float(y.var())
    for inversion, relevance, offset in options:
        _, g = solved(scene, bank, inversion.target[0], relevance)
        if g is None:
            continue
        readout = Sum(units=((Unit(inversion.unit, (g,)), inversion.amplitude),), constant=offset)
        error = float((readout.value(scene.problem.x) - y).square().mean())
        if error < least:  # never, if the error is not a number: a logarithm may be of a negative sum
            best, least = readout, error
    return None if best is None else Sketch(None, best)
