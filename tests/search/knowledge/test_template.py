import numpy as np
import pytest

from eqlearn import Equation, InvalidArgument
from eqlearn.search.knowledge.template import Found, Template
from eqlearn.search.knowledge.unknowns import read_formula
from eqlearn.validation.table import Table

RNG = np.random.default_rng(0)
X = RNG.uniform(0.5, 3, (150, 3))
a, b, c = X.T
COLUMNS = ("a", "b", "c")
Y = (a * b + 1) * np.exp(-(c**2) / 2)


def template(text, y, search=lambda table, names: []):
    return Template(
        read_formula("template", text, COLUMNS, functions=True), Table(X, y[:, None]), COLUMNS, search
    )


@pytest.mark.parametrize(
    ("text", "y"),
    [
        pytest.param("f(a, b) * exp(-g(c))", Y, marks=pytest.mark.slow),
        ("f(a) + g(b, c)", np.sin(a) + b * c),
        pytest.param("k/(1 + exp(-f(a, b)))", 3.7 / (1 + np.exp(b - a)), marks=pytest.mark.slow),
        ("sin(f(a)) * b", np.sin(a / 3) * b),
    ],
)
def test_polynomials_in_the_place_of_parts_come_near(text, y):
    assert template(text, y).begun().error < 0.02 * y.std()


def test_the_working_response_is_what_a_part_must_be():
    task = template("f(a, b) * exp(-g(c))", Y)
    f, g = task.written.functions
    right = task.together(
        {
            f: Found(Equation.parse("1.1*a*b + 0.9", ("a", "b")), task.inputs(f)),
            g: Found(Equation.parse("0.4*c**2", ("c",)), task.inputs(g)),
        }
    )

    response = task.response(g, right)

    assert right.error < 1e-9
    assert np.ptp(response.y[:, 0] - response.X[:, 0] ** 2 / 2) < 1e-6


@pytest.mark.slow
def test_parts_that_a_search_finds_are_put_together():
    found = {("a", "b"): "1.2*a*b + 0.8", ("c",): "0.45*c**2"}
    task = template("f(a, b) * exp(-g(c))", Y, lambda t, names: [Equation.parse(found[tuple(names)], names)])

    first = next(task.solved())

    assert first(X) == pytest.approx(Y, rel=1e-6)


def test_a_form_without_such_values_is_refused():
    with pytest.raises(InvalidArgument, match=r"no values like the target's|say nothing"):
        list(template("exp(f(b))", -a, lambda t, names: [Equation.parse("b", names)]).solved())
