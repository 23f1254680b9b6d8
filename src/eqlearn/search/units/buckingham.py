"""Dimensionless groups of columns (Buckingham 1914): products of powers, one with the unit of the target."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, islice
from typing import Any

import numpy as np
import sympy as sp

from eqlearn.symbolic.expressions import real_symbol
from eqlearn.validation.units import Dimension


@dataclass(frozen=True)
class Groups:
    """A product of powers with the unit of the target, and dimensionless ones, by column: the exponents."""

    scale: tuple[Fraction, ...]
    groups: tuple[tuple[Fraction, ...], ...]

    @property
    def size(self) -> Fraction:
        """How large the powers are; broken ones count more."""
        every = [p for powers in (self.scale, *self.groups) for p in powers]
        return sum((abs(p) + (2 if p.denominator > 1 else 0) for p in every), Fraction(0))

    def values(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The scale `(rows,)` and the groups `(rows, groups)`."""
        with np.errstate(all="ignore"):
            each = [
                np.prod(X ** np.array(powers, dtype=float), axis=1) for powers in (self.scale, *self.groups)
            ]
        return each[0], np.stack(each[1:], axis=1) if self.groups else np.empty((len(X), 0))

    def symbolic(self, names: Sequence[str]) -> tuple[sp.Expr, list[sp.Expr]]:
        def product(powers: Sequence[Fraction]) -> sp.Expr:
            return sp.Mul(*(real_symbol(n) ** sp.Rational(p.numerator, p.denominator)
                            for n, p in zip(names, powers, strict=True)))  # fmt: skip

        return product(self.scale), [product(powers) for powers in self.groups]


def buckingham(columns: Sequence[Dimension], target: Dimension, most: int) -> list[Groups]:
    """At most so many choices of groups, the smallest powers first; none, if no product has the target's
    unit."""
    bases = sorted({name for d in (*columns, target) for name, _ in d.powers})
    matrix = sp.Matrix(
        len(bases), len(columns), lambda i, j: _rational(dict(columns[j].powers).get(bases[i], 0))
    )
    wanted = sp.Matrix([_rational(dict(target.powers).get(base, 0)) for base in bases])
    rank = matrix.rank() if bases else 0
    if bases and sp.Matrix.hstack(matrix, wanted).rank() > rank:
        return []
    dimensional = [j for j, d in enumerate(columns) if d]
    found: dict[Groups, None] = {}
    for repeated in islice(combinations(dimensional, rank), most):
        part = matrix[:, list(repeated)] if rank else sp.zeros(len(bases), 0)
        if rank and part.rank() < rank:
            continue

        def powers(
            vector: sp.Matrix, part: sp.Matrix = part, repeated: Sequence[int] = repeated
        ) -> list[Fraction]:
            solution = (part.T * part).LUsolve(part.T * vector) if rank else []
            exponents = [Fraction(0)] * len(columns)
            for j, value in zip(repeated, solution, strict=True):
                exponents[j] = Fraction(int(value.p), int(value.q))
            return exponents

        groups = []
        for j in range(len(columns)):
            if j in repeated:
                continue
            exponents = [-p for p in powers(matrix[:, j])] if columns[j] else [Fraction(0)] * len(columns)
            exponents[j] += 1
            groups.append(tuple(exponents))
        found[Groups(tuple(powers(wanted)), tuple(groups))] = None
    return sorted(found, key=lambda g: g.size)


def _rational(value: Any) -> sp.Rational:
    fraction = Fraction(value)
    return sp.Rational(fraction.numerator, fraction.denominator)
