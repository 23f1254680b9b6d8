"""Criteria: prices as their page says, tolerances in an order that makes sense."""

import math

import pytest

from eqlearn.numerics import criteria
from eqlearn.numerics.criteria import (
    akaike,
    constant_cost,
    credible,
    description_length,
    information_criterion,
    match_score,
    prediction_length,
)


def price(score, rows=1000):
    """What one more parameter costs where it changes nothing."""
    return (score(2) - score(1)) / math.log(rows)


def test_a_parameter_costs_what_the_page_says():
    assert price(lambda k: information_criterion(1000, 0.1, k)) == pytest.approx(1)
    assert price(lambda k: information_criterion(1000, 0.1, k, placed=False)) == pytest.approx(0.5)
    assert price(lambda k: akaike(1000, 0.1, k)) == pytest.approx(1 / math.log(1000))
    assert price(lambda k: match_score(0.1, 1000, k)) == pytest.approx(2.5, rel=0.01)
    assert price(lambda k: match_score(0.1, 1000, 0, k)) == pytest.approx(1, rel=0.01)


def test_all_scores_count_the_deviance_alike():
    halved = [
        information_criterion(100, 0.2, 3) - information_criterion(100, 0.1, 3),
        akaike(100, 0.2, 3) - akaike(100, 0.1, 3),
        match_score(0.2, 100, 3) - match_score(0.1, 100, 3),
        description_length(100, math.sqrt(0.2), 1.0, 5, 4)
        - description_length(100, math.sqrt(0.1), 1.0, 5, 4),
        prediction_length(100, math.sqrt(0.2), 1.0) - prediction_length(100, math.sqrt(0.1), 1.0),
    ]

    assert halved == pytest.approx([50 * math.log(2)] * 5)


def test_a_constant_costs_its_digits_and_never_less_than_schwarz_asks():
    assert constant_cost(1.0, 1e-6, 100) == pytest.approx(math.log(1e6), rel=1e-3)
    assert constant_cost(1.0, 10.0, 100) == pytest.approx(0.5 * math.log(100))
    assert constant_cost(1.0, 0.0, 100) == criteria.MAX_DIGITS


def test_nothing_is_gained_below_rounding():
    assert information_criterion(50, 1e-30, 2) == information_criterion(50, 1e-25, 2)
    assert description_length(50, 1e-16, 0.0, 3, 3) == description_length(50, 1e-12, 0.0, 3, 3)


def test_what_is_exact_for_laws_is_exact_for_formulas():
    assert criteria.EXACT_SHARE < criteria.EXACT_MATCH < criteria.EXACT_LOSS
    assert math.isclose(criteria.EXACT_LOSS, criteria.EXACT_ERROR**2)
    assert criteria.MOTION_TOLERANCE < criteria.EXACT_MOTION


def test_as_many_parameters_as_observations_are_not_believed():
    assert credible(3, 4)
    assert not credible(4, 4)
