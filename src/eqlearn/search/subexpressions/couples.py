"""All sums, differences, products and quotients of two entries of a bank: too many to keep, so they are seen
in blocks, and worked out again where they are met."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from eqlearn.nn.primitives import Primitive
from eqlearn.search.ansatz.layout import Sum, Unit
from eqlearn.search.ansatz.terms import Terms
from eqlearn.search.subexpressions.bank import OPERATIONS, Bank


@dataclass(frozen=True, eq=False)
class Couples:
    """What the `simplest` entries of a bank make by twos; a couple's number is that of its sign, times the
    square of how many they are, plus its place in their table."""

    bank: Bank
    simplest: int
    times: Primitive | None
    over: Primitive | None

    @property
    def signs(self) -> tuple[str, ...]:
        allowed = {"*": self.times is not None, "/": self.over is not None}
        return tuple(sign for sign in OPERATIONS if allowed.get(sign, True))

    def blocks(self) -> Iterator[np.ndarray]:
        """The values of all couples in their order, those of one first entry at a time; NaN for what is the
        same the other way round."""
        values = self.bank.values[: self.simplest]
        for sign in self.signs:
            for i in range(len(values)):
                made = OPERATIONS[sign](values[i], values)
                if sign != "/":
                    made[: i + (sign != "*")] = np.nan
                yield made

    def cost(self, couple: int) -> float:
        """What both cost, and the sign."""
        _, i, j = self._parts(couple)
        return float(self.bank.costs[i] + self.bank.costs[j] + 1)

    def terms(self, couple: int) -> Terms:
        """The couple as a term."""
        sign, i, j = self._parts(couple)
        with np.errstate(all="ignore"):
            values = OPERATIONS[sign](self.bank.values[i], self.bank.values[j])
        return Terms(values[None], (lambda: self._written(sign, i, j),))

    def _written(self, sign: str, i: int, j: int) -> Sum:
        one, two = self.bank.term(i), self.bank.term(j)
        if sign in "+-":
            return one + two * (1.0 if sign == "+" else -1.0)
        primitive = self.times if sign == "*" else self.over
        assert primitive is not None
        return Sum.of(Unit(primitive, (one, two)))

    def _parts(self, couple: int) -> tuple[str, int, int]:
        count = min(self.simplest, len(self.bank))
        sign, place = divmod(couple, count**2)
        return self.signs[sign], *divmod(place, count)
