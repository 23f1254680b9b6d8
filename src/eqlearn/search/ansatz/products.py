"""Products of powers and of few functions out of the library: sums, once logarithms are taken."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor

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
    monomials_of,
    pairs_of,
    plain_of,
    quadratics_of,
    roots_of,
    simple_arguments,
    simplest,
    until,
)
from eqlearn.search.ansatz.matching_pursuit import match
from eqlearn.search.ansatz.target_transform import TargetTransform
from eqlearn.search.features import Features
from eqlearn.search.problem import Problem


def product_ansatzes(problem: Problem, stop: Callable[[], bool] = never) -> list[Ansatz]:
    """Networks that are products of powers of columns and of a few factors: sums of their logarithms."""
    if problem.samples.y.shape[0] != 1 or problem.vocabulary.named("mul") is None:
        return []
    given, problem = problem, problem.thinned(problem.settings.library.rows)
    factors = product_factors(problem, stop)
    exponents = [] if stop() else _exponents(problem)
    if stop():
        return []
    with_logs = [a.value for a in exponents] + [f.value.abs().log() for f in factors]
    if not with_logs:
        return []
    values = torch.stack(with_logs)
    found: list[Matched] = []
    for transform in problem.targets:
        if transform is not None and transform.unit.name in ("inv", "sqrt", "square"):
            continue  # powers of a product are products
        if stop() or any(m.error < EXACT_MATCH for m in found):
            break
        if bool((problem.seen(transform)[0] == 0).any()):
            continue
        found += _products(problem, transform, exponents, factors, values, stop)
    whole = dict(zip(problem.targets, given.targets, strict=True))
    return best_ansatzes(found, whole, problem.settings.library)


def _exponents(problem: Problem) -> list[Argument]:
    """What may stand in the exponent of an exponential: its logarithm is linear."""
    if problem.vocabulary.named("exp") is None:
        return []
    library = problem.settings.library
    return simple_arguments(
        problem.features, problem.samples.x, problem.vocabulary, library, library.max_atoms
    )


def product_factors(problem: Problem, stop: Callable[[], bool] = never) -> list[Atom]:
    """Sums of two terms, functions, and functions with 1 added or taken away, none of them ever zero;
    fewer if `stop()` holds."""
    x, features, unary = problem.samples.x, problem.features, problem.vocabulary.unary
    columns, quadratics = plain_of(features, x), quadratics_of(features, x)
    library = problem.settings.library
    arguments = simple_arguments(features, x, problem.vocabulary, library, library.max_arguments)
    one = constant_one(x)
    few = len(columns) < 4
    sums = list(pairs_of([one, *columns, *quadratics], library.ratios if few else (1.0,)))
    factors = [c.as_atom() for i, c in enumerate(columns) if i not in features.logarithms]
    factors += [a.as_atom() for a in sums]
    functions = list(until(stop, functions_of(arguments, unary, library, fine=len(arguments) < 60)))
    logarithms = [p for p in unary if p.name == "log"]
    factors += functions
    sums += monomials_of(features, x, problem.vocabulary.named("exp"), library)
    factors += until(stop, roots_of(sums, logarithms))
    # tanh ± 1 is nothing but an exponential with 1 added, upside down; near its limits it has no digits.
    movable = [atom for atom in functions if not atom.key.startswith("tanh(")]
    factors += until(stop, (_moved(atom, step) for atom in movable for step in (1.0, -1.0)))
    shallow = (f for f in factors if f.depth < problem.hidden_layers)
    return simplest([f for f in until(stop, shallow) if bool((f.value != 0).all())], library)


def _moved(atom: Atom, step: float) -> Atom:
    term = atom.term + Sum((), (), step)
    return Atom(atom.value + step, term, f"{atom.key}{step:+.0f}", atom.depth, atom.cost + 1)


def _products(
    problem: Problem,
    transform: TargetTransform | None,
    exponents: Sequence[Argument],
    factors: Sequence[Atom],
    values: Tensor,
    stop: Callable[[], bool],
) -> Iterator[Matched]:
    x, features, (target, limit) = problem.samples.x, problem.features, problem.seen(transform)
    rows = len(target)
    logs = list(features.logarithm_inputs)
    ones = torch.ones(1, rows, dtype=x.dtype)
    weighted, library = problem.weighted, problem.settings.library
    logarithm = target.abs().log()
    names = [a.key for a in exponents] + [f.key for f in factors]
    banks = [logs] if rows > 3 * len(logs) + 6 else [logs, []]
    for bank in banks:
        base = torch.cat([ones, x[bank]])
        seen = (weighted(logarithm), weighted(base), weighted(values))
        for found in match(*seen, names, library, terms=3, most=2 * library.max_fits, stop=stop):
            if stop():
                return
            columns = torch.cat([base, values[list(found.support)]])
            solution = linear_fit(weighted(columns), weighted(logarithm))
            left = weighted(logarithm - solution @ columns)
            error = float(left.square().sum() / weighted(logarithm - logarithm.mean()).square().sum())
            powers = dict(zip(bank, solution[1 : len(base)].tolist(), strict=True))
            chosen = list(zip(found.support, solution[len(base) :].tolist(), strict=True))
            term = _product(problem, powers, chosen, exponents, factors)
            if term is None or _depth(term, features) > limit:
                continue
            value = weighted(term.value(x))
            factor = float((value @ weighted(target)) / (value @ value))
            if not math.isfinite(factor) or factor == 0:
                continue
            score = match_score(error, rows, len(chosen), len(powers), floor=EXACT_MATCH)
            key = tuple(sorted(names[i] for i in found.support))
            yield Matched(Ansatz(transform, term * factor), key, score, error)


def _product(
    problem: Problem,
    powers: dict[int, float],
    chosen: Sequence[tuple[int, float]],
    exponents: Sequence[Argument],
    factors: Sequence[Atom],
) -> Sum | None:
    """The formula of a product: factors above and below a stroke, all that is left in one exponential."""
    find = problem.vocabulary.named
    exponent = Sum(tuple((i, p) for i, p in powers.items() if abs(p) > 1e-6))
    above: list[Sum] = []
    below: list[Sum] = []
    for number, power in chosen:
        if number < len(exponents):
            exponent = exponent + exponents[number].term * power
            continue
        factor = factors[number - len(exponents)]
        size = min((0.5, 1.0, 2.0), key=lambda s: abs(abs(power) - s))
        wrapper = {0.5: find("sqrt"), 1.0: problem.vocabulary.identity, 2.0: find("square")}[size]
        if abs(abs(power) - size) > 0.3 or wrapper is None:
            return None
        term = factor.term
        if size != 1.0:
            if size == 0.5 and bool((factor.value < 0).any()):
                if bool((factor.value > 0).any()):
                    return None
                term = term * -1.0
            term = Sum.of(Unit(wrapper, (term,)))
        (above if power > 0 else below).append(term)
    if exponent.inputs or exponent.units:
        exponential = find("exp")
        if exponential is None:
            return None
        above.append(Sum.of(Unit(exponential, (exponent,))))
    return _quotient(problem, above, below)


def _quotient(problem: Problem, above: list[Sum], below: list[Sum]) -> Sum | None:
    """All terms in one product, the shallowest joined first, so that it is no deeper than need be."""
    times, over, inverse = (problem.vocabulary.named(n) for n in ("mul", "div", "inv"))
    if times is None or not (above or below):
        return None
    if below and over is None:
        if inverse is None:
            return None
        above, below = [*above, *(Sum.of(Unit(inverse, (term,))) for term in below)], []
    terms = [(term, True) for term in above] + [(term, False) for term in below]
    while len(terms) > 1:
        terms.sort(key=lambda pair: _depth(pair[0], problem.features))
        (first, up), (second, also_up), *rest = terms
        if up == also_up or over is None:
            joined = Unit(times, (first, second))
        else:
            joined = Unit(over, (first, second) if up else (second, first))
        terms = [(Sum.of(joined), up or also_up), *rest]
    term, up = terms[0]
    if up:
        return term
    return None if inverse is None else Sum.of(Unit(inverse, (term,)))


def _depth(term: Sum, features: Features) -> int:
    """Layers of the network, and those of squares and products that its inputs stand for."""
    inputs = max((math.ceil(math.log2(len(features.factors(i)))) for i, _ in term.inputs), default=0)
    units = (1 + max(_depth(a, features) for a in unit.arguments) for unit, _ in term.units)
    return max(inputs, max(units, default=0))
