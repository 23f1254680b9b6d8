"""Products of powers and of few functions out of the library: sums, once logarithms are taken."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor

from eqlearn.numerics.budget import never
from eqlearn.numerics.criteria import EXACT_MATCH, NO_TERM, match_score
from eqlearn.search.ansatz.layout import Ansatz, Sum, Unit
from eqlearn.search.ansatz.library import Atom, Atoms, Matched, best_ansatzes, matches, until
from eqlearn.search.ansatz.target_transform import TargetTransform
from eqlearn.search.features import Features
from eqlearn.search.problem import Problem


def product_ansatzes(problem: Problem, stop: Callable[[], bool] = never) -> list[Ansatz]:
    """Networks that are products of powers of columns and of a few factors: sums of their logarithms."""
    if problem.samples.y.shape[0] != 1 or problem.vocabulary.named("mul") is None:
        return []
    given, problem = problem, problem.thinned(problem.settings.library.rows)
    factors = product_factors(problem, stop)
    exponents = []  # what may stand in the exponent of an exponential: its logarithm is linear
    if problem.vocabulary.named("exp") is not None and not stop():
        exponents = Atoms(problem).arguments(problem.settings.library.max_atoms)
    if stop() or not (exponents or factors):
        return []
    values = torch.stack([a.value for a in exponents] + [f.value.abs().log() for f in factors])
    found: list[Matched] = []
    for transform in problem.targets:
        if transform is not None and transform.unit.name in ("inv", "sqrt", "square"):
            continue  # powers of a product are products
        if stop() or any(m.exact for m in found):
            break
        if not bool((problem.seen(transform)[0] == 0).any()):
            found += _products(problem, transform, exponents, factors, values, stop)
    return best_ansatzes(found, problem, given)


def product_factors(problem: Problem, stop: Callable[[], bool] = never) -> list[Atom]:
    """Sums of two terms, functions, and functions with 1 added or taken away, none of them ever zero;
    fewer if `stop()` holds."""
    some = Atoms(problem, stop)
    sums, functions = list(some.sums()), list(some.functions())
    factors = [c for i, c in enumerate(some.columns) if i not in problem.features.logarithms]
    factors += [*sums, *functions]
    factors += some.roots([*sums, *some.monomials()], [p for p in some.unary if p.name == "log"])
    # tanh ± 1 is the inverse of an exponential plus 1, and loses its digits near its limits.
    movable = [atom for atom in functions if not atom.key.startswith("tanh(")]
    factors += until(stop, (atom.plus(step) for atom in movable for step in (1.0, -1.0)))
    shallow = (f for f in factors if f.depth < problem.hidden_layers)
    return some.simplest(f for f in until(stop, shallow) if bool((f.value != 0).all()))


def _products(
    problem: Problem,
    transform: TargetTransform | None,
    exponents: Sequence[Atom],
    factors: Sequence[Atom],
    values: Tensor,
    stop: Callable[[], bool],
) -> Iterator[Matched]:
    features, weighted, (target, limit) = problem.features, problem.weighted, problem.seen(transform)
    rows, logs, most = len(target), list(features.logarithm_inputs), 2 * problem.settings.library.max_fits
    logarithm = target.abs().log()
    keys = [a.key for a in (*exponents, *factors)]
    for bank in [logs] if rows > 3 * len(logs) + 6 else [logs, []]:
        for support, _, solution, error in matches(
            problem, logarithm, bank, values, keys, terms=3, most=most, stop=stop
        ):
            if stop():
                return
            powers = dict(zip(bank, solution[1:].tolist(), strict=False))
            chosen = list(zip(support, solution[1 + len(bank) :].tolist(), strict=True))
            term = _product(problem, powers, chosen, exponents, factors)
            if term is None or _depth(term, features) > limit:
                continue
            value = weighted(term.value(problem.samples.x))
            factor = float((value @ weighted(target)) / (value @ value))
            if math.isfinite(factor) and factor != 0:
                score = match_score(error, rows, len(chosen), len(powers), floor=EXACT_MATCH)
                key = tuple(sorted(keys[i] for i in support))
                yield Matched(Ansatz(transform, term * factor), key, score, error)


def _product(
    problem: Problem,
    powers: dict[int, float],
    chosen: Sequence[tuple[int, float]],
    exponents: Sequence[Atom],
    factors: Sequence[Atom],
) -> Sum | None:
    """The formula of a product: factors above and below a stroke, all that is left in one exponential."""
    find = problem.vocabulary.named
    exponent = Sum(tuple((i, p) for i, p in powers.items() if abs(p) > NO_TERM))
    above: list[Sum] = []
    below: list[Sum] = []
    for number, power in chosen:
        if number < len(exponents):
            exponent = exponent + exponents[number].term * power
            continue
        factor = factors[number - len(exponents)]
        size = min((0.5, 1.0, 2.0), key=lambda s: abs(abs(power) - s))
        wrapper = {0.5: find("sqrt"), 1.0: problem.vocabulary.identity, 2.0: find("square")}[size]
        if abs(abs(power) - size) > problem.settings.library.max_rounding or wrapper is None:
            return None
        term = factor.term
        if size == 0.5 and bool((factor.value < 0).any()):
            if bool((factor.value > 0).any()):
                return None
            term = term * -1.0
        term = term if size == 1.0 else Sum.of(Unit(wrapper, (term,)))
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
