"""The choice among candidates."""

import math

import pytest

from eqlearn.errors import UnknownName
from eqlearn.numerics.criteria import DECISIVE
from eqlearn.search.candidate import (
    Candidate,
    best_description,
    best_extrapolation,
    best_predictions,
    find_rule,
    most_accurate,
    pareto_front,
    simplest_within_one_error,
    united,
)
from eqlearn.symbolic.equation import Equation

SHORT, LONG = "2.0*x", "2.0*x + 3.0*sin(x)"


def candidate(text, error=0.5, length=0.0, prediction=math.nan, **more):
    more = {"exact": False} | more
    equation = Equation.parse(text, ("x",))
    return Candidate((equation,), error, length, prediction_length=prediction, **more)


def test_the_shortest_description_is_chosen():
    front = [candidate(SHORT, length=-10.0), candidate(LONG, length=-20.0)]

    assert best_description(front) is front[1]


def test_a_decisively_better_prediction_is_chosen_where_there_is_no_law():
    front = [candidate(SHORT, length=-10.0, prediction=-10.0), candidate(LONG, length=-5.0, prediction=-30.0)]

    assert best_description(front) is front[1]


def test_a_slightly_better_prediction_does_not_overrule_the_shortest_description():
    slightly = -10.0 - 0.9 * DECISIVE
    front = [
        candidate(SHORT, length=-10.0, prediction=-10.0),
        candidate(LONG, length=-5.0, prediction=slightly),
    ]

    assert best_description(front) is front[0]


def test_what_chance_gives_in_noise_does_not_overrule_the_law():
    # As measured on exp(-x**2) with 10 % noise; the rival was a sine.
    law = candidate("exp(-x**2)", error=0.10138, length=-581.02, prediction=-580.41)
    rival = candidate("0.418*sin(2.11*x + 1.57) + 0.575", error=0.09889, length=-560.89, prediction=-585.56)

    assert best_description([law, rival]) is law


def test_an_exact_law_is_never_overruled():
    front = [
        candidate(SHORT, error=1e-12, exact=True, length=-10.0, prediction=-10.0),
        candidate(LONG, length=-5.0, prediction=-99.0),
    ]

    assert best_description(front) is front[0]


def test_candidates_whose_prediction_was_not_measured_are_not_chosen_for_it():
    front = [candidate(SHORT, length=-10.0, prediction=-10.0), candidate(LONG, length=-5.0)]

    assert best_description(front) is front[0]


def test_the_front_holds_no_candidate_that_a_simpler_one_matches():
    simple, same, better = candidate(SHORT, 0.3), candidate(LONG, 0.3), candidate(LONG, 0.1)

    assert pareto_front([same, simple]) == (simple,)
    assert pareto_front([better, simple]) == (simple, better)


def test_predictions_that_are_not_decisively_worse_than_the_best_are_among_the_best():
    best, near = candidate(LONG, prediction=-20.0), candidate(SHORT, prediction=-20.0 + 0.9 * DECISIVE)
    others = [candidate(SHORT, prediction=-20.0 + 1.1 * DECISIVE), candidate(SHORT)]

    assert best_predictions([*others, near, best]) == [near, best]
    assert best_predictions(others[1:]) == []


def test_others_join_a_front_once():
    simple, longer = candidate(SHORT, 0.1), candidate(LONG, 0.3)

    assert united([simple], [candidate(SHORT, 0.2), longer]) == (simple, longer)


def test_accuracy_is_that_on_rows_held_out():
    front = [candidate(SHORT, 0.5, validation_error=0.2), candidate(LONG, 0.1, validation_error=0.4)]

    assert most_accurate(front) is front[0]


def test_the_simplest_within_one_standard_error_is_not_always_the_most_accurate():
    held = {"held_out_rows": 50}
    near = [candidate(SHORT, validation_error=0.105, **held), candidate(LONG, validation_error=0.1, **held)]
    apart = [candidate(SHORT, validation_error=0.2, **held), candidate(LONG, validation_error=0.1, **held)]

    assert simplest_within_one_error(near) is near[0]
    assert simplest_within_one_error(apart) is apart[1]


def test_extrapolation_is_judged_where_it_was_measured():
    measured = [candidate(SHORT, extrapolation_error=0.5), candidate(LONG, extrapolation_error=0.1)]
    unmeasured = [candidate(SHORT, length=-1.0), candidate(LONG, length=-2.0)]

    assert best_extrapolation(measured) is measured[1]
    assert best_extrapolation(unmeasured) is unmeasured[1]


def test_a_rule_is_a_name_or_a_function():
    assert find_rule("accuracy") is most_accurate
    assert find_rule(max) is max
    with pytest.raises(UnknownName, match="no selection rule named 'best'"):
        find_rule("best")
