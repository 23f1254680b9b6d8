"""The kinds of sketches: what each looks for, and in which order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

from eqlearn.discovery.least_squares import never
from eqlearn.discovery.linear import EXACT_SHARE, linear_sketches
from eqlearn.discovery.modulated import modulated_sketches
from eqlearn.discovery.products import product_sketches
from eqlearn.discovery.rational import rational_sketches
from eqlearn.discovery.reduction import reduced, reduced_scene, restored
from eqlearn.discovery.scanned import scanned_sketches
from eqlearn.discovery.scene import Scene
from eqlearn.discovery.sketch import Sketch
from eqlearn.discovery.sums import sum_sketches

Sketcher: TypeAlias = Callable[[Scene, Callable[[], bool]], Iterable[Sketch]]

# What is left of a reduction must be at most so many variables for a dictionary to be worth its time.
FEW = 6


def reduced_sketches(scene: Scene, stop: Callable[[], bool] = never) -> Iterator[Sketch]:
    """What the other kinds make of the same target in fewer variables."""
    state = reduced(scene, stop) if scene.problem.y.shape[0] == 1 else None
    if state is None:
        return
    smaller = reduced_scene(state, scene, 2**scene.hidden_layers if scene.features.products else 1)
    for name, sketches in SKETCHERS.items():
        if name == "reduced" or (name in FROM_DICTIONARY and len(state.columns) > FEW):
            continue
        for sketch in sketches(smaller, stop):
            whole = restored(sketch, state, smaller, scene)
            if whole is not None:
                yield whole
                left = whole.readout.value(scene.problem.x) - scene.problem.y[0]
                if float(left.square().mean()) < EXACT_SHARE:
                    return


# Each looks for an exact law, for the target or an inversion of it; the cheapest first.
SKETCHERS: dict[str, Sketcher] = {
    "linear": linear_sketches,  # sums of one bank of inputs
    "rational": rational_sketches,  # quotients of polynomials
    "scanned": scanned_sketches,  # a multiple of a logarithm, or an exponential with an offset
    "products": product_sketches,  # of functions out of a dictionary
    "reduced": reduced_sketches,  # all of these, in fewer variables
    "modulated": modulated_sketches,  # a polynomial, and functions times powers
    "sums": sum_sketches,  # of functions out of a dictionary
}
FROM_DICTIONARY = ("products", "modulated", "sums")
EXACT_FIRST = tuple(SKETCHERS)
# Then for any law: sums of many inputs, by elimination.
SKETCHES = (*EXACT_FIRST, "banks")
