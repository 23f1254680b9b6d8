"""Sums of few functions out of the library, alone or times powers beside a polynomial."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations, islice

import torch
from torch import Tensor

from eqlearn.nn.primitives import Primitive
from eqlearn.numerics.budget import never
from eqlearn.numerics.criteria import EXACT_MATCH, match_score
from eqlearn.numerics.least_squares import linear_fit
from eqlearn.search.ansatz.layout import Ansatz, Sum, Unit
from eqlearn.search.ansatz.library import (
    Argument,
    Atom,
    Matched,
    best_ansatzes,
    constant_one,
    functions_of,
    homogeneous,
    involved,
    monomials_of,
    pairs_of,
    parity,
    plain_of,
    powers_of,
    quadratics_of,
    roots_of,
    simple_arguments,
    simplest,
    until,
)
from eqlearn.search.ansatz.matching_pursuit import match
from eqlearn.search.ansatz.target_transform import TargetTransform
from eqlearn.search.networks.starts import angular_frequency
from eqlearn.search.problem import Problem


def sum_ansatzes(problem: Problem, stop: Callable[[], bool] = never) -> list[Ansatz]:
    """Networks that are linear in a bank of inputs and in a few atoms."""
    if problem.samples.y.shape[0] != 1:
        return []
    given, problem = problem, problem.thinned(problem.settings.library.rows)
    atoms = sum_atoms(problem, stop)
    if not atoms or stop():
        return []
    values = torch.stack([a.value for a in atoms])
    depths = torch.tensor([a.depth for a in atoms])
    found: list[Matched] = []
    for transform in problem.targets:
        if stop() or any(m.error < EXACT_MATCH for m in found):
            break
        usable = (depths <= problem.seen(transform)[1]).nonzero()[:, 0]
        mine = [atoms[i] for i in usable.tolist()]
        for bank in _banks(problem, transform):
            if stop():
                break
            terms = 4 if transform is None else 2
            found += matched_sums(problem, transform, bank, mine, values[usable], terms, stop)
    return best_ansatzes(
        found, dict(zip(problem.targets, given.targets, strict=True)), problem.settings.library
    )


def _banks(problem: Problem, transform: TargetTransform | None) -> list[list[int]]:
    """The inputs that enter linearly, next to the atoms: none, the columns, products of them."""
    degree = min(problem.features.degree, 3 if transform is None else 2)
    banks = [[], *(problem.features.polynomials(d) for d in range(1, degree + 1))]
    limit = problem.hidden_layers - (transform is not None)
    return [b for d, b in enumerate(banks) if len(b) < 0.4 * problem.samples.rows and (d < 2 or limit > 1)]


def sum_atoms(problem: Problem, stop: Callable[[], bool] = never) -> list[Atom]:
    """Functions of simple arguments, quotients, and products of two of them; fewer if `stop()` holds."""
    x, features, unary = problem.samples.x, problem.features, problem.vocabulary.unary
    columns, quadratics = plain_of(features, x), quadratics_of(features, x)
    library = problem.settings.library
    arguments = simple_arguments(features, x, problem.vocabulary, library, library.max_arguments)
    atoms = [a.as_atom() for a in monomials_of(features, x, problem.vocabulary.named("exp"), library)]
    atoms += [a.as_atom() for a in quadratics]
    atoms += until(stop, functions_of(arguments, unary, library, fine=len(arguments) < 60))
    sums = pairs_of([constant_one(x), *columns, *quadratics], library.ratios if len(columns) < 4 else (1.0,))
    atoms += until(stop, roots_of(sums, unary))
    atoms += until(stop, roots_of(pairs_of([constant_one(x), *powers_of(features, x)], (1.0,)), unary))
    atoms += until(stop, _product_atoms(problem, columns, quadratics))
    return simplest([a for a in atoms if a.depth <= problem.hidden_layers], library)


def _product_atoms(problem: Problem, columns: list[Argument], quadratics: list[Argument]) -> Iterator[Atom]:
    """Products of a function with a column, a product of columns or another function."""
    times, library = problem.vocabulary.named("mul"), problem.settings.library
    if times is None:
        return
    near = [
        *columns,
        *quadratics,
        *pairs_of(columns, (1.0,)),
        *powers_of(problem.features, problem.samples.x),
    ]
    functions = functions_of(near[: library.max_arguments], problem.vocabulary.unary, library, fine=False)
    if len(quadratics) < len(columns) * (len(columns) + 1) // 2:  # then the inputs do not hold them all
        for first, second in combinations([a.as_atom() for a in columns], 2):
            yield times_of(times, first, second)
    kinds = simplest([a for a in functions if a.depth < problem.hidden_layers], library)
    polynomials = [a.as_atom() for a in [*columns, *quadratics]]
    for polynomial in polynomials:
        for function in kinds[: library.max_atoms // (3 * len(polynomials))]:
            yield times_of(times, polynomial, function)
    for i, first in enumerate(kinds[: library.max_factors]):
        for second in kinds[i + 1 : library.max_factors]:
            yield times_of(times, first, second)


def times_of(times: Primitive, first: Atom, second: Atom) -> Atom:
    """The product of two atoms."""
    unit = Unit(times, (first.term, second.term))
    return Atom(
        first.value * second.value, Sum.of(unit), f"{first.key}*{second.key}",
        1 + max(first.depth, second.depth), first.cost + second.cost,
    )  # fmt: skip


def matched_sums(
    problem: Problem,
    transform: TargetTransform | None,
    bank: list[int],
    atoms: list[Atom],
    values: Tensor,
    terms: int,
    stop: Callable[[], bool],
) -> Iterator[Matched]:
    """Sums of a bank and of up to `terms` atoms that come nearest to the target."""
    x, (target, _) = problem.samples.x, problem.seen(transform)
    rows = len(target)
    base = torch.cat([torch.ones(1, rows, dtype=x.dtype), x[bank]])
    weighted = problem.weighted
    names = [a.key for a in atoms]
    library = problem.settings.library
    seen = (weighted(target), weighted(base), weighted(values))
    for found in match(*seen, names, library, terms=terms, most=library.max_fits // 2, stop=stop):
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
        yield Matched(Ansatz(transform, readout), tuple(sorted(a.key for a in chosen)), score, error)


def carried_ansatzes(problem: Problem, stop: Callable[[], bool] = never) -> list[Ansatz]:
    """Networks that are linear in a bank of inputs and in one or two such products."""
    if problem.samples.y.shape[0] != 1:
        return []
    given, problem = problem, problem.thinned(problem.settings.library.rows)
    library = problem.settings.library
    atoms = list(islice(until(stop, _atoms(problem)), library.max_carried))
    if not atoms or stop():
        return []
    values = torch.stack([a.value for a in atoms])
    found: list[Matched] = []
    banks = [[], *(problem.features.polynomials(d) for d in (1, 2))]
    for bank in banks:
        if stop() or any(m.error < EXACT_MATCH for m in found):
            break
        if len(bank) < 0.4 * problem.samples.rows:
            found += matched_sums(problem, None, bank, atoms, values, 2, stop)
    whole = dict(zip(problem.targets, given.targets, strict=True))
    return best_ansatzes(found, whole, library)[: library.max_carried_fits]


def _atoms(problem: Problem) -> Iterator[Atom]:
    times, exponential = problem.vocabulary.named("mul"), problem.vocabulary.named("exp")
    x, features = problem.samples.x, problem.features
    columns, quadratics = plain_of(features, x), quadratics_of(features, x)
    if times is None:
        return
    library = problem.settings.library
    powers = monomials_of(features, x, exponential, library)
    powers += monomials_of(features, x, exponential, library, power=0.5, widest=2)
    if len(columns) > 2:  # of two, the library of sums holds the others
        powers = [*columns, *quadratics, *powers]
    mixed = [q for q in quadratics if len(involved(q.term, features)) == 2]
    carriers = [(p.as_atom(), involved(p.term, features)) for p in powers]
    for function in _functions(problem, [*columns, *mixed]) if carriers else ():
        inside = involved(function.term, features)
        yield function
        for carrier, outside in carriers:
            if not inside & outside and max(carrier.depth, function.depth) < problem.hidden_layers:
                yield times_of(times, carrier, function)


def _functions(problem: Problem, arguments: list[Argument]) -> Iterator[Atom]:
    """Functions of arguments in the user's units, as they stand, of twice or of minus them."""
    for argument in arguments:
        for primitive in problem.vocabulary.unary:
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
