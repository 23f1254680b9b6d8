"""Couples of entries: numbered, worked out again, and met in the middle."""

import numpy as np
import pytest

from eqlearn.nn.primitives import lookup
from eqlearn.search.settings import Settings
from eqlearn.search.subexpressions.bank import grown
from eqlearn.search.subexpressions.bank_settings import BankSettings, Span
from eqlearn.search.subexpressions.couples import Couples
from eqlearn.search.subexpressions.spans import wide_span_ansatzes
from search_problems import error_of, problem_of

PROBLEM = problem_of("x + y", ["x", "y"], rows=30)
BANK = grown(PROBLEM, 40, exact=True)
SETTINGS = Settings(bank=BankSettings(entries=300, wide_spans=(Span(6, 300, 24, coupled=120),)))


def couples(times="mul", over="div"):
    return Couples(BANK, 7, times and lookup(times), over and lookup(over))


def test_numbers_follow_the_order_of_the_blocks():
    every = couples()
    values = np.concatenate(list(every.blocks()))

    assert len(values) == 4 * 7 * 7
    for number in np.flatnonzero(np.isfinite(values).all(axis=1)).tolist():
        np.testing.assert_allclose(every.terms(number).values[0], values[number])


def test_what_is_the_same_the_other_way_round_comes_once():
    values = np.concatenate(list(couples(over=None).blocks()))
    finite = values[np.isfinite(values).all(axis=1)]
    assert len(finite) == 28 + 21 + 21  # products, sums and differences of seven


@pytest.mark.parametrize("number", [5, 60, 110, 160])
def test_a_couple_is_written_as_it_is_computed(number):
    term = couples().terms(number)
    if np.isfinite(term.values).all():
        written = term.written[0]().value(PROBLEM.samples.x).numpy()
        np.testing.assert_allclose(written, term.values[0], rtol=1e-9)


def test_without_products_there_are_sums_alone():
    assert couples(times=None, over=None).signs == ("+", "-")


@pytest.mark.parametrize("formula", ["x*y - tanh(sin(y)/(x + y))", "exp(sin(x)*(x - y)) + x*y"])
def test_two_subexpressions_are_met_at_once(formula):
    problem = problem_of(formula, ["x", "y"], settings=SETTINGS)

    assert min((error_of(a, problem) for a in wide_span_ansatzes(problem)), default=np.inf) < 1e-7
