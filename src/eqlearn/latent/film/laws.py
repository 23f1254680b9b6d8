"""Laws of motion as sums of terms, each written once for arrays and for symbols.

A coordinate behind a film has no unit and no zero, so laws are written in the units in which they are
shortest, and no two laws are listed that differ by a shift or a factor of the coordinate only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
import sympy as sp

from eqlearn.dynamics.shooting import VectorField
from eqlearn.nn.primitives import PrimitivesLike, parse_kinds
from eqlearn.symbolic.equation import Equation
from eqlearn.symbolic.expressions import fitted, real_symbol

# Written against NumPy or SymPy, of coordinates q and velocities v, lists with one entry for each coordinate.
Parts = Callable[[Any, Sequence[Any], Sequence[Any]], list[list[Any]]]


@dataclass(frozen=True, eq=False)
class Term:
    """A term of a law: `parts(m, q, v)` gives, for each of its coefficients, a value for each coordinate.

    `degrees` are those in q and in v by which it scales with the coordinate's unit; none for a term that
    scales with no power of it, whose unit the law then fixes. A term that is `moved` depends on where zero
    is. It takes all `primitives` of one of the sets to write it. Of its `coefficients`, axes of the
    law's own make zero those that are `dropped`.
    """

    name: str
    parts: Parts
    degrees: tuple[int, int] | None
    moved: bool = True
    primitives: tuple[frozenset[str], ...] = (frozenset(),)
    coefficients: int = 1
    dropped: tuple[int, ...] = ()

    def values(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """`(coefficients, coordinates, rows)` from `(coordinates, rows)`."""
        with np.errstate(all="ignore"):
            found = self.parts(np, list(q), list(v))
            return np.array([[np.broadcast_to(x, q.shape[1]) for x in part] for part in found], dtype=float)


def _single(
    name: str,
    function: Callable[[Any, Any, Any], Any],
    degrees: tuple[int, int] | None,
    *sets: str,
    moved: bool = True,
) -> Term:
    """A term of one coordinate."""
    allowed = tuple(frozenset(s.split()) for s in sets) or (frozenset(),)
    return Term(name, lambda m, q, v: [[function(m, q[0], v[0])]], degrees, moved, allowed)


def _size(m: Any, x: Any) -> Any:
    return m.sqrt(sum(k**2 for k in x))


def _central(power: int) -> Parts:
    return lambda m, q, v: [[k * _size(m, q) ** power for k in q]]


def _turned(x: Sequence[Any]) -> list[Any]:
    return [-x[1], x[0]]


def _along_axes(m: Any, q: Sequence[Any], v: Sequence[Any]) -> list[list[Any]]:
    one, zero = 1 + 0 * q[0], 0 * q[0]
    return [[one, zero], [zero, one]]


def _matrix(x: Sequence[Any]) -> list[list[Any]]:
    return [[x[j] if i == k else 0 * x[j] for i in range(2)] for k in range(2) for j in range(2)]


_INVERSE = ("inv", "div")
_SQUARE = ("square", "mul", "pow")
ONE = (
    _single("1", lambda m, q, v: 1 + 0 * q, (0, 0), moved=False),
    _single("q", lambda m, q, v: q, (1, 0)),
    _single("q2", lambda m, q, v: q**2, (2, 0), *_SQUARE),
    _single("q3", lambda m, q, v: q**3, (3, 0), "square mul", "mul", "pow"),
    _single("sin", lambda m, q, v: m.sin(q), None, "sin1", "sin"),
    _single("exp", lambda m, q, v: m.exp(q), None, "exp"),
    _single("tanh", lambda m, q, v: m.tanh(q), None, "tanh"),
    _single("inverse", lambda m, q, v: 1 / q, (-1, 0), *_INVERSE),
    _single("inverse square", lambda m, q, v: q**-2, (-2, 0), "inv square", "div square", "pow"),
    _single("v", lambda m, q, v: v, (0, 1), moved=False),
    _single("|v|v", lambda m, q, v: v * _size(m, [v]), (0, 2), "square sqrt", "abs mul", moved=False),
    _single("v3", lambda m, q, v: v**3, (0, 3), "square mul", "mul", "pow", moved=False),
    _single("qv", lambda m, q, v: q * v, (1, 1), "mul"),
    _single("q2v", lambda m, q, v: q**2 * v, (2, 1), "square mul", "mul"),
    _single("v2", lambda m, q, v: v**2, (0, 2), *_SQUARE, moved=False),
)  # fmt: skip
_ROOT = (frozenset({"square", "sqrt"}), frozenset({"pow"}))
TWO = (
    Term("1", _along_axes, (0, 0), False, coefficients=2, dropped=(0,)),
    Term("q", lambda m, q, v: [list(q)], (1, 0)),
    Term("Kq", lambda m, q, v: _matrix(q), (1, 0), coefficients=4, dropped=(1, 2)),
    Term("turned q", lambda m, q, v: [_turned(q)], (1, 0)),
    *(
        Term(f"r{n}q", _central(n), (n + 1, 0), primitives=_ROOT)
        for n in (-4, -3, -2, -1, 1, 2)
    ),
    Term("v", lambda m, q, v: [list(v)], (0, 1), False),
    Term("|v|v", lambda m, q, v: [[k * _size(m, v) for k in v]], (0, 2), False, (frozenset({"sqrt"}),)),
    Term("turned v", lambda m, q, v: [_turned(v)], (0, 1), False),
)  # fmt: skip


def known_terms(coordinates: int, order: int, primitives: PrimitivesLike) -> tuple[Term, ...]:
    """The terms that these primitives can write, of laws of this order."""
    allowed = {p.name for p in parse_kinds(primitives)}
    every = ONE if coordinates == 1 else TWO
    return tuple(
        t for t in every
        if any(s <= allowed for s in t.primitives)
        and (order == 2 or not (t.degrees and t.degrees[1]))
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Structure:
    """A law but for its numbers: terms, of so many coordinates, of first or second order."""

    terms: tuple[Term, ...]
    coordinates: int
    order: int

    @property
    def moved(self) -> bool:
        """Whether it says where zero is."""
        return any(term.moved for term in self.terms)

    @property
    def scaled(self) -> bool:
        """Whether it says how long the unit is."""
        return any(term.degrees is None for term in self.terms)

    @property
    def key(self) -> frozenset[str]:
        """What tells it from others."""
        return frozenset(term.name for term in self.terms)

    @property
    def longer_than_needed(self) -> bool:
        """Whether a shift of the coordinate makes it shorter, or two of its terms say the same."""
        shifted = "1" in self.key and self.key & {"q", "q2", "Kq"}
        twice = "Kq" in self.key and self.key & {"q", "turned q"}
        return bool(shifted or twice) or len(self.key) < len(self.terms)

    @cached_property
    def size(self) -> tuple[int, int, int]:
        """How long it is: its order, its numbers, and what it takes to write it."""
        dropped = [k in t.dropped for t in self.terms for k in range(t.coefficients)]
        left = [sp.S.Zero if gone else mark for gone, mark in zip(dropped, self._marks, strict=True)]
        written = self.equations(left)[-self.coordinates :]
        return self.order, dropped.count(False), sum(e.complexity for e in written)

    @cached_property
    def field(self) -> VectorField:
        """What computes rates of change of the states, from `shares @ numbers`."""
        return VectorField(self.equations(self._marks))

    @cached_property
    def shares(self) -> np.ndarray:
        """Which number each constant of the field is, `(constants, numbers)`: equations have their own order,
        and several may hold one number."""
        return np.asarray(np.isclose(self.field.start[:, None], self._marks), dtype=float)

    @property
    def _marks(self) -> list[float]:
        """Numbers to know the law's own by."""
        return [1.5 + k for k in range(sum(t.coefficients for t in self.terms))]

    @property
    def names(self) -> tuple[str, ...]:
        return coordinate_names(self.coordinates)

    def __str__(self) -> str:
        return " + ".join(term.name for term in self.terms)

    def equations(self, numbers: Sequence[Any]) -> tuple[Equation, ...]:
        """What each state changes by: of second order, first the velocities, and then the law."""
        names = self.names
        q, v = ([real_symbol(p + n) for n in names] for p in ("", "d"))
        total, at = [sp.S.Zero] * self.coordinates, iter(numbers)
        for term in self.terms:
            for part in term.parts(sp, q, v):
                number = next(at)
                number = fitted(float(number)) if isinstance(number, float) else number
                total = [t + number * x for t, x in zip(total, part, strict=True)]
        if self.order == 1:
            return tuple(Equation(t, names) for t in total)
        variables = (*names, *("d" + n for n in names))
        return tuple(Equation(t, variables) for t in [*v, *total])


def coordinate_names(count: int) -> tuple[str, ...]:
    return ("z",) if count == 1 else tuple(f"z{k + 1}" for k in range(count))


def structures(terms: Sequence[Term], most: int, coordinates: int, order: int) -> Iterator[Structure]:
    """Sums of at most so many terms, without those that a shift of the coordinate makes shorter."""
    for count in range(1, most + 1):
        for some in combinations(terms, count):
            structure = Structure(some, coordinates, order)
            if not structure.longer_than_needed:
                yield structure
