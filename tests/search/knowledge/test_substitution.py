import numpy as np
import pytest

from eqlearn import Equation, Knowledge
from eqlearn.search.knowledge.constraints import Survey
from eqlearn.search.knowledge.substitution import Substitution, exact_number
from eqlearn.validation.table import Table

RNG = np.random.default_rng(3)
X = RNG.uniform(-2, 2, (40, 2))
TABLE = Table(X, X[:, :1])
SURVEY = Survey.of(TABLE)


def test_an_even_column_is_seen_by_its_size():
    seen = Substitution.of(Knowledge(even="x"), ("x", "z"))

    assert seen.names == ("|x|", "z")
    assert (seen.inputs(X) == np.stack([abs(X[:, 0]), X[:, 1]], axis=1)).all()


@pytest.mark.parametrize(("found", "written"), [("cos(`|x|`)*z", "z*cos(x)"), ("`|x|`**3", "abs(x)**3")])
def test_bars_are_written_only_where_they_are_needed(found, written):
    seen = Substitution.of(Knowledge(even="x"), ("x", "z"))

    equation = seen.back(Equation.parse(found, seen.names), SURVEY)

    assert equation == Equation.parse(written, ("x", "z"))


def test_a_periodic_column_is_seen_by_its_phase():
    seen = Substitution.of(Knowledge(periodic={"x": 2 * np.pi}), ("x", "z"))

    assert seen.names == ("sin(x)", "cos(x)", "z")
    assert seen.inputs(X)[:, 0] == pytest.approx(np.sin(X[:, 0]))


def test_where_the_law_is_odd_rows_are_mirrored():
    seen = Substitution.of(Knowledge(odd="z"), ("x", "z")).mirrored(TABLE)

    assert seen.rows == 80
    assert (seen.X[40:] == X * [1, -1]).all()
    assert (seen.y[40:] == -TABLE.y).all()


@pytest.mark.parametrize(("value", "text"), [(24.0, "24"), (2 * np.pi, "2*pi"), (365.2425, "146097/400")])
def test_a_period_is_a_number_that_no_fit_moves(value, text):
    assert str(exact_number(value)) == text
