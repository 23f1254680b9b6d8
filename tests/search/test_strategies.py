"""Strategies: each proposes what it is for; one's own is one registration."""

import numpy as np
import pytest

from eqlearn import Settings, discover, errors
from eqlearn.numerics.budget import Deadline, never
from eqlearn.search.ansatz.layout import Ansatz, Sum
from eqlearn.search.step import Step, take_step
from eqlearn.search.strategies import STRATEGIES, Strategy, find_strategy, register_strategy
from search_problems import error_of, problem_of

LAWS = {
    "linear": ("2*a + 3*b - 1", ("a", "b")),
    "rational": ("(a - b)/(1 + a*b)", ("a", "b")),
    "products": ("a**2*sin(b)", ("a", "b")),
    "symmetry": ("a*b**2*(1 + c*d)", ("a", "b", "c", "d")),
    "sums": ("sin(2*a) + b", ("a", "b")),
}


@pytest.mark.parametrize("name", LAWS)
def test_a_strategy_proposes_the_law_it_is_for(name):
    problem = problem_of(*LAWS[name])

    proposals = list(find_strategy(name).propose(problem, lambda: False))

    assert min(error_of(ansatz, problem) for ansatz in proposals) < 1e-9


@pytest.mark.parametrize("name", sorted(STRATEGIES))
def test_nothing_is_proposed_when_time_is_up(name):
    problem = problem_of("a*b + sin(a)", ("a", "b"), rows=60)

    proposals = list(find_strategy(name).propose(problem, lambda: True))

    assert name == "elimination" or not proposals


def test_elimination_begins_with_all_inputs_of_a_bank_for_every_target():
    problem = problem_of(["a*b", "a - b"], ("a", "b"))

    proposals = list(STRATEGIES["elimination"].propose(problem, lambda: False))

    assert {ansatz.outputs for ansatz in proposals} == {2}
    assert max(len(ansatz.readout.inputs) for ansatz in proposals) > 2


@pytest.fixture
def doubling():
    def propose(problem, stop):
        yield Ansatz(None, Sum(((0, 2.0),)))

    yield register_strategy(Strategy("doubling", propose))
    del STRATEGIES["doubling"]


def test_a_strategy_of_one_s_own_finds_what_it_proposes(doubling):
    X = np.random.default_rng(0).uniform(1, 2, (60, 1))

    found = discover(X, 2 * X[:, 0], settings=Settings(strategies=("doubling",), networks=False))

    assert str(found.best.equation) == "2*x"
    assert found.best.method == "doubling"
    assert found.rounds == 1


@pytest.fixture
def endless():
    def propose(problem, stop):
        while not stop():
            pass
        yield Ansatz(None, Sum(((0, 1.0),)))

    yield register_strategy(Strategy("endless", propose))
    del STRATEGIES["endless"]


def test_a_strategy_that_would_take_all_of_the_time_leaves_some_to_others(endless):
    problem = problem_of("3*a", ("a",))

    result = take_step(Step(0, 0, find_strategy("endless")), problem, never, Deadline(0.0))

    assert result.exact == 1  # what it had proposed by then is fitted


def test_without_networks_the_search_ends_after_its_strategies():
    rng = np.random.default_rng(0)
    settings = Settings(strategies=("linear", "elimination"), networks=False)

    found = discover(rng.normal(size=(60, 2)), rng.normal(size=60), settings=settings)

    assert found.rounds == 2
    assert found.ended == "no further gain"


def test_an_unknown_strategy_is_named_with_the_nearest_one():
    with pytest.raises(errors.UnknownName, match="did you mean 'products'"):
        discover([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0], settings=Settings(strategies=("product",)))


def test_a_name_is_registered_once(doubling):
    with pytest.raises(errors.InvalidArgument, match="exists already"):
        register_strategy(Strategy("linear", lambda problem, stop: ()))


@pytest.mark.parametrize("bad", ["linear", None])
def test_what_is_no_strategy_is_refused(bad, unchecked_types):
    with pytest.raises(errors.WrongType):
        register_strategy(bad)
