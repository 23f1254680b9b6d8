"""Shorter forms of a formula, in bounded time: the work is limited by the number of parts, never by a clock.

SymPy's own `simplify` may never end on fitted constants. The rules here are few and cheap, act on each
distinct part once, and give the same answer on every machine.
"""

from __future__ import annotations

import cmath
import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import sympy as sp

from eqlearn.numerics.criteria import NEGLIGIBLE
from eqlearn.symbolic.expressions import NOT_REAL, complexity, fitted, parts, same
from eqlearn.symbolic.snap import plain_number
from eqlearn.symbolic.tape import lower

_MAX_PARTS = 20_000  # beyond, a formula is left as it is
_MAX_SMALL = 100  # nodes of a part that is also tried expanded and factored
_MAX_TERMS = 40  # terms an expansion may have
_MAX_PASSES = 4
_MAX_VISITS = 1200  # parts looked at in all passes together, beyond the first pass


def simplified(expr: sp.Expr) -> Any:
    """The shortest form found: constants merged, powers of logarithms read as powers, small parts expanded
    or factored where that makes them shorter.

    Values stay the same to rounding wherever `expr` is defined; this is checked on points near 0, 1 and 10,
    and a form that fails the check is not used. Where a root or logarithm cancels, the shorter form may be
    defined on a larger domain: exp(1.5*log(x)) reads x**1.5.
    """
    count = len(parts(expr))
    if count > _MAX_PARTS:
        return expr
    shorter = expr
    finished: set[sp.Expr] = set()
    for _ in range(min(_MAX_PASSES, 1 + _MAX_VISITS // count)):
        before, shorter = shorter, _one_pass(shorter, finished)
        if shorter == before:
            break
    return shorter if complexity(shorter) <= complexity(expr) and _faithful(shorter, expr) else expr


def _one_pass(expr: sp.Expr, finished: set[sp.Expr]) -> Any:
    """Every part tidied once; parts that a pass did not change are `finished` and not tried again."""
    new: dict[sp.Expr, sp.Expr] = {}
    for node in parts(expr):
        args = [new[a] for a in node.args]
        rebuilt = node if same(args, node.args) else node.func(*args)
        new[node] = rebuilt if rebuilt in finished else _tidy(rebuilt)
        if new[node] == rebuilt:
            finished.add(rebuilt)
    return new[expr]


def _tidy(node: sp.Expr) -> sp.Expr:
    if isinstance(node, sp.Add):
        node = sp.Add(*_merge_numbers(node))
    elif isinstance(node, sp.Mul):
        node = _tidy_product(node)
    elif isinstance(node, sp.Pow):
        node = _tidy_power(node.base, node.exp)
    elif isinstance(node, sp.exp):
        node = _tidy_exp(node)
    elif isinstance(node, sp.log):
        node = _tidy_log(node)
    return _shortest(node) if isinstance(node, (sp.Add, sp.Mul)) else node


def _merge_numbers(node: sp.Expr) -> list[sp.Expr]:
    """The arguments of a sum or product with its numbers merged into one, if one of them is fitted."""
    numbers = [a for a in node.args if a.is_number]
    if len(numbers) < 2 or not any(a.has(sp.Float) for a in numbers):
        return list(node.args)
    merged = node.func(*numbers).evalf(17)
    return [merged, *(a for a in node.args if not a.is_number)]


def _tidy_product(node: sp.Expr) -> sp.Expr:
    factors, numbers, exponents = [], [], []
    for factor in node.args:
        base, exponent = (factor.base, factor.exp) if isinstance(factor, sp.Pow) else (factor, sp.S.One)
        if isinstance(base, sp.Add) and exponent.is_Integer:
            content, base = _content(base)
            numbers.append(content**exponent)
            factors.append(base**exponent)
        elif isinstance(factor, sp.exp) and not factor.is_number:
            exponents.append(factor.args[0])
        else:
            factors.append(factor)
    product = sp.Mul(*numbers, *factors, sp.exp(sp.Add(*exponents)))
    if not isinstance(product, sp.Mul):
        return product
    merged = _merge_numbers(product)
    return sp.Mul(*(_unit(a) if isinstance(a, sp.Float) else a for a in merged))


def _unit(number: sp.Float) -> sp.Expr:
    """A factor of exactly one is no constant."""
    return sp.Integer(number) if abs(number) == fitted(1.0) else number


def _content(add: sp.Expr) -> tuple[sp.Expr, sp.Expr]:
    """A sum of fitted terms as a number times a sum with one constant fewer: 2.5*x + 5.0 is 2.5*(x + 2.0)."""
    terms = [t.as_coeff_Mul() for t in add.args]
    if not all(isinstance(c, sp.Float) for c, _ in terms):
        return sp.S.One, add
    # The commonest size, so that most terms lose their constant; else the largest one of a variable term.
    common = Counter(abs(c) for c, _ in terms)
    pivot = max((c for c, rest in terms if rest != 1), key=lambda c: (common[abs(c)], abs(c)))
    return pivot, sp.Add(*(_unit(fitted(float(c / pivot))) * rest for c, rest in terms))


def _tidy_power(base: sp.Expr, exponent: sp.Expr) -> sp.Expr:
    if isinstance(base, sp.Float) and base > 0 and not exponent.is_number:
        merges = all(isinstance(t.as_coeff_Mul()[0], sp.Float) for t in sp.Add.make_args(exponent))
        return sp.exp(exponent * sp.log(base)) if merges else base**exponent
    if isinstance(exponent, sp.Float) and abs(exponent) <= 10 and float(exponent).is_integer():
        exponent = sp.Integer(exponent)
    if not exponent.is_number:
        return base**exponent
    if isinstance(base, sp.Add):
        content, rest = _content(base)
        if not exponent.is_Integer and content.is_negative:
            content, rest = -content, -rest
        return content**exponent * rest**exponent
    positive = [] if exponent.is_Integer else [f for f in sp.Mul.make_args(base) if _is_positive(f)]
    rest = sp.Mul(*(f for f in sp.Mul.make_args(base) if f not in positive))
    return sp.Mul(*(_powers(f, exponent) for f in positive), rest**exponent)


def _is_positive(factor: sp.Expr) -> bool:
    """Whether a factor is positive wherever it is defined: an exponential, or a power with a fraction."""
    return isinstance(factor, sp.exp) or (isinstance(factor, sp.Pow) and _is_fraction(factor.exp))


def _is_fraction(number: sp.Expr) -> bool:
    if isinstance(number, sp.Float):
        return not float(number).is_integer()
    return bool(number.is_Rational and not number.is_Integer)


def _powers(factor: sp.Expr, exponent: sp.Expr) -> sp.Expr:
    if isinstance(factor, sp.exp):
        return sp.exp(factor.args[0] * exponent)
    return factor.base ** (factor.exp * exponent)


def _tidy_exp(node: sp.Expr) -> sp.Expr:
    """exp of a sum: the terms a*log(b) come out as powers b**a."""
    powers, rest = [], []
    for term in sp.Add.make_args(node.args[0]):
        logs = [f for f in sp.Mul.make_args(term) if isinstance(f, sp.log)]
        if len(logs) == 1:
            powers.append(logs[0].args[0] ** sp.Mul(*(f for f in sp.Mul.make_args(term) if f is not logs[0])))
        else:
            rest.append(term)
    return sp.Mul(*powers, sp.exp(sp.Add(*rest))) if powers else node


def _tidy_log(node: sp.Expr) -> sp.Expr:
    """log of a product: what is positive wherever it is defined comes out."""
    terms, rest = [], []
    for factor in sp.Mul.make_args(node.args[0]):
        if isinstance(factor, sp.exp):
            terms.append(factor.args[0])
        elif isinstance(factor, sp.Float) and factor > 0:
            terms.append(sp.log(factor))
        elif isinstance(factor, sp.Pow) and _is_fraction(factor.exp):
            terms.append(factor.exp * sp.log(factor.base))
        else:
            rest.append(factor)
    if len(rest) == 1 and isinstance(rest[0], sp.Pow) and rest[0].exp.is_odd:
        return sp.Add(*terms, rest[0].exp * sp.log(rest[0].base))
    return sp.Add(*terms, sp.log(sp.Mul(*rest)))


def _shortest(node: sp.Expr) -> sp.Expr:
    """The shortest of a small part as it is, expanded, and with common factors taken out."""
    if len(list(itertools.islice(sp.preorder_traversal(node), _MAX_SMALL + 1))) > _MAX_SMALL:
        return node
    forms = [node]
    terms = sp.Add.make_args(node)
    if len(terms) < _count_terms(node) <= _MAX_TERMS:
        forms.append(sp.Add(*map(_expanded, terms)))
    if isinstance(node, sp.Add):
        forms.append(sp.factor_terms(node))
        if _is_small_polynomial(node):
            forms.append(sp.factor(node))
    forms = [form.func(*form.args) if form.args else form for form in forms]
    return node if all(form == node for form in forms) else min(forms, key=complexity)


def _is_small_polynomial(node: sp.Expr) -> bool:
    """Whether a sum is an exact polynomial that SymPy factors in no time."""
    exponents = [p.exp for p in node.atoms(sp.Pow)]
    return (
        not node.has(sp.Float)
        and bool(node.is_polynomial())
        and len(node.args) <= 12
        and len(node.free_symbols) <= 4
        and all(e.is_Integer and e <= 6 for e in exponents)
    )


def _expanded(term: sp.Expr) -> sp.Expr:
    """A product of powers of sums, multiplied out; what is inside a function is left alone."""
    factors = (
        f if isinstance(f, sp.Add) else sp.expand_multinomial(f, deep=False) for f in sp.Mul.make_args(term)
    )
    return sp.expand_mul(sp.Mul(*factors), deep=False)


def _count_terms(node: sp.Expr) -> int | float:
    """How many terms a part has at most when it is multiplied out."""
    if isinstance(node, sp.Add):
        return sum(map(_count_terms, node.args))
    if isinstance(node, sp.Mul):
        return math.prod(map(_count_terms, node.args))
    if isinstance(node, sp.Pow) and isinstance(node.base, sp.Add) and node.exp.is_Integer and node.exp > 0:
        terms, power = len(node.base.args), int(node.exp)
        return math.comb(terms + power - 1, power) if terms * power < 100 else math.inf
    return 1


def equivalents(node: sp.Expr, sign: Callable[[sp.Expr], int]) -> Iterator[Any]:
    """Other forms of one part by laws of its functions, where `sign(g)` is that of g on all data, or 0:
    log(x**2) is 2*log(x) for positive x."""
    if isinstance(node, sp.Abs) and sign(node.args[0]):
        yield sign(node.args[0]) * node.args[0]
    elif isinstance(node, sp.log):
        known, rest = _by_sign(node.args[0], sign)
        yield sp.Add(*(power * sp.log(base) for base, power in known), sp.log(rest))
    elif isinstance(node, sp.Pow) and node.exp.is_number and not node.exp.is_Integer:
        known, rest = _by_sign(node.base, sign)
        yield sp.Mul(*(base ** (power * node.exp) for base, power in known), rest**node.exp)
    elif isinstance(node, sp.Mul):
        yield _roots_together(node)
        for sine in (f for f in node.args if isinstance(f, sp.sin)):
            cosine = sp.cos(sine.args[0])
            yield node / sine * cosine * sp.tan(sine.args[0])
            if cosine in node.args:
                yield node / (sine * cosine) * sp.sin(2 * sine.args[0]) / 2
    elif isinstance(node, sp.Add):
        yield from (_logs_together(node, 1), _logs_together(node, 2), _waves_together(node))
        yield _exponentials_together(node)


def _by_sign(product: sp.Expr, sign: Callable[[sp.Expr], int]) -> tuple[list[tuple[Any, Any]], Any]:
    """|factors| that have a sign on the data, with their exponents, and the product of what is left."""
    known, rest = [], sp.S.One
    for factor in sp.Mul.make_args(product):
        base, power = (factor.base, factor.exp) if isinstance(factor, sp.Pow) else (factor, sp.S.One)
        if power.is_number and sign(base):
            known.append((sign(base) * base, power))
            rest *= sign(base) ** power if power.is_Integer else 1
        else:
            rest *= factor
    return known, rest


def _roots_together(node: sp.Expr) -> Any:
    """sqrt(x)*sqrt(y) as sqrt(x*y): where one of them is real, its argument is not negative."""
    groups: dict[sp.Expr, sp.Expr] = {}
    roots = [f for f in node.args if isinstance(f, sp.Pow) and _is_fraction(f.exp)]
    for root in roots:
        groups[abs(root.exp)] = groups.get(abs(root.exp), sp.S.One) * root.base ** sp.sign(root.exp)
    return sp.Mul(*(f for f in node.args if f not in roots), *(b**power for power, b in groups.items()))


def _one_function(term: sp.Expr, kinds: tuple[Any, ...]) -> tuple[Any, Any] | None:
    """A term as its only factor of these kinds and the others."""
    found = [f for f in sp.Mul.make_args(term) if isinstance(f, kinds) and not f.is_number]
    return (found[0], term / found[0]) if len(found) == 1 else None


def _logs_together(node: sp.Expr, highest: int) -> Any:
    """a*log(x) - a*log(y) as a*log(x/y), and with powers up to 2, 2*log(x) - log(y) as log(x**2/y)."""
    groups: dict[sp.Expr, sp.Expr] = {}
    splits = {term: _one_function(term, (sp.log,)) for term in node.args}
    for log, factor in filter(None, splits.values()):
        number, rest = factor.as_coeff_Mul()
        power = number if number.is_Integer and abs(number) <= highest else -1 if number < 0 else 1
        outer = rest * number / power
        groups[outer] = groups.get(outer, sp.S.One) * log.args[0] ** power
    others = (term for term, split in splits.items() if split is None)
    return sp.Add(*others, *(factor * sp.log(inner) for factor, inner in groups.items()))


def _waves_together(node: sp.Expr) -> Any:
    """a*sin(u) + b*cos(u) as one sine with a phase; or a cosine, if that needs none."""
    groups: dict[tuple[sp.Expr, sp.Expr], list[complex]] = {}
    total = node
    for term in node.args:
        split = _one_function(term, (sp.sin, sp.cos))
        if split is not None:
            size, factor = split[1].as_coeff_Mul()
            shift, inner = split[0].args[0].as_coeff_Add()
            angle = float(shift) + (math.pi / 2 if isinstance(split[0], sp.cos) else 0.0)
            groups.setdefault((factor, inner), []).append(float(size) * cmath.exp(1j * angle))
            total -= term
    for (factor, inner), waves in groups.items():
        size, angle = cmath.polar(sum(waves))
        quarters = round(angle / (math.pi / 2))
        if abs(angle - quarters * math.pi / 2) <= NEGLIGIBLE:
            wave = (sp.cos if quarters % 2 else sp.sin)(inner)
            total += plain_number(size if quarters in (0, 1) else -size) * factor * wave
        else:
            total += plain_number(size) * factor * sp.sin(inner + plain_number(angle))
    return total


def _exponentials_together(node: sp.Expr) -> Any:
    """a*exp(u) + a*exp(-u) as 2*a*cosh(u), and a*exp(u) - a*exp(-u) as 2*a*sinh(u)."""
    splits = [_one_function(term, (sp.exp,)) for term in node.args]
    found = {split[0].args[0]: split[1] for split in splits if split is not None}
    total = node
    for inner, factor in found.items():
        ratio = found.get(-inner, sp.S.Zero) / factor
        if not inner.could_extract_minus_sign() and ratio.is_number and abs(abs(ratio) - 1) <= NEGLIGIBLE:
            whole = 2 * factor * (sp.cosh(inner) if ratio > 0 else sp.sinh(inner))
            total += whole - factor * sp.exp(inner) - found[-inner] * sp.exp(-inner)
    return total


def _faithful(form: sp.Expr, original: sp.Expr) -> bool:
    """Whether two forms have the same values, to rounding, at fixed points near 0, 1 and 10; or near 100 and
    1000 if the original has none there."""
    if any(node in NOT_REAL for node in parts(form)):
        return False
    symbols = sorted(original.free_symbols, key=lambda s: s.name)
    draws = np.random.default_rng(0).uniform(-1, 1, size=(len(symbols), 96))
    draws[:, ::2] = np.abs(draws[:, ::2])
    tapes = lower(original, symbols), lower(form, symbols)
    with np.errstate(all="ignore"):
        for sizes in ([1.0, 3.0, 10.0], [100.0, 300.0, 1000.0]):
            points = draws * np.repeat(sizes, 32)
            expected, actual = (np.broadcast_to(p.evaluate(points), (96,)) for p in tapes)
            finite = np.isfinite(expected)
            if finite.any():
                scale = np.abs(expected[finite]) + np.median(np.abs(expected[finite]))
                return bool(np.all(np.abs(actual[finite] - expected[finite]) <= 1e-10 * scale))
    return False
