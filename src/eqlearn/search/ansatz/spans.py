"""Sums within the span of the simplest subexpressions, seen through one more operation and function.

Whether a target lies in the span of a few functions takes one product with a matrix, so it is asked not only
of the target and its transforms, but of these with each entry of a bank taken off, added, divided out or
multiplied in, and of functions undone on the results; and, the other way round, whether a function of any two
entries lies along one of a few such targets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from eqlearn.numerics.budget import never
from eqlearn.numerics.criteria import EXACT_SPAN, credible
from eqlearn.search.ansatz.bank import Bank, Keys, grown, is_for_banks
from eqlearn.search.ansatz.layout import Ansatz, Sum, Unit
from eqlearn.search.ansatz.pairs import in_seen_units, target_values
from eqlearn.search.ansatz.target_transform import TargetTransform
from eqlearn.search.ansatz.terms import Terms, few_terms, holds, orthonormal, undone_rows
from eqlearn.search.problem import Problem
from eqlearn.search.settings import Span

# What one more operation makes of a target, by an entry h, and what undoes it.
_OPERATIONS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "/": lambda t, h: t / h,
    "*": lambda t, h: t * h,
    "-": lambda t, h: t - h,
    "+": lambda t, h: t + h,
}
_BACK = dict(zip(_OPERATIONS, (_OPERATIONS[sign] for sign in "*/+-"), strict=True))


def span_ansatzes(problem: Problem, stop: Callable[[], bool] = never) -> list[Ansatz]:
    """Exact laws f(inner) ∘ h: a function of something or none, and one operation with any subexpression h;
    inside, any other subexpression (met in the middle) or a sum of the simplest; for the target and its
    transforms."""
    return _spanned(problem, problem.settings.bank.spans, stop)


def wide_span_ansatzes(problem: Problem, stop: Callable[[], bool] = never) -> list[Ansatz]:
    """The same among many more subexpressions."""
    return _spanned(problem, problem.settings.bank.wide_spans, stop)


@np.errstate(all="ignore")
def _spanned(problem: Problem, spans: tuple[Span, ...], stop: Callable[[], bool]) -> list[Ansatz]:
    if not is_for_banks(problem):
        return []
    settings = problem.settings.bank
    found: list[tuple[float, Ansatz]] = []
    for span in spans:
        some = problem.thinned(span.rows)
        bank = grown(some, span.entries, stop, span.monomials, exact=True)
        for transform, whole in zip(some.targets, problem.targets, strict=True):
            found += _in_span(some, bank, span, transform, whole, stop)
        if found or stop():
            break
    found.sort(key=lambda pair: pair[0])
    return [in_seen_units(ansatz, problem) for _, ansatz in found[: settings.kept]]


def _in_span(
    problem: Problem,
    bank: Bank,
    span: Span,
    transform: TargetTransform | None,
    whole: TargetTransform | None,
    stop: Callable[[], bool],
) -> Iterator[tuple[float, Ansatz]]:
    y = target_values(problem, transform)
    if float(y.std()) == 0:
        return
    ones, kept, count = np.ones((1, len(y))), problem.settings.bank.kept, bank.led + span.simplest
    plain = orthonormal(np.concatenate([ones, bank.normed[:count]]))
    if not credible(plain.shape[1] + 2, len(y)):
        return
    # With the target itself among the terms, a sum over h + c is found, too.
    with_target = orthonormal(np.concatenate([ones, bank.normed[:count], (y - y.mean())[None]]))
    keys_of = {own: Keys(basis, bank.values) for own, basis in ((False, plain), (True, with_target))}
    units = [None, *(p for p in problem.vocabulary.unary if p.name != "id")]
    for sign, operation in _OPERATIONS.items():
        made = operation(y, bank.values)
        for unit in units:
            if stop():
                return
            values, turned = undone_rows(unit, made)
            own = unit is None and transform is None and sign in "*/"
            keys = keys_of[own]
            share, asked = keys.seen(values)
            spanned = np.flatnonzero(share < EXACT_SPAN).tolist()
            # A span in which many are is one of everything smooth, and tells nothing.
            inside = [] if len(spanned) > 4 * kept else [(h, -1) for h in spanned]
            met = sorted(keys.matches(asked), key=lambda pair: bank.costs[list(pair)].sum())
            for h, g in [*inside, *met[:kept]]:
                if unit is None and sign in "+-" and g < 0 and (h > 0 or not bank.led) and h < count:
                    continue  # a plain sum, which need not be said twice
                others = [*range(count), *([g] if g >= count else [])]
                law = _law(bank, others, values[h], y if own else None, span.max_terms)
                if law is None:
                    continue
                inner, offset = law
                if unit is not None:
                    inner = Sum(units=((Unit(unit, (inner,)), turned[h]),))
                rejoined = _rejoined(problem, sign, inner, bank.term(h), offset)
                if rejoined is not None and holds(rejoined, problem, y):
                    cost = bank.costs[h] + (bank.costs[g] if g >= 0 else 0.0) + (unit is not None)
                    yield cost, Ansatz(whole, rejoined)


def _law(
    bank: Bank, entries: list[int], values: np.ndarray, target: np.ndarray | None, max_terms: int
) -> tuple[Sum, float] | None:
    """The sum of few of the entries that has these values, with the coefficient of the target beside it."""
    columns = bank.values[entries] if target is None else np.vstack([bank.values[entries], target])
    factors = few_terms(columns, values, max_terms)
    if factors is None:
        return None
    offset = -factors.pop(len(entries), 0.0)
    terms = Terms(bank.values[entries], tuple(partial(bank.term, entry) for entry in entries))
    return terms.total(factors), offset


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
