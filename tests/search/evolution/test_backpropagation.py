"""What a node would have to be, and which subexpression comes nearest to it."""

import numpy as np
import pytest

from eqlearn.nn.primitives import lookup
from eqlearn.search.evolution.backpropagation import nearest, undone_near, wanted
from eqlearn.search.evolution.trees import Operations, Trees
from eqlearn.search.networks.structures import Vocabulary

NAMES = ("id", "sin1", "cos", "exp", "log", "sqrt", "square", "tanh", "inv", "mul", "div")
OPERATIONS = Operations.of(Vocabulary.of([lookup(n) for n in NAMES]), 2)
RNG = np.random.default_rng(0)
X = RNG.uniform(0.5, 1.5, size=(2, 30))


def tree(*nodes):
    made = Trees.empty(OPERATIONS, 1, 10)
    for i, (name, factor, shift) in enumerate(nodes):
        made.code[0, i] = name if isinstance(name, int) else OPERATIONS.code(name)
        made.factor[0, i], made.shift[0, i] = factor, shift
    return made


@pytest.mark.parametrize("sign", "+-*/")
@pytest.mark.parametrize("place", [1, 2])
def test_through_every_sign_what_is_wanted_meets_the_target(sign, place):
    made = tree((sign, 2.0, 0.3), (0, 1.0, 0.0), (1, 1.0, 0.0))
    target = made.evaluate(X)[0][0, 0]
    blind = X.copy()
    blind[place - 1] = RNG.uniform(0.5, 1.5, size=30)  # the node says something else
    values, _ = made.evaluate(blind)
    assert np.allclose(wanted(made, values, np.array([place]), target)[0], X[place - 1], rtol=1e-12)


@pytest.mark.parametrize("name", ["sin1", "cos", "exp", "log", "sqrt", "square", "tanh", "inv"])
def test_functions_are_undone(name):
    at = RNG.uniform(0.6, 1.2, size=(1, 30))
    function = lookup(name)
    aim = tree((function, 1.0, 0.0), (0, 1.0, 0.0)).evaluate(np.vstack([at, at]))[0][0]
    assert np.allclose(undone_near(function, aim, at), at, rtol=1e-10)


@pytest.mark.parametrize("name", ["sin1", "cos"])
def test_waves_are_undone_on_the_branch_of_the_argument(name):
    at = np.linspace(-20.0, 20.0, 101)[None]
    aim = np.sin(at) if name == "sin1" else np.cos(at)
    assert np.allclose(undone_near(lookup(name), aim, at), at, atol=1e-6)


def test_what_nothing_has_as_its_value_is_not_a_number():
    assert np.isnan(undone_near(lookup("exp"), np.array([[-1.0]]), np.zeros((1, 1)))).all()
    assert np.isnan(undone_near(lookup("tanh"), np.array([[1.5]]), np.zeros((1, 1)))).all()


def test_the_nearest_entry_is_found_with_its_factor_and_shift():
    bank = RNG.normal(size=(50, 30))
    aim = np.stack([bank[7], 2.5 * bank[20], -3.0 * bank[31] + 4.0])
    match = nearest(aim, np.ones_like(aim), bank, np.ones(50), np.full(3, 0.1), 30.0)
    assert match.entry.tolist() == [7, 20, 31]
    assert np.allclose(match.factor, [1.0, 2.5, -3.0])
    assert np.allclose(match.shift, [0.0, 0.0, 4.0])


def test_rows_count_by_the_slope():
    bank = RNG.normal(size=(2, 30))
    aim = np.where(np.arange(30) < 20, bank[0], bank[1])[None]
    slope = np.where(np.arange(30) < 20, 1e-4, 1.0)[None]
    match = nearest(aim, slope, bank, np.ones(2), np.array([0.1]), 30.0)
    assert match.entry.tolist() == [1]


def test_a_dear_entry_is_taken_only_if_it_is_so_much_better():
    bank = RNG.normal(size=(1, 30))
    bank = np.concatenate([bank, bank + 1e-3 * RNG.normal(size=(1, 30))])
    lengths = np.array([20, 1])
    chosen = [
        int(nearest(bank[:1], np.ones((1, 30)), bank, lengths, np.array([price]), 30.0).entry[0])
        for price in (0.01, 5.0)
    ]
    assert chosen == [0, 1]
