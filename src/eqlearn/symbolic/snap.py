"""Exact numbers for fitted constants: integers, fractions, square roots, multiples of pi and of e."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
import sympy as sp

from eqlearn.errors import InvalidArgument, NotFinite
from eqlearn.numerics.budget import never
from eqlearn.numerics.criteria import (
    BY_CHANCE,
    FUNCTION_CHOICES,
    MAX_DIGITS,
    NEGLIGIBLE,
    RARE_ROOT,
    SNAP_ERRORS,
    SNAP_ROUNDING,
    constant_cost,
    description_length,
)
from eqlearn.symbolic.expressions import REMEMBERED, complexity, fitted, parts
from eqlearn.symbolic.tape import number_value
from eqlearn.validation.options import check_least

MAX_DENOMINATOR = 24
# Relative distances at which data are asked whether a number will do, the boldest first.
_LADDER = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-8)

# value**root == fraction * factor, for each kind of number that is tried.
_KINDS: tuple[tuple[int, Any], ...] = (
    *((1, factor) for factor in (sp.S.One, sp.pi, 1 / sp.pi, sp.pi**2, sp.E, 1 / sp.E)),
    *((2, factor) for factor in (sp.S.One, sp.pi, 1 / sp.pi)),
)


def snap_constant(value: float, tolerance: float, *, max_cost: float = math.inf) -> Any:
    """The simplest exact number within `tolerance` (absolute) of `value`, or None.

    Simple means a small `number_cost`; denominators end at 24. There are about 2**bits numbers of a cost
    up to `bits`, so with a wide `tolerance` one of them is near by chance: `max_cost` sets the limit.
    """
    if not math.isfinite(value):
        raise NotFinite(f"`value` must be finite, got {value}")
    check_least("tolerance", tolerance, 0)
    margin = tolerance + 2 * math.ulp(value)
    if abs(value) <= margin:
        return sp.S.Zero
    if not 1e-6 < abs(value) < 1e15:
        return None  # no number with a denominator up to 24 is there, or every integer is
    low, high = abs(value) - margin, abs(value) + margin
    found = [c for root, factor in _KINDS if (c := _nearest_kind(low, high, root, factor)) is not None]
    affordable = [c for c in found if number_cost(c) <= max_cost]
    if not affordable:
        return None
    return int(math.copysign(1, value)) * min(affordable, key=number_cost)


@lru_cache(maxsize=REMEMBERED)
def plain_number(value: float) -> Any:
    """A fraction, if the value is one to rounding and not by chance; else a fitted constant."""
    near = Fraction(value).limit_denominator(MAX_DENOMINATOR)
    rare = abs(near.numerator) * near.denominator < BY_CHANCE / NEGLIGIBLE
    if near and rare and abs(value - near) <= NEGLIGIBLE * abs(near):
        return sp.Rational(near.numerator, near.denominator)
    return fitted(value)


def trusted_bits(value: float, tolerance: float) -> float:
    """What a number within `tolerance` of `value` may cost to be there by chance in at most one of eight
    cases."""
    if not value or not tolerance:
        return math.inf
    return math.log2(abs(value) / tolerance) - 3 if math.isfinite(tolerance) else -math.inf


def number_cost(number: sp.Expr) -> float:
    """The description length of an exact number in bits: log2((1 + |p|) q) for the fraction p/q, and a few
    bits for each root, power, pi and e."""
    number = sp.S(number)
    if number.is_Rational:
        return math.log2((1 + abs(int(number.p))) * int(number.q))
    if number in (sp.pi, sp.E):
        return 4.0 if number == sp.pi else 6.0
    if isinstance(number, sp.Mul) and not number.has(sp.Float):
        # A factor of ±1 costs no bit more than its sign.
        return sum(number_cost(a) for a in number.args if a != -1)
    if isinstance(number, (sp.Pow, sp.exp)) and not number.has(sp.Float):
        base, exponent = number.as_base_exp()
        if exponent.is_Rational:
            # 1/pi and pi**2 are rarer than pi: in noise, 1/3 and 10 are more likely than they.
            p, q = int(exponent.p), int(exponent.q)
            return number_cost(base) + math.log2(abs(p) * q) + (p < 0) + (abs(p) > 1)
    raise InvalidArgument(
        f"`number` must be an exact product of fractions, roots, pi and e, got {number}; "
        "a fitted constant costs what its precision costs"
    )


def number_length(number: sp.Expr) -> float:
    """What a number costs in a formula, in nats; a fitted one all its digits, 0 and ±1 nothing."""
    if isinstance(number, sp.Float):
        return MAX_DIGITS
    return number_cost(number) * math.log(2) if number.is_Rational and number not in (0, 1, -1) else 0.0


@lru_cache(maxsize=REMEMBERED)
def added_length(value: float, factor: bool) -> float:
    """What a number adds to a formula's length; a factor of a term comes with its multiplication."""
    number = plain_number(value)
    return number_length(number) + (2 * math.log(FUNCTION_CHOICES) if factor and abs(number) != 1 else 0.0)


@lru_cache(maxsize=REMEMBERED)
def formula_length(expr: sp.Expr) -> float:
    """The description length of a formula alone, its fitted constants known to all their digits."""
    every = list(sp.preorder_traversal(expr))
    symbols = {node if isinstance(node, sp.Symbol) else node.func for node in every if not node.is_Number}
    return description_length(0, 1.0, sum(map(number_length, every)), complexity(expr), len(symbols) + 1)


def plainness(expr: sp.Expr) -> tuple[float, int]:
    """Its length, and of forms of one length how much stands inside of functions: 2*log(x), not log(x**2)."""
    inner = (a for node in parts(expr) if isinstance(node, sp.Function) for a in node.args)
    return formula_length(expr), sum(map(complexity, inner))


def _nearest_kind(low: float, high: float, root: int, factor: sp.Expr) -> Any:
    scale = number_value(factor)
    fraction = simplest_fraction(low**root / scale, high**root / scale)
    if fraction.denominator > MAX_DENOMINATOR:
        return None
    return (sp.Rational(fraction.numerator, fraction.denominator) * factor) ** sp.Rational(1, root)


def simplest_fraction(low: float, high: float) -> Fraction:
    """The fraction with the smallest denominator, and then numerator, in [low, high] with 0 < low."""
    below, above = Fraction(low), Fraction(high)
    # Walk down the continued fractions of both ends while they agree.
    terms: list[int] = []
    while True:
        whole = math.floor(below)
        if whole == below or whole + 1 <= above:
            terms.append(whole if whole == below else whole + 1)
            break
        terms.append(whole)
        below, above = 1 / (above - whole), 1 / (below - whole)
    result = Fraction(terms[-1])
    for term in reversed(terms[:-1]):
        result = term + 1 / result
    return result


def candidates(value: float, error: float | None, tolerance: float, with_data: bool) -> list[Any]:
    """Exact numbers to try for one constant, the boldest first.

    `error` is the constant's standard error, if known (NaN is not); infinite, no number is nearer than
    another, since other constants make up for it. Without it, numbers up to 1 % away are tried where data can
    refuse them, and numbers within the relative `tolerance` where there are none.
    """
    if error is not None and math.isinf(error):
        return []
    if error is not None and not math.isnan(error):
        widths = [3 * error, error]
    else:
        widths = [abs(value) * w for w in _LADDER if w > tolerance and with_data] + [abs(value) * tolerance]
    found = [sp.S.Zero] if with_data and abs(value) < 1e-6 else []
    for width in widths:
        number = snap_constant(value, width, max_cost=trusted_bits(value, width))
        if number is not None and number not in found:
            found.append(number)
    return found


@runtime_checkable
class Constants(Protocol):
    """Values of constants and their standard errors, as a fit gives them."""

    @property
    def values(self) -> np.ndarray: ...

    @property
    def standard_errors(self) -> np.ndarray: ...


Fitted = TypeVar("Fitted", bound=Constants)


def snap_in_turn(
    fit: Fitted,
    rows: int,
    refit: Callable[[Fitted, np.ndarray, np.ndarray], Fitted],
    rise: Callable[[Fitted, Fitted], float],
    *,
    negligible: Callable[[Fitted, int], bool] = lambda fit, i: False,
    rarer: float = 0.0,
    stop: Callable[[], bool] = never,
) -> tuple[list[sp.Expr | float], Fitted]:
    """Each constant, the surest first, moved to a simple number within its error and the others refitted; a
    move stays if the description gets no longer.

    `refit(fit, start, fixed)` gives the fit from these values with some of them fixed, `rise(before, after)`
    how many nats more the data take to describe; a constant that is `negligible` may be zero, whatever its
    error, and numbers other than 0 and ±1 are so many bits `rarer`. Returns the numbers, and the fit that
    goes with them.
    """
    values: list[sp.Expr | float] = [float(v) for v in fit.values]
    fixed = np.zeros(len(values), dtype=bool)
    order = sorted(range(len(values)), key=lambda i: fit.standard_errors[i] / (abs(fit.values[i]) + 1e-300))
    for i in order:
        if stop():
            break
        value, error = float(fit.values[i]), float(fit.standard_errors[i])
        simple = sp.S.Zero if negligible(fit, i) else simple_number(value, error, rarer)
        if simple is None:
            continue
        start, hold = fit.values.copy(), fixed.copy()
        start[i], hold[i] = float(simple), True
        trial = refit(fit, start, hold)
        if rise(fit, trial) + number_cost(simple) * math.log(2) <= constant_cost(value, error, rows):
            values[i], fixed, fit = simple, hold, trial
    numbers = [v if f else float(x) for v, f, x in zip(values, fixed, fit.values, strict=True)]
    return numbers, fit


def simple_number(value: float, error: float, rarer: float = 0.0) -> sp.Expr | None:
    """The simplest number within a constant's error, if chance is unlikely to have put it there; others than
    0 and ±1 are so many bits `rarer`."""
    if not math.isfinite(error):
        return None
    width = max(SNAP_ERRORS * error, SNAP_ROUNDING * abs(value))
    bits = trusted_bits(value, width)
    simple = snap_constant(value, width, max_cost=bits)
    # Roots are rarer in laws than fractions of their length: in noise, one of them is near most numbers.
    root = simple is not None and any(not p.exp.is_Integer for p in simple.atoms(sp.Pow))
    bits -= RARE_ROOT * root + rarer * (simple not in (None, 0, 1, -1))
    return None if simple is None or number_cost(simple) > bits else simple
