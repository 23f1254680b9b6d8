"""Sums of few functions out of a dictionary: which ones, found by linear algebra alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations

import torch
from torch import Tensor

from eqlearn.core.primitives import Primitive
from eqlearn.discovery.atoms import (
    RATIOS,
    Argument,
    Atom,
    constant_one,
    functions_of,
    monomials_of,
    pairs_of,
    plain_of,
    powers_of,
    quadratics_of,
    roots_of,
    simple_arguments,
)
from eqlearn.discovery.dictionary import (
    EXACT_MATCH,
    MOST_ARGUMENTS,
    MOST_ATOMS,
    MOST_FACTORS,
    ROWS,
    TAKEN,
    Matched,
    best_sketches,
    simplest,
    until,
)
from eqlearn.discovery.inversion import Inversion
from eqlearn.discovery.least_squares import linear_fit, never
from eqlearn.discovery.matching import match, match_score
from eqlearn.discovery.scene import Scene
from eqlearn.discovery.sketch import Sketch, Sum, Unit


def sum_sketches(scene: Scene, stop: Callable[[], bool] = never) -> list[Sketch]:
    """Networks that are linear in a bank of inputs and in a few atoms."""
    if scene.problem.y.shape[0] != 1:
        return []
    given, scene = scene, scene.thinned(ROWS)
    atoms = sum_atoms(scene, stop)
    if not atoms or stop():
        return []
    values = torch.stack([a.value for a in atoms])
    depths = torch.tensor([a.depth for a in atoms])
    found: list[Matched] = []
    for inversion in scene.targets:
        if stop() or any(m.error < EXACT_MATCH for m in found):
            break
        usable = (depths <= scene.seen(inversion)[1]).nonzero()[:, 0]
        mine = [atoms[i] for i in usable.tolist()]
        for bank in _banks(scene, inversion):
            if stop():
                break
            terms = 4 if inversion is None else 2
            found += matched_sums(scene, inversion, bank, mine, values[usable], terms, stop)
    return best_sketches(found, dict(zip(scene.targets, given.targets, strict=True)))


def _banks(scene: Scene, inversion: Inversion | None) -> list[list[int]]:
    """The inputs that enter linearly, next to the atoms: none, the columns, products of them."""
    degree = min(scene.features.degree, 3 if inversion is None else 2)
    banks = [[], *(scene.features.polynomials(d) for d in range(1, degree + 1))]
    limit = scene.hidden_layers - (inversion is not None)
    return [b for d, b in enumerate(banks) if len(b) < 0.4 * scene.problem.rows and (d < 2 or limit > 1)]


def sum_atoms(scene: Scene, stop: Callable[[], bool] = never) -> list[Atom]:
    """Functions of simple arguments, quotients, and products of two of them; fewer if `stop()` holds."""
    x, features, unary = scene.problem.x, scene.features, scene.vocabulary.unary
    columns, quadratics = plain_of(features, x), quadratics_of(features, x)
    arguments = simple_arguments(features, x, scene.vocabulary, MOST_ARGUMENTS)
    atoms = [a.as_atom() for a in monomials_of(features, x, scene.vocabulary.named("exp"))]
    atoms += [a.as_atom() for a in quadratics]
    atoms += until(stop, functions_of(arguments, unary, fine=len(arguments) < 60))
    sums = pairs_of([constant_one(x), *columns, *quadratics], RATIOS if len(columns) < 4 else (1.0,))
    atoms += until(stop, roots_of(sums, unary))
    atoms += until(stop, roots_of(pairs_of([constant_one(x), *powers_of(features, x)], (1.0,)), unary))
    atoms += until(stop, _product_atoms(scene, columns, quadratics))
    return simplest([a for a in atoms if a.depth <= scene.hidden_layers])


def _product_atoms(scene: Scene, columns: list[Argument], quadratics: list[Argument]) -> Iterator[Atom]:
    """Products of a function with a column, a product of columns or another function."""
    times = scene.vocabulary.named("mul")
    if times is None:
        return
    near = [*columns, *quadratics, *pairs_of(columns, (1.0,)), *powers_of(scene.features, scene.problem.x)]
    functions = functions_of(near[:MOST_ARGUMENTS], scene.vocabulary.unary, fine=False)
    if len(quadratics) < len(columns) * (len(columns) + 1) // 2:  # then the inputs do not hold them all
        for first, second in combinations([a.as_atom() for a in columns], 2):
            yield times_of(times, first, second)
    kinds = simplest([a for a in functions if a.depth < scene.hidden_layers])
    polynomials = [a.as_atom() for a in [*columns, *quadratics]]
    for polynomial in polynomials:
        for function in kinds[: MOST_ATOMS // (3 * len(polynomials))]:
            yield times_of(times, polynomial, function)
    for i, first in enumerate(kinds[:MOST_FACTORS]):
        for second in kinds[i + 1 : MOST_FACTORS]:
            yield times_of(times, first, second)


def times_of(times: Primitive, first: Atom, second: Atom) -> Atom:
    """The product of two atoms."""
    unit = Unit(times, (first.term, second.term))
    return Atom(
        first.value * second.value, Sum.of(unit), f"{first.key}*{second.key}",
        1 + max(first.depth, second.depth), first.cost + second.cost,
    )  # fmt: skip


def matched_sums(
    scene: Scene,
    inversion: Inversion | None,
    bank: list[int],
    atoms: list[Atom],
    values: Tensor,
    terms: int,
    stop: Callable[[], bool],
) -> Iterator[Matched]:
    """Sums of a bank and of up to so many atoms that come nearest to the target."""
    x, (target, _) = scene.problem.x, scene.seen(inversion)
    rows = len(target)
    base = torch.cat([torch.ones(1, rows, dtype=x.dtype), x[bank]])
    weighted = scene.weighted
    names = [a.key for a in atoms]
    for found in match(
        weighted(target), weighted(base), weighted(values), names, terms=terms, most=TAKEN // 2, stop=stop
    ):
        chosen = [atoms[i] for i in found.support]
        columns = torch.cat([base, torch.stack([a.value for a in chosen])])
        solution = linear_fit(weighted(columns), weighted(target))
        left = target - solution @ columns
        error = float(weighted(left).square().sum() / weighted(target - target.mean()).square().sum())
        shares = (solution * columns.norm(dim=1)).abs()
        if error < EXACT_MATCH:  # rounding is no coefficient
            solution = torch.where(shares > 1e-6 * shares.max(), solution, 0.0)
        constant, linear, factors = solution[0], solution[1 : len(base)], solution[len(base) :]
        inputs = tuple((i, float(c)) for i, c in zip(bank, linear.tolist(), strict=True) if c != 0)
        readout = Sum(inputs, (), float(constant))
        for atom, c in zip(chosen, factors.tolist(), strict=True):
            if c != 0:
                readout = readout + atom.term * c
        score = match_score(error, rows, len(chosen), len(inputs), floor=EXACT_MATCH)
        yield Matched(Sketch(inversion, readout), tuple(sorted(a.key for a in chosen)), score, error)
