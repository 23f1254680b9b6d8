"""The shortest of a formula's equivalents: what `simplified` can't find, for the few that are delivered.

A part made of sums, products and quotients is a quotient of polynomials in whatever else it holds (variables,
logarithms, roots, ...). It is written anew: in lowest terms, factored, as a sum of fractions, or with
products taken out of sums, whichever is shortest. Laws of other functions follow, valid where the data are.
Work is limited by the number of terms, never by a clock, but `stop()` ends it at once.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
import sympy as sp

from eqlearn.errors import InvalidExpression, NotFinite
from eqlearn.numerics.budget import never
from eqlearn.numerics.criteria import NEGLIGIBLE
from eqlearn.symbolic.equation import Equation
from eqlearn.symbolic.expressions import (
    NOT_REAL,
    fitted,
    generators,
    is_rational,
    parts,
    real_symbol,
    with_equal_numbers,
)  # fmt: skip
from eqlearn.symbolic.parametric import Formula
from eqlearn.symbolic.polynomials import (
    Monomial,
    Polynomial,
    alike,
    box,
    cleaned,
    combinations,
    degrees,
    divided,
    factors,
    in_lowest_terms,
    is_number,
    plus,
    power,
    separated,
    times,
)  # fmt: skip
from eqlearn.symbolic.simplify import equivalents, simplified
from eqlearn.symbolic.snap import added_length, formula_length, plain_number, plainness
from eqlearn.symbolic.tape import lower

Values: TypeAlias = Callable[[sp.Expr], np.ndarray]
Sign: TypeAlias = Callable[[sp.Expr], int]
Quotient: TypeAlias = "tuple[Polynomial, Polynomial]"

_MAX_NODES = 200  # a longer formula is left as it is
_MAX_PASSES = 4
_MAX_STEPS = 8  # of least squares, from constants that are right but for rounding
_MAX_TERMS = 60  # of a numerator or denominator, multiplied out
_MAX_DEGREE = 8  # of a generator
_MAX_COLLECTED = 16  # terms of a sum out of which products are taken
_MAX_WRITTEN = 60  # polynomials of a quotient that are tried in several forms
_MAX_SUMS = 6  # sums of fractions that are written down, those of the fewest terms
_MAX_PIVOTS = 64  # ways to divide factors by one of their coefficients


class TooLong(Exception):
    """More terms than are looked at."""


def brief(equation: Equation, X: np.ndarray, *, stop: Callable[[], bool] = never) -> Equation:
    """The shortest form found that has the equation's values on the rows of `X`, to rounding; the equation
    itself if that is shortest, or nothing is found before `stop()`.

    Its constants are fitted to those values. Elsewhere a form may be another function: `log(x**2)` is
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

    if equation.complexity > _MAX_NODES or not np.isfinite(values(equation.expr)).all():
        return equation
    best, form = equation, with_equal_numbers(equation.expr)
    shortest = plainness(Formula.of(equation).filled(plain_number(c) for c in equation.constants))
    for passed in range(_MAX_PASSES):
        try:
            # Quotients are read whole before what is inside of them is written in other functions.
            before, form = form, simplified(_one_pass(form, values, sign, stop, inside=passed > 0))
            trial = _refitted(Equation(form, equation.variables), values(equation.expr), X, stop)
        except (NotFinite, InvalidExpression):
            break
        if stop() or trial is None:
            break
        found = plainness(trial.expr)
        if trial.complexity < best.complexity or (trial.complexity == best.complexity and found < shortest):
            best, form, shortest = trial, trial.expr, found
        if form == before and passed > 0:
            break
    return best


def _refitted(form: Equation, goal: np.ndarray, X: np.ndarray, stop: Callable[[], bool]) -> Equation | None:
    """A form with its constants fitted to these values, if it has them to rounding."""
    limit = NEGLIGIBLE * (float(np.std(goal)) or float(np.abs(goal).max()))
    formula = Formula.of(form)
    fit = formula.fit(X, goal, steps=_MAX_STEPS, stop=stop)
    plain = formula.with_constants([plain_number(float(v)) for v in fit.values]) if not fit.loose else form
    return next((e for e in (plain, form) if e.error(X, goal) <= limit), None)


def _one_pass(expr: sp.Expr, values: Values, sign: Sign, stop: Callable[[], bool], inside: bool) -> Any:
    """Every part in its shortest form, parts of parts first; with `inside`, those of quotients too."""
    nodes = parts(expr)
    outer = {a for node in nodes if not is_rational(node) for a in node.args} | {expr}
    new: dict[sp.Expr, sp.Expr] = {}
    for node in nodes:
        rebuilt = node.func(*(new[a] for a in node.args)) if node.args else node
        if isinstance(rebuilt, sp.Pow) and isinstance(rebuilt.exp, sp.Float):
            rebuilt = rebuilt.base ** plain_number(float(rebuilt.exp))
        forms = [rebuilt]
        whole = node in outer and is_rational(rebuilt)
        if not stop():
            forms += equivalents(rebuilt, sign) if inside or whole or not is_rational(rebuilt) else ()
            forms += _rational_forms(rebuilt, values, sign, stop) if whole else ()
        new[node] = min((f for f in forms if not NOT_REAL & set(parts(f))), key=plainness, default=rebuilt)
    return new[expr]


def _rational_forms(node: sp.Expr, values: Values, sign: Sign, stop: Callable[[], bool]) -> Iterator[Any]:
    """Forms of a quotient of polynomials, also after sin² = 1 - cos² or a step written as a tanh."""
    try:
        fractions = Fractions(node, values, stop)
        for changed in [fractions, *(Fractions(n, values, stop) for n in fractions.substituted(node))]:
            for form in changed.forms():
                yield form
                yield from equivalents(form, sign)
    except TooLong:
        return


class Fractions:
    """A quotient of polynomials in `generators`, and the forms in which it can be written."""

    def __init__(self, node: sp.Expr, values: Values, stop: Callable[[], bool] = never) -> None:
        self.stop = stop
        self.powers: dict[sp.Expr, tuple[int, int]] = {}
        self.generators: list[Any] = []
        self.sizes: list[float] = []  # of the generators on the data
        for unit, members in generators(node):
            found = values(unit)
            with np.errstate(over="ignore"):  # what is too large is left as it is
                size = float(np.sqrt(np.mean(np.square(found))))
            if not math.isfinite(size) or not size:
                raise TooLong
            self.powers |= {leaf: (len(self.generators), power) for leaf, power in members.items()}
            self.generators.append(unit)
            self.sizes.append(size)
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
            size = self.sizes[place] ** abs(power)
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
        bottom, total = self.one, dict[Monomial, float]()
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
        for wave in (n for n in parts(node) if isinstance(n, (sp.sin, sp.cos))):
            other = (sp.cos if isinstance(wave, sp.sin) else sp.sin)(wave.args[0])
            if node.has(wave**2) and node.has(other):
                yield node.xreplace({wave**2: 1 - other**2})
        zero = next(iter(self.one))
        for place, generator in enumerate(self.generators):
            step = math.gcd(*(m[place] for m in (*self.top, *self.bottom)))
            for factor in factors(self.bottom) if step and isinstance(generator, sp.exp) else ():
                plain = self._plain(factor)
                first = (*zero[:place], step, *zero[place + 1 :])
                if set(plain) == {first, zero} and min(plain.values()) > 0:
                    ratio = plain_number(plain[zero] / plain[first])
                    shift = sp.S.Zero if ratio == 1 else fitted(math.log(ratio))
                    tanh = sp.tanh((step * generator.args[0] - shift) / 2)
                    whole = (ratio * (1 + tanh) / (1 - tanh)) ** sp.Rational(1, step)
                    top, bottom = (self._sum_of(p, {generator: whole}) for p in (self.top, self.bottom))
                    yield top / bottom

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
            yield self.shortest({m: c / sum(self.bottom.values()) for m, c in self.top.items()})
            return
        yield from self.sums(self.top, below)
        for factor, _ in alike(above) if len(above) > 1 else ():
            pivot = max(self._plain(factor).items())[1]
            outer = {m: c / pivot for m, c in factor.items()}
            rest = divided(self.top, outer)
            for inner in self.sums(rest, below) if rest is not None and not is_number(outer) else ():
                yield self.shortest(outer) * inner

    def sums(self, top: Polynomial, below: Sequence[Polynomial]) -> Iterator[Any]:
        """A polynomial and fractions of few terms, over the whole denominator or powers of its factors."""
        groups = alike([f for f in below if not is_number(f)])
        powers = [power(factor, k) for factor, most in groups for k in range(1, most + 1)]
        for bottoms in [[self.bottom], powers] if len(powers) > 1 else [[self.bottom]]:
            terms = []
            for bottom in [self.one, *bottoms]:
                others, rest = in_lowest_terms(self.bottom, bottom)
                others = {m: c / sum(rest.values()) for m, c in others.items()}
                room = [a - b for a, b in zip(degrees(top), degrees(others), strict=True)]
                terms.append((others, box(room)))
            found = combinations(top, terms)[:_MAX_SUMS]
            for solution in found:
                if self.stop() or sum(map(len, solution)) > sum(map(len, found[0])) + 1:
                    break
                pairs = [(a, b) for a, b in zip(solution, [self.one, *bottoms], strict=True) if a]
                yield sp.Add(*(self.shortest(a) if is_number(b) else self.product([a], factors(b))
                               for a, b in pairs))  # fmt: skip

    def product(self, above: Sequence[Polynomial], below: Sequence[Polynomial]) -> Any:
        """Factors over factors, each divided by one of its coefficients so that few constants are left."""
        number, sums = 1.0, []
        for factor, k in alike(above) + [(f, -k) for f, k in alike(below)]:
            plain = self._plain(factor)
            if len(plain) == 1:
                ((monomial, value),) = plain.items()
                number *= value**k
                sums.append((self._monomial(monomial) ** k, 1, [1.0], factor))
            else:
                sums.append((None, k, list(dict.fromkeys(plain.values())), factor))
        choices = itertools.product(*(pivots for _, _, pivots, _ in sums))
        best: tuple[float, float, tuple[float, ...]] = (math.inf, 0.0, ())
        for pivots in itertools.islice(choices, _MAX_PIVOTS):
            whole = number * math.prod(p**k for p, (_, k, _, _) in zip(pivots, sums, strict=True))
            # The number before them all may also go into one of the factors.
            moved = [(1.0, (*pivots[:i], pivots[i] / whole**k, *pivots[i + 1 :]))
                     for i, (done, k, _, _) in enumerate(sums) if done is None and abs(k) == 1]  # fmt: skip
            for before, divisors in [(whole, pivots), *moved]:
                pairs = zip(divisors, sums, strict=True)
                price = added_length(before, False) + sum(
                    added_length(c / p, any(m)) for p, (done, _, _, f) in pairs if done is None
                    for m, c in self._plain(f).items()
                )  # fmt: skip
                best = min(best, (price, before, divisors), key=lambda b: b[0])
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
            forms = [self._sum_of(polynomial)]
            small = 2 < len(polynomial) <= _MAX_COLLECTED and len(self.written) < _MAX_WRITTEN
            split = factors(polynomial) if small and factored and not self.stop() else ()
            if len(split) > 1:
                forms.append(self.product(split, []))
            elif small and not self.stop():
                forms += self._collected(polynomial)
            self.written[key] = min(forms, key=formula_length)
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
        return {m: c / math.prod(map(pow, self.sizes, m)) for m, c in polynomial.items()}

    def _sum_of(self, polynomial: Polynomial, changed: Mapping[Any, Any] = MappingProxyType({})) -> Any:
        plain = self._plain(polynomial)
        return sp.Add(*(plain_number(c) * self._monomial(m, changed) for m, c in plain.items()))

    def _monomial(self, monomial: Monomial, changed: Mapping[Any, Any] = MappingProxyType({})) -> Any:
        return sp.Mul(*(changed.get(g, g) ** k for g, k in zip(self.generators, monomial, strict=True)))


def _bounded(polynomial: Polynomial) -> Polynomial:
    if len(polynomial) > _MAX_TERMS or max(degrees(polynomial), default=0) > _MAX_DEGREE:
        raise TooLong
    return polynomial
