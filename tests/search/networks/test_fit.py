"""Fits of a population: normal equations in pieces, members that do not touch each other."""

import math

import numpy as np
import torch

from eqlearn.nn.eql import EQL
from eqlearn.search.networks import fit as least_squares
from eqlearn.search.networks.fit import Samples, levenberg_marquardt, normal_equations
from eqlearn.search.networks.population import Population


def quadratic(rows=200, noise=0.0, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(rows, 2))
    return X, 1.5 * X[:, 0] ** 2 - 0.7 * X[:, 1] + 0.2 + noise * rng.normal(size=rows)


def near(sets="id square", **options):
    return EQL(2, 1, sets, 1, bias=True, seed=1, **options).double()


def test_rows_in_pieces_give_the_same_normal_equations(monkeypatch):
    X, y = quadratic(noise=0.1)
    weight = torch.linspace(0.5, 1.5, 200, dtype=torch.float64)
    samples = Samples(torch.as_tensor(X.T.copy()), torch.as_tensor(y)[None], weight)
    population, theta = Population.of(near())

    whole = normal_equations(population, theta, samples)
    monkeypatch.setattr(least_squares, "CELLS", 1)
    pieces = normal_equations(population, theta, samples)

    torch.testing.assert_close(pieces.curvature, whole.curvature)
    torch.testing.assert_close(pieces.slope, whole.slope)
    torch.testing.assert_close(pieces.loss, whole.loss)


def test_a_member_that_is_not_finite_does_not_touch_the_others():
    X, y = quadratic()
    samples = Samples(torch.as_tensor(X.T.copy()), torch.as_tensor(y)[None])
    pair, start = Population.of(EQL(2, 1, "id square", 1, bias=True, members=2, seed=1).double())
    start[1] = math.inf

    theta, loss = levenberg_marquardt(pair, start, samples, steps=60)

    assert float(loss[0]) < 1e-20
    assert math.isinf(float(loss[1]))
    assert bool(torch.isfinite(theta[0]).all())
