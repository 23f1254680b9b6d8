"""Laws that are affine in a subexpression, also beside a quotient."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from eqlearn.nn.primitives import parse_set
from eqlearn.search.networks.structures import Vocabulary
from eqlearn.search.settings import Settings
from eqlearn.search.subexpressions.affine import affine_ansatzes, left_beside
from eqlearn.search.subexpressions.bank_settings import AffineSettings, BankSettings
from search_problems import error_of, problem_of

SMALL = Settings(affine=AffineSettings(simplest=1_500), bank=BankSettings(entries=2_000))


def nearest(problem):
    errors = (error_of(ansatz, problem) for ansatz in affine_ansatzes(problem))
    return min((e for e in errors if np.isfinite(e)), default=np.inf)


@pytest.mark.parametrize(
    "formula",
    [
        "x - (x + 0.26*z)/(log(y + z)*z)", "x**2*y + 0.3*z*sin(x*y) - 2*sin(x*y)",
        "exp(x*y - 2*z*tanh(x/z) + 1)", "(1.7*x - z)/sqrt(x + y) + y*z",
    ],
)  # fmt: skip
def test_one_subexpression_beside_and_times_polynomials(formula):
    assert nearest(problem_of(formula, ["x", "y", "z"], settings=SMALL)) < 1e-7


def test_a_quotient_beside_a_subexpression():
    problem = problem_of("x - y/(2*y + z + 6.9) + x*tanh(z/y)", ["x", "y", "z"], settings=SMALL)

    assert nearest(problem) < 1e-7


def test_inputs_that_are_constant_have_no_subexpressions():
    problem = problem_of("x + y", ["x", "y"], settings=SMALL)
    still = replace(problem.samples, x=torch.ones_like(problem.samples.x))

    assert affine_ansatzes(replace(problem, samples=still)) == []


def test_what_is_left_is_what_least_squares_leave():
    rng = np.random.default_rng(0)
    y, outside, inside, entries = (rng.normal(size=(*n, 60)) for n in ((), (4,), (3,), (50,)))

    left = left_beside(y[None], outside, inside, entries)[0]

    for entry, share in zip(entries, left, strict=True):
        matrix = np.vstack([np.ones(60), outside, inside * entry]).T
        residual = y - matrix @ np.linalg.lstsq(matrix, y, rcond=None)[0]
        assert share == pytest.approx(residual @ residual / np.square(y - y.mean()).sum(), rel=1e-6)


def test_several_targets_and_a_stop_give_nothing():
    assert affine_ansatzes(problem_of(["x", "x*x"], ["x"])) == []
    assert affine_ansatzes(problem_of("sin(9*x)*y", ["x", "y"]), stop=lambda: True) == []


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("formula", ["0*x + 2", "1/(x - 1.0001)", "exp(50*x)", "1e-200*x"])
def test_odd_targets_are_no_error(formula):
    assert isinstance(affine_ansatzes(problem_of(formula, ["x"], settings=SMALL)), list)


@pytest.mark.parametrize(("words", "formula"), [("id sin1", "x + 2*sin(y)"), ("id sin1 div", "x/y + sin(x)")])
def test_without_products_entries_stand_alone(words, formula):
    vocabulary = Vocabulary.of(parse_set(words))
    problem = replace(problem_of(formula, ["x", "y"], settings=SMALL), vocabulary=vocabulary)

    assert nearest(problem) < 1e-7
