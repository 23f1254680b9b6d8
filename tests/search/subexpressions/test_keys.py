"""Entries are found by what they have outside of a span, whatever their factor and the sum beside them."""

import numpy as np
import pytest

from eqlearn.search.subexpressions.keys import MOST_ALIKE, Keys

ROWS = 24
RNG = np.random.default_rng(0)
ENTRIES = RNG.normal(size=(500, ROWS))
BASIS = np.linalg.qr(np.concatenate([np.ones((1, ROWS)), RNG.normal(size=(4, ROWS))]).T)[0]


@pytest.fixture(scope="module")
def keys():
    return Keys(BASIS, [ENTRIES[:200], ENTRIES[200:]])


@pytest.mark.parametrize(("entry", "factor"), [(0, 3.0), (17, -0.2), (499, 1e6)])
def test_a_multiple_of_an_entry_and_a_sum_in_the_span_match_it(keys, entry, factor):
    values = np.stack([ENTRIES[1] + ENTRIES[2], factor * ENTRIES[entry] + BASIS @ np.arange(5.0)])
    _, asked = keys.seen(values)
    assert keys.matches(asked) == [(1, entry)]


def test_what_is_in_the_span_has_no_share_outside_and_no_key(keys):
    share, asked = keys.seen((BASIS @ np.arange(1.0, 6.0))[None])
    assert share[0] < 1e-12
    assert keys.matches(asked) == []


def test_a_small_deviation_is_no_match(keys):
    _, asked = keys.seen((ENTRIES[3] + 1e-4 * ENTRIES[4])[None])
    assert keys.matches(asked) == []


@np.errstate(all="ignore")
def test_what_is_not_finite_or_constant_matches_nothing(keys):
    values = np.stack([np.full(ROWS, np.nan), np.full(ROWS, 2.0), np.full(ROWS, np.inf), np.zeros(ROWS)])
    share, asked = keys.seen(values)
    assert not (share < 1e-3).any()
    assert keys.matches(asked) == []


def test_a_direction_that_many_entries_have_tells_nothing():
    many = Keys(BASIS, [np.repeat(ENTRIES[:1], MOST_ALIKE + 1, axis=0), ENTRIES[1:3]])
    _, asked = many.seen(ENTRIES[:2])
    assert many.matches(asked) == [(1, MOST_ALIKE + 1)]


def test_once_the_clock_has_run_out_no_entries_are_taken_up():
    none = Keys(BASIS, [ENTRIES], lambda: True)
    assert none.matches(none.seen(ENTRIES[:2])[1]) == []
