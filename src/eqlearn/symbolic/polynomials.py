"""Polynomials with fitted coefficients: common factors, factors and sums of fractions, by linear algebra.

Coefficients are known to some digits only, so a relation between them never holds exactly: here it holds if
what is left is rounding (`NO_COEFFICIENT`). Variables should be about 1, so that coefficients compare.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from functools import reduce
from typing import TypeAlias

import numpy as np

from eqlearn.numerics.criteria import NO_COEFFICIENT

Monomial: TypeAlias = "tuple[int, ...]"
Polynomial: TypeAlias = "dict[Monomial, float]"  # from the exponents of the variables to the coefficient

_MAX_UNKNOWNS = 120  # of a linear system; with more, nothing is looked for
_ORDERS = 40  # in which unknowns are given up, where a system leaves some free


def times(left: Polynomial, right: Polynomial) -> Polynomial:
    """The product."""
    product: Polynomial = {}
    for (a, s), (b, t) in itertools.product(left.items(), right.items()):
        both = tuple(i + j for i, j in zip(a, b, strict=True))
        product[both] = product.get(both, 0.0) + s * t
    return product


def plus(left: Polynomial, right: Polynomial, factor: float = 1.0) -> Polynomial:
    """left + factor*right."""
    total = dict(left)
    for monomial, value in right.items():
        total[monomial] = total.get(monomial, 0.0) + factor * value
    return total


def cleaned(polynomial: Polynomial, scale: float | None = None) -> Polynomial:
    """Without the coefficients that are rounding beside the largest, or beside `scale`."""
    largest = max(map(abs, polynomial.values()), default=0.0) if scale is None else scale
    return {m: c for m, c in polynomial.items() if abs(c) > NO_COEFFICIENT * largest}


def degrees(polynomial: Polynomial) -> Monomial:
    """The highest power of each variable."""
    return tuple(map(max, zip(*polynomial, strict=True)))


def is_number(polynomial: Polynomial) -> bool:
    return not any(map(any, polynomial))


def in_lowest_terms(top: Polynomial, bottom: Polynomial) -> tuple[Polynomial, Polynomial]:
    """The quotient of two polynomials without what they have in common.

    u/v = top/bottom means u*bottom = v*top: a linear system, which has a solution of lower degrees exactly if
    there is a common factor.
    """
    high, low = list(degrees(top)), list(degrees(bottom))
    best = top, bottom
    for i in range(len(high)):
        while min(high[i], low[i]) > 0:
            high[i], low[i] = high[i] - 1, low[i] - 1
            lower = _proportion(top, bottom, high, low)
            if lower is None:
                high[i], low[i] = high[i] + 1, low[i] + 1
                break
            best = lower
    return best


def _proportion(
    top: Polynomial, bottom: Polynomial, high: Sequence[int], low: Sequence[int]
) -> tuple[Polynomial, Polynomial] | None:
    above, below = box(high), box(low)
    if len(above) + len(below) > _MAX_UNKNOWNS:
        return None
    shifted = [(m, _unit(bottom)) for m in above] + [(m, _unit(top)) for m in below]
    matrix, _ = _system(shifted)
    _, sizes, directions = np.linalg.svd(matrix)
    if len(sizes) == len(shifted) and sizes[-1] > NO_COEFFICIENT * sizes[0]:
        return None
    solution = directions[-1] * ([_size(top)] * len(above) + [-_size(bottom)] * len(below))
    u, v = map(cleaned, _split(solution, [above, below]))
    return (u, v) if u and v else None


def divided(top: Polynomial, bottom: Polynomial) -> Polynomial | None:
    """The polynomial top/bottom, if it is one."""
    room = [i - j for i, j in zip(degrees(top), degrees(bottom), strict=True)]
    found = combinations(top, [(bottom, box(room))])
    return found[0][0] if found else None


def common_factor(left: Polynomial, right: Polynomial) -> Polynomial | None:
    """What two polynomials have in common, if it is no number."""
    rest, _ = in_lowest_terms(left, right)
    return None if rest is left else divided(left, rest)


def factors(polynomial: Polynomial) -> list[Polynomial]:
    """Polynomials whose product is this one: by common factors of its coefficients and of its derivatives,
    by the discriminant where it is quadratic in a variable, and by its roots in one."""
    highest = degrees(polynomial)
    used = [i for i, d in enumerate(highest) if d]
    for i in used:
        lowest = min(m[i] for m in polynomial)
        if lowest:
            power = tuple(lowest if k == i else 0 for k in range(len(highest)))
            rest = {tuple(a - b for a, b in zip(m, power, strict=True)): c for m, c in polynomial.items()}
            single = tuple(int(k == i) for k in range(len(highest)))
            return [{single: 1.0}] * lowest + factors(rest)
    for i in used:
        part = _content(polynomial, i) if len(used) > 1 else None
        part = part or (common_factor(polynomial, _slope(polynomial, i)) if highest[i] > 1 else None)
        rest_of = None if part is None else divided(polynomial, part)
        if part is not None and rest_of is not None and not is_number(part):
            return factors(part) + factors(rest_of)
    if not used or any(highest[i] == 1 for i in used):
        return [polynomial]
    for i in used:
        pair = _by_discriminant(polynomial, i) if highest[i] == 2 else None
        if pair is not None:
            return pair
    return _by_roots(polynomial, used[0]) if len(used) == 1 else [polynomial]


def _content(polynomial: Polynomial, i: int) -> Polynomial | None:
    """What the coefficients of the powers of a variable have in common."""
    shared: Polynomial | None = None
    for coefficient in filter(None, _coefficients(polynomial, i)):
        shared = coefficient if shared is None else common_factor(shared, coefficient)
        if shared is None or is_number(shared):
            return None
    return shared


def _coefficients(polynomial: Polynomial, i: int) -> list[Polynomial]:
    """The coefficients of the powers of a variable, the lowest first."""
    found: list[Polynomial] = [{} for _ in range(degrees(polynomial)[i] + 1)]
    for monomial, c in polynomial.items():
        found[monomial[i]][(*monomial[:i], 0, *monomial[i + 1 :])] = c
    return found


def _slope(polynomial: Polynomial, i: int) -> Polynomial:
    return {(*m[:i], m[i] - 1, *m[i + 1 :]): m[i] * c for m, c in polynomial.items() if m[i]}


def _by_discriminant(polynomial: Polynomial, i: int) -> list[Polynomial] | None:
    """a*x² + b*x + c as two factors, if the discriminant is the square of a polynomial."""
    c, b, a = _coefficients(polynomial, i)
    square = plus(times(b, b), times(a, c), -4.0)
    root = square_root(cleaned(square, _size(b) ** 2 + 4 * _size(a) * _size(c)))
    if root is None:
        return None
    x = {tuple(int(k == i) for k in range(len(next(iter(a))))): 1.0}
    whole = cleaned(plus(plus(times(times(a, x), _number(a, 2.0)), b), root))
    lead = [p for p in factors(whole) if degrees(p)[i] == 1]
    rest = divided(polynomial, lead[0]) if lead else None
    return None if rest is None else [lead[0], rest]


def _number(like: Polynomial, value: float) -> Polynomial:
    return {(0,) * len(next(iter(like))): value}


def square_root(polynomial: Polynomial) -> Polynomial | None:
    """The polynomial of which this is the square, found from its highest monomial on."""
    if not polynomial:
        return None
    highest = max(polynomial)
    if polynomial[highest] < 0 or any(d % 2 for d in highest):
        return None
    first = tuple(d // 2 for d in highest)
    root, lead = {first: math.sqrt(polynomial[highest])}, math.sqrt(polynomial[highest])
    size = _size(polynomial)
    for _ in range(len(polynomial)):
        rest = cleaned(plus(polynomial, times(root, root), -1.0), size)
        if not rest:
            return root
        monomial = tuple(a - b for a, b in zip(max(rest), first, strict=True))
        if min(monomial) < 0 or monomial in root:
            return None
        root[monomial] = rest[max(rest)] / (2 * lead)
    return None


def _by_roots(polynomial: Polynomial, i: int) -> list[Polynomial]:
    """The linear and quadratic factors of a polynomial in one variable."""
    zero = next(iter(_number(polynomial, 0.0)))
    power = [(*zero[:i], k, *zero[i + 1 :]) for k in range(degrees(polynomial)[i] + 1)]
    lead = polynomial[power[-1]]
    found: list[Polynomial] = [{zero: lead}]
    for root in np.roots([polynomial.get(m, 0.0) for m in reversed(power)]):
        if abs(root.imag) <= NO_COEFFICIENT * abs(root):
            found.append({power[1]: 1.0, zero: -float(root.real)})
        elif root.imag > 0:
            quadratic = {power[2]: 1.0, power[1]: -2 * float(root.real), zero: float(abs(root) ** 2)}
            found.append(cleaned(quadratic))
    return found


def combinations(
    target: Polynomial, terms: Sequence[tuple[Polynomial, Sequence[Monomial]]]
) -> list[list[Polynomial]]:
    """Polynomials a, b, ... of given monomials with a*A + b*B + ... = target, the shortest first.

    A system that determines them has one solution. Else each solution in which no further coefficient can be
    made zero says the same; they are found by giving up coefficients in different orders.
    """
    unknowns = [(monomial, factor) for factor, monomials in terms for monomial in monomials]
    if not unknowns or len(unknowns) > _MAX_UNKNOWNS:
        return []
    matrix, place = _system(unknowns)
    if not all(m in place for m in target):
        return []
    goal = np.zeros(len(matrix))
    goal[[place[m] for m in target]] = list(target.values())
    lengths = np.linalg.norm(matrix, axis=0)
    left, sizes, right = np.linalg.svd(matrix / lengths)
    rank = int((sizes > NO_COEFFICIENT * sizes[0]).sum())
    solution = right[:rank].T @ ((left[:, :rank].T @ goal) / sizes[:rank])
    if np.linalg.norm(matrix / lengths @ solution - goal) > NO_COEFFICIENT * np.linalg.norm(goal):
        return []
    found: dict[tuple[bool, ...], np.ndarray] = {}
    for solved in _sparse(solution, right[rank:].T):
        solved = np.where(np.abs(solved) > NO_COEFFICIENT * np.linalg.norm(goal), solved, 0.0)
        found.setdefault(tuple((solved != 0).tolist()), solved / lengths)
    ranked = sorted(found.values(), key=lambda s: int((s != 0).sum()))
    return [_split(solved, [monomials for _, monomials in terms]) for solved in ranked]


def _sparse(solution: np.ndarray, free: np.ndarray) -> Iterable[np.ndarray]:
    """Points of `solution` + span of `free` with as many zeros as there are free directions."""
    if not free.shape[1]:
        yield solution
        return
    count, rng = len(solution), np.random.default_rng(0)
    orders = [np.arange(count), np.arange(count)[::-1], *(rng.permutation(count) for _ in range(_ORDERS))]
    for order in orders:
        point, span = solution.copy(), free.copy()
        for i in order:
            row = span[i]
            pivot = int(np.argmax(np.abs(row)))
            if abs(row[pivot]) <= NO_COEFFICIENT:
                continue
            direction = span[:, pivot] / row[pivot]
            point = point - point[i] * direction
            span = np.delete(span - np.outer(direction, row), pivot, axis=1)
            if not span.shape[1]:
                break
        yield point


def _split(solved: np.ndarray, supports: Sequence[Sequence[Monomial]]) -> list[Polynomial]:
    values = iter(solved.tolist())
    return [{m: c for m in monomials if (c := next(values))} for monomials in supports]


def _system(unknowns: Sequence[tuple[Monomial, Polynomial]]) -> tuple[np.ndarray, dict[Monomial, int]]:
    """The matrix from unknown coefficients to those of the sum, and the row of each monomial in it."""
    place: dict[Monomial, int] = {}
    entries = []
    for column, (monomial, factor) in enumerate(unknowns):
        for other, value in factor.items():
            both = tuple(a + b for a, b in zip(monomial, other, strict=True))
            entries.append((place.setdefault(both, len(place)), column, value))
    matrix = np.zeros((len(place), len(unknowns)))
    for row, column, value in entries:
        matrix[row, column] += value
    return matrix, place


def box(highest: Sequence[int]) -> list[Monomial]:
    """All monomials of at most these degrees."""
    return list(itertools.product(*(range(d + 1) for d in highest)))


def _size(polynomial: Polynomial) -> float:
    return max(map(abs, polynomial.values()), default=0.0)


def _unit(polynomial: Polynomial) -> Polynomial:
    return {m: c / _size(polynomial) for m, c in polynomial.items()}


def power(polynomial: Polynomial, exponent: int) -> Polynomial:
    return reduce(times, [polynomial] * exponent)


def alike(every: Sequence[Polynomial]) -> list[tuple[Polynomial, int]]:
    """Factors that are multiples of each other as powers of the first; numbers go into one of them."""
    groups: list[tuple[Polynomial, int]] = []
    number = 1.0
    for factor in every:
        if is_number(factor):
            number *= next(iter(factor.values()))
            continue
        for place, (known, k) in enumerate(groups):
            ratio = _ratio(factor, known)
            if ratio is not None:
                groups[place], number = (known, k + 1), number * ratio
                break
        else:
            groups.append((factor, 1))
    zero = (0,) * len(next(iter(every[0]))) if every else ()
    return groups + ([({zero: number}, 1)] if number != 1.0 else [])


def _ratio(one: Polynomial, other: Polynomial) -> float | None:
    ratios = [one[m] / other[m] for m in one] if one.keys() == other.keys() else [0.0]
    alike = ratios[0] and all(abs(r / ratios[0] - 1) <= NO_COEFFICIENT for r in ratios)
    return ratios[0] if alike else None


def separated(polynomial: Polynomial, mine: Sequence[int]) -> tuple[Polynomial, Polynomial] | None:
    """Sums A of the variables `mine` and B of the others, if A*B is the polynomial but for terms in one of
    the two alone; the numbers in A and B leave as few of those as possible."""
    table: dict[tuple[int, ...], dict[tuple[int, ...], float]] = {}
    for monomial, value in polynomial.items():
        row = tuple(k if i in mine else 0 for i, k in enumerate(monomial))
        table.setdefault(row, {})[tuple(k - r for k, r in zip(monomial, row, strict=True))] = value
    zero = (0,) * len(next(iter(polynomial)))
    rows = [row for row in table if any(row)]
    columns = sorted({column for row in rows for column in table[row] if any(column)})
    matrix = np.array([[table[row].get(column, 0.0) for column in columns] for row in rows])
    if not matrix.any():
        return None
    left, sizes, right = np.linalg.svd(matrix, full_matrices=False)
    if len(sizes) > 1 and sizes[1] > NO_COEFFICIENT * sizes[0]:
        return None
    a = cleaned(dict(zip(rows, map(float, left[:, 0] * sizes[0]), strict=True)))
    b = cleaned(dict(zip(columns, map(float, right[0]), strict=True)))
    beside_a = _commonest([table[row].get(zero, 0.0) / c for row, c in a.items()])
    beside_b = _commonest([table.get(zero, {}).get(column, 0.0) / c for column, c in b.items()])
    pair = plus(a, {zero: beside_b}) if beside_b else a, plus(b, {zero: beside_a}) if beside_a else b
    return pair if any(len(p) > 1 for p in pair) else None


def _commonest(values: Sequence[float]) -> float:
    """The value that most of the others equal to rounding."""
    return max(values, key=lambda v: sum(abs(v - w) <= NO_COEFFICIENT * abs(v) for w in values))
