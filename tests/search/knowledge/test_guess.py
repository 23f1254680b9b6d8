import numpy as np
import pytest

from eqlearn import Equation, InvalidArgument
from eqlearn.search.knowledge.guess import fitted_guess, offered
from eqlearn.validation.table import Table

X = np.linspace(0.2, 4, 40)[:, None]


@pytest.mark.parametrize(
    ("text", "law"),
    [
        ("k*x**1.5", lambda x: 7 * x**1.8),
        pytest.param("y = A*exp(-x/tau) + B", lambda x: 3 * np.exp(-x / 0.7) - 20, marks=pytest.mark.slow),
        ("a*sin(x) + c", lambda x: -4 * np.sin(x) + 0.01),
    ],
)
def test_unknown_constants_are_found(text, law):
    guess = fitted_guess(text, Table(X, law(X)), ("x",))

    assert guess(X) == pytest.approx(law(X)[:, 0], abs=1e-8)


def test_a_guess_that_is_nowhere_defined_is_refused():
    with pytest.raises(InvalidArgument, match="not finite on the data"):
        fitted_guess("k*log(-x)", Table(X, X), ("x",))


def test_a_guess_and_its_parts_are_offered_without_factors():
    guess = Equation.parse("2.5*x**1.5*exp(-0.3*x)", ("x",))

    columns = dict(offered(guess, X))

    assert Equation.parse("x**1.5*exp(-0.3*x)", ("x",)).expr in columns.values()
    assert Equation.parse("x**1.5", ("x",)).expr in columns.values()
    assert len(columns) <= 3
