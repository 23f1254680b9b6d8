"""Reductions: symmetries seen in slopes, and formulas brought back to all variables."""

from dataclasses import replace

import numpy as np
import pytest

from eqlearn import discover
from eqlearn.search.ansatz.layout import Ansatz, Sum
from eqlearn.search.ansatz.symmetry import reduced, reduced_problem, restored
from eqlearn.symbolic.equation import Equation
from eqlearn.verify.judge import judge
from search_problems import problem_of


@pytest.mark.parametrize(
    ("formula", "variables", "left"),
    [
        ("a*b**2*(1+c*d)", ("a", "b", "c", "d"), 1),
        ("exp(-(a-b)**2)", ("a", "b"), 1),
        ("c*tanh(a*b)", ("a", "b", "c"), 1),
        ("a*b/(exp(a/b)-1)", ("a", "b"), 1),
    ],
)
def test_symmetries_leave_fewer_variables(formula, variables, left):
    state = reduced(problem_of(formula, variables))

    assert len(state.columns) == left


def test_a_function_without_symmetry_is_left_alone():
    assert reduced(problem_of("sin(2*a)+b**2*a+exp(b)/a", ("a", "b"))) is None


@pytest.mark.parametrize("slope", [800, -800])
def test_powers_that_overflow_are_no_factors(slope):
    state = reduced(problem_of(f"sin(30*a)*exp({slope}*(b - 2))", ("a", "b"), low=2.0, high=2.01))

    assert state is None or (state.target.isfinite().all() and state.target.any())


def test_a_sum_that_is_conserved_is_no_variable():
    problem = problem_of("a + b**2", ("a", "b"))
    x = problem.samples.x.clone()
    x[1] = (4.0 - x[0] * problem.features.scales[0]) / problem.features.scales[1]
    samples = replace(problem.samples, x=x, y=(2 * problem.features.scales[0] * x[:1]).sin())

    assert reduced(replace(problem, samples=samples)) is None


def test_a_formula_of_the_smaller_problem_holds_in_the_larger():
    problem = problem_of("a*b**2*(1+c)", ("a", "b", "c"))
    state = reduced(problem)
    smaller = reduced_problem(state, problem, 8)
    ansatz = Ansatz(None, Sum(((0, 2.0),), (), 0.5))

    whole = restored(ansatz, state, smaller, problem).readout.value(problem.samples.x)

    factor = problem.samples.y[0] / state.target
    small = ansatz.readout.value(smaller.samples.x) * smaller.features.outputs[0]
    assert np.allclose(whole, factor * small)


@pytest.mark.parametrize(
    ("formula", "variables"),
    [
        pytest.param(
            "g*m*n/((a-b)**2+(c-d)**2)", ("g", "m", "n", "a", "b", "c", "d"), marks=pytest.mark.slow
        ),
        ("n*m*tanh(m*b/(k*t))", ("n", "m", "b", "k", "t")),
        pytest.param("2*h*f**3/(c**2*(exp(h*f/(k*t))-1))", ("h", "f", "c", "k", "t"), marks=pytest.mark.slow),
    ],
)
def test_laws_of_many_variables_are_found(formula, variables):
    X = np.random.default_rng(0).uniform(1.0, 3.0, size=(300, len(variables)))
    if "d" in variables:
        X[:, [3, 5]] += 3
    truth = Equation.parse(formula, variables)

    found = discover(X, truth(X), variables=variables, seconds=60.0)

    box = {name: (X[:, i].min(), X[:, i].max()) for i, name in enumerate(variables)}
    assert judge(found.best.equation, truth, box).at_least("symbolic")
