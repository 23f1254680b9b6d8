"""The parts of the search for equations of fields do what they say."""

import numpy as np
import pytest
import sympy as sp

import made_fields as made
from eqlearn import Field, FieldSettings, InvalidArgument
from eqlearn.fields.evidence import Standard
from eqlearn.fields.settings import FIELDS
from eqlearn.fields.terms import Jet, Names, Term, carried, conserved, pointwise
from eqlearn.fields.weak import WeakForm, noise_levels, weak_forms
from eqlearn.numerics.grids import spectral
from eqlearn.numerics.subsets import Subset
from eqlearn.symbolic.expressions import real_symbol

NAMES = Names(("u", "v"), ("x", "t"))


@pytest.mark.parametrize("level", [0.01, 0.3])
def test_the_noise_of_a_field_is_seen(level):
    u = np.sin(made.X[:, None] - made.T)
    noisy = u + level * np.random.default_rng(0).normal(size=u.shape)

    field = Field({"u": noisy}, {"x": made.X, "t": made.T})
    assert noise_levels(field, FIELDS)["u"] == pytest.approx(level, rel=0.05)


def test_terms_are_written_out_by_the_chain_rule():
    u, u_x, u_xx = (real_symbol(n) for n in ("u", "u_x", "u_xx"))

    assert NAMES.expression(Term((2, 0), (1, 0))) == (2, u * u_x)
    assert NAMES.expression(Term((2, 0), (2, 0))) == (2, sp.expand(u * u_xx + u_x**2))
    assert NAMES.expanded(sp.sin(u), (1, 0)) == sp.cos(u) * u_x
    assert NAMES.read("v_xxt") == Jet(1, (2, 1))
    assert NAMES.read("x") is None


def test_the_library_holds_each_term_once():
    terms = [*conserved(2, 2, 3, 4, 1), *pointwise(2, 2, 4)]
    names = Names(("u", "v"), ("x", "y", "t"))

    written = [str(names.expression(t)[1]) for t in terms]

    assert len(set(written)) == len(written)


@pytest.mark.parametrize("times", [made.T, np.unique(np.append(made.T[::2], made.T[1:30:3]))])
def test_integrals_by_parts_are_those_of_the_derivative(times):
    u = np.sin(made.X[:, None] * 2 * np.pi / 20 - times) + 2
    field = Field({"u": u}, {"x": made.X, "t": times})
    form = weak_forms(field, 1, 4, [0.0], FIELDS)[1]
    k = 2 * np.pi / 20

    by_parts = form.column(Term((1,), (2, 0)))
    direct = form.integrated([-(k**2) * (u - 2)], (0, 0))

    assert np.abs(by_parts - direct).max() < 1e-4 * np.abs(direct).max()
    rate = form.integrated([-np.cos(made.X[:, None] * k - times)], (0, 0))
    assert np.abs(form.column(Term((1,), (0, 1))) - rate).max() < 1e-3 * np.abs(rate).max()


def test_a_coordinate_is_integrated_by_parts_too():
    u = np.sin(made.X[:, None] - made.T)
    field = Field({"u": u}, {"x": made.X, "t": made.T}, periodic=False)
    form = weak_forms(field, 1, 4, [0.0], FIELDS)[1]

    by_parts = form.column(Term((1,), (1, 0), (), (0, 2)))
    direct = form.integrated([made.X[:, None] ** 2 * np.cos(made.X[:, None] - made.T)], (0, 0))

    assert np.abs(by_parts - direct).max() < 1e-4 * np.abs(direct).max()


def test_what_noise_adds_to_products_of_columns_is_known():
    generator = np.random.default_rng(0)
    u = 1 + np.sin(made.X[:, None] * 2 * np.pi / 20 - made.T)
    terms = [Term((1,), (2, 0)), Term((2,), (1, 0)), Term((1,), (0, 1))]
    axes = {"x": made.X, "t": made.T}
    clean = weak_forms(Field({"u": u}, axes), 1, 4, [0.0], FIELDS)[-1]
    draws = []
    for _ in range(40):
        noisy = Field({"u": u + 0.1 * generator.normal(size=u.shape)}, axes, periodic=True)
        form = WeakForm(noisy, clean.windows, (0.1,), FIELDS, clean.jets)
        gap = form.columns(terms) - clean.columns(terms)
        draws.append(np.square(gap).sum(axis=0) / np.diag(form.noise_products(terms)))

    assert np.mean(draws, axis=0) == pytest.approx(np.ones(3), abs=0.25)


def test_derivatives_at_points_are_right():
    u = np.sin(2 * np.pi * made.X / 20)
    k = 2 * np.pi / 20

    assert np.abs(spectral(u, 0, 20.0, 2) + k**2 * u).max() < 1e-12


def test_the_slope_of_a_product_has_two_parts_of_which_one_is_the_flow_s():
    names = Names(("w", "u"), ("x", "t"))

    slope, rest = carried(Term((1, 1), (1, 0)), 0)

    assert [str(names.expression(t)[1]) for t in (slope, rest)] == ["u_x", "u*w_x"]
    assert carried(Term((2, 0), (1, 0)), 0) is None


def test_settings_that_can_not_be_are_refused():
    with pytest.raises(InvalidArgument, match="`degree`"):
        FieldSettings(degree=0)
    with pytest.raises(InvalidArgument, match="`derivatives`"):
        FieldSettings(derivatives=1)


def test_a_sum_that_leaves_more_than_none_does_explains_nothing_however_noisy_it_is():
    none = Subset((), np.empty(0), 1.0, 0.01)
    standard = Standard(observations=100.0, noise=0.01, floor=1e-7, independent=100.0, places=20, none=none)
    noisy, fair = Subset((0,), np.ones(1), 1.3, 0.9), Subset((1,), np.ones(1), 0.02, 0.01)

    assert standard.score(noisy) > standard.score(none) > standard.score(fair)
    assert standard.score(noisy) < standard.score(none) + 10  # it is no worse than that either


@pytest.mark.parametrize("seed", range(3))
def test_a_shock_that_moves_hides_no_seam(seed):
    x, t = np.linspace(0, 1, 128), np.linspace(0, 1, 96)
    u = (x[:, None] < 0.3 + 0.5 * t) + 0.8 * np.random.default_rng(seed).normal(size=(128, 96))

    assert Field({"u": u}, {"x": x, "t": t}).periodic == frozenset()
