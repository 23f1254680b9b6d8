"""The library of terms that equations of motion are put together from: monomials of the states, elementary
functions of them, and products of both."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import sympy as sp

from eqlearn.dynamics.settings import MOTION, MotionSettings
from eqlearn.nn.primitives import PrimitivesLike, parse_kinds
from eqlearn.numerics.criteria import MATCH_ROUNDING
from eqlearn.symbolic.expressions import fitted


@dataclass(frozen=True)
class Shape:
    """An elementary function g(u) or g(u; c), on arrays and on symbols.

    `trials(u, settings)` are values of its constants to begin with for arguments like these, none where
    it has no constants. A `weighted` one is of a sum of states with constants as weights, after an
    `offset` where it has that; the constants of others are positive. A `positive` one is for arguments
    that have no other sign and stay away from zero, a `divisor` for those that nearly have no other, and
    one with `poles` for arguments at which these keep a sign and stay away from zero, too. `degree` is
    that of the monomials that it is multiplied with, `nodes` how many symbols it takes beside its
    argument and constants. It takes all `primitives` of one of the sets to write it.
    """

    name: str
    values: Callable[..., np.ndarray]
    expression: Callable[..., sp.Expr]
    trials: Callable[[np.ndarray, MotionSettings], Sequence[tuple[float, ...]]] | None = None
    weighted: bool = False
    offset: bool = False
    positive: bool = False
    divisor: bool = False
    poles: Callable[[np.ndarray], np.ndarray] | None = None
    degree: int = 1
    nodes: int = 1
    sums: bool = False
    primitives: tuple[frozenset[str], ...] = ()

    @property
    def free(self) -> bool:
        """Whether its constants may have any sign."""
        return self.weighted or self.name == "power"

    def suits(self, u: np.ndarray, settings: MotionSettings) -> bool:
        """Whether it can be told, at these arguments, from what is simpler."""
        size = _size(u)
        if size == 0 or (self.positive and u.min() <= settings.min_argument * size):
            return False
        if self.poles is not None:
            below = self.poles(u)
            return bool(np.abs(below).min() > settings.min_pole and np.ptp(np.sign(below)) == 0)
        # |u| of a u that never changes its sign is nothing new.
        return self.name != "abs" or bool(np.ptp(np.sign(u)) > 0)


def _size(u: np.ndarray) -> float:
    return float(np.sqrt((u**2).mean()))


_INVERSE = (frozenset({"inv"}), frozenset({"div"}))


def _any(*names: str) -> tuple[frozenset[str], ...]:
    return tuple(frozenset({name}) for name in names)


def _quotient_of(*names: str) -> tuple[frozenset[str], ...]:
    return tuple(frozenset(names) | other for other in _INVERSE)


def _hill(power: int) -> Shape:
    return Shape(
        f"hill{power}", lambda u, c: 1 / (c + u**power), lambda u, c: 1 / (c + u**power),
        lambda u, s: [((half * _size(u)) ** power,) for half in s.halves], divisor=bool(power % 2),
        degree=power, nodes=2, primitives=_INVERSE,
    )  # fmt: skip


def _slopes(signs: Sequence[int]) -> Callable[[np.ndarray, MotionSettings], Sequence[tuple[float, ...]]]:
    return lambda u, s: [(sign * slope / _size(u),) for slope in s.slopes for sign in signs]


def _waves(u: np.ndarray, s: MotionSettings) -> list[tuple[float, ...]]:
    return [(frequency / _size(u),) for frequency in s.frequencies]


def _steps(u: np.ndarray, s: MotionSettings) -> list[tuple[float, ...]]:
    """Half-way somewhere in the data or near them, and not steeper than the data can show."""
    steep = [slope / float(u.std()) for slope in s.slopes if u.std() > 0]
    middles = [u.min() + share * np.ptp(u) for share in s.middles]
    return [(-b * float(middle), b) for b in steep for middle in middles]


_TRIGONOMETRIC = frozenset({"sin", "cos"})
SHAPES: dict[str, Shape] = {
    shape.name: shape
    for shape in (
        Shape("sin", np.sin, sp.sin, degree=2, sums=True, primitives=_any("sin1", "sin")),
        Shape("cos", np.cos, sp.cos, degree=2, sums=True, primitives=_any("cos")),
        Shape("tan", np.tan, sp.tan, poles=np.cos, primitives=(*_any("tan"), *_quotient_of("sin1", "cos"))),
        Shape("cot", lambda u: np.cos(u) / np.sin(u), lambda u: sp.cos(u) / sp.sin(u), poles=np.sin, nodes=3,
              primitives=_quotient_of("sin1", "cos")),
        Shape("abs", np.abs, sp.Abs, primitives=(frozenset({"abs"}), frozenset({"square", "sqrt"}))),
        Shape("inv", lambda u: 1 / u, lambda u: 1 / u, positive=True, degree=2, primitives=_INVERSE),
        Shape("log", np.log, sp.log, positive=True, primitives=_any("log")),
        Shape("sqrt", np.sqrt, sp.sqrt, positive=True, primitives=_any("sqrt")),
        Shape("exp", np.exp, sp.exp, _slopes((1, -1)), weighted=True, primitives=_any("exp")),
        Shape("tanh", np.tanh, sp.tanh, _slopes((1,)), weighted=True, primitives=_any("tanh")),
        *map(_hill, (1, 2, 3, 4, 5)),
        Shape("power", lambda u, c: u**c, lambda u, c: u**c, lambda u, s: [(e,) for e in s.exponents],
              positive=True, primitives=_any("pow")),
        Shape("step", lambda u: 1 / (1 + np.exp(u)), lambda u: 1 / (1 + sp.exp(u)), _steps, weighted=True,
              offset=True, nodes=4, primitives=_quotient_of("exp")),
        Shape("wave", np.sin, sp.sin, _waves, weighted=True, primitives=_any("sin1", "sin")),
        Shape("cowave", np.cos, sp.cos, _waves, weighted=True, primitives=_any("cos")),
    )
}  # fmt: skip


@dataclass(frozen=True)
class Atom:
    """A shape of one state, or of a sum or difference of two, `(place, sign)` each, with its constants."""

    shape: str
    argument: tuple[tuple[int, int], ...]
    constants: tuple[float, ...] = ()

    @property
    def family(self) -> Atom:
        """The atom whatever its constants."""
        return replace(self, constants=tuple(1.0 for _ in self.constants))

    def values(self, X: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            u, rest = self._inside([X[:, place] for place, _ in self.argument], self.constants)
            return np.asarray(SHAPES[self.shape].values(u, *rest))

    def expression(self, symbols: Sequence[sp.Symbol]) -> sp.Expr:
        mine = [symbols[place] for place, _ in self.argument]
        u, rest = self._inside(mine, [fitted(c) for c in self.constants])
        return SHAPES[self.shape].expression(u, *rest)

    def _inside(self, states: Sequence[Any], constants: Sequence[Any]) -> tuple[Any, Sequence[Any]]:
        """The argument, and the constants that are not in it."""
        shape = SHAPES[self.shape]
        if not shape.weighted:
            return sum(sign * x for (_, sign), x in zip(self.argument, states, strict=True)), constants
        first = constants[0] if shape.offset else 0
        weights = constants[int(shape.offset) :]
        return first + sum(w * x for w, x in zip(weights, states, strict=True)), ()


@dataclass(frozen=True)
class Term:
    """A product of powers of the states and of atoms."""

    powers: tuple[int, ...]
    atoms: tuple[Atom, ...] = ()

    def values(self, X: np.ndarray) -> np.ndarray:
        column = np.ones(len(X))
        for place, power in enumerate(self.powers):
            if power:
                column = column * X[:, place] ** power
        for atom in self.atoms:
            column = column * atom.values(X)
        return column

    def expression(self, symbols: Sequence[sp.Symbol]) -> sp.Expr:
        powers = (symbol**power for symbol, power in zip(symbols, self.powers, strict=True))
        return sp.Mul(*powers, *(atom.expression(symbols) for atom in self.atoms))

    @property
    def constants(self) -> int:
        """How many numbers are inside."""
        return sum(len(atom.constants) for atom in self.atoms)

    @property
    def nodes(self) -> int:
        """How many symbols it takes to write the term, each power with its exponent."""
        powers = sum(1 if p == 1 else 3 for p in self.powers if p)
        inside = sum(
            len(a.argument) * 2 - 1 + SHAPES[a.shape].nodes + 2 * len(a.constants) for a in self.atoms
        )
        factors = sum(1 for p in self.powers if p) + len(self.atoms)
        return powers + inside + max(0, factors - 1) + 1


def allowed_shapes(primitives: PrimitivesLike) -> frozenset[str]:
    """The names of the primitives that terms may be written with."""
    return frozenset(primitive.name for primitive in parse_kinds(primitives))


def library(
    X: np.ndarray, allowed: frozenset[str], degree: int, settings: MotionSettings = MOTION
) -> tuple[Term, ...]:
    """The terms without constants inside, for states `(rows, states)`: monomials up to a `degree` first, then
    functions that can be written with the `allowed` primitives, times monomials and each other."""
    count = X.shape[1]
    degree = next(
        d for d in range(min(degree, settings.max_monomial_degree), 0, -1)
        if len(monomials(count, d)) <= settings.max_monomials or d == 1
    )  # fmt: skip
    terms = [Term(powers) for powers in monomials(count, degree)]
    free = [
        Atom(shape.name, argument)
        for shape in _written(allowed) if shape.trials is None
        for argument in _arguments(count, shape.sums)
        if shape.suits(np.asarray(sum(sign * X[:, place] for place, sign in argument)), settings)
    ]  # fmt: skip
    terms += [
        Term(powers, (atom,)) for atom in free for powers in monomials(count, SHAPES[atom.shape].degree)
    ]
    single = [a for a in free if len(a.argument) == 1]
    pairs = itertools.combinations_with_replacement(single, 2)
    terms += [Term(powers, pair) for pair in pairs for powers in monomials(count, 1)]
    waves = [a for a in single if a.shape in _TRIGONOMETRIC]
    terms += [Term((0,) * count, t) for t in itertools.combinations_with_replacement(waves, 3)]
    simple = sorted(terms, key=lambda term: (bool(term.atoms), term.nodes))
    return _distinct(simple[: settings.max_plain], X)


def families(X: np.ndarray, allowed: frozenset[str], settings: MotionSettings = MOTION) -> list[list[Term]]:
    """The terms with one function that has constants inside, times monomials: for each function and state
    one list, with the constants that are tried."""
    count, found = X.shape[1], []
    for shape in _written(allowed):
        for argument in _arguments(count, False):
            (place, _), *_ = argument
            u = X[:, place]
            if shape.trials is None or not shape.suits(u, settings):
                continue
            # A divisor c + u is nowhere near zero.
            trials = [
                c for c in shape.trials(u, settings)
                if not shape.divisor or u.min() > -settings.max_cancelled * c[0]
            ]  # fmt: skip
            owns = [tuple(p * (k == place) for k in range(count)) for p in range(shape.degree + 1)]
            powers = [
                *owns, *(tuple(o + (k == j) for k, o in enumerate(own)) for own in owns
                         for j in range(count) if j != place),
            ]  # fmt: skip
            if trials:
                found.append([Term(p, (Atom(shape.name, argument, c),)) for c in trials for p in powers])
    return found


def _written(allowed: frozenset[str]) -> list[Shape]:
    return [s for s in SHAPES.values() if any(names <= allowed for names in s.primitives)]


def _arguments(count: int, sums: bool) -> list[tuple[tuple[int, int], ...]]:
    single = [((place, 1),) for place in range(count)]
    double = [((i, 1), (j, s)) for i, j in itertools.combinations(range(count), 2) for s in (1, -1)]
    return [*single, *(double if sums else [])]


def _distinct(terms: Sequence[Term], X: np.ndarray) -> tuple[Term, ...]:
    """The terms without those that are others, such as u²·(1/u), the shortest kept."""
    simple = sorted(terms, key=lambda term: (bool(term.atoms), term.constants, term.nodes))
    table = columns(simple, X)
    size = np.linalg.norm(table, axis=0)
    usable = np.isfinite(size) & (size > 0)
    table = np.where(usable, table, 0.0) / np.where(usable, size, 1.0)
    alike = np.triu(np.abs(table.T @ table), 1) > 1 - MATCH_ROUNDING
    return tuple(term for k, term in enumerate(simple) if usable[k] and not alike[:, k].any())


def monomials(count: int, degree: int) -> list[tuple[int, ...]]:
    """The powers of all products of `count` things up to a degree, the lowest first; also of none."""
    every = (p for p in itertools.product(range(degree + 1), repeat=count) if sum(p) <= degree)
    return sorted(every, key=lambda powers: (sum(powers), tuple(-p for p in powers)))


def columns(terms: Sequence[Term], X: np.ndarray) -> np.ndarray:
    """The values of terms, `(rows, terms)`."""
    known: dict[Atom, np.ndarray] = {}
    powers: dict[tuple[int, ...], np.ndarray] = {}
    table = np.empty((len(X), len(terms)))
    for k, term in enumerate(terms):
        if term.powers not in powers:
            powers[term.powers] = Term(term.powers).values(X)
        column = powers[term.powers]
        for atom in term.atoms:
            if atom not in known:
                known[atom] = atom.values(X)
            column = column * known[atom]
        table[:, k] = column
    return table
