"""Starts: frequencies that the data show, and networks that grow without losing what they have learned."""

import math

import numpy as np
import pytest
import torch

from eqlearn.nn.primitives import lookup
from eqlearn.search.networks.starts import Waves, angular_frequency, grown_start, random_start
from eqlearn.search.networks.structures import Level
from eqlearn.search.step import Step, take_step
from eqlearn.search.strategies import STRATEGIES
from search_problems import problem_of


@pytest.mark.parametrize(("name", "rate"), [("sin", 2 * math.pi), ("sin1", 1.0), ("cos", 1.0), ("exp", None)])
def test_periodic_primitives_say_how_fast_they_turn(name, rate):
    assert angular_frequency(lookup(name)) == (None if rate is None else pytest.approx(rate))


def test_the_spectrum_peaks_where_the_target_oscillates():
    x = np.random.default_rng(0).uniform(-1, 1, (2, 300))

    spectrum = Waves.of(x).spectrum(np.sin(11 * x[1])[None])

    column, place = divmod(int(spectrum.chances.argmax()), len(spectrum.frequencies))
    assert column == 1
    assert spectrum.frequencies[place] == pytest.approx(11, rel=0.1)
    assert spectrum.chances.sum() == pytest.approx(1)


def test_only_units_of_powers_see_logarithms():
    problem = problem_of("a*b", ("a", "b"))
    structure = problem.vocabulary.draw(Level(1, 6, 1), problem.features.count, 1, np.random.default_rng(0))
    spectrum = problem.waves.spectrum(problem.samples.y.numpy())

    start = random_start(
        structure, problem.features.bank("log"), problem.features, spectrum, np.random.default_rng(0)
    )

    logs = list(problem.features.logarithm_inputs)
    rows = iter(start.weights[0])
    for unit in structure.layers[0]:
        for _ in range(unit.arity):
            row = next(rows)
            assert unit.name in ("id", "exp", "mul") or not row[logs].any()


def test_a_grown_network_still_holds_its_parent():
    problem = problem_of("2*a + 3*b - 1", ("a", "b"))
    parent = take_step(Step(0, 0, STRATEGIES["linear"]), problem).fits[0]
    spectrum = problem.waves.spectrum(problem.samples.y.numpy())

    start = grown_start(
        parent, Level(1, 2, 1), [0, 1], problem.features, problem.vocabulary, spectrum,
        np.random.default_rng(0),
    )  # fmt: skip

    old = parent.population.weights(0, parent.theta)[-1]
    kept = {round(float(w), 6) for w in old[old != 0]}
    there = {round(float(w), 6) for w in start.weights[-1].flatten() if w != 0}
    assert len(kept & there) >= len(kept) - 1  # one in four is moved a little
    assert sum(w.numel() for w in start.weights) > old.numel()
    assert all(bool(torch.isfinite(w).all()) for w in start.weights)
