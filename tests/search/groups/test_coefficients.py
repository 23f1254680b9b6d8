"""Coefficients are told to vary or not, given formulas, and left as splines where they have none."""

import numpy as np
import pytest

from eqlearn.numerics.budget import Deadline
from eqlearn.search.groups.coefficients import choose_terms
from eqlearn.search.groups.views import Axis, CoefficientSettings
from eqlearn.search.settings import SCIENCE

AT = np.linspace(0, 8, 500)
TERMS = np.random.default_rng(0).normal(size=(500, 4))
AXIS, SETTINGS, NEVER = Axis("t", AT), CoefficientSettings(), Deadline(np.inf)


class Rows:
    """Terms at points, one row each."""

    def __init__(self, target):
        self.target, self.independent = target, float(len(target))

    def blocks(self, terms, splines):
        return (TERMS[:, list(terms), None] * splines.design(AT)[:, None]).reshape(len(AT), -1)

    def noise(self, terms):
        return None


def problem_of(target):
    problem, fit = choose_terms([Rows(target)], 4, AXIS, SETTINGS)
    support = tuple((c.term, c.formula is None) for c in fit.coefficients)
    return support, problem, fit


@pytest.mark.parametrize("noise", [0.0, 0.02])
def test_a_coefficient_gets_its_formula(noise):
    target = 1.3 * TERMS[:, 0] - (1 + 0.25 * np.sin(AT)) * TERMS[:, 2]
    target = target + noise * np.random.default_rng(1).normal(size=len(AT))

    support, problem, fit = problem_of(target)
    fit, (first, second) = problem.snapped(problem.with_formulas(fit, "id sin", 0, NEVER))

    assert support == ((0, False), (2, True))
    assert float(first) == pytest.approx(1.3, rel=5e-3)
    found = [float(second.subs(dict.fromkeys(second.free_symbols, t))) for t in (0.5, 2.0, 6.0)]
    assert found == pytest.approx([-1 - 0.25 * np.sin(t) for t in (0.5, 2.0, 6.0)], rel=1e-2)
    assert fit.misfit < 1e-9 + 2 * noise**2


def test_faster_coefficients_take_more_splines():
    slow = problem_of(np.sin(AT) * TERMS[:, 1])
    fast = problem_of(np.sin(6 * AT) * TERMS[:, 1])

    assert slow[0] == fast[0] == ((1, True),)
    assert fast[1].splines.count > slow[1].splines.count


def test_a_coefficient_without_a_formula_stays_a_curve_with_errors():
    target = np.abs((AT % 4) - 2) * TERMS[:, 1] + 0.01 * np.random.default_rng(1).normal(size=len(AT))

    _, problem, fit = problem_of(target)
    curve, errors = problem.curve(fit, 0, AT)

    np.testing.assert_allclose(curve, np.abs((AT % 4) - 2), atol=0.4)
    assert (errors > 0).all()
    assert errors.max() < 0.5


def test_noise_alone_has_no_terms():
    support, problem, fit = problem_of(np.random.default_rng(1).normal(size=len(AT)))

    assert support == ()
    assert problem.snapped(fit)[1] == []


def test_the_end_of_time_keeps_splines():
    _, problem, fit = problem_of(np.sin(AT) * TERMS[:, 1])

    kept = problem.with_formulas(fit, SCIENCE, 0, Deadline(0.0))

    assert kept is fit
    assert problem.snapped(kept)[1] == [None]
