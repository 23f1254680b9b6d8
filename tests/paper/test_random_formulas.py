"""Formulas drawn at random: the same for the same seed, and worth looking for."""

import ast

import numpy as np
import pytest

from eqlearn import errors, judge
from eqlearn.paper.random_formulas import DEVELOPMENT, REPORT, Drawing, random_formula

SOME = [random_formula(seed) for seed in DEVELOPMENT[:60]]


def operations(formula):
    """Operators and functions in the text; a fraction of whole numbers is one constant."""
    nodes = [n for n in ast.walk(ast.parse(formula, mode="eval")) if isinstance(n, ast.BinOp | ast.Call)]
    numbers = [
        n
        for n in nodes
        if isinstance(n, ast.BinOp) and isinstance(n.left, ast.Constant) and isinstance(n.right, ast.Constant)
    ]
    return len(nodes) - len(numbers)


def test_the_same_seed_gives_the_same_formula():
    assert [random_formula(seed) for seed in DEVELOPMENT[:60]] == SOME
    assert len({p.formula for p in SOME}) > 55


def test_development_and_report_share_no_seed_and_no_formula():
    reported = {random_formula(seed).formula for seed in REPORT[:60]}
    # The shortest ones of one or two variables can't but meet now and then.
    long = {p.formula for p in SOME if operations(p.formula) > 3}

    assert not set(DEVELOPMENT) & set(REPORT)
    assert len(long) > 20
    assert not long & reported


@pytest.mark.parametrize("problem", SOME, ids=lambda p: p.name)
def test_a_formula_parses_back_is_finite_and_varies_with_all_its_variables(problem):
    X, y = problem.data(seed=7)
    squares = (y - y.mean()) ** 2

    assert {s.name for s in problem.truth.expr.free_symbols} == set(problem.ranges)
    assert len(y) > 0.9 * problem.rows  # on other rows than those it was drawn with
    assert y.std() > 1e-6 * abs(y).max()
    assert squares.max() < 0.9 * squares.sum()
    assert np.isfinite(X).all()


def test_sizes_are_as_asked():
    sizes = [operations(p.formula) for p in SOME]
    small = [random_formula(s, Drawing(variables=(2, 2), operations=(3, 3))) for s in range(20)]

    assert min(sizes) == 2
    assert 12 < max(sizes) <= 16
    assert {len(p.ranges) for p in SOME} == {1, 2, 3, 4, 5}
    assert {operations(p.formula) for p in small} == {3}
    assert {len(p.ranges) for p in small} == {2}


def test_a_formula_is_itself_to_the_judge():
    for problem in SOME[:10]:
        assert judge(problem.truth, problem.truth, problem.ranges, seconds=60.0).tier == "exact"


@pytest.mark.parametrize(
    "wrong", [{"variables": (0, 2)}, {"operations": (5, 4)}, {"variables": (4, 5), "operations": (2, 6)}]
)
def test_impossible_sizes_are_refused(wrong):
    with pytest.raises(errors.InvalidArgument, match=r"variables|operations"):
        Drawing(**wrong)


def test_what_can_not_be_drawn_ends_in_a_sentence():
    with pytest.raises(errors.InvalidArgument, match="no formula of 2 operations was kept in 50 attempts"):
        random_formula(0, Drawing(variables=(1, 1), operations=(2, 2), one_row=0.0, attempts=50))
