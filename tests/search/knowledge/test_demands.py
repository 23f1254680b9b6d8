import pytest
import sympy as sp

from eqlearn import Equation
from eqlearn.search.candidate import formula_costs
from eqlearn.search.knowledge.demands import Demands, extra_nodes, operator_name

EQUATION = Equation.parse("2*sin(x)**2/y + sqrt(x) + x**3", ("x", "y"))


def test_every_operator_has_its_name():
    names = {operator_name(node) for node in sp.preorder_traversal(EQUATION.expr)}

    assert names == {"add", "mul", "div", "square", "sqrt", "pow", "sin", ""}


def test_a_price_counts_for_every_use():
    assert extra_nodes(Equation.parse("sin(x) + sin(2*x)", ("x",)).expr, {"sin": 3.0, "exp": 9.0}) == 4.0


def test_a_dear_operator_makes_a_description_longer_and_a_cheap_one_shorter():
    _, usual, _ = formula_costs([EQUATION], [[]], 100)

    dear, cheap = (formula_costs([EQUATION], [[]], 100, {"sin": price})[1] for price in (2.0, 0.0))

    assert dear == usual + 1
    assert cheap == usual - 1


@pytest.mark.parametrize("answer", [True, False])
def test_demands_are_met_as_their_function_says(answer):
    assert Demands(lambda equation: answer).met_by((EQUATION,)) is answer
