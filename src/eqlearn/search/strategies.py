"""The strategies of the search: what each looks for, and in which order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

from eqlearn.numerics.budget import never
from eqlearn.numerics.criteria import EXACT_SHARE
from eqlearn.search.ansatz.layout import Ansatz
from eqlearn.search.ansatz.linear import linear_ansatzes, scanned_ansatzes
from eqlearn.search.ansatz.products import product_ansatzes
from eqlearn.search.ansatz.rational import rational_ansatzes
from eqlearn.search.ansatz.symmetry import reduced, reduced_problem, restored
from eqlearn.search.ansatz.terms import modulated_ansatzes, sum_ansatzes
from eqlearn.search.problem import Problem

Strategy: TypeAlias = Callable[[Problem, Callable[[], bool]], Iterable[Ansatz]]

# What is left of a reduction must be at most so many variables for a dictionary to be worth its time.
MOST_REDUCED = 6


def reduced_ansatzes(problem: Problem, stop: Callable[[], bool] = never) -> Iterator[Ansatz]:
    """What the other kinds make of the same target in fewer variables."""
    state = reduced(problem, stop) if problem.samples.y.shape[0] == 1 else None
    if state is None:
        return
    smaller = reduced_problem(state, problem, 2**problem.hidden_layers if problem.features.products else 1)
    for name, sketches in STRATEGIES.items():
        if name == "reduced" or (name in FROM_DICTIONARY and len(state.columns) > MOST_REDUCED):
            continue
        for ansatz in sketches(smaller, stop):
            whole = restored(ansatz, state, smaller, problem)
            if whole is not None:
                yield whole
                left = whole.readout.value(problem.samples.x) - problem.samples.y[0]
                if float(left.square().mean()) < EXACT_SHARE:
                    return


# Each looks for an exact law, for the target or an transform of it; the cheapest first.
STRATEGIES: dict[str, Strategy] = {
    "linear": linear_ansatzes,  # sums of one bank of inputs
    "rational": rational_ansatzes,  # quotients of polynomials
    "scanned": scanned_ansatzes,  # a multiple of a logarithm, or an exponential with an offset
    "products": product_ansatzes,  # of functions out of a dictionary
    "reduced": reduced_ansatzes,  # all of these, in fewer variables
    "modulated": modulated_ansatzes,  # a polynomial, and functions times powers
    "sums": sum_ansatzes,  # of functions out of a dictionary
}
FROM_DICTIONARY = ("products", "modulated", "sums")
EXACT_FIRST = tuple(STRATEGIES)
# Then for any law: sums of many inputs, by elimination.
SKETCHES = (*EXACT_FIRST, "banks")
