import numpy as np
import pytest

from eqlearn import Equation
from eqlearn.nn.primitives import parse_set
from eqlearn.search.units.buckingham import Expressions, products_of
from eqlearn.search.units.right_terms import in_proportion, right_laws
from eqlearn.search.units.unit_settings import Enumeration
from eqlearn.validation.units import Dimension

LENGTH, TIME, MASS = (Dimension.of({name: 1}) for name in ("[length]", "[time]", "[mass]"))
SPEED = LENGTH * TIME**-1
PRIMITIVES = parse_set("id square sin1 cos exp sqrt mul div")
FEW = Enumeration(most=1500, factors=200, one_by_one=(500, 3, 8), beam=8)
RNG = np.random.default_rng(0)
X = RNG.uniform(1, 3, (100, 4))
NAMES = ("m", "v", "c", "t")
COLUMNS = (MASS, SPEED, SPEED, Dimension())


def test_products_have_the_unit_and_the_shortest_come_first():
    products = products_of(X, COLUMNS, MASS * SPEED**2, 10, FEW)

    assert {str(products.symbolic(k, NAMES)) for k in range(2)} == {"m*v**2", "c**2*m"}
    assert str(products.symbolic(2, NAMES)) == "c*m*v"
    assert (products.costs[:2] == 0).all()
    np.testing.assert_allclose(products.values[2], X[:, 0] * X[:, 1] * X[:, 2])


def test_expressions_have_the_values_that_they_say():
    groups = products_of(X, COLUMNS, Dimension(), 10, FEW, groups=True)

    expressions = Expressions(groups, [p for p in PRIMITIVES if p.arity == 1 and p.name != "id"], FEW)

    for place in range(0, len(expressions), 50):
        equation = Equation(expressions.symbolic(place, NAMES) + 0.0, NAMES)
        np.testing.assert_allclose(equation(X), expressions.values[place], rtol=1e-9)


@pytest.mark.parametrize(
    ("law", "target", "how"),
    [
        ("m*v**2/2", MASS * SPEED**2, FEW),
        ("v*sin(t) + 3*c*t", SPEED, FEW),
        ("m*v**2/2 + 2*m*c**2 + m*v*c/3", MASS * SPEED**2, FEW),
        ("1/(1/v + 2*t/c)", SPEED, FEW),
        ("-sqrt(v**2 + c**2 - 2*v*c*cos(t))", SPEED, FEW),
        *(
            pytest.param(*each, Enumeration(), marks=pytest.mark.slow)
            for each in [
                ("m*v/sqrt(1 + v**2/c**2)", MASS * SPEED),
                ("v*exp(-t)*(1 + v/c)", SPEED),
                ("exp(-t)*(1 + v/c)", Dimension()),
            ]
        ),
    ],
)
def test_a_law_is_put_together_in_spite_of_noise(law, target, how):
    truth = Equation.parse(law, NAMES)
    y = truth(X)
    noisy = y + 0.02 * y.std() * RNG.normal(size=len(y))

    laws = right_laws(X, noisy, None, NAMES, COLUMNS, target, PRIMITIVES, how)

    errors = [np.sqrt(np.mean((Equation(each, NAMES)(X) - y) ** 2)) / y.std() for each in laws]
    assert min(errors) < 0.01


@pytest.mark.parametrize(
    ("numbers", "found"),
    [
        ([0.97, 1.02, -1.98], [1, 1, -2]),
        ([-0.5, 1.6], [-1, 3]),
        ([1.0, 1.4], []),
        ([1.0, 9.0], []),
        ([0.0, 1.0], []),
        ([3.0], []),
    ],
)
def test_whole_numbers_are_in_nearly_the_same_proportion(numbers, found):
    assert [n for _, whole in in_proportion(numbers, 4, 0.15) for n in whole] == found


def test_a_small_proportion_leaves_one_number_to_be_fitted():
    y = 1.7 * np.sqrt(X[:, 1] ** 2 + X[:, 2] ** 2 - 2 * X[:, 1] * X[:, 2] * np.cos(X[:, 3]))
    noisy = y + 0.02 * y.std() * RNG.normal(size=100)

    best = right_laws(X, noisy, None, NAMES, COLUMNS, SPEED, PRIMITIVES, FEW)[0]

    assert len(Equation(best, NAMES).constants) == 1
    np.testing.assert_allclose(Equation(best, NAMES)(X), y, rtol=0.02)


def test_rows_count_by_their_weights():
    y, weight = X[:, 0] * X[:, 1], np.ones(100)
    y[:20], weight[:20] = 50, 0

    best = right_laws(X, y, weight, NAMES, COLUMNS, MASS * SPEED, PRIMITIVES, FEW)[0]

    assert Equation(best, NAMES).matches("m*v", box=(1, 3))


def test_a_target_that_is_zero_or_too_many_columns_give_none():
    wide = RNG.uniform(1, 2, (20, 13))

    assert right_laws(X, 0 * X[:, 0], None, NAMES, COLUMNS, SPEED, PRIMITIVES, FEW) == []
    assert right_laws(wide, wide[:, 0], None, [*"abcdefghijklm"], [SPEED] * 13, SPEED, PRIMITIVES, FEW) == []


def test_a_unit_out_of_reach_gives_none():
    assert right_laws(X, X[:, 0], None, NAMES, (SPEED,) * 4, MASS, PRIMITIVES, FEW) == []
