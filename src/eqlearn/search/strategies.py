"""The strategies of the search: ways to propose formulas that linear algebra can decide.

A strategy is one function, registered by its name; a search tries those that `Settings.strategies` names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from eqlearn.errors import InvalidArgument, WrongType
from eqlearn.numerics.budget import never
from eqlearn.numerics.criteria import EXACT_SHARE
from eqlearn.search.ansatz.layout import Ansatz, Sum
from eqlearn.search.ansatz.library_sums import sum_ansatzes
from eqlearn.search.ansatz.linear import allowed_banks, linear_ansatzes, profiled_ansatzes
from eqlearn.search.ansatz.products import product_ansatzes
from eqlearn.search.ansatz.rational import rational_ansatzes
from eqlearn.search.ansatz.symmetry import reduced, reduced_problem, restored
from eqlearn.search.evolution.evolve import evolved_ansatzes
from eqlearn.search.problem import Problem
from eqlearn.search.subexpressions.affine import affine_ansatzes
from eqlearn.search.subexpressions.best_subsets import subset_ansatzes
from eqlearn.search.subexpressions.pairs import pair_ansatzes
from eqlearn.search.subexpressions.spans import span_ansatzes, wide_span_ansatzes
from eqlearn.validation.options import checked_choice, enter

# Proposes formulas for a problem, until `stop()` holds; each becomes a small network and is fitted.
Proposer: TypeAlias = Callable[[Problem, Callable[[], bool]], Iterable[Ansatz]]


@dataclass(frozen=True)
class Strategy:
    """A way to look for laws, and how its proposals are taken.

    A strategy for `exact` laws is quick: what fits exactly is kept, or else what is small. One that is not
    proposes sums of many inputs, from which backward elimination takes what is not needed. One with a
    `library` of functions is not tried where a symmetry leaves many variables; one for `clean` values is not
    tried where they hold noise, and one that is not for `settled` searches not where what the best law so far
    leaves looks like noise.
    """

    name: str
    propose: Proposer
    exact: bool = True
    library: bool = False
    clean: bool = False
    settled: bool = True

    def __post_init__(self) -> None:
        if not callable(self.propose):
            raise WrongType(f"strategy {self.name!r}: `propose` must be a function, got {self.propose!r}")
        if not self.name or self.name == "networks":
            raise InvalidArgument(f"a strategy can't have the `name` {self.name!r}")


def is_worth(strategy: Strategy, problem: Problem) -> bool:
    """Whether a strategy is tried on such data."""
    if strategy.clean:
        return not problem.noisy and not problem.settled
    return strategy.settled or not problem.settled


def symmetry_ansatzes(problem: Problem, stop: Callable[[], bool] = never) -> Iterator[Ansatz]:
    """What the other strategies make of the same target in fewer variables."""
    state = reduced(problem, stop) if problem.samples.y.shape[0] == 1 else None
    if state is None:
        return
    smaller = reduced_problem(state, problem, 2**problem.hidden_layers if problem.features.products else 1)
    many = len(state.columns) > problem.settings.symmetry.max_variables
    for strategy in _BUILT_IN:
        if strategy.name == "symmetry" or not strategy.exact or (strategy.library and many):
            continue
        if not is_worth(strategy, smaller):
            continue
        for ansatz in strategy.propose(smaller, stop):
            whole = restored(ansatz, state, smaller, problem)
            if whole is not None:
                yield whole
                left = whole.readout.value(problem.samples.x) - problem.samples.y[0]
                if float(left.square().mean()) < EXACT_SHARE:
                    return


def elimination_ansatzes(problem: Problem, stop: Callable[[], bool] = never) -> Iterator[Ansatz]:
    """Every bank with every transform that the depth allows; a smaller bank is part of a larger one."""
    for transform in problem.targets:
        for bank in allowed_banks(problem, int(transform is not None)):
            every = Sum(tuple((place, 0.1) for place in bank), (), 0.1)
            yield Ansatz(transform, every, outputs=problem.samples.y.shape[0])


def island_ansatzes(problem: Problem, stop: Callable[[], bool] = never) -> list[Ansatz]:
    """What the first island of an evolution comes to; a search asks for one after the other."""
    return evolved_ansatzes(problem, 0, 0, stop)


EVOLUTION = Strategy("evolution", island_ansatzes, exact=False)  # trees that vary and are selected

_BUILT_IN = (
    Strategy("linear", linear_ansatzes),  # sums of one bank of inputs
    Strategy("rational", rational_ansatzes),  # quotients of polynomials
    Strategy("profiled", profiled_ansatzes),  # a multiple of a logarithm, or an exponential with an offset
    Strategy("subsets", subset_ansatzes),  # sums of few out of many subexpressions, in noise too
    Strategy("products", product_ansatzes, library=True, settled=False),  # of functions out of the library
    Strategy("affine", affine_ansatzes, clean=True),  # one subexpression, times and beside polynomials
    Strategy("pairs", pair_ansatzes, settled=False),  # of simple subexpressions
    Strategy("span", span_ansatzes, clean=True),  # sums of the simplest, and one operation with any other
    Strategy("wide-span", wide_span_ansatzes, clean=True),  # any other of many more
    Strategy("symmetry", symmetry_ansatzes, settled=False),  # all of these, in fewer variables
    Strategy("sums", sum_ansatzes, library=True, settled=False),  # of functions out of the library
    Strategy("elimination", elimination_ansatzes, exact=False),  # for any law: sums of many inputs
)
STRATEGIES: dict[str, Strategy] = {strategy.name: strategy for strategy in (*_BUILT_IN, EVOLUTION)}


def register_strategy(strategy: Strategy) -> Strategy:
    """Makes a strategy known by its name, for `Settings(strategies=(..., name))`."""
    if not isinstance(strategy, Strategy):
        raise WrongType(f"`strategy` must be a Strategy, got {strategy!r}")
    return enter("a strategy", strategy.name, strategy, STRATEGIES)


def find_strategy(name: str) -> Strategy:
    """The strategy of that name."""
    return STRATEGIES[checked_choice("strategy", name, STRATEGIES)]
