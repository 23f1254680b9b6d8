"""Reductions: symmetries seen in slopes, and formulas brought back to all variables."""

import numpy as np
import pytest

from eqlearn import discover
from eqlearn.nn.primitives import parse_set
from eqlearn.search.ansatz.layout import Ansatz, Sum
from eqlearn.search.ansatz.symmetry import reduced, reduced_problem, restored
from eqlearn.search.ansatz.target_transform import transforms
from eqlearn.search.features import Features
from eqlearn.search.networks.fit import Samples
from eqlearn.search.networks.sparsify import Half
from eqlearn.search.networks.starts import Waves
from eqlearn.search.networks.structures import Vocabulary
from eqlearn.search.problem import Problem
from eqlearn.search.settings import SCIENCE
from eqlearn.symbolic.equation import Equation
from eqlearn.verify.judge import judge


def scene_of(formula, variables, low=1.0, high=3.0, rows=200):
    import torch

    X = np.random.default_rng(0).uniform(low, high, size=(rows, len(variables)))
    y = Equation.parse(formula, variables)(X)[:, None]
    features = Features.of(X, y, logarithms=True, degree=8)
    vocabulary = Vocabulary.of([p for p in parse_set(SCIENCE) if p.name != "pow"])
    samples = Samples(features.tensor(X), torch.as_tensor(y.T / features.units[:, None]))
    waves = Waves.of(samples.x[: len(variables)].numpy())
    views = tuple(transforms(vocabulary.unary, samples.y))
    return Problem(samples, features, vocabulary, waves, views, Half(), 3)


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
    state = reduced(scene_of(formula, variables))

    assert len(state.columns) == left


def test_a_function_without_symmetry_is_left_alone():
    assert reduced(scene_of("sin(2*a)+b**2*a+exp(b)/a", ("a", "b"))) is None


def test_a_formula_of_the_smaller_problem_holds_in_the_larger():
    problem = scene_of("a*b**2*(1+c)", ("a", "b", "c"))
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
        ("g*m*n/((a-b)**2+(c-d)**2)", ("g", "m", "n", "a", "b", "c", "d")),
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
