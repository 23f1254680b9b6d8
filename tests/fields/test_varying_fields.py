"""Coefficients that vary in time or in space: found, given formulas or tables, and simulated."""

import numpy as np
import pytest

import made_fields as made
from eqlearn import InvalidArgument, discover_pde
from eqlearn.errors import UnknownName
from eqlearn.fields.settings import FIELDS
from eqlearn.fields.terms import Term
from eqlearn.fields.varying import varying_columns
from eqlearn.fields.weak import weak_forms
from eqlearn.numerics.splines import Splines
from eqlearn.validation.fields import Field

AXES = {"x": made.X, "t": made.T}
# Terms up to the second derivative, in few splines: for tests only.
QUICK = type(FIELDS)(degree=2, derivatives=2, varying_widths=(0.4, 0.25), varying_rows=2000)


def turning(level=0.0):
    """u_t = -(0.8 - 0.3*t)*u_x + 0.15*u_xx, as a sum of exact waves."""
    k = 2 * np.pi * np.arange(1, 5)[:, None, None] / 20
    way = 0.8 * made.T - 0.15 * made.T**2
    x = made.X[None, :, None] - way
    u = (np.array([1, 0.7, 0.5, 0.4])[:, None, None] * np.exp(-0.15 * k**2 * made.T) * np.cos(k * x)).sum(0)
    return made.with_noise(u, level)


@pytest.fixture(scope="module")
def found():
    return discover_pde({"u": turning(0.01)}, AXES, varies="t", primitives="id mul", settings=QUICK)


def test_a_coefficient_that_varies_in_time_has_its_formula(found):
    (equation,) = found.equations

    assert equation.matches("-0.8*u_x + 0.3*t*u_x + 0.15*u_xx", tolerance=0.03)
    assert found.varying is None
    assert found.unexplained == ()


def test_a_law_that_varies_is_simulated(found):
    u = turning()

    again = found.simulate(u[:, 0], made.T)["u"]

    assert np.abs(again - u).max() < 0.05 * u.std()


def test_a_coefficient_without_a_formula_is_a_table(monkeypatch):
    monkeypatch.setattr(
        "eqlearn.search.groups.coefficients.CoefficientProblem.with_formulas", lambda s, f, *_: f
    )
    u = turning()

    found = discover_pde({"u": u}, AXES, varies="t", settings=QUICK)

    assert str(found) == "u_t = c1[t]*u_x + 3*u_xx/20"
    inner = (made.T > 0.4) & (made.T < 3.6)
    curve = found.varying.values[:, 0]
    np.testing.assert_allclose(curve[inner], (0.3 * made.T - 0.8)[inner], atol=0.02)
    assert np.abs(found.simulate(u[:, 0], made.T)["u"] - u).max() < 0.05 * u.std()
    assert found.to_json()["coefficients"]["names"] == ["c1[t]"]


def test_an_unknown_axis_is_refused():
    with pytest.raises(UnknownName, match="axis"):
        discover_pde({"u": turning()}, AXES, varies="y")


def test_derivatives_at_points_have_no_coefficients_that_vary():
    with pytest.raises(InvalidArgument, match="leave `form` out"):
        discover_pde({"u": turning()}, AXES, varies="t", form="strong")


@pytest.mark.parametrize("place", [0, 1])
def test_splines_that_sum_to_one_give_the_term_itself(place):
    field = Field({"u": turning()}, AXES)
    form = weak_forms(field, 1, 2, [0.0], FIELDS)[1]
    terms = [Term((1,), (2, 0)), Term((2,), (1, 0))]
    along, period = list(AXES.values())[place], (20.0, None)[place]

    blocks = varying_columns(form, terms, place, Splines.over(along, 10, 5, period))

    summed = blocks.reshape(len(blocks), 2, -1).sum(axis=2)
    np.testing.assert_allclose(summed, form.columns(terms), atol=1e-8)
