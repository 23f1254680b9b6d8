"""Problems of a search, built from a formula as `discover` builds them from a table."""

import numpy as np
import torch

from eqlearn.nn.primitives import lookup, parse_set
from eqlearn.search.ansatz.target_transform import transforms
from eqlearn.search.features import Features
from eqlearn.search.networks.fit import Samples
from eqlearn.search.networks.sparsify import Half
from eqlearn.search.networks.starts import Waves
from eqlearn.search.networks.structures import Vocabulary
from eqlearn.search.problem import Problem
from eqlearn.search.settings import DEFAULTS, SCIENCE
from eqlearn.symbolic.equation import Equation


def problem_of(formula, variables, low=1.0, high=3.0, rows=200, settings=DEFAULTS, noise=0.0):
    """The problem of finding this formula on a box, in exact values or in noise (a part of the spread);
    several formulas, several targets."""
    formulas = [formula] if isinstance(formula, str) else formula
    X = np.random.default_rng(0).uniform(low, high, size=(rows, len(variables)))
    y = np.stack([Equation.parse(f, variables)(X) for f in formulas], axis=1)
    y = y + noise * y.std(axis=0) * np.random.default_rng(1).normal(size=y.shape)
    features = Features.of(X, y, logarithms=True, degree=8)
    vocabulary = Vocabulary.of([*(p for p in parse_set(SCIENCE) if p.name != "pow"), lookup("cube")])
    samples = Samples(features.tensor(X), torch.as_tensor(y.T / features.units[:, None]))
    waves = Waves.of(samples.x[: len(variables)].numpy())
    views = tuple(transforms(vocabulary.unary, samples.y))
    return Problem(samples, features, vocabulary, waves, views, Half(), 3, settings)


def error_of(ansatz, problem):
    """The largest deviation of a proposal from the target, once its transform is undone."""
    return float(deviation_of(ansatz, problem).abs().max())


def deviation_of(ansatz, problem):
    """How far a proposal is from the target in each row, once its transform is undone."""
    value = ansatz.readout.value(problem.samples.x)
    if ansatz.transform is not None:
        value = ansatz.transform.amplitude * ansatz.transform.unit(value * ansatz.transform.scale)
    return value - problem.samples.y[0]
