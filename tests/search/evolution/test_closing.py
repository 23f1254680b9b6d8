"""What makes a tree whole: a node's exact law, looked up or a polynomial, put in its place."""

import numpy as np
import pytest

from eqlearn.search.ansatz.terms import holds
from eqlearn.search.evolution.closing import Closing
from eqlearn.search.evolution.trees import Operations, Trees
from eqlearn.search.subexpressions.bank import grown
from eqlearn.search.subexpressions.pairs import target_values
from search_problems import problem_of


def closed(formula, codes):
    """The laws of a formula that a tree of these signs and columns is made whole by."""
    problem = problem_of(formula, ["x", "y"], rows=60)
    operations, y = Operations.of(problem.vocabulary, 2), target_values(problem, None)
    trees = Trees.empty(operations, 1, 8)
    trees.code[0, : len(codes)] = [c if isinstance(c, int) else operations.code(c) for c in codes]
    closing = Closing(problem, grown(problem, 2_000, exact=True), y, 10)
    return [law for law in closing.laws(trees) if holds(law, problem, y)]


@pytest.mark.parametrize(
    "formula",
    [
        "x*(1.5*tanh(x/y) - 2*y + 0.3)",  # an entry beside columns
        "x*exp(0.7*sin(x*y) + y)",  # inside a function
        "x*(y**3 - 0.5*x**2*y + 2*x)",  # a polynomial
        "x*tanh(0.4/y - 0.7*x/y + x)",  # quotients, inside a function
    ],
)
def test_a_node_is_replaced_by_its_exact_law(formula):
    assert closed(formula, ["*", 0, 1])


def test_a_frame_that_is_wrong_is_not_closed():
    assert closed("sin(9*x*y) + cos(7*y + x)", ["*", 0, 1]) == []


def test_trees_of_one_node_have_nothing_to_replace():
    assert closed("x*y", [0]) == []


def test_laws_have_the_values_of_the_target_on_all_rows():
    problem = problem_of("x*(1.5*tanh(x/y) - 2*y + 0.3)", ["x", "y"], rows=60)
    y = target_values(problem, None)

    for law in closed("x*(1.5*tanh(x/y) - 2*y + 0.3)", ["*", 0, 1]):
        np.testing.assert_allclose(law.value(problem.samples.x).numpy(), y, atol=1e-8)
