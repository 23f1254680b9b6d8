"""The library of terms that equations of motion are put together from: monomials of the states, elementary
functions of them, and products of both."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import sympy as sp

from eqlearn.dynamics.settings import MOTION, MotionSettings
from eqlearn.nn.primitives import PrimitivesLike, parse_kinds
from eqlearn.numerics.criteria import MATCH_ROUNDING
from eqlearn.symbolic.expressions import fitted


@dataclass(frozen=True)
class Shape:
    """An elementary function g(u) or g(u; c), on arrays and on symbols.

    `constants(size, settings)` are trial values of c for arguments of this size, none where there is no c; a
    `positive` one is for arguments that have no other sign and stay away from zero, a `divisor` for those
    that nearly have no other. `degree` is that of the monomials that it is multiplied with. It takes all
    `primitives` of one of the sets to write it.
    """

    name: str
    values: Callable[[np.ndarray, float], np.ndarray]
    expression: Callable[[sp.Expr, sp.Expr], sp.Expr]
    constants: Callable[[float, MotionSettings], Sequence[float]] = lambda size, settings: ()
    positive: bool = False
    divisor: bool = False
    degree: int = 1
    sums: bool = False
    primitives: tuple[frozenset[str], ...] = ()


_INVERSE = (frozenset({"inv"}), frozenset({"div"}))


def _hill(power: int) -> Shape:
    return Shape(
        f"hill{power}", lambda u, c: 1 / (c + u**power), lambda u, c: 1 / (c + u**power),
        lambda size, s: tuple((np.array(s.halves) * size) ** power), divisor=bool(power % 2), degree=power,
        primitives=_INVERSE,
    )  # fmt: skip


def _any(*names: str) -> tuple[frozenset[str], ...]:
    return tuple(frozenset({name}) for name in names)


SHAPES: dict[str, Shape] = {
    shape.name: shape
    for shape in (
        Shape("sin", lambda u, c: np.sin(u), lambda u, c: sp.sin(u), degree=2, sums=True,
              primitives=_any("sin1", "sin")),
        Shape("cos", lambda u, c: np.cos(u), lambda u, c: sp.cos(u), degree=2, sums=True,
              primitives=_any("cos")),
        Shape("abs", lambda u, c: np.abs(u), lambda u, c: sp.Abs(u),
              primitives=(frozenset({"abs"}), frozenset({"square", "sqrt"}))),
        Shape("inv", lambda u, c: 1 / u, lambda u, c: 1 / u, positive=True, degree=2,
              primitives=_INVERSE),
        Shape("log", lambda u, c: np.log(u), lambda u, c: sp.log(u), positive=True, primitives=_any("log")),
        Shape("sqrt", lambda u, c: np.sqrt(u), lambda u, c: sp.sqrt(u), positive=True,
              primitives=_any("sqrt")),
        Shape(
            "exp", lambda u, c: np.exp(c * u), lambda u, c: sp.exp(c * u),
            lambda size, s: tuple(sign * k / size for k in s.slopes for sign in (1, -1)),
            primitives=_any("exp"),
        ),
        Shape("tanh", lambda u, c: np.tanh(c * u), lambda u, c: sp.tanh(c * u),
              lambda size, s: tuple(k / size for k in s.slopes), primitives=_any("tanh")),
        *map(_hill, (1, 2, 3, 4)),
    )
}  # fmt: skip


@dataclass(frozen=True)
class Atom:
    """A shape of one state, or of a sum or difference of two, `(place, sign)` each, with its constant."""

    shape: str
    argument: tuple[tuple[int, int], ...]
    constant: float | None = None

    def values(self, X: np.ndarray) -> np.ndarray:
        u = np.asarray(sum(sign * X[:, place] for place, sign in self.argument))
        with np.errstate(all="ignore"):
            return np.asarray(SHAPES[self.shape].values(u, self.constant or 0.0))

    def expression(self, symbols: Sequence[sp.Symbol]) -> sp.Expr:
        u = sp.Add(*(sign * symbols[place] for place, sign in self.argument))
        c = sp.S.Zero if self.constant is None else fitted(self.constant)
        return SHAPES[self.shape].expression(u, c)


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
        return sum(atom.constant is not None for atom in self.atoms)

    @property
    def nodes(self) -> int:
        """How many symbols it takes to write the term, each power with its exponent."""
        powers = sum(1 if p == 1 else 3 for p in self.powers if p)
        inside = sum(len(atom.argument) * 2 - 1 + (1 if atom.constant is None else 3) for atom in self.atoms)
        factors = sum(1 for p in self.powers if p) + len(self.atoms)
        return powers + inside + max(0, factors - 1) + 1

    def with_atom(self, old: Atom, new: Atom) -> Term:
        return replace(self, atoms=tuple(new if atom == old else atom for atom in self.atoms))


def allowed_shapes(primitives: PrimitivesLike) -> frozenset[str]:
    """The names of the primitives that terms may be written with."""
    return frozenset(primitive.name for primitive in parse_kinds(primitives))


def library(
    X: np.ndarray, allowed: frozenset[str], degree: int, settings: MotionSettings = MOTION
) -> tuple[Term, ...]:
    """The terms for states `(rows, states)`: monomials up to a `degree` first, then functions that can be
    written with the `allowed` primitives, times monomials and each other."""
    count = X.shape[1]
    shapes = [s for s in SHAPES.values() if any(names <= allowed for names in s.primitives)]
    degree = next(
        d for d in range(min(degree, settings.max_monomial_degree), 0, -1)
        if len(monomials(count, d)) <= settings.max_monomials or d == 1
    )  # fmt: skip
    terms = [Term(powers) for powers in monomials(count, degree)]
    free = _atoms(X, shapes, settings, fixed=True)
    terms += [
        Term(powers, (atom,)) for atom in free for powers in monomials(count, SHAPES[atom.shape].degree)
    ]
    pairs = itertools.combinations_with_replacement([a for a in free if len(a.argument) == 1], 2)
    terms += [Term(powers, pair) for pair in pairs for powers in monomials(count, 1)]
    for atom in _atoms(X, shapes, settings, fixed=False):
        (place, _), *_ = atom.argument
        for power in range(SHAPES[atom.shape].degree + 1):
            own = tuple(power * (k == place) for k in range(count))
            others = [tuple(o + (k == j) for k, o in enumerate(own)) for j in range(count) if j != place]
            terms += [Term(powers, (atom,)) for powers in (own, *others)]
    return _distinct(terms, X)


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


def _atoms(X: np.ndarray, shapes: Sequence[Shape], settings: MotionSettings, *, fixed: bool) -> list[Atom]:
    count = X.shape[1]
    single = [((place, 1),) for place in range(count)]
    double = [((i, 1), (j, s)) for i, j in itertools.combinations(range(count), 2) for s in (1, -1)]
    atoms = []
    for shape in shapes:
        for argument in [*single, *(double if shape.sums else [])]:
            u = np.asarray(sum(sign * X[:, place] for place, sign in argument))
            size, least = float(np.sqrt((u**2).mean())), float(u.min())
            one_sign = np.ptp(np.sign(u)) == 0
            away = least > settings.min_argument * size
            # |u| of a u that never changes its sign is nothing new.
            if size == 0 or (shape.positive and not away) or (shape.name == "abs" and one_sign):
                continue
            # A divisor c + u is nowhere near zero.
            every = shape.constants(size, settings)
            trials = [c for c in every if not shape.divisor or least > -settings.max_cancelled * c]
            if fixed and not trials:
                atoms.append(Atom(shape.name, argument))
            elif not fixed:
                atoms += [Atom(shape.name, argument, float(c)) for c in trials]
    return atoms


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
