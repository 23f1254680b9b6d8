"""Sums of few functions out of the library, beside a polynomial."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations

import torch
from torch import Tensor

from eqlearn.nn.primitives import Primitive
from eqlearn.numerics.budget import never
from eqlearn.numerics.criteria import EXACT_MATCH, NO_TERM, match_score
from eqlearn.search.ansatz import library as lib
from eqlearn.search.ansatz.layout import Ansatz, Sum
from eqlearn.search.ansatz.library import Atom, Atoms, Matched, until
from eqlearn.search.ansatz.target_transform import TargetTransform
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
        if stop() or any(m.exact for m in found):
            break
        plain, limit = transform is None, problem.seen(transform)[1]
        usable = (depths <= limit).nonzero()[:, 0]
        mine = [atoms[i] for i in usable.tolist()]
        for bank in _banks(problem, min(problem.features.degree, 3 if plain else 2, 3 if limit > 1 else 1)):
            if stop():
                break
            found += matched_sums(problem, transform, bank, mine, values[usable], 4 if plain else 2, stop)
    return lib.best_ansatzes(found, problem, given)


def _banks(problem: Problem, degree: int) -> list[list[int]]:
    """The inputs that enter linearly, next to the atoms: none, the columns, products of up to `degree`."""
    banks = [[], *(problem.features.polynomials(d) for d in range(1, degree + 1))]
    return [b for b in banks if len(b) < problem.settings.library.max_bank * problem.samples.rows]


def sum_atoms(problem: Problem, stop: Callable[[], bool] = never) -> list[Atom]:
    """Functions of simple arguments, quotients, and products of two of them; fewer if `stop()` holds."""
    some = Atoms(problem, stop)
    atoms = [*some.monomials(), *some.quadratics, *some.functions()]
    atoms += some.roots(some.sums(), some.unary)
    atoms += some.roots(lib.pairs_of([some.one, *some.powers]), some.unary)
    atoms += until(stop, _product_atoms(some))
    return some.simplest(a for a in atoms if a.depth <= problem.hidden_layers)


def _product_atoms(some: Atoms) -> Iterator[Atom]:
    """Products of a function with a column, a product of columns or another function."""
    times, library, columns = some.named("mul"), some.library, some.columns
    if times is None:
        return
    polynomials = [*columns, *some.quadratics]
    near = [*polynomials, *lib.pairs_of(columns), *some.powers]
    functions = some.functions_of(near[: library.max_arguments], fine=False)
    if len(some.quadratics) < len(columns) * (len(columns) + 1) // 2:  # then the inputs do not hold them all
        for first, second in combinations(columns, 2):
            yield _times(times, first, second)
    kinds = some.simplest(a for a in functions if a.depth < some.problem.hidden_layers)
    for polynomial in polynomials:
        for function in kinds[: library.max_atoms // (3 * len(polynomials))]:
            yield _times(times, polynomial, function)
    for first, second in combinations(kinds[: library.max_factors], 2):
        yield _times(times, first, second)


def _times(times: Primitive, first: Atom, second: Atom) -> Atom:
    return lib.joined(times, first, second, f"{first.key}*{second.key}")


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
    target, keys = problem.seen(transform)[0], [a.key for a in atoms]
    most = problem.settings.library.max_fits // 2
    for support, columns, factors, error in lib.matches(
        problem, target, bank, values, keys, terms=terms, most=most, stop=stop
    ):
        shares = (factors * columns.norm(dim=1)).abs()
        if error < EXACT_MATCH:  # rounding is no coefficient
            factors = torch.where(shares > NO_TERM * shares.max(), factors, 0.0)
        constant, *others = factors.tolist()
        inputs = tuple((i, c) for i, c in zip(bank, others, strict=False) if c != 0)
        readout = Sum(inputs, (), constant)
        for place, c in zip(support, others[len(bank) :], strict=True):
            if c != 0:
                readout = readout + atoms[place].term * c
        score = match_score(error, len(target), len(support), len(inputs), floor=EXACT_MATCH)
        yield Matched(Ansatz(transform, readout), tuple(sorted(keys[i] for i in support)), score, error)
