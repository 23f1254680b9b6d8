"""Polynomials with fitted coefficients: what holds but for rounding is found, what does not is not."""

from functools import reduce

import numpy as np
import pytest

from eqlearn.symbolic.polynomials import (
    cleaned,
    combinations,
    degrees,
    divided,
    factors,
    in_lowest_terms,
    plus,
    separated,
    square_root,
    times,
)

ONE = {(0, 0): 1.0}


def linear(a, b, c):
    return cleaned({(1, 0): float(a), (0, 1): float(b), (0, 0): float(c)})


def fitted(polynomial, size=1e-11):
    rng = np.random.default_rng(0)
    return {m: c * (1 + size * rng.normal()) for m, c in polynomial.items()}


def same(one, other, tolerance=1e-7):
    return not cleaned(plus(one, other, -1.0), max(map(abs, one.values())) * tolerance / 1e-7)


@pytest.mark.parametrize(
    "parts",
    [
        [linear(0.7, 1, 0), linear(0.7, 1, 0)],
        [linear(1, 0, 1.3), linear(0, 1, 2.2)],
        [linear(1, 0.5, 1.3), linear(2, -1, 0.2)],
        [linear(1, 0.5, 1.3), {(2, 0): 1.2, (0, 1): 1.0}],
        [linear(1, 0, -1), linear(1, 0, -2), linear(1, 0, -3)],
        [linear(1, 0, 0), linear(1, 0, 0), linear(0, 1, 2)],
        [linear(1, 0.3, 0)] * 3,
    ],
)
def test_a_product_of_factors_is_seen(parts):
    product = fitted(cleaned(reduce(times, parts)))

    found = [f for f in factors(product) if any(degrees(f))]

    assert len(found) == len(parts)
    assert same(product, reduce(times, factors(product)))


@pytest.mark.parametrize(
    "polynomial",
    [
        ONE,
        linear(1, 2, 3),
        {(2, 0): 1.0, (0, 2): 1.0, (0, 0): 1.0},
        {(2, 0): 1.0, (1, 1): 2.0, (0, 2): 1.001},
    ],
)
def test_what_has_no_factors_stays_whole(polynomial):
    assert same(reduce(times, factors(polynomial)), polynomial)
    assert len(factors(polynomial)) == 1


def test_common_factors_cancel():
    shared, top, bottom = linear(1, 0.5, 1.3), linear(2, -1, 0.2), linear(0, 1, 3)

    u, v = in_lowest_terms(fitted(times(shared, top)), fitted(times(shared, bottom)))

    assert degrees(u) == (1, 1)
    assert degrees(v) == (0, 1)
    assert same(times(u, bottom), times(v, top))


def test_nothing_cancels_where_nothing_is_common():
    top, bottom = linear(1, 1, 0), linear(1, 1, 1e-3)

    assert in_lowest_terms(top, bottom) == (top, bottom)


def test_division_leaves_nothing_or_is_refused():
    product = times(linear(1, 2, 3), linear(1, 0, 0.5))

    assert same(divided(product, linear(1, 0, 0.5)), linear(1, 2, 3))
    assert divided(product, linear(1, 0, 0.6)) is None
    assert divided(linear(1, 0, 1), product) is None


def test_squares_have_roots_and_others_none():
    assert same(square_root(fitted(times(linear(0.7, 1, 2), linear(0.7, 1, 2)))), linear(0.7, 1, 2), 1e-6)
    assert square_root(linear(1, 0, 1)) is None
    assert square_root({(2, 0): -1.0}) is None
    assert square_root({}) is None


def test_the_sum_of_fewest_terms_comes_first():
    bottom = linear(1, 0, 1.7)
    top = plus(times(bottom, linear(0, 1, 0)), {(0, 0): 2.2})

    first = combinations(fitted(top), [(ONE, [(0, 0), (1, 0), (0, 1), (1, 1)]), (bottom, [(0, 0), (0, 1)])])[
        0
    ]

    assert [list(part) for part in first] == [[(0, 0)], [(0, 1)]]
    assert combinations(top, [(bottom, [(0, 1)])]) == []


def test_a_product_beside_other_terms_is_separated():
    whole = plus(times(linear(1, 0, 1.5), linear(0, 1, 2.5)), {(2, 0): 0.3})

    left, right = separated(fitted(whole), [0])

    assert same(times(left, right), times(linear(1, 0, 1.5), linear(0, 1, 2.5)), 1e-6)
    assert separated({(1, 1): 1.0, (2, 2): 1.0}, [0]) is None
