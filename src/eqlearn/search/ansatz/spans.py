"""Sums within the span of the simplest subexpressions, seen through one more operation and function.

Whether a target lies in the span of a few functions takes one product with a matrix, so it is asked not only
of the target and its transforms, but of these with each entry of a bank taken off, added, divided out or
multiplied in, and of functions undone on the results; and, the other way round, whether a function of any two
entries lies along one of a few such targets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch

from eqlearn.nn.primitives import Primitive
from eqlearn.numerics.budget import never
from eqlearn.numerics.criteria import EXACT_SPAN, NEGLIGIBLE, NO_COEFFICIENT, NO_TERM, NULL_SINGULAR, credible
from eqlearn.search.ansatz.bank import Bank, grown, is_for_banks
from eqlearn.search.ansatz.keys import Keys
from eqlearn.search.ansatz.layout import Ansatz, Sum, Unit
from eqlearn.search.ansatz.library import parity
from eqlearn.search.ansatz.pairs import in_seen_units, least_squares_sum, target_values
from eqlearn.search.ansatz.target_transform import TargetTransform, undone
from eqlearn.search.problem import Problem

# What one more operation makes of a target, by an entry h, and what undoes it.
_OPERATIONS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "/": lambda t, h: t / h,
    "*": lambda t, h: t * h,
    "-": lambda t, h: t - h,
    "+": lambda t, h: t + h,
}
_BACK = dict(zip(_OPERATIONS, (_OPERATIONS[sign] for sign in "*/+-"), strict=True))


@np.errstate(all="ignore")
def span_ansatzes(problem: Problem, stop: Callable[[], bool] = never) -> list[Ansatz]:
    """Exact laws f(inner) ∘ h: a function of something or none, and one operation with any subexpression h;
    inside, any other subexpression (met in the middle) or a sum of the simplest; for the target and its
    transforms."""
    if not is_for_banks(problem):
        return []
    settings = problem.settings.bank
    found: list[tuple[float, Ansatz]] = []
    for count, entries, rows in settings.spans:
        some = problem.thinned(rows)
        bank = grown(some, entries, stop)
        for transform, whole in zip(some.targets, problem.targets, strict=True):
            found += _in_span(some, bank, count, transform, whole, stop)
        if found or stop():
            break
    found.sort(key=lambda pair: pair[0])
    return [in_seen_units(ansatz, problem) for _, ansatz in found[: settings.kept]]


def _in_span(
    problem: Problem,
    bank: Bank,
    count: int,
    transform: TargetTransform | None,
    whole: TargetTransform | None,
    stop: Callable[[], bool],
) -> Iterator[tuple[float, Ansatz]]:
    y = target_values(problem, transform)
    if float(y.std()) == 0:
        return
    ones, kept = np.ones((1, len(y))), problem.settings.bank.kept
    plain = _basis(np.concatenate([ones, bank.normed[:count]]))
    if not credible(plain.shape[1] + 2, len(y)):
        return
    # With the target itself among the terms, a sum over h + c is found, too.
    with_target = _basis(np.concatenate([ones, bank.normed[:count], (y - y.mean())[None]]))
    keys_of = {own: Keys(basis, bank.values) for own, basis in ((False, plain), (True, with_target))}
    units = [None, *(p for p in problem.vocabulary.unary if p.name != "id")]
    for sign, operation in _OPERATIONS.items():
        made = operation(y, bank.values)
        for unit in units:
            if stop():
                return
            values, turned = _undone(unit, made)
            own = unit is None and transform is None and sign in "*/"
            keys = keys_of[own]
            share, asked = keys.seen(values)
            spanned = np.flatnonzero(share < EXACT_SPAN).tolist()
            # A span in which many are is one of everything smooth, and tells nothing.
            inside = [] if len(spanned) > 4 * kept else [(h, -1) for h in spanned]
            met = sorted(keys.matches(asked), key=lambda pair: bank.costs[list(pair)].sum())
            for h, g in [*inside, *met[:kept]]:
                if unit is None and sign in "+-" and g < 0 and h < count:
                    continue  # a plain sum
                others = [*range(count), *([g] if g >= count else [])]
                law = _few_terms(problem, bank, others, values[h], y if own else None)
                if law is None:
                    continue
                inner, offset = law
                if unit is not None:
                    inner = Sum(units=((Unit(unit, (inner,)), turned[h]),))
                rejoined = _rejoined(problem, sign, inner, bank.term(h), offset)
                if rejoined is not None and _holds(rejoined, problem, y):
                    cost = bank.costs[h] + (bank.costs[g] if g >= 0 else 0.0) + (unit is not None)
                    yield cost, Ansatz(whole, rejoined)


def _basis(vectors: np.ndarray) -> np.ndarray:
    """Orthonormal columns that span these vectors, as far as they differ by more than rounding."""
    left, sizes, _ = np.linalg.svd(
        (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).T, full_matrices=False
    )
    return np.asarray(left[:, sizes > NULL_SINGULAR * sizes[0]])


def _undone(unit: Primitive | None, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What a unit has these values at, NaN in each row of those it can't have; and the sign before it."""
    signs = np.ones(len(values))
    if unit is None:
        return values, signs
    if unit.name in ("exp", "sqrt", "square"):
        signs = np.where((values <= 0).all(axis=1), -1.0, 1.0)
    values = values * signs[:, None]
    return undone(unit, values, principal=True), signs


def _few_terms(
    problem: Problem, bank: Bank, entries: list[int], values: np.ndarray, target: np.ndarray | None
) -> tuple[Sum, float] | None:
    """The sum of few of the entries that has these values to rounding, and the coefficient of the target
    beside it; none if it needs many."""
    columns = [*bank.values[entries], *([] if target is None else [target])]
    places = list(range(len(columns)))
    factors, error = least_squares_sum(columns, values)
    if not error < NEGLIGIBLE:
        return None
    sizes = [abs(f) * float(np.abs(c).max()) for f, c in zip(factors, columns, strict=False)]
    places = [k for k in places if sizes[k] > NO_TERM * max(sizes)]
    if len(places) > 2 * problem.settings.bank.max_terms:
        return None
    while (
        len(places) > 1
    ):  # a dependent entry shares its part with others: one at a time, as long as it holds
        fewer = [(least_squares_sum([columns[q] for q in places if q != k], values)[1], k) for k in places]
        least, gone = min(fewer)
        if least > max(NEGLIGIBLE, 3 * error):
            break
        places.remove(gone)
    factors, error = least_squares_sum([columns[k] for k in places], values)
    if error > NEGLIGIBLE or len(places) > problem.settings.bank.max_terms:
        return None
    total, offset = Sum(constant=factors[-1]), 0.0
    for place, factor in zip(places, factors, strict=False):
        if place >= len(entries):
            offset = -factor
        else:
            total = total + bank.term(entries[place]) * factor
    return total, offset


def _holds(law: Sum, problem: Problem, y: np.ndarray) -> bool:
    """Whether a law has the target's values, not only those of what an operation made of them."""
    return _is_near(law.value(problem.samples.x).numpy(), y)


def _is_near(values: np.ndarray, y: np.ndarray) -> bool:
    return bool(np.linalg.norm(values - y) < NEGLIGIBLE * np.linalg.norm(y - y.mean()))


def _rejoined(problem: Problem, sign: str, inner: Sum, entry: Sum, offset: float) -> Sum | None:
    """The law of the target, given that of what an operation made of it."""
    times, over = (problem.vocabulary.named(name) for name in ("mul", "div"))
    if sign in "+-":
        return inner + entry * (1.0 if sign == "-" else -1.0)
    if sign == "*":  # y·h = inner - offset·y
        return None if over is None else Sum.of(Unit(over, (inner, entry + Sum(constant=offset))))
    if times is None or (offset and over is None):
        return None
    product = Sum.of(Unit(times, (inner, entry)))
    if not offset or over is None:
        return product
    return Sum.of(Unit(over, (product, entry * offset + Sum(constant=1.0))))


@np.errstate(all="ignore")
def deep_ansatzes(problem: Problem, stop: Callable[[], bool] = never) -> list[Ansatz]:
    """Exact laws a·f(g ∘ h) and a sum of columns, for a simple g and any h; for the target, its transforms,
    and these divided by a column or multiplied by one."""
    if not is_for_banks(problem):
        return []
    settings = problem.settings.bank
    some = problem.thinned(settings.few_rows)
    bank = grown(some, settings.many // 2, stop)
    count = len(problem.features.scales)
    aims = [
        aim for pair in zip(some.targets, problem.targets, strict=True) for aim in _aims(some, bank, *pair)
    ]
    columns = _basis(np.concatenate([np.ones((1, some.samples.rows)), bank.normed[:count]]))
    seen = np.array([aim.values - columns @ (columns.T @ aim.values) for aim in aims])
    sizes = np.linalg.norm(seen, axis=1, keepdims=True)
    seen = np.where(
        sizes > NO_TERM * np.linalg.norm([aim.values for aim in aims], axis=1)[:, None], seen / sizes, 0.0
    )
    found: list[tuple[float, Ansatz]] = []
    for g in range(min(settings.simple, len(bank))):
        for values, term in _joined(some, bank, g):
            for unit, sign in _functions(some):
                if stop():
                    break
                made = values if unit is None else unit(torch.from_numpy(sign * values)).numpy()
                rest = made - (made @ columns) @ columns.T
                along = np.square(rest @ seen.T) / np.square(rest).sum(axis=1, keepdims=True)
                for entry, place in np.argwhere(np.asarray(along > 1 - EXACT_SPAN)).tolist()[: settings.kept]:
                    law = _with_columns(bank, count, aims[place], made[entry], _of(unit, sign, term(entry)))
                    if law is not None and _holds(law, some, aims[place].target):
                        found.append((bank.costs[g] + bank.costs[entry], Ansatz(aims[place].whole, law)))
    found.sort(key=lambda pair: pair[0])
    return [in_seen_units(ansatz, problem) for _, ansatz in found[: settings.kept]]


@dataclass(frozen=True)
class _Aim:
    """What a target is after one operation with a column, and how to get back from there."""

    values: np.ndarray
    target: np.ndarray
    back: Callable[[Sum], Sum | None]
    whole: TargetTransform | None


def _aims(
    problem: Problem, bank: Bank, transform: TargetTransform | None, whole: TargetTransform | None
) -> Iterator[_Aim]:
    y = target_values(problem, transform)
    yield _Aim(y, y, lambda law: law, whole)
    for column in range(len(problem.features.scales)):
        for sign in "/*":
            values = _OPERATIONS[sign](y, bank.values[column])
            if np.isfinite(values).all():
                entry = bank.term(column)
                yield _Aim(values, y, lambda law, s=sign, e=entry: _rejoined(problem, s, law, e, 0.0), whole)  # type: ignore[misc]


def _joined(problem: Problem, bank: Bank, g: int) -> Iterator[tuple[np.ndarray, Callable[[int], Sum]]]:
    """An entry with every other: values `(entries, rows)`, and the formula of each."""
    one, many, term = bank.values[g], bank.values, bank.term(g)
    times, over = (problem.vocabulary.named(name) for name in ("mul", "div"))
    if times is not None:
        yield one * many, lambda i: Sum.of(Unit(times, (term, bank.term(i))))
    if over is not None:
        yield one / many, lambda i: Sum.of(Unit(over, (term, bank.term(i))))
        yield many / one, lambda i: Sum.of(Unit(over, (bank.term(i), term)))
    yield many + one, lambda i: bank.term(i) + term
    yield many - one, lambda i: bank.term(i) + term * -1.0


def _functions(problem: Problem) -> list[tuple[Primitive | None, float]]:
    """None, and every function, with both signs of its argument where they differ."""
    units = [p for p in problem.vocabulary.unary if p.name != "id"]
    return [(None, 1.0), *((p, s) for p in units for s in ((1.0,) if parity(p) else (1.0, -1.0)))]


def _of(unit: Primitive | None, sign: float, term: Sum) -> Sum:
    return term if unit is None else Sum.of(Unit(unit, (term * sign,)))


def _with_columns(bank: Bank, count: int, aim: _Aim, values: np.ndarray, term: Sum) -> Sum | None:
    """The law of a target that is a multiple of these values and a sum of columns, to rounding."""
    columns = [values, *bank.values[:count]]
    factors, error = least_squares_sum(columns, aim.values)
    if not error < NEGLIGIBLE:
        return None
    total = term * factors[0] + Sum(constant=factors[-1])
    for column, factor in enumerate(factors[1:-1]):
        if abs(factor) * np.abs(columns[1 + column]).max() > NO_COEFFICIENT * np.abs(aim.values).max():
            total = total + bank.term(column) * factor
    return aim.back(total)
