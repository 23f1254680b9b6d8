"""A polynomial and one or two functions of some columns, each times powers of others: q·E + q·B·v·sin(θ)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice

import torch

from eqlearn.discovery.atoms import (
    Argument,
    Atom,
    homogeneous,
    involved,
    monomials_of,
    parity,
    plain_of,
    quadratics_of,
)
from eqlearn.discovery.dictionary import EXACT_MATCH, ROWS, Matched, best_sketches, until
from eqlearn.discovery.least_squares import never
from eqlearn.discovery.scene import Scene
from eqlearn.discovery.sketch import Sketch, Sum, Unit
from eqlearn.discovery.starts import angular_frequency
from eqlearn.discovery.sums import matched_sums, times_of

# How many products of a function and powers are tried, and how many sums of them are fitted.
MOST_MODULATED, FITTED = 16_000, 8


def modulated_sketches(scene: Scene, stop: Callable[[], bool] = never) -> list[Sketch]:
    """Networks that are linear in a bank of inputs and in one or two such products."""
    if scene.problem.y.shape[0] != 1:
        return []
    given, scene = scene, scene.thinned(ROWS)
    atoms = list(islice(until(stop, _atoms(scene)), MOST_MODULATED))
    if not atoms or stop():
        return []
    values = torch.stack([a.value for a in atoms])
    found: list[Matched] = []
    banks = [[], *(scene.features.polynomials(d) for d in (1, 2))]
    for bank in banks:
        if stop() or any(m.error < EXACT_MATCH for m in found):
            break
        if len(bank) < 0.4 * scene.problem.rows:
            found += matched_sums(scene, None, bank, atoms, values, 2, stop)
    return best_sketches(found, dict(zip(scene.targets, given.targets, strict=True)))[:FITTED]


def _atoms(scene: Scene) -> Iterator[Atom]:
    times, exponential = scene.vocabulary.named("mul"), scene.vocabulary.named("exp")
    x, features = scene.problem.x, scene.features
    columns, quadratics = plain_of(features, x), quadratics_of(features, x)
    if times is None:
        return
    powers = monomials_of(features, x, exponential)
    powers += monomials_of(features, x, exponential, power=0.5, widest=2)
    if len(columns) > 2:  # of two, the dictionary of sums holds the others
        powers = [*columns, *quadratics, *powers]
    mixed = [q for q in quadratics if len(involved(q.term, features)) == 2]
    carriers = [(p.as_atom(), involved(p.term, features)) for p in powers]
    for function in _functions(scene, [*columns, *mixed]) if carriers else ():
        inside = involved(function.term, features)
        yield function
        for carrier, outside in carriers:
            if not inside & outside and max(carrier.depth, function.depth) < scene.hidden_layers:
                yield times_of(times, carrier, function)


def _functions(scene: Scene, arguments: list[Argument]) -> Iterator[Atom]:
    """Functions of arguments in the user's units, as they stand, of twice or of minus them."""
    for argument in arguments:
        for primitive in scene.vocabulary.unary:
            if homogeneous(primitive) and primitive.name != "log":
                continue  # the powers hold those
            rate = angular_frequency(primitive)
            factors = (1 / rate, 2 / rate) if rate else (1.0,) if parity(primitive) else (1.0, -1.0)
            for factor in factors:
                value = primitive(factor * argument.value)
                if bool(torch.isfinite(value).all()):
                    unit = Unit(primitive, (argument.term * factor,))
                    key = f"{primitive.name}({argument.key})"
                    yield Atom(value, Sum.of(unit), key, unit.level + argument.layers, argument.cost + 1)
