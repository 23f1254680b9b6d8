"""Sums within the span of the simplest subexpressions, seen through one more operation and function.

Whether a target lies in the span of a few functions takes one product with a matrix, so it is asked not only
of the target and its transforms, but of these with each entry of a bank taken off, added, divided out or
multiplied in, and of functions undone on the results; and, the other way round, whether a function of any two
entries lies along one of a few such targets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from eqlearn.nn.primitives import Primitive
from eqlearn.numerics.budget import never
from eqlearn.numerics.criteria import EXACT_SPAN, credible
from eqlearn.search.ansatz.layout import Ansatz, Sum, Unit
from eqlearn.search.ansatz.target_transform import TargetTransform
from eqlearn.search.ansatz.terms import Terms, few_terms, holds, orthonormal, undone_rows
from eqlearn.search.problem import Problem
from eqlearn.search.subexpressions.bank import OPERATIONS, Bank, exact_ground, grown, is_for_banks
from eqlearn.search.subexpressions.bank_settings import Span
from eqlearn.search.subexpressions.couples import Couples
from eqlearn.search.subexpressions.keys import Keys
from eqlearn.search.subexpressions.pairs import in_seen_units, target_values


def span_ansatzes(problem: Problem, stop: Callable[[], bool] = never) -> list[Ansatz]:
    """Exact laws f(inner) ∘ h: a function of something or none, and one operation with any subexpression h,
    or two with simple ones; inside, any other subexpression (met in the middle) or a sum of the simplest; for
    the target and its transforms."""
    return _spanned(problem, problem.settings.bank.spans, stop)


def wide_span_ansatzes(problem: Problem, stop: Callable[[], bool] = never) -> list[Ansatz]:
    """The same with any two subexpressions, and one more operation, inside."""
    return _spanned(problem, problem.settings.bank.wide_spans, stop)


@dataclass(frozen=True, eq=False)
class _Taken:
    """What is `left` of a target `(many, rows)` after operations with these `signs`, one after the other,
    with the `entries` `(many, operations)` of a bank."""

    signs: str
    entries: np.ndarray
    left: np.ndarray


class Looked(Protocol):
    """Subexpressions that are looked up by their values."""

    def blocks(self) -> Iterable[np.ndarray]: ...

    def cost(self, place: int, /) -> float: ...

    def terms(self, place: int, /) -> Terms: ...


@np.errstate(all="ignore")
def _spanned(problem: Problem, spans: tuple[Span, ...], stop: Callable[[], bool]) -> list[Ansatz]:
    if not is_for_banks(problem):
        return []
    settings = problem.settings.bank
    found: list[tuple[float, Ansatz]] = []
    for span in spans:
        some, bank = _ground(problem, span, stop)
        if stop():
            break
        frame = _Frame(some, bank, span, stop)
        for transform, whole in zip(some.targets, problem.targets, strict=True):
            found += frame.laws(transform, whole, stop)
        if found or stop():
            break
    found.sort(key=lambda pair: pair[0])
    return [in_seen_units(ansatz, problem) for _, ansatz in found[: settings.kept]]


def _ground(problem: Problem, span: Span, stop: Callable[[], bool]) -> tuple[Problem, Bank]:
    """The rows and the bank of a span."""
    if not span.monomials:
        some, bank = exact_ground(problem, stop)
        return some.thinned(span.rows), bank.thinned(span.rows).first(span.entries)
    some = problem.thinned(span.rows)
    return some, grown(some, span.entries, stop, span.monomials, span.quotients, exact=True)


class _Frame:
    """A span, and what is looked up beside it."""

    def __init__(self, problem: Problem, bank: Bank, span: Span, stop: Callable[[], bool]) -> None:
        self.problem, self.bank, self.span = problem, bank, span
        self.times, self.over = (problem.vocabulary.named(name) for name in ("mul", "div"))
        self.count = bank.led + span.simplest
        self.vectors = np.concatenate([np.ones((1, bank.values.shape[1])), bank.normed[: self.count]])
        self.basis = orthonormal(self.vectors)
        self.met: Looked = Couples(bank, span.coupled, self.times, self.over) if span.coupled else bank
        self.keys = Keys(self.basis, self.met.blocks(), stop)
        self.units = [None, *(p for p in problem.vocabulary.unary if p.name != "id")]

    def laws(
        self, transform: TargetTransform | None, whole: TargetTransform | None, stop: Callable[[], bool]
    ) -> Iterator[tuple[float, Ansatz]]:
        """Laws of the target through a transform, and what they cost."""
        y = target_values(self.problem, transform)
        if float(y.std()) == 0 or not credible(self.basis.shape[1] + 2, len(y)):
            return
        for taken in self._taken(y, self.span.twice if transform is None else 0):
            for unit in self.units if transform is None or self.span.nested else (None,):
                if stop():
                    return
                # With the target itself among the terms, a sum over h + c is found, too.
                own = unit is None and transform is None and taken.signs in ("*", "/")
                for cost, law in self._joined(taken, unit, y if own and not self.span.coupled else None):
                    if holds(law, self.problem, y):
                        yield cost, Ansatz(whole, law)

    def _taken(self, y: np.ndarray, twice: int) -> Iterator[_Taken]:
        """The target, with one entry taken off, and with one of so many and then another."""
        values = self.bank.values
        yield _Taken("", np.empty((1, 0), dtype=int), y[None])
        one, few = np.arange(len(values))[:, None], np.arange(min(twice, len(values)))
        for sign, operation in OPERATIONS.items():  # what one more makes of a target, by an entry
            yield _Taken(sign, one, operation(y, values))
        if len(few):
            two = np.stack(np.meshgrid(few, few, indexing="ij"), axis=-1).reshape(-1, 2)
            for first in "-+":
                before = OPERATIONS[first](y, values[few])[two[:, 0]]
                for second in "/*":
                    yield _Taken(first + second, two, OPERATIONS[second](before, values[two[:, 1]]))

    def _joined(
        self, taken: _Taken, unit: Primitive | None, target: np.ndarray | None
    ) -> Iterator[tuple[float, Sum]]:
        """Laws of what is left, as a function of a law; with the target in the span or not."""
        bank, kept = self.bank, self.problem.settings.bank.kept
        values, turned = undone_rows(unit, taken.left)
        keys, looked = self.keys, self.met
        if target is not None:
            basis = orthonormal(np.concatenate([self.vectors, (target - target.mean())[None]]))
            keys, looked = Keys(basis, bank.blocks()), bank
        share, asked = keys.seen(values)
        spanned = np.flatnonzero(share < EXACT_SPAN).tolist()
        # A span in which many are is one of everything smooth, and tells nothing.
        inside = [] if len(spanned) > 4 * kept else [(place, -1) for place in spanned]
        costs = bank.costs[taken.entries].sum(axis=1)
        met = sorted(keys.matches(asked), key=lambda pair: float(costs[pair[0]]) + looked.cost(pair[1]))
        for place, g in [*inside, *met[:kept]]:
            h = int(taken.entries[place, 0]) if taken.signs else -1
            if unit is None and taken.signs in "+-" and g < 0 and (h > 0 or not bank.led) and h < self.count:
                continue  # a plain sum, which need not be said twice
            terms = bank.terms(*range(self.count))
            if g >= 0:
                terms += looked.terms(g)
            law = _law(terms, values[place], target, self.span.max_terms)
            if law is None:
                continue
            inner, offset = law
            if unit is not None:
                inner = Sum(units=((Unit(unit, (inner,)), turned[place]),))
            rejoined: Sum | None = inner
            for sign, entry in zip(reversed(taken.signs), taken.entries[place][::-1].tolist(), strict=True):
                if rejoined is not None:
                    rejoined = _rejoined(self.problem, sign, rejoined, bank.term(entry), offset)
            if rejoined is not None:
                cost = float(costs[place]) + (looked.cost(g) if g >= 0 else 0.0) + (unit is not None)
                yield cost, rejoined


def _law(
    terms: Terms, values: np.ndarray, target: np.ndarray | None, max_terms: int
) -> tuple[Sum, float] | None:
    """The sum of few of the terms that has these values, with the coefficient of the target beside it."""
    columns = terms.values if target is None else np.vstack([terms.values, target])
    factors = few_terms(columns, values, max_terms)
    if factors is None:
        return None
    offset = -factors.pop(len(terms), 0.0)
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
