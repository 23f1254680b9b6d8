"""The structure of a formula: numbers become parameters, redundant ones go, others take their places."""

import numpy as np
import pytest
import torch

from eqlearn.search.groups.structure import freed, parametrisations
from eqlearn.symbolic.equation import Equation


def structure(text, variables=("x",), positive=None):
    return freed(Equation.parse(text, list(variables)), positive)


COLUMNS = torch.linspace(0.5, 3, 40, dtype=torch.float64)[None]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("2.3*exp(-0.7*x)", "exp(x)"),
        ("x**2 + 1", "-3.5*x**2 + 7/3"),
        ("sin(2*pi*x)", "0.1*sin(x)"),
        ("exp(-0.7*x) + 2*exp(-0.9*x)", "2.0*exp(-0.9*x) + 3*exp(-0.1*x)"),
    ],
)
def test_formulas_that_differ_in_numbers_only_have_one_structure(one, other):
    assert structure(one).key == structure(other).key


@pytest.mark.parametrize(("one", "other"), [("x**2 + 1", "x**3 + 1"), ("sin(x)", "cos(x)"), ("x", "x + 1")])
def test_other_formulas_have_other_structures(one, other):
    assert structure(one).key != structure(other).key


def test_values_at_the_start_are_those_of_the_equation():
    equation = Equation.parse("2.5*x**2/(1 + 0.3*x) - sin(pi*x)", ["x"])
    found = freed(equation)
    constants = torch.from_numpy(found.start)[:, None].expand(-1, 40)

    value, slopes = found(COLUMNS, constants)

    np.testing.assert_allclose(value, equation(COLUMNS.T.numpy()), rtol=1e-12)
    assert slopes().shape == (40, len(found.parameters))


def test_exponents_are_free_where_the_base_is_positive():
    kept, free = structure("2.5*x**2"), structure("2.5*x**2", positive=lambda part: True)

    assert (len(kept.parameters), len(free.parameters)) == (1, 2)


def test_parameters_that_others_make_up_for_are_taken_out():
    first = next(parametrisations(structure("2.3*x/(1.4 + x)"), COLUMNS, 1))

    assert sorted(first.start.tolist()) == [1.4, 2.3]


def test_parameters_may_stand_elsewhere():
    every = list(parametrisations(structure("1.6/(0.7 + 1/x)"), COLUMNS, 8))

    keys = {str(form.key) for form in every}
    assert len(every) == 3
    assert {"_c0/(_c1 + 1/x)", "_c0/(_c1/x + 1)", "1/(_c0/x + _c1)"} == keys


def test_which_parameters_are_linear_together():
    found = structure("2.0*x*sin(3.0*x) + 1.5")
    first = next(parametrisations(found, COLUMNS, 1))

    assert first.start[first.linear].tolist() == [2.0, 1.5]


def test_parameters_can_be_fixed():
    found = structure("2.0*x + 3.0").fixed({0: 1, 1: 0})

    assert str(found.key) == "_c0"
