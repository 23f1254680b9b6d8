"""What makes a formula whole: the law of what one of its nodes would have to be, where there is an exact one.

Evolution finds the frame of a law sooner than all of it. Of every node of a tree, what it would have to be is
looked up, through any function, among many subexpressions beside the columns (by their values, meeting in the
middle), and asked whether it is a sum of products and quotients of columns.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from eqlearn.numerics.criteria import EXACT_SPAN, NULL_SINGULAR
from eqlearn.search.ansatz.layout import Sum, Unit
from eqlearn.search.ansatz.terms import Algebra, few_terms, orthonormal, undone_rows
from eqlearn.search.evolution.backpropagation import wanted
from eqlearn.search.evolution.trees import Trees
from eqlearn.search.problem import Problem
from eqlearn.search.subexpressions.bank import Bank
from eqlearn.search.subexpressions.keys import Keys


class Closing:
    """Looks for exact laws of the nodes of trees, on the few rows of a problem that its bank has."""

    def __init__(self, problem: Problem, bank: Bank, y: np.ndarray, max_terms: int) -> None:
        self.bank, self.y, self.max_terms = bank, y, max_terms
        self.algebra = Algebra(problem)
        self.units = (None, *(p for p in problem.vocabulary.unary if p.name != "id"))
        ones = np.ones((1, len(y)))
        self.keys = Keys(orthonormal(np.concatenate([ones, self.algebra.X])), bank.blocks())
        self.sums = self.algebra.monomials(len(y) // 4)
        basis = orthonormal(np.concatenate([ones, self.sums.values]))
        others = self.algebra.simple(len(y) // 4)
        rest = others.values - (others.values @ basis) @ basis.T
        new = np.square(rest).sum(axis=1) > NULL_SINGULAR * np.square(others.values).sum(axis=1)
        self.sums += others.take(np.flatnonzero(new).tolist())
        self.basis = orthonormal(np.concatenate([ones, self.sums.values]))

    @np.errstate(all="ignore")
    def laws(self, trees: Trees) -> Iterator[Sum]:
        """Formulas that a node's exact law makes whole."""
        members = np.repeat(np.arange(len(trees)), trees.size)
        places = np.arange(len(members)) - np.repeat(np.cumsum(trees.size) - trees.size, trees.size)
        members, places = members[places > 0], places[places > 0]
        if not members.size:
            return
        every = trees.take(members)
        aims = wanted(every, every.evaluate(self.algebra.X)[0], places, self.y)
        finite = np.isfinite(aims).all(axis=1)
        members, places = members[finite], places[finite]
        for aim, law in self._closed(aims[finite]):
            yield trees.term(int(members[aim]), self.algebra.scales, int(places[aim]), law)

    def _closed(self, aims: np.ndarray) -> Iterator[tuple[int, Sum]]:
        """Which of the aims are exact, and the law of each."""
        for unit in self.units:
            with np.errstate(all="ignore"):
                values, signs = undone_rows(unit, aims)
                _, asked = self.keys.seen(values)
                total = np.square(values - values.mean(axis=1, keepdims=True)).sum(axis=1)
                outside = np.square(values).sum(axis=1) - np.square(values @ self.basis).sum(axis=1)
            spanned = [(int(aim), -1) for aim in np.flatnonzero(outside < EXACT_SPAN * total)]
            for aim, entry in spanned + self.keys.matches(asked):
                terms = self.sums if entry < 0 else self.algebra.columns + self.bank.terms(entry)
                factors = few_terms(terms.values, values[aim], self.max_terms)
                if factors is not None:
                    law = terms.total(factors)
                    yield aim, law if unit is None else Sum(units=((Unit(unit, (law,)), signs[aim]),))
