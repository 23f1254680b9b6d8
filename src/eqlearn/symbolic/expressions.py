"""SymPy expressions seen as distinct parts: their size, the order they are read in, their fitted constants.

A dense network's formula is a large tree of few distinct parts, so everything here walks the parts.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import sympy as sp

from eqlearn.errors import InvalidArgument, InvalidExpression, NotFinite
from eqlearn.functions import FUNCTIONS, NAMES
from eqlearn.numerics.criteria import NEGLIGIBLE
from eqlearn.validation.options import did_you_mean

Order: TypeAlias = "dict[sp.Expr, tuple[sp.Expr, ...]]"

_ATOMS = (sp.Symbol, sp.Float, sp.Rational, type(sp.pi), type(sp.E))
NOT_REAL = {sp.nan, sp.oo, -sp.oo, sp.zoo, sp.I}
# What SymPy, which thinks of complex arguments, makes of formulas that are real wherever they are defined.
_REWRITES = {sp.cot: lambda g: sp.cos(g) / sp.sin(g), sp.re: lambda g: g, sp.im: lambda g: sp.S.Zero}
# The largest decimal exponent of a number; with longer ones, text could not be read back quickly.
MAX_EXPONENT = 9999
# A search looks at the same formula many times over; the last ones are remembered with what was found.
REMEMBERED = 512


def real_symbol(name: str) -> Any:
    """The SymPy symbol of a variable, whatever its name means elsewhere in SymPy."""
    return sp.Symbol(name, real=True)


def fitted(value: float) -> Any:
    """A fitted constant: exactly the float64 `value`."""
    return sp.Float(value, 17)


@lru_cache(maxsize=REMEMBERED)
def parts(expr: sp.Expr) -> tuple[sp.Expr, ...]:
    """Every distinct sub-expression once, arguments before the expressions that hold them."""
    seen: dict[sp.Expr, None] = {}
    stack = [expr]
    while stack:
        waiting = [a for a in stack[-1].args if a not in seen]
        if waiting:
            stack.extend(reversed(waiting))
        else:
            seen[stack.pop()] = None
    return tuple(seen)


def number_parts(nodes: Iterable[sp.Expr]) -> set[sp.Expr]:
    """Those of the `parts` that hold no variable."""
    numbers: set[sp.Expr] = set()
    for node in nodes:
        if not isinstance(node, sp.Symbol) and numbers.issuperset(node.args):
            numbers.add(node)
    return numbers


def is_denominator(node: sp.Expr) -> bool:
    """Whether a factor is read below the fraction line: a power with an exact negative exponent."""
    return isinstance(node, sp.Pow) and bool(node.exp.is_Rational) and node.exp.p < 0


@lru_cache(maxsize=REMEMBERED)
def complexity(expr: sp.Expr) -> int:
    """The number of nodes: variables, numbers, functions, and the operators + - * / and power.

    A number is one node however it is written (`2*pi`, `sqrt(2)/2`, `-0.31`), so snapping does not change
    the count; a minus sign and a factor of ±1 are free; `a/b` counts as `a*b`, `a - b` as `a + b`; a square
    root is a function of one argument.
    """
    nodes = parts(expr)
    numbers = number_parts(nodes)
    size: dict[sp.Expr, int] = {}
    for node in nodes:
        if node in numbers or isinstance(node, sp.Symbol):
            size[node] = 1
        elif isinstance(node, sp.Add):
            size[node] = sum(size[a] for a in node.args) + len(node.args) - 1
        elif isinstance(node, sp.Mul):
            factors = [a for a in node.args if a not in numbers]
            # 1/b standing alone counts its 1 and its division; in a product it counts neither.
            operands = [size[a] - 2 * is_denominator(a) for a in factors]
            if abs(sp.Mul(*(a for a in node.args if a in numbers))) != 1 or all(map(is_denominator, factors)):
                operands.append(1)
            size[node] = sum(operands) + len(operands) - 1
        elif isinstance(node, sp.Pow):
            size[node] = _power_size(node, size)
        else:
            size[node] = 1 + sum(size[a] for a in node.args)
    return size[expr]


def _power_size(node: sp.Expr, size: Mapping[sp.Expr, int]) -> int:
    if is_denominator(node):
        exponent, division = -node.exp, 2
    else:
        exponent, division = node.exp, 0
    operator = {sp.S.One: 0, sp.S.Half: 1}.get(exponent, 1 + size[node.exp])
    return size[node.base] + operator + division


@lru_cache(maxsize=REMEMBERED)
def reading_order(expr: sp.Expr) -> Order:
    """The arguments of every part in the order they are written, whatever the values of the constants.

    Sums begin with the highest powers and end with the number; products begin with the number and end
    with the denominators.
    """
    nodes = parts(expr)
    numbers = number_parts(nodes)
    order: Order = {}
    skeleton: dict[sp.Expr, str] = {}
    degree: dict[sp.Expr, int | None] = {}
    for node in nodes:
        args = tuple(node.args)
        if isinstance(node, sp.Add):
            args = tuple(sorted(args, key=lambda a: (a in numbers, -(degree[a] or 0), skeleton[a])))
        elif isinstance(node, sp.Mul):
            args = tuple(
                sorted(
                    args, key=lambda a: (a not in numbers, is_denominator(a), degree[a] is None, skeleton[a])
                )
            )
        order[node] = args
        degree[node] = 0 if node in numbers else _degree(node, degree)
        skeleton[node] = _skeleton(node, [skeleton[a] for a in args if a not in numbers or node.is_Pow])
    return order


def _degree(node: sp.Expr, degree: Mapping[sp.Expr, int | None]) -> int | None:
    """The degree of a monomial; None for anything else."""
    if isinstance(node, sp.Symbol):
        return 1
    if isinstance(node, sp.Pow) and node.exp.is_Integer and 0 < node.exp < 100 and degree[node.base]:
        return int(node.exp) * (degree[node.base] or 0)
    if isinstance(node, sp.Mul):
        degrees = [degree[a] for a in node.args]
        return None if None in degrees else sum(d for d in degrees if d is not None)
    return None


def _skeleton(node: sp.Expr, args: Sequence[str]) -> str:
    """A text to sort by, in which the values of constants don't matter."""
    if node.is_Atom:
        return "#" if isinstance(node, sp.Float) else str(node)
    mark = {sp.Add: "+", sp.Mul: "*", sp.Pow: "**"}.get(node.func)
    text = f"{node.func.__name__}({','.join(args)})" if mark is None else mark.join(args)
    return text if len(text) < 200 else hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


@lru_cache(maxsize=REMEMBERED)
def constant_holders(expr: sp.Expr) -> tuple[sp.Expr, ...]:
    """The parts that directly hold a fitted constant, in reading order; `expr` itself if it is one.

    No part holds two: SymPy merges them. A part that appears twice in a formula is one part, so its
    constant is one constant.
    """
    if isinstance(expr, sp.Float):
        return (expr,)
    order = reading_order(expr)
    seen: set[sp.Expr] = set()
    holders: dict[sp.Expr, None] = {}
    # The holder is entered when its number is met, so that constants come in the order they are read.
    stack: list[tuple[sp.Expr, sp.Expr]] = [(expr, expr)]
    while stack:
        node, holder = stack.pop()
        if isinstance(node, sp.Float):
            holders[holder] = None
        elif node not in seen:
            seen.add(node)
            stack.extend((a, node) for a in reversed(order[node]))
    return tuple(holders)


def held_constant(holder: sp.Expr) -> Any:
    """The fitted constant that a part holds."""
    return holder if isinstance(holder, sp.Float) else next(a for a in holder.args if isinstance(a, sp.Float))


def replace_constants(
    expr: sp.Expr, numbers: Mapping[sp.Expr, sp.Expr], symbols: Mapping[sp.Symbol, sp.Expr] | None = None
) -> Any:
    """The same formula with other numbers, given by holder, and in other symbols; what is not given stays."""
    if isinstance(expr, sp.Float):
        return numbers.get(expr, expr)
    new: dict[sp.Expr, sp.Expr] = dict(symbols or {})
    for node in parts(expr):
        if node not in new:
            args = [numbers.get(node, a) if isinstance(a, sp.Float) else new[a] for a in node.args]
            new[node] = node if same(args, node.args) else node.func(*args)
    return new[expr]


def fill_constants(expr: sp.Expr, holders: Sequence[sp.Expr], numbers: Iterable[sp.Expr]) -> Any:
    """The same formula with these numbers in the places of its constants, in reading order."""
    return replace_constants(expr, dict(zip(holders, numbers, strict=True)))


def same(left: Sequence[Any], right: Sequence[Any]) -> bool:
    """Whether two sequences hold the very same objects."""
    return all(a is b for a, b in zip(left, right, strict=True))


def with_equal_numbers(expr: sp.Expr) -> Any:
    """Constants that are the same to rounding, but for their sign, made the very same."""
    known: list[sp.Float] = []
    equal: dict[sp.Expr, sp.Expr] = {}
    for number in (node for node in parts(expr) if isinstance(node, sp.Float)):
        near = next((k for k in known if abs(abs(number / k) - 1) <= NEGLIGIBLE), None)
        if near is None:
            known.append(number)
        else:
            equal[number] = near if number * near > 0 else -near
    return expr.xreplace(equal)


def canonical(expr: sp.Expr, variables: Sequence[str]) -> Any:
    """`expr` in the variables' own symbols, built anew, its fitted constants rounded to float64.

    **Raises:** `InvalidArgument` for a symbol that is no variable, `InvalidExpression` for a function that
    is not known here, `NotFinite` where a number is not finite or not real.
    """
    symbols = {name: real_symbol(name) for name in variables}
    for again in range(8):  # rounding may let SymPy merge parts, which makes new numbers to round
        new: dict[sp.Expr, sp.Expr] = {}
        for node in parts(expr):
            args = _canonical_args(node, [new[a] for a in node.args])
            kept = again and args and same(args, node.args)
            new[node] = node if kept else _canonical_node(node, args, symbols)
        before, expr = expr, new[expr]
        if expr == before:
            break
    return _rounded(expr) if isinstance(expr, sp.Float) else expr


def _canonical_node(node: sp.Expr, args: list[sp.Expr], symbols: Mapping[str, sp.Symbol]) -> sp.Expr:
    if node in NOT_REAL or isinstance(node, sp.AccumBounds):
        raise NotFinite(
            f"the formula holds the number `{node}`: a part that depends on no variable lies outside "
            "the domain of its function (a division by zero, a root or logarithm of a negative number)"
        )
    if isinstance(node, sp.Symbol):
        if node.name not in symbols:
            hint = did_you_mean(node.name, symbols)
            raise InvalidArgument(f"`expr` holds {node.name!r}, which is not among `variables`; {hint}")
        return symbols[node.name]
    if isinstance(node, _ATOMS):
        return node
    if node.func in _REWRITES:
        return _REWRITES[node.func](*args)
    if not isinstance(node, (sp.Add, sp.Mul, sp.Pow)) and node.func not in NAMES:
        raise InvalidExpression(
            f"the function `{node.func.__name__}` is not known; the known ones are {', '.join(FUNCTIONS)}"
        )
    return node.func(*args)


def _canonical_args(node: sp.Expr, args: Sequence[sp.Expr]) -> list[sp.Expr]:
    # SymPy reads exp(1000 + g) as 1.97e434*exp(g). Such a number is kept whole; `lower` takes it back into
    # the exponential, so that no value overflows on the way.
    beside_exp = isinstance(node, sp.Mul) and any(isinstance(a, sp.exp) for a in args)
    return [_rounded(a, beside_exp) if isinstance(a, sp.Float) else a for a in args]


def magnitude(number: sp.Float) -> int:
    """The exponent of two just above |number|, also where float64 ends."""
    _, mantissa, exponent, bits = number._mpf_
    return int(exponent + bits) if mantissa else 0


def _rounded(number: sp.Float, beside_exp: bool = False) -> sp.Float:
    if beside_exp and 1000 < abs(magnitude(number)) < MAX_EXPONENT * math.log2(10):
        return number
    value = float(number)
    if not math.isfinite(value):
        raise NotFinite(
            f"the constant {sp.Float(number, 3)} is beyond float64; scale the data to moderate units"
        )
    rounded = fitted(value)
    return number if number == rounded else rounded


def is_rational(node: sp.Expr) -> bool:
    """Whether a part is a sum, product or whole power."""
    return isinstance(node, (sp.Add, sp.Mul)) or (isinstance(node, sp.Pow) and bool(node.exp.is_Integer))


def _leaves(node: sp.Expr) -> list[sp.Expr]:
    if node.is_number:
        return []
    if is_rational(node):
        return list(dict.fromkeys(leaf for a in node.args for leaf in _leaves(a)))
    return [node]


def generators(node: sp.Expr) -> Iterator[tuple[Any, dict[sp.Expr, int]]]:
    """What a part made of sums, products and whole powers is a quotient of polynomials in, and which of its
    leaves are what powers of each: x and x**(3/2) of √x, exp(2*x) of exp(x)."""
    kinds: dict[tuple[bool, sp.Expr], dict[sp.Expr, sp.Expr]] = {}
    for leaf in _leaves(node):
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
    return all(abs(r - round(r)) <= NEGLIGIBLE * abs(r) for r in ratios)
