"""Laws that noise explains alike are told apart by how likely what they miss is."""

from dataclasses import replace

import numpy as np
import pytest
import sympy as sp

import made_fields as made
from eqlearn import Field
from eqlearn.fields.evidence import Evidence
from eqlearn.fields.formulas import FormulaTerm, _single_functions
from eqlearn.fields.free import FreeFit, FreeTerm
from eqlearn.fields.likelihood import Likelihood
from eqlearn.fields.settings import FIELDS
from eqlearn.fields.terms import Term
from eqlearn.fields.weak import strong_form, weak_forms
from eqlearn.numerics.splines import Splines
from eqlearn.symbolic.expressions import fitted, real_symbol
from eqlearn.symbolic.parametric import Formula

AXES = {"x": made.X, "t": made.T}
RATE, CARRIED, BENT = Term((1,), (0, 1)), Term((2,), (1, 0)), Term((1,), (2, 0))


@pytest.fixture(scope="module")
def burgers():
    return made.burgers()


def forms(u, noise, **settings):
    field = Field({"u": u}, AXES, periodic=True)
    return weak_forms(field, 1, 4, [noise], replace(FIELDS, **settings))


def test_the_covariance_is_that_of_what_noise_adds():
    u, generator = 1 + np.sin(made.X[:, None] * 2 * np.pi / 20 - made.T), np.random.default_rng(0)
    clean = forms(u, 0.01, compared_rows=40)[1]
    likelihood = Likelihood(clean, RATE)
    parts = [likelihood.part(CARRIED), likelihood.target]

    expected = likelihood._covariance(parts, [0.5, 1.0], 0)

    gaps = []
    for _ in range(300):
        field = Field({"u": u + 0.01 * generator.normal(size=u.shape)}, AXES, periodic=True)
        noisy = replace(clean, field=field)
        gap = 0.5 * (noisy.column(CARRIED) - clean.column(CARRIED)) + noisy.column(RATE) - clean.column(RATE)
        gaps.append(gap[likelihood.rows])
    seen = np.cov(np.array(gaps).T)
    assert np.diag(seen) == pytest.approx(np.diag(expected), rel=0.4)
    assert np.abs(seen - expected).max() < 0.3 * np.diag(expected).max()


@pytest.mark.parametrize("seed", range(3))
def test_noise_as_large_as_a_field_hides_its_law_from_no_likelihood(burgers, seed):
    noisy = made.with_noise(burgers, 1.0, seed)
    terms = [Term((1,), (1, 0)), CARRIED, Term((3,), (1, 0)), BENT]
    evidence = Evidence.of(forms(noisy, burgers.std())[:1], terms, RATE)
    likelihood = Likelihood(evidence.forms[-1], RATE)

    lengths = [evidence.length((k, 3), likelihood) for k in range(3)]

    assert min(lengths[0], lengths[2]) > lengths[1] + 10


def test_where_noise_is_light_no_likelihood_chooses(burgers, monkeypatch):
    def refuse(*_):
        raise AssertionError("a likelihood that knows nothing of a solver's errors was asked")

    monkeypatch.setattr("eqlearn.fields.evidence.Likelihood", refuse)
    terms = [Term((1,), (1, 0)), CARRIED, Term((3,), (1, 0)), BENT]
    light, heavy = made.with_noise(burgers, 0.01, 0), made.with_noise(burgers, 1.0, 0)

    evidence = Evidence.of(forms(light, 0.01 * burgers.std()), terms, RATE)

    assert [terms[k] for k in evidence.best] == [CARRIED, BENT]
    with pytest.raises(AssertionError, match="likelihood"):
        _ = Evidence.of(forms(heavy, burgers.std()), terms, RATE).best


def test_a_corner_has_no_slope_of_its_own(burgers):
    form, u = forms(burgers, 0.01)[0], real_symbol("u")
    splines = Splines.over(burgers.ravel(), FIELDS.knots, FIELDS.spline_degree)
    fit = FreeFit(form, FreeTerm("u", (0,), (0, 0)), splines, np.empty((0, 0)), [BENT], RATE)
    term = FormulaTerm(fit, (), Formula(fitted(1.5) * sp.Abs(u - 1), ("u",)))
    values = np.array([0.0, 3.0])

    slopes = [term._tape(-1, k).evaluate([values, np.float64(1.5)]) * np.ones(2) for k in (0, 1, 2)]

    assert np.allclose(slopes, [[1.5, 3.0], [-1.5, 1.5], [0, 0]])


def test_terms_whose_noise_is_not_known_have_no_length(burgers):
    terms = [CARRIED, Term((1,), (0, 0), (), (0, 1))]
    evidence = Evidence.of(forms(burgers, 0.01)[:1], terms, RATE)

    assert evidence.length((0, 1), Likelihood(evidence.forms[0], RATE)) is None
    assert evidence.length((0,), Likelihood(evidence.forms[0], RATE)) is not None


@pytest.mark.parametrize(
    "function", [lambda u: 2 * u / (1 + u), lambda u: u * np.exp(-u), lambda u: 1.5 / (1 + u**2)]
)
def test_the_simple_functions_nearest_to_a_curve_hold_its_own(burgers, function):
    form = forms(burgers, 0.01)[0]
    splines = Splines.over(burgers.ravel(), FIELDS.knots, FIELDS.spline_degree)
    fit = FreeFit(form, FreeTerm("u", (0,), (0, 0)), splines, np.empty((0, 0)), [BENT], RATE)
    points = np.linspace(0.3, 3, FIELDS.function_points)

    near = _single_functions(fit, points, function(points), np.ones(len(points)), "id exp sin1")

    gaps = [np.abs(equation(points[:, None]) - function(points)).max() for equation in near]
    assert min(gaps) < 0.02


def test_a_function_without_values_on_a_curve_is_none_of_the_simple_ones(burgers):
    form = forms(burgers, 0.01)[0]
    splines = Splines.over(burgers.ravel(), FIELDS.knots, FIELDS.spline_degree)
    fit = FreeFit(form, FreeTerm("u", (0,), (0, 0)), splines, np.empty((0, 0)), [BENT], RATE)
    points = np.linspace(-2, 2, FIELDS.function_points)

    near = _single_functions(fit, points, np.sin(2 * points), np.ones(len(points)), "id log sqrt sin1")

    assert all(np.isfinite(e(points[:, None])).all() for e in near)
    assert min(np.abs(e(points[:, None]) - np.sin(2 * points)).max() for e in near) < 0.1


def test_the_strong_form_takes_derivatives_at_points():
    u = np.sin(made.X[:, None] * 2 * np.pi / 20 - made.T)
    form = strong_form(forms(u, 0.0)[0])
    places = np.searchsorted(made.X, form.windows[0].centres)
    times = np.searchsorted(made.T, form.windows[1].centres)
    slopes = 2 * np.pi / 20 * np.cos(made.X[:, None] * 2 * np.pi / 20 - made.T)

    assert form.column(Term((1,), (1, 0))) == pytest.approx(slopes[np.ix_(places, times)].ravel(), abs=1e-9)
