"""Few terms that are a target: which, that they are written as they are, and when there are none."""

import numpy as np
import pytest

from eqlearn.search.ansatz.terms import CONSTANT, Algebra, few_terms, least_squares_sum
from search_problems import problem_of


@pytest.fixture(scope="module")
def problem():
    return problem_of("x*y", ["x", "y"], rows=80)


@pytest.fixture(scope="module")
def algebra(problem):
    return Algebra(problem)


def test_terms_are_written_as_they_are(problem, algebra):
    terms = algebra.monomials(20) + algebra.simple(20)

    for value, written in zip(terms.values, terms.written, strict=True):
        np.testing.assert_allclose(written().value(problem.samples.x).numpy(), value, rtol=1e-12)


def test_there_are_as_many_degrees_as_there_is_room_for(algebra):
    assert [len(algebra.monomials(most)) for most in (1, 2, 4, 5, 9, 13)] == [2, 2, 2, 5, 9, 9]
    assert [len(algebra.simple(most)) for most in (1, 3, 5, 8, 10)] == [1, 3, 5, 8, 10]


def test_few_of_many_terms_are_found(algebra):
    terms = algebra.monomials(20)
    target = 2.5 * terms.values[3] - terms.values[7] + 0.25

    assert few_terms(terms.values, target, 4) == pytest.approx({3: 2.5, 7: -1.0, CONSTANT: 0.25})


def test_too_many_terms_or_none_that_fit_are_no_law(algebra):
    terms = algebra.monomials(20)

    assert few_terms(terms.values, terms.values[:6].sum(axis=0), 4) is None
    assert few_terms(terms.values, np.sin(9 * terms.values[0]), 4) is None


def test_nothing_explains_a_target_that_does_not_vary():
    factors, error = least_squares_sum([np.arange(5.0)], np.full(5, 2.0))
    assert factors == pytest.approx([0.0, 2.0], abs=1e-12)
    assert error == np.inf
