"""Sums and products of few functions out of a dictionary: which ones, found by linear algebra alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, takewhile

import torch
from torch import Tensor

from eqlearn.core.primitives import Primitive
from eqlearn.discovery.atoms import (
    RATIOS,
    Argument,
    Atom,
    columns_of,
    constant_one,
    functions_of,
    monomials_of,
    pairs_of,
    quadratics_of,
    roots_of,
    simple_arguments,
)
from eqlearn.discovery.features import Features
from eqlearn.discovery.inversion import Inversion
from eqlearn.discovery.least_squares import linear_fit, never
from eqlearn.discovery.matching import match
from eqlearn.discovery.scene import Scene, Sketch
from eqlearn.discovery.sketch import Sum, Unit

# How many matches of a round become networks, and how many if one of them is exact.
TAKEN, TAKEN_IF_EXACT = 40, 6
# A match that leaves less than this fraction of the target's variance is exact.
EXACT_MATCH = 1e-22
# Matches are looked for on so many rows.
ROWS = 96
# What a dictionary may hold, in numbers of atoms; and for products of atoms, the factors of each side.
MOST_ATOMS, MOST_ARGUMENTS, MOST_FACTORS = 8_000, 100, 90


@dataclass(frozen=True)
class _Matched:
    """A sketch, and how well the match that it comes from does."""

    sketch: Sketch
    key: tuple[str, ...]
    score: float
    error: float


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
    found: list[_Matched] = []
    for inversion in scene.targets:
        if stop() or any(m.error < EXACT_MATCH for m in found):
            break
        target, limit = scene.seen(inversion)
        usable = (depths <= limit).nonzero()[:, 0]
        mine = [atoms[i] for i in usable.tolist()]
        for bank in _banks(scene, inversion):
            if stop():
                break
            found += _sums(scene, inversion, target, bank, mine, values[usable], stop)
    return _best(found, dict(zip(scene.targets, given.targets, strict=True)))


def product_sketches(scene: Scene, stop: Callable[[], bool] = never) -> list[Sketch]:
    """Networks that are products of powers of columns and of a few factors: sums of their logarithms."""
    if scene.problem.y.shape[0] != 1 or scene.vocabulary.named("mul") is None:
        return []
    given, scene = scene, scene.thinned(ROWS)
    factors = product_factors(scene, stop)
    exponents = [] if stop() else _exponents(scene)
    if stop():
        return []
    with_logs = [a.value for a in exponents] + [f.value.abs().log() for f in factors]
    if not with_logs:
        return []
    values = torch.stack(with_logs)
    found: list[_Matched] = []
    for inversion in scene.targets:
        if inversion is not None and inversion.unit.name in ("inv", "sqrt", "square"):
            continue  # powers of a product are products
        if stop() or any(m.error < EXACT_MATCH for m in found):
            break
        target, limit = scene.seen(inversion)
        if bool((target == 0).any()):
            continue
        found += _products(scene, inversion, target, limit, exponents, factors, values, stop)
    return _best(found, dict(zip(scene.targets, given.targets, strict=True)))


def _banks(scene: Scene, inversion: Inversion | None) -> list[list[int]]:
    """The inputs that enter linearly, next to the atoms: none, the columns, products of them."""
    degree = min(scene.features.degree, 3 if inversion is None else 2)
    banks = [[], *(scene.features.polynomials(d) for d in range(1, degree + 1))]
    limit = scene.hidden_layers - (inversion is not None)
    return [b for d, b in enumerate(banks) if len(b) < 0.4 * scene.problem.rows and (d < 2 or limit > 1)]


def sum_atoms(scene: Scene, stop: Callable[[], bool] = never) -> list[Atom]:
    """Functions of simple arguments, quotients, and products of two of them; fewer if `stop()` holds."""
    x, features, unary = scene.problem.x, scene.features, scene.vocabulary.unary
    columns, quadratics = columns_of(features, x), quadratics_of(features, x)
    arguments = simple_arguments(features, x, scene.vocabulary, MOST_ARGUMENTS)
    atoms = [_plain(a) for a in monomials_of(features, x, scene.vocabulary.named("exp"))]
    atoms += _plain_all(quadratics)
    atoms += _until(stop, functions_of(arguments, unary, fine=len(arguments) < 60))
    sums = pairs_of([constant_one(x), *columns, *quadratics], RATIOS if len(columns) < 4 else (1.0,))
    atoms += _until(stop, roots_of(sums, unary))
    atoms += _until(stop, _product_atoms(scene, columns, quadratics))
    return _simplest([a for a in atoms if a.depth <= scene.hidden_layers])


def _until(stop: Callable[[], bool], atoms: Iterable[Atom]) -> Iterator[Atom]:
    """Atoms as long as there is time for more."""
    return takewhile(lambda atom: not stop(), atoms)


def _simplest(atoms: list[Atom]) -> list[Atom]:
    return sorted(atoms, key=lambda a: a.cost)[:MOST_ATOMS]


def _product_atoms(scene: Scene, columns: list[Argument], quadratics: list[Argument]) -> Iterator[Atom]:
    """Products of a function with a column, a product of columns or another function."""
    times = scene.vocabulary.named("mul")
    if times is None:
        return
    near = [*columns, *quadratics, *pairs_of(columns, (1.0,))]
    functions = functions_of(near[:MOST_ARGUMENTS], scene.vocabulary.unary, fine=False)
    if len(quadratics) < len(columns) * (len(columns) + 1) // 2:  # then the inputs do not hold them all
        for first, second in combinations(_plain_all(columns), 2):
            yield _times(times, first, second)
    kinds = _simplest([a for a in functions if a.depth < scene.hidden_layers])
    polynomials = _plain_all([*columns, *quadratics])
    for polynomial in polynomials:
        for function in kinds[: MOST_ATOMS // (3 * len(polynomials))]:
            yield _times(times, polynomial, function)
    for i, first in enumerate(kinds[:MOST_FACTORS]):
        for second in kinds[i + 1 : MOST_FACTORS]:
            yield _times(times, first, second)


def _times(times: Primitive, first: Atom, second: Atom) -> Atom:
    unit = Unit(times, (first.term, second.term))
    return Atom(
        first.value * second.value, Sum(units=((unit, 1.0),)), f"{first.key}*{second.key}",
        1 + max(first.depth, second.depth), first.cost + second.cost,
    )  # fmt: skip


def _plain(argument: Argument) -> Atom:
    return Atom(
        argument.value, argument.term, argument.key, argument.term.level + argument.layers, argument.cost
    )


def _plain_all(arguments: Iterable[Argument]) -> list[Atom]:
    return [_plain(a) for a in arguments]


def _sums(
    scene: Scene,
    inversion: Inversion | None,
    target: Tensor,
    bank: list[int],
    atoms: list[Atom],
    values: Tensor,
    stop: Callable[[], bool],
) -> Iterator[_Matched]:
    x, rows = scene.problem.x, len(target)
    base = torch.cat([torch.ones(1, rows, dtype=x.dtype), x[bank]])
    terms = 4 if inversion is None else 2
    root = None if scene.problem.weight is None else scene.problem.weight.sqrt()
    weighted = (lambda t: t) if root is None else (lambda t: t * root)
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
        count = 2.5 * len(chosen) + len(inputs)
        score = 0.5 * rows * math.log(max(error, EXACT_MATCH)) + count * math.log(rows + 20)
        yield _Matched(Sketch(inversion, readout), tuple(sorted(a.key for a in chosen)), score, error)


def _exponents(scene: Scene) -> list[Argument]:
    """What may stand in the exponent of an exponential: its logarithm is linear."""
    if scene.vocabulary.named("exp") is None:
        return []
    return simple_arguments(scene.features, scene.problem.x, scene.vocabulary, MOST_ATOMS)


def product_factors(scene: Scene, stop: Callable[[], bool] = never) -> list[Atom]:
    """Sums of two terms, functions, and functions with 1 added or taken away, none of them ever zero;
    fewer if `stop()` holds."""
    x, features, unary = scene.problem.x, scene.features, scene.vocabulary.unary
    columns, quadratics = columns_of(features, x), quadratics_of(features, x)
    arguments = simple_arguments(features, x, scene.vocabulary, MOST_ARGUMENTS)
    one = constant_one(x)
    few = len(columns) < 4
    sums = list(pairs_of([one, *columns, *quadratics], RATIOS if few else (1.0,)))
    factors = [_plain(c) for i, c in enumerate(columns) if i not in features.logarithms]
    factors += _plain_all(sums)
    functions = list(_until(stop, functions_of(arguments, unary, fine=len(arguments) < 60)))
    logarithms = [p for p in unary if p.name == "log"]
    factors += functions
    sums += monomials_of(features, x, scene.vocabulary.named("exp"))
    factors += _until(stop, roots_of(sums, logarithms))
    factors += _until(stop, (_moved(atom, step) for atom in functions for step in (1.0, -1.0)))
    shallow = (f for f in factors if f.depth < scene.hidden_layers)
    return _simplest([f for f in _until(stop, shallow) if bool((f.value != 0).all())])


def _moved(atom: Atom, step: float) -> Atom:
    term = atom.term + Sum((), (), step)
    return Atom(atom.value + step, term, f"{atom.key}{step:+.0f}", atom.depth, atom.cost + 1)


def _products(
    scene: Scene,
    inversion: Inversion | None,
    target: Tensor,
    limit: int,
    exponents: Sequence[Argument],
    factors: Sequence[Atom],
    values: Tensor,
    stop: Callable[[], bool],
) -> Iterator[_Matched]:
    x, rows, features = scene.problem.x, len(target), scene.features
    logs = list(features.logarithm_inputs)
    ones = torch.ones(1, rows, dtype=x.dtype)
    logarithm = target.abs().log()
    names = [a.key for a in exponents] + [f.key for f in factors]
    banks = [logs] if rows > 3 * len(logs) + 6 else [logs, []]
    for bank in banks:
        base = torch.cat([ones, x[bank]])
        for found in match(logarithm, base, values, names, terms=3, most=2 * TAKEN, stop=stop):
            if stop():
                return
            columns = torch.cat([base, values[list(found.support)]])
            solution = linear_fit(columns, logarithm)
            left = logarithm - solution @ columns
            error = float(left.square().sum() / (logarithm - logarithm.mean()).square().sum())
            powers = dict(zip(bank, solution[1 : len(base)].tolist(), strict=True))
            chosen = list(zip(found.support, solution[len(base) :].tolist(), strict=True))
            term = _product(scene, powers, chosen, exponents, factors)
            if term is None or _depth(term, features) > limit:
                continue
            value = term.value(x)
            factor = float((value @ target) / (value @ value))
            if not math.isfinite(factor) or factor == 0:
                continue
            count = 2.5 * len(chosen) + len(powers)
            score = 0.5 * rows * math.log(max(error, EXACT_MATCH)) + count * math.log(rows + 20)
            key = tuple(sorted(names[i] for i in found.support))
            yield _Matched(Sketch(inversion, term * factor), key, score, error)


def _product(
    scene: Scene,
    powers: dict[int, float],
    chosen: Sequence[tuple[int, float]],
    exponents: Sequence[Argument],
    factors: Sequence[Atom],
) -> Sum | None:
    """The formula of a product: factors above and below a stroke, all that is left in one exponential."""
    find = scene.vocabulary.named
    exponent = Sum(tuple((i, p) for i, p in powers.items() if abs(p) > 1e-6))
    above: list[Sum] = []
    below: list[Sum] = []
    for number, power in chosen:
        if number < len(exponents):
            exponent = exponent + exponents[number].term * power
            continue
        factor = factors[number - len(exponents)]
        size = min((0.5, 1.0, 2.0), key=lambda s: abs(abs(power) - s))
        wrapper = {0.5: find("sqrt"), 1.0: scene.vocabulary.identity, 2.0: find("square")}[size]
        if abs(abs(power) - size) > 0.3 or wrapper is None:
            return None
        term = factor.term
        if size != 1.0:
            if size == 0.5 and bool((factor.value < 0).any()):
                if bool((factor.value > 0).any()):
                    return None
                term = term * -1.0
            term = Sum(units=((Unit(wrapper, (term,)), 1.0),))
        (above if power > 0 else below).append(term)
    if exponent.inputs or exponent.units:
        exponential = find("exp")
        if exponential is None:
            return None
        above.append(Sum(units=((Unit(exponential, (exponent,)), 1.0),)))
    return _quotient(scene, above, below)


def _quotient(scene: Scene, above: list[Sum], below: list[Sum]) -> Sum | None:
    times, over, inverse = (scene.vocabulary.named(n) for n in ("mul", "div", "inv"))
    if times is None:
        return None

    def multiplied(terms: list[Sum]) -> Sum:
        terms = sorted(terms, key=lambda t: t.level)
        while len(terms) > 1:
            first, second, *rest = terms
            terms = sorted([*rest, Sum(units=((Unit(times, (first, second)), 1.0),))], key=lambda t: t.level)
        return terms[0]

    if not below:
        return multiplied(above) if above else None
    if above and over is not None:
        return Sum(units=((Unit(over, (multiplied(above), multiplied(below))), 1.0),))
    if inverse is not None:
        upside_down = Sum(units=((Unit(inverse, (multiplied(below),)), 1.0),))
        return multiplied([*above, upside_down])
    return None


def _depth(term: Sum, features: Features) -> int:
    """Layers of the network, and those of squares and products that its inputs stand for."""
    inputs = max((math.ceil(math.log2(len(features.factors(i)))) for i, _ in term.inputs), default=0)
    units = (1 + max(_depth(a, features) for a in unit.arguments) for unit, _ in term.units)
    return max(inputs, max(units, default=0))


def _best(found: list[_Matched], whole: dict[Inversion | None, Inversion | None]) -> list[Sketch]:
    """The best sketches that differ, for inversions of all rows; few of them if one is exact."""
    best: dict[tuple[int, tuple[str, ...]], _Matched] = {}
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
