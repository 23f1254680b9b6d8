"""Points of comparison lie where the truth can be followed, and deviations have a fair scale."""

from __future__ import annotations

import numpy as np
import pytest

from eqlearn.errors import InvalidArgument
from eqlearn.symbolic.equation import Equation
from eqlearn.symbolic.parametric import Formula
from eqlearn.verify.equivalence import EvaluationSets


def evaluations(text, **box):
    return EvaluationSets.of(Formula(Equation.parse(text, tuple(box)).expr, tuple(box)), box)


def test_near_points_fill_the_training_box():
    near = evaluations("x + y", x=(1.0, 5.0), y=(-2.0, 0.0)).near.points

    assert near.shape == (2, 256)
    assert (near.min(axis=1) > [1.0, -2.0]).all()
    assert (near.max(axis=1) < [5.0, 0.0]).all()


def test_wide_points_fill_a_box_four_times_as_wide():
    wide = evaluations("x + y", x=(1.0, 5.0), y=(-2.0, 0.0)).wide.points

    np.testing.assert_allclose(wide.min(axis=1), [-5.0, -5.0], atol=0.1)
    np.testing.assert_allclose(wide.max(axis=1), [11.0, 3.0], atol=0.1)


def test_points_stay_where_the_truth_is_real():
    assert evaluations("log(x)", x=(1.0, 5.0)).wide.points.min() > 0


@pytest.mark.parametrize("text", ["sqrt(p/r)", "sqrt(p*r)"])
def test_points_stay_on_the_branch_of_the_training_box(text):
    assert evaluations(text, p=(1.0, 5.0), r=(1.0, 5.0)).wide.points.min() > 0


def test_a_gap_in_the_domain_is_not_jumped():
    points = evaluations("1/sqrt(1 - u**2/c**2)", u=(1.0, 2.0), c=(3.0, 20.0)).wide.points

    assert points[1].min() > 0
    assert points[1].max() > 40


def test_poles_are_crossed():
    assert evaluations("1/x", x=(1.0, 5.0)).wide.points.min() < -4


def test_points_far_away_are_hundreds_of_boxes_off():
    afar = evaluations("x**2", x=(-1.0, 1.0)).afar

    assert afar is not None
    assert np.abs(afar.points).max() > 1e4


def test_nothing_is_asked_far_away_of_a_truth_that_ends_before():
    assert evaluations("asin(x)", x=(-1.0, 1.0)).afar is None


def test_the_scale_is_the_distance_from_the_median_and_has_a_floor():
    wide = evaluations("x + 1000", x=(-1.0, 1.0)).wide

    assert 0.3 < wide.scale.min() < 0.7
    np.testing.assert_allclose(wide.scale.max(), 4.0, rtol=0.1)


def test_the_scale_of_a_constant_is_its_size():
    np.testing.assert_array_equal(evaluations("0*x + 3", x=(-1.0, 1.0)).wide.scale, 3.0)


def test_the_scale_of_zero_is_one():
    np.testing.assert_array_equal(evaluations("0*x", x=(-1.0, 1.0)).wide.scale, 1.0)


def test_points_where_rounding_upsets_the_truth_are_left_out():
    evaluation = evaluations("sin(10**9*x)", x=(-1.0, 1.0))

    assert len(evaluation.wide) < 2 * len(evaluation.near)
    assert evaluation.afar is None


def test_the_points_are_the_same_every_time():
    first, second = (evaluations("sin(x)*y", x=(-1.0, 1.0), y=(0.0, 1.0)).wide.points for _ in range(2))

    np.testing.assert_array_equal(first, second)


def test_a_box_outside_the_domain_is_refused():
    with pytest.raises(InvalidArgument, match="real and finite at only 0 of 256"):
        evaluations("sqrt(x)", x=(-2.0, -1.0))
