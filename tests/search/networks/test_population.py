"""Many different small networks in one program: each must be what it would be alone."""

import numpy as np
import pytest
import torch

from eqlearn.nn.eql import EQL
from eqlearn.nn.primitives import PAPER, parse_set
from eqlearn.nn.sparse import prune_
from eqlearn.search.features import Features
from eqlearn.search.networks.population import Population
from eqlearn.search.networks.starts import Waves, random_start
from eqlearn.search.networks.structures import LEVELS, Vocabulary


def draw(level=LEVELS[2], members=5, inputs=3, outputs=1, seed=0, primitives=PAPER):
    rng = np.random.default_rng(seed)
    vocabulary = Vocabulary.of(parse_set(primitives))
    structures = [vocabulary.draw(level, inputs, outputs, rng) for _ in range(members)]
    masks = [[torch.as_tensor(rng.random(s) < 0.7) for s in st.shapes()] for st in structures]
    population = Population(structures, masks)
    theta = torch.as_tensor(rng.normal(size=population.places.shape)) * 0.5
    theta[population.padding] = 0
    return population, theta, torch.as_tensor(rng.uniform(-1, 1, size=(inputs, 40)))


@pytest.mark.parametrize("level", LEVELS, ids=str)
def test_a_member_gives_what_its_network_gives(level):
    population, theta, x = draw(level)

    together = population.evaluate(theta, x)

    for i in range(population.members):
        alone = population.network(i, theta)(x.mT).mT
        torch.testing.assert_close(together[i], alone, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("outputs", [1, 3])
def test_the_jacobian_is_the_derivative(outputs):
    population, theta, x = draw(outputs=outputs, members=3)

    _, jacobian = population.linearise(theta, x)

    for i in range(population.members):
        expected = torch.func.jacrev(lambda t, i=i: population.evaluate(t, x)[i].flatten())(theta)[:, i]
        torch.testing.assert_close(jacobian[i].mT, expected, rtol=1e-9, atol=1e-9)


def test_restricting_keeps_the_function_when_only_zero_weights_go():
    population, theta, x = draw()
    theta = torch.where(theta.abs() > 0.2, theta, 0.0)

    smaller, packed = population.restrict(theta, theta != 0)

    torch.testing.assert_close(smaller.evaluate(packed, x), population.evaluate(theta, x))
    assert bool((smaller.counts <= population.counts).all())


def test_restricting_can_repeat_and_reorder_members():
    population, theta, x = draw()
    keep = ~population.padding[[3, 0, 3]]

    chosen, packed = population.restrict(theta, keep, [3, 0, 3])

    torch.testing.assert_close(chosen.evaluate(packed, x), population.evaluate(theta, x)[[3, 0, 3]])


@pytest.mark.parametrize("members", [None, 4])
def test_a_network_and_its_population_agree(members):
    network = EQL(2, 2, members=members, seed=3, skip=True, bias=True).double().eval()
    prune_(network, below=0.1)
    x = torch.rand(30, 2, dtype=torch.float64)

    population, theta = Population.of(network)

    expected = network(x).mT if members else network(x).mT[None]
    torch.testing.assert_close(population.evaluate(theta, x.mT), expected)


def test_signs_are_settled_so_that_plain_formulas_are_defined():
    population, theta, _ = draw(primitives="log sqrt id", inputs=1)
    x = torch.linspace(0.5, 1.5, 30, dtype=torch.float64)[None]

    settled = population.turn_signs(theta, x)

    torch.testing.assert_close(
        population.evaluate(settled, x, guarded=True), population.evaluate(theta, x, guarded=True)
    )


def test_periodic_units_start_at_the_frequency_of_the_data():
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, size=(2, 300))
    y = np.sin(9 * x[1])[None]
    structure = Vocabulary.of(parse_set("sin1*8")).draw(LEVELS[0], 2, 1, rng)

    spectrum = Waves.of(x).spectrum(y)
    features = Features.of(x.T, y.T, logarithms=False, degree=1)
    start = random_start(structure, features.bank("plain"), features, spectrum, rng)

    column, place = np.unravel_index(spectrum.chances.argmax(), spectrum.chances.shape)
    assert column == 1
    assert abs(spectrum.frequencies[place] - 9) < 0.7
    assert len(start.weights) == 2
