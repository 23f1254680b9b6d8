"""Sparsification: of weights that are not needed, few are left, and those that are needed stay."""

import pytest
import torch

from eqlearn import EQL
from eqlearn.search.networks.fit import Samples
from eqlearn.search.networks.population import Population
from eqlearn.search.networks.sparsify import Half, HardConcreteL0


def straight_line(rows=200):
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(3, rows, generator=generator, dtype=torch.float64) * 2 - 1
    return Samples(x, (1.5 * x[0] - 0.5)[None])


def network(seed):
    return EQL(3, 1, "id*2 square*2", 1, bias=True, seed=seed).double()


@pytest.mark.parametrize("sparsifier", [Half(), HardConcreteL0(steps=400)], ids=["half", "l0"])
def test_few_weights_are_left_and_they_fit(sparsifier):
    samples = straight_line()
    population, theta = Population.of(network(1))
    before = int(population.counts[0])

    smaller, weights = sparsifier(population, theta, samples, seed=0)

    left = int(smaller.counts[0])
    assert 2 <= left < before / 2
    residual = smaller.evaluate(weights, samples.x)[0] - samples.y
    assert float(residual.square().mean() / samples.y.var()) < 0.05


def test_the_penalty_falls_so_that_the_optimum_is_not_shrunken():
    half = Half()
    weights = torch.tensor([[0.5]], dtype=torch.float64)

    assert half._coefficient(weights, half.steps - 1) < 1e-2 * half._coefficient(weights, 0)


def test_a_stopped_sparsifier_gives_back_what_it_has():
    samples = straight_line()
    population, theta = Population.of(network(0))

    smaller, weights = Half()(population, theta, samples, seed=0, stop=lambda: True)

    assert weights.shape == smaller.places.shape
