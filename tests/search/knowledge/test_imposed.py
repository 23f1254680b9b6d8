import numpy as np
import pytest

from eqlearn import Equation
from eqlearn.search.knowledge.imposed import imposed
from eqlearn.validation.table import Table

RNG = np.random.default_rng(2)
X = RNG.uniform(1, 4, (50, 1))
TABLE = Table(X, 3 + 2 * X + 0.1 * RNG.normal(size=(50, 1)))
NONE = np.empty((0, 1)), np.empty(0)


def test_a_line_through_a_point_is_that_of_least_squares_among_those():
    x, y = X[:, 0], TABLE.y[:, 0]

    equation, constants = imposed(
        Equation.parse("1.5*x + 2.5", ("x",)), TABLE, (np.array([[0.0]]), np.array([5.0])), 1.0
    )

    slope = x @ (y - 5) / (x @ x)  # through (0, 5), by hand
    left = y - 5 - slope * x
    error = np.sqrt(left @ left / 49 / (x @ x))
    # The value at 0 is held, at a simple number: no constant is left for it.
    assert equation(np.array([0.0])) == pytest.approx(5, abs=1e-7)
    assert [c.value for c in constants] == pytest.approx([slope], rel=1e-6)
    assert constants[0].standard_error == pytest.approx(error, rel=1e-4)


def test_without_conditions_it_is_least_squares():
    equation, _ = imposed(Equation.parse("1.5*x + 2.5", ("x",)), TABLE, NONE, 1.0)

    assert equation(np.array([0.0, 1.0])) == pytest.approx(
        np.polyval(np.polyfit(X[:, 0], TABLE.y[:, 0], 1), [0, 1])
    )


def test_a_term_that_a_condition_holds_at_zero_leaves():
    far = np.array([[1e24]]), np.array([0.0])
    table = Table(X, 2 / X + 0.01 * RNG.normal(size=X.shape))

    equation, constants = imposed(Equation.parse("1.9/x + 0.2*x + 0.1", ("x",)), table, far, 1.0)

    assert equation.matches(f"{constants[0].value}/x", box=(1, 4))
    assert constants[0].value == pytest.approx(2, abs=0.02)


def test_a_law_without_a_value_there_is_none():
    assert (
        imposed(Equation.parse("2.1*log(x)", ("x",)), TABLE, (np.array([[0.0]]), np.array([5.0])), 1.0)
        is None
    )
