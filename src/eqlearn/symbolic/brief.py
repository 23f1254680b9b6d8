"""The shortest of a formula's equivalents: what `simplified` can't find, for the few formulas that are delivered.

A part made of sums, products and quotients is a quotient of polynomials in whatever else it holds (variables,
logarithms, roots, ...). It is written anew: in lowest terms, factored, as a sum of fractions, or with products
taken out of sums, whichever is shortest. Laws of powers, logarithms, sines and exponentials follow, valid where the
data are. Work is limited by the number of terms, never by a clock, but `stop()` ends it at once.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from typing import Any, TypeAlias

import numpy as np
import sympy as sp

from eqlearn.errors import InvalidExpression, NotFinite
from eqlearn.numerics.budget import never
from eqlearn.numerics.criteria import MAX_DIGITS, NEGLIGIBLE, NO_COEFFICIENT, description_length
from eqlearn.symbolic.equation import Equation
from eqlearn.symbolic.expressions import NOT_REAL, REMEMBERED, complexity, fitted, parts, real_symbol
from eqlearn.symbolic.parametric import Formula
from eqlearn.symbolic.polynomials import (
    Polynomial, alike, box, cleaned, combinations, degrees, factors, in_lowest_terms, is_number, plus, power,
    separated, times,
)  # fmt: skip
from eqlearn.symbolic.simplify import equivalents, simplified
from eqlearn.symbolic.snap import number_cost, plain_number
from eqlearn.symbolic.tape import lower

Values: TypeAlias = Callable[[sp.Expr], np.ndarray]
Quotient: TypeAlias = "tuple[Polynomial, Polynomial]"

_MAX_PASSES = 4
_MAX_STEPS = 8  # of least squares, from constants that are right but for rounding
_MAX_TERMS = 60  # of a numerator or denominator, multiplied out
_MAX_DEGREE = 8  # of a generator
_MAX_COLLECTED = 16  # terms of a sum out of which products are taken
_MAX_SUMS = 6  # sums of fractions that are written down, those of the fewest terms
_MAX_PIVOTS = 64  # ways to divide factors by one of their coefficients


class TooLong(Exception):
    """More terms than are looked at."""


def brief(equation: Equation, X: np.ndarray, *, stop: Callable[[], bool] = never) -> Equation:
    """The shortest form found that has the equation's values on the rows of `X`, to rounding; the equation itself
    if that is shortest, or nothing is found before `stop()`.

    Its constants are fitted to the equation's values. Elsewhere a form may be another function: `log(x**2)` is
    `2*log(x)` if all rows have x > 0.
    """
    symbols, columns = [real_symbol(v) for v in equation.variables], list(X.T)

    @cache
    def values(expr: sp.Expr) -> np.ndarray:
        try:
            return np.broadcast_to(lower(expr, symbols).evaluate(columns), (len(X),))
        except NotFinite:
            return np.full(len(X), math.nan)

    def sign(expr: sp.Expr) -> int:
        found = values(expr)
        return 1 if (found > 0).all() else -1 if (found < 0).all() else 0

    best, form = equation, equation.expr
    for _ in range(_MAX_PASSES):
        try:
            before, form = form, simplified(_one_pass(form, values, sign, stop))
            trial = _refitted(Equation(form, equation.variables), values(equation.expr), X, stop)
        except (NotFinite, InvalidExpression):
            break
        if stop() or trial is None:
            break
        if _plainness(trial.expr) < _plainness(best.expr) and trial.complexity <= best.complexity:
            best, form = trial, trial.expr
        if form == before:
            break
    return best


def _refitted(form: Equation, goal: np.ndarray, X: np.ndarray, stop: Callable[[], bool]) -> Equation | None:
    """A form with its constants fitted to these values, if it has them to rounding."""
    limit = NEGLIGIBLE * (float(np.std(goal)) or float(np.abs(goal).max()))
    formula = Formula.of(form)
    fit = formula.fit(X, goal, steps=_MAX_STEPS, stop=stop)
    plain = formula.with_constants([plain_number(float(v)) for v in fit.values]) if not fit.loose else form
    agreeing = (e for e in (plain, form) if e.error(X, goal) <= limit)
    return next(agreeing, None)


def _one_pass(expr: sp.Expr, values: Values, sign: Callable[[sp.Expr], int], stop: Callable[[], bool]) -> Any:
    """Every part in its shortest form, parts of parts first."""
    nodes = parts(expr)
    outer = {a for node in nodes if not is_rational(node) for a in node.args} | {expr}
    new: dict[sp.Expr, sp.Expr] = {}
    for node in nodes:
        rebuilt = node.func(*(new[a] for a in node.args)) if node.args else node
        if isinstance(rebuilt, sp.Pow) and isinstance(rebuilt.exp, sp.Float):
            rebuilt = rebuilt.base ** plain_number(float(rebuilt.exp))
        forms = [rebuilt]
        if not stop():
            forms += equivalents(rebuilt, sign)
            forms += _rational_forms(rebuilt, values, stop) if node in outer and is_rational(rebuilt) else ()
        new[node] = min((f for f in forms if not NOT_REAL & set(parts(f))), key=_plainness, default=rebuilt)
    return new[expr]


def _rational_forms(node: sp.Expr, values: Values, stop: Callable[[], bool]) -> Iterator[Any]:
    """Forms of a quotient of polynomials, also after sin² = 1 - cos² or a step written as a tanh."""
    try:
        fractions = Fractions(node, values, stop)
        yield from fractions.forms()
        for changed in fractions.substituted(node):
            yield from Fractions(changed, values, stop).forms()
    except TooLong:
        return


@lru_cache(maxsize=REMEMBERED)
def length(expr: sp.Expr) -> float:
    """The description length of a formula alone, its fitted constants known to all their digits."""
    every = list(sp.preorder_traversal(expr))
    symbols = {node if isinstance(node, sp.Symbol) else node.func for node in every if not node.is_Number}
    return description_length(0, 1.0, sum(map(_number_cost, every)), complexity(expr), len(symbols) + 1)


def _plainness(expr: sp.Expr) -> tuple[float, int]:
    """Its length, and of forms of one length how much stands inside of functions: 2*log(x), not log(x**2)."""
    inner = (a for node in parts(expr) if isinstance(node, sp.Function) for a in node.args)
    return length(expr), sum(map(complexity, inner))


def _number_cost(node: sp.Expr) -> float:
    if isinstance(node, sp.Float):
        return MAX_DIGITS
    return number_cost(node) * math.log(2) if node.is_Rational and node not in (0, 1, -1) else 0.0


@dataclass(frozen=True)
class Generator:
    """What polynomials are made of: an expression, and its size on the data."""

    expr: Any
    size: float


class Fractions:
    """A quotient of polynomials in `generators`, and the forms in which it can be written."""

    def __init__(self, node: sp.Expr, values: Values, stop: Callable[[], bool] = never) -> None:
        self.stop = stop
        self.powers: dict[sp.Expr, tuple[int, int]] = {}
        self.generators: list[Generator] = []
        for unit, members in _units(_leaves(node)):
            found = values(unit)
            size = float(np.sqrt(np.mean(np.square(found)))) if len(found) else 1.0
            if not math.isfinite(size) or not size:
                raise TooLong
            self.powers |= {leaf: (len(self.generators), power) for leaf, power in members.items()}
            self.generators.append(Generator(unit, size))
        self.written: dict[tuple[Any, ...], Any] = {}
        top, bottom = self.quotient(node)
        self.top, self.bottom = in_lowest_terms(cleaned(top), cleaned(bottom))

    @cached_property
    def one(self) -> Polynomial:
        return {(0,) * len(self.generators): 1.0}

    def quotient(self, node: sp.Expr) -> Quotient:
        """Numerator and denominator, multiplied out."""
        if node.is_number:
            return {next(iter(self.one)): float(node)}, self.one
        if node in self.powers:
            place, power = self.powers[node]
            size = self.generators[place].size ** abs(power)
            alone = {tuple(abs(power) * (i == place) for i in range(len(self.generators))): size}
            return (alone, self.one) if power > 0 else (self.one, alone)
        if isinstance(node, sp.Add):
            return self._sum([self.quotient(a) for a in node.args])
        if isinstance(node, sp.Mul):
            pairs = [self.quotient(a) for a in node.args]
        else:
            pairs = [self.quotient(node.base)] * abs(int(node.exp))
        top, bottom = self.one, self.one
        for above, below in pairs:
            top, bottom = _bounded(times(top, above)), _bounded(times(bottom, below))
        return (bottom, top) if isinstance(node, sp.Pow) and node.exp < 0 else (top, bottom)

    def _sum(self, pairs: Sequence[Quotient]) -> Quotient:
        bottoms = [b for i, (_, b) in enumerate(pairs) if b not in [other for _, other in pairs[:i]]]
        bottom, total = self.one, {}
        for other in bottoms:
            bottom = _bounded(times(bottom, other))
        for top, own in pairs:
            for other in bottoms:
                top = _bounded(times(top, other)) if other != own else top
            total = plus(total, top)
        return total, bottom

    def substituted(self, node: sp.Expr) -> Iterator[Any]:
        """The part with squares of a sine as those of the cosine, or the other way round; and exp(u) by the
        tanh that has 1/(exp(u) + c) as a straight line."""
        for wave in node.atoms(sp.sin, sp.cos):
            other = (sp.cos if isinstance(wave, sp.sin) else sp.sin)(wave.args[0])
            if node.has(wave**2) and node.has(other):
                yield node.xreplace({wave**2: 1 - other**2})
        for place, generator in enumerate(self.generators):
            first = tuple(int(i == place) for i in range(len(self.generators)))
            for factor in factors(self.bottom) if isinstance(generator.expr, sp.exp) else ():
                plain = self._plain(factor)
                if set(plain) == {first, next(iter(self.one))} and min(plain.values()) > 0:
                    step = plain[next(iter(self.one))] / plain[first]
                    shift = sp.S.Zero if plain_number(step) == 1 else fitted(math.log(step))
                    tanh = sp.tanh((generator.expr.args[0] - shift) / 2)
                    whole = plain_number(step) * (1 + tanh) / (1 - tanh)
                    mine = {leaf: k for leaf, (i, k) in self.powers.items() if i == place}
                    yield node.xreplace({leaf: whole**k for leaf, k in mine.items()})

    # --- written anew --------------------------------------------------------------------------------------

    def forms(self) -> Iterator[Any]:
        """The forms, some of them; all have the same values to rounding."""
        if not self.top:
            yield sp.S.Zero
            return
        above, below = factors(self.top), factors(self.bottom)
        yield self.product(above, below)
        if is_number(self.bottom):
            yield self.product([self.top], below)
            yield self.shortest({m: c / self._value(self.bottom) for m, c in self.top.items()})
            return
        groups = alike([f for f in below if not is_number(f)])
        powers = [power(factor, k) for factor, most in groups for k in range(1, most + 1)]
        for bottoms in [[self.bottom], powers] if len(powers) > 1 else [[self.bottom]]:
            yield from self.sums(bottoms)

    def sums(self, bottoms: Sequence[Polynomial]) -> Iterator[Any]:
        """A polynomial and fractions with these denominators, those of few terms first."""
        terms, high = [], degrees(self.top)
        for bottom in [self.one, *bottoms]:
            others, rest = in_lowest_terms(self.bottom, bottom)
            others = {m: c / self._value(rest) for m, c in others.items()}
            room = [a - b for a, b in zip(high, degrees(others), strict=True)]
            terms.append((others, box(room)))
        found = combinations(self.top, terms)[:_MAX_SUMS]
        for solution in found:
            if self.stop() or sum(map(len, solution)) > sum(map(len, found[0])) + 1:
                return
            pairs = zip(solution, [self.one, *bottoms], strict=True)
            yield sp.Add(*(self.product([a], factors(b)) if not is_number(b) else self.shortest(a)
                           for a, b in pairs if a))  # fmt: skip

    def product(self, above: Sequence[Polynomial], below: Sequence[Polynomial]) -> Any:
        """Factors over factors, each divided by one of its coefficients so that few constants are left."""
        signed = [(f, k) for f, k in alike(above)] + [(f, -k) for f, k in alike(below)]
        number, sums = 1.0, []
        for factor, k in signed:
            plain = self._plain(factor)
            if len(plain) == 1:
                ((monomial, value),) = plain.items()
                number *= value**k
                sums.append((self._monomial(monomial) ** k, 1, [1.0], factor))
            else:
                sums.append((None, k, list(dict.fromkeys(plain.values())), factor))
        best: tuple[float, float, tuple[float, ...]] = (math.inf, 0.0, ())
        choices = itertools.product(*(pivots for _, _, pivots, _ in sums))
        for pivots in itertools.islice(choices, _MAX_PIVOTS):
            whole = number * math.prod(p**k for p, (_, k, _, _) in zip(pivots, sums, strict=True))
            price = _price(whole) + sum(
                _price(c / p) for p, (done, _, _, f) in zip(pivots, sums, strict=True) if done is None
                for c in self._plain(f).values()
            )  # fmt: skip
            best = min(best, (price, whole, pivots), key=lambda b: b[0])
        _, whole, pivots = best
        parts = [
            done if done is not None else self.shortest({m: c / p for m, c in f.items()}, factored=False) ** k
            for p, (done, k, _, f) in zip(pivots, sums, strict=True)
        ]
        return sp.Mul(plain_number(whole), *parts)

    def shortest(self, polynomial: Polynomial, factored: bool = True) -> Any:
        """The shortest sum found for a polynomial, or product."""
        key = (factored, *sorted((m, float(f"{c:.12g}")) for m, c in polynomial.items()))
        if key not in self.written:
            plain = self._plain(polynomial)
            terms = (plain_number(c) * self._monomial(m) for m, c in plain.items())
            forms = [sp.Add(*terms)]
            if 2 < len(polynomial) <= _MAX_COLLECTED and not self.stop():
                forms += self._collected(polynomial)
                split = factors(polynomial) if factored else ()
                forms += [self.product(split, [])] if len(split) > 1 else []
            self.written[key] = min(forms, key=length)
        return self.written[key]

    def _collected(self, polynomial: Polynomial) -> Iterator[Any]:
        """Sums with a power of one variable taken out, or a product of sums of different variables."""
        used = [i for i, d in enumerate(degrees(polynomial)) if d]
        for held in [[m for m in polynomial if m[i]] for i in used] + [[m for m in polynomial if any(m)]]:
            if len(held) < len(polynomial):
                rest = {m: c for m, c in polynomial.items() if m not in held}
                yield self.shortest({m: polynomial[m] for m in held}) + self.shortest(rest)
        for count in range(1, len(used) // 2 + 1):
            for mine in itertools.combinations(used, count):
                pair = separated(polynomial, mine)
                if pair is not None:
                    rest = cleaned(plus(polynomial, times(*pair), -1.0), max(map(abs, polynomial.values())))
                    whole = self.product(pair, [])
                    yield whole + self.shortest(rest) if rest else whole

    def _plain(self, polynomial: Polynomial) -> Polynomial:
        """The same in the generators themselves, not in parts of their size."""
        sizes = [g.size for g in self.generators]
        return {m: c / math.prod(s**k for s, k in zip(sizes, m, strict=True)) for m, c in polynomial.items()}

    def _monomial(self, monomial: tuple[int, ...]) -> Any:
        return sp.Mul(*(g.expr**k for g, k in zip(self.generators, monomial, strict=True)))

    def _value(self, number: Polynomial) -> float:
        return next(iter(number.values()))


def _bounded(polynomial: Polynomial) -> Polynomial:
    if len(polynomial) > _MAX_TERMS or max(degrees(polynomial), default=0) > _MAX_DEGREE:
        raise TooLong
    return polynomial


@lru_cache(maxsize=REMEMBERED)
def _price(value: float) -> float:
    return _number_cost(plain_number(value))


def is_rational(node: sp.Expr) -> bool:
    """Whether a part is a sum, product or whole power."""
    return isinstance(node, (sp.Add, sp.Mul)) or (isinstance(node, sp.Pow) and bool(node.exp.is_Integer))


def _leaves(node: sp.Expr) -> list[sp.Expr]:
    """What a part made of sums, products and whole powers is made of."""
    if node.is_number:
        return []
    if is_rational(node):
        return list(dict.fromkeys(leaf for a in node.args for leaf in _leaves(a)))
    return [node]


def _units(leaves: Sequence[sp.Expr]) -> Iterator[tuple[Any, dict[sp.Expr, int]]]:
    """Generators, and the leaves that are powers of each: x and x**(3/2) of √x, exp(2*x) of exp(x)."""
    kinds: dict[tuple[bool, sp.Expr], dict[sp.Expr, sp.Expr]] = {}
    for leaf in leaves:
        if isinstance(leaf, sp.exp):
            rate, rest = leaf.args[0].as_coeff_Mul()
            kinds.setdefault((True, rest), {})[leaf] = rate
        elif isinstance(leaf, sp.Pow) and leaf.exp.is_number:
            kinds.setdefault((False, leaf.base), {})[leaf] = leaf.exp
        else:
            kinds.setdefault((False, leaf), {})[leaf] = sp.S.One
    for (exponential, rest), rates in kinds.items():
        least = min(rates.values(), key=lambda r: abs(float(r)))
        units = [u for u in (abs(least), abs(least) / 2, abs(least) / 3) if _all_whole(rates.values(), u)]
        sharing = [(units[0], rates)] if units else [(r, {leaf: r}) for leaf, r in rates.items()]
        for unit, members in sharing:
            expr = sp.exp(unit * rest) if exponential else rest**unit
            yield expr, {leaf: round(float(rate / unit)) for leaf, rate in members.items()}


def _all_whole(rates: Any, unit: sp.Expr) -> bool:
    ratios = [float(rate / unit) for rate in rates]
    return all(abs(r - round(r)) <= NEGLIGIBLE * abs(r) and abs(r) <= _MAX_DEGREE for r in ratios)
