import numpy as np
import pytest
import sympy as sp

from eqlearn.dynamics.library import SHAPES, Atom, Term, allowed_shapes, columns, families, library
from eqlearn.dynamics.settings import MOTION
from eqlearn.search.settings import SCIENCE
from eqlearn.symbolic.equation import Equation
from eqlearn.symbolic.expressions import real_symbol

X = np.random.default_rng(0).uniform(0.4, 2.0, size=(30, 2))
SYMBOLS = [real_symbol("x"), real_symbol("y")]
EVERY = library(X, allowed_shapes(SCIENCE), 8)


@pytest.mark.parametrize("name", SHAPES)
def test_a_shape_has_the_same_values_on_arrays_and_as_a_formula(name):
    trials = SHAPES[name].trials
    constants = trials(X[:, 0], MOTION)[1] if trials else ()
    term = Term((1, 2), (Atom(name, ((0, 1),), constants),))

    formula = Equation(term.expression(SYMBOLS), ("x", "y"))

    np.testing.assert_allclose(term.values(X), formula(X), rtol=1e-12)


def test_columns_are_the_values_of_the_terms():
    some = EVERY[:: len(EVERY) // 20]

    np.testing.assert_allclose(columns(some, X), np.stack([t.values(X) for t in some], axis=1))


def test_monomials_of_one_state_come_up_to_degree_six():
    powers = [t.powers for t in library(X[:, :1], frozenset({"id", "mul"}), 8)]

    assert powers == [(k,) for k in range(7)]


def test_products_are_no_higher_than_the_layers_allow():
    assert max(sum(t.powers) for t in library(X, frozenset({"id", "mul"}), 2)) == 2


def test_only_functions_that_were_allowed_are_in_it():
    terms = library(X, allowed_shapes("id mul sin1"), 4)

    assert {atom.shape for term in terms for atom in term.atoms} == {"sin"}


def test_what_needs_positive_states_is_left_out_where_they_are_not():
    shapes = {a.shape for t in library(X - 1.2, allowed_shapes(SCIENCE), 4) for a in t.atoms}
    inside = {t.atoms[0].shape for family in families(X - 1.2, allowed_shapes(SCIENCE)) for t in family}

    assert not shapes & {"log", "sqrt", "inv", "cot"}
    assert "abs" in shapes
    assert "hill2" in inside
    assert "power" not in inside


def test_a_family_is_one_function_of_one_state_with_each_of_its_constants():
    for family in families(X, allowed_shapes(SCIENCE)):
        assert len({t.atoms[0].family for t in family}) == 1
        assert len({t.atoms[0].constants for t in family}) > 1


def test_a_longer_term_costs_more():
    product = Term((1, 1))

    assert Term((1, 0)).nodes < product.nodes < Term((1, 1), (Atom("sin", ((0, 1), (1, -1))),)).nodes


def test_a_difference_of_states_is_an_argument():
    term = Term((0, 0), (Atom("sin", ((0, 1), (1, -1))),))

    assert term.expression(SYMBOLS) == sp.sin(SYMBOLS[0] - SYMBOLS[1])


def test_a_divisor_has_no_zero_in_the_data():
    near = np.linspace(-0.1, 3.0, 50)[:, None]

    every = families(near, allowed_shapes(SCIENCE))
    constants = [t.atoms[0].constants[0] for f in every for t in f if t.atoms[0].shape == "hill1"]

    assert constants
    assert min(constants) > 0.2
