"""All pairs at once: they leave what least squares leaves, and laws of two parts are found."""

from dataclasses import replace

import numpy as np
import pytest

from eqlearn.search.ansatz.terms import least_squares_sum
from eqlearn.search.settings import Settings
from eqlearn.search.subexpressions.bank_settings import BankSettings
from eqlearn.search.subexpressions.pairs import Pairs, pair_ansatzes
from search_problems import error_of, problem_of

FEW = Settings(bank=BankSettings(small=60))


@pytest.fixture(scope="module")
def values():
    return np.random.default_rng(0).normal(size=(6, 40)) + 3.0


def normed(values):
    about = values - values.mean(axis=-1, keepdims=True)
    return about / np.linalg.norm(about, axis=-1, keepdims=True)


def nearest(proposed, problem):
    return min((e for e in (error_of(a, problem) for a in proposed) if np.isfinite(e)), default=np.inf)


def left_by(columns, y):
    return least_squares_sum(list(columns), y)[1] ** 2


def test_what_is_left_is_what_least_squares_leaves(values):
    y = normed(np.random.default_rng(1).normal(size=40))
    found = Pairs(normed(values)).bilinear(y, 40)
    best = {}
    for left, i, j in found:
        key = (min(i, j), max(i, j))
        best[key] = min(left, best.get(key, 1.0))

    assert len(best) > 15
    for (i, j), left in best.items():
        f, g = values[i], values[j]
        columns = (f, f * f) if i == j else (f, g, f * g)
        assert left == pytest.approx(left_by(columns, y), rel=1e-8)


def test_what_is_left_of_quotients_is_what_least_squares_leaves(values):
    y = normed(np.random.default_rng(1).normal(size=40))
    z = normed(values)
    for left, i, j in Pairs(z).quotients(y, 20):
        product = y * z[i]
        without, with_target = left_by((y,), product), left_by((z[j], z[i], y), product)
        assert left == pytest.approx(with_target / without, rel=1e-6)


@pytest.mark.parametrize(
    "formula",
    [
        "sqrt(2*x) + x", "(x - 3.5)/(sin(y) + 2.2)", "(sqrt(x) - y)/(y + 0.2)", "(x + 1.3)*(sin(y) - 0.4)",
        "(sqrt(x) + 2.1)/(x*y + 0.7)", "exp(x*y - 0.3*x)",
    ],
)  # fmt: skip
def test_laws_of_two_parts_are_proposed_to_rounding(formula):
    problem = problem_of(formula, ["x", "y"] if "y" in formula else ["x"])

    assert nearest(pair_ansatzes(problem), problem) < 1e-8


def test_numbers_inside_of_functions_come_near_enough_for_a_fit():
    problem = problem_of("2 - 2.1*cos(9.8*x)*sin(1.3*y)", ["x", "y"], low=0.0, high=2.0)
    proposed = pair_ansatzes(problem)

    assert nearest(proposed, problem) < 1.0
    assert any(unit.arguments[0].constant for a in proposed for unit, _ in a.readout.units)


def test_without_division_or_products_there_are_sums():
    from eqlearn.nn.primitives import parse_set
    from eqlearn.search.networks.structures import Vocabulary

    problem = replace(problem_of("x + sin(y)", ["x", "y"]), vocabulary=Vocabulary.of(parse_set("sin1")))

    assert nearest(pair_ansatzes(problem), problem) < 1e-9


def test_several_targets_few_rows_and_a_stop_give_nothing():
    assert pair_ansatzes(problem_of("x + y", ["x", "y"], rows=20)) == []
    assert pair_ansatzes(problem_of(["x", "x*x"], ["x"])) == []
    assert pair_ansatzes(problem_of("x + y", ["x", "y"]), stop=lambda: True) == []


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("formula", ["0*x + 2", "1/(x - 1.0001)", "exp(50*x)", "1e-200*x", "x - x"])
def test_odd_targets_are_no_error(formula):
    assert isinstance(pair_ansatzes(problem_of(formula, ["x"], settings=FEW)), list)
