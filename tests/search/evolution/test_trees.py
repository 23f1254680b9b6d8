"""Trees in arrays: values, slopes and splices are those of the formulas they stand for."""

import numpy as np
import pytest
import torch

from eqlearn.nn.primitives import lookup
from eqlearn.search.evolution.trees import EMPTY, Operations, Trees
from eqlearn.search.networks.structures import Vocabulary

OPERATIONS = Operations.of(Vocabulary.of([lookup(n) for n in ("id", "sin1", "square", "mul", "div")]), 2)
X = np.array([[0.3, 1.2, -0.7], [2.0, 0.5, 1.5]])


def tree(*nodes, length=8):
    """A tree of (code or sign or function, factor, shift)."""
    made = Trees.empty(OPERATIONS, 1, length)
    for i, (name, factor, shift) in enumerate(nodes):
        made.code[0, i] = name if isinstance(name, int) else OPERATIONS.code(name)
        made.factor[0, i], made.shift[0, i] = factor, shift
    return made


@pytest.fixture
def product():  # 2 * sin(3 x0 + 0.1) * x1 - 1
    return tree(("*", 2.0, -1.0), (lookup("sin1"), 1.0, 0.0), (0, 3.0, 0.1), (1, 1.0, 0.0))


def test_a_tree_has_the_values_of_its_formula(product):
    value, _ = product.evaluate(X)
    assert np.allclose(value[0, 0], 2 * np.sin(3 * X[0] + 0.1) * X[1] - 1, rtol=1e-14)


@pytest.mark.parametrize(
    ("sign", "what"), [("+", np.add), ("-", np.subtract), ("*", np.multiply), ("/", np.divide)]
)
def test_every_sign_is_its_operation(sign, what):
    value, _ = tree((sign, 1.0, 0.0), (0, 1.0, 0.0), (1, 1.0, 0.0)).evaluate(X)
    assert np.array_equal(value[0, 0], what(X[0], X[1]))


@pytest.mark.parametrize("sign", "+-*/")
@pytest.mark.parametrize("place", [1, 2, 3])
def test_slopes_are_those_of_small_changes(sign, place):
    made = tree((sign, 2.0, 0.3), (lookup("square"), 1.5, 0.2), (0, 0.7, 0.9), (1, 1.1, 0.4))
    value, _ = made.evaluate(X)
    slopes = made.slopes(value)
    small = 1e-6
    moved = Trees(OPERATIONS, made.code, made.factor, made.shift.copy())
    moved.shift[0, place] += small
    change = (moved.evaluate(X)[0][0] - value[0]) / small
    assert np.allclose(slopes[place, 0], change[0], rtol=1e-4)


def test_lengths_count_nodes_and_numbers_but_not_those_of_the_root(product):
    assert product.size.tolist() == [4]
    assert product.length.tolist() == [6]
    assert product.below[0, :4].tolist() == [4, 2, 1, 1]


def test_a_splice_replaces_one_subtree(product):
    other = tree(("+", 1.0, 0.0), (0, 1.0, 0.0), (1, 5.0, 0.0))
    made, fits = product.spliced(np.array([1]), other, np.array([0]))
    assert fits.all()
    assert np.allclose(made.evaluate(X)[0][0, 0], 2 * (X[0] + 5 * X[1]) * X[1] - 1)
    assert (made.code[0, 5:] == EMPTY).all()


def test_what_does_not_fit_is_said(product):
    long = tree(*[(lookup("sin1"), 1.0, 0.0)] * 7, (0, 1.0, 0.0))
    assert not product.spliced(np.array([1]), long, np.array([0]))[1].any()


def test_a_tree_becomes_a_formula_of_scaled_inputs(product):
    scales = (10.0, 4.0)
    term = product.term(0, scales)
    seen = torch.tensor(X / np.array(scales)[:, None])
    assert np.allclose(term.value(seen).numpy(), product.evaluate(X)[0][0, 0], rtol=1e-12)


def test_signs_that_are_not_allowed_are_not_there():
    few = Operations.of(Vocabulary.of([lookup("id"), lookup("sin1")]), 1)
    assert few.signs == ("+", "-")
