"""What is offered and chosen at the end of a search in noise."""

import numpy as np
import pytest
import sympy as sp

from eqlearn.nn.primitives import lookup
from eqlearn.numerics.budget import Deadline
from eqlearn.search.ansatz.layout import Sum, layout
from eqlearn.search.archive import Archive
from eqlearn.search.features import Features
from eqlearn.search.finish import Finisher
from eqlearn.search.knowledge.demands import Demands
from eqlearn.search.networks.fit import Fit
from eqlearn.search.networks.population import Population
from eqlearn.search.search import discover
from eqlearn.search.step import StepResult
from eqlearn.symbolic.equation import Equation
from eqlearn.validation.table import Table


def table(terms, noise, rows=300, columns=8):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, columns))
    return X, X[:, :terms].sum(axis=1) + noise * rng.normal(size=rows)


@pytest.fixture(scope="module")
def blurred():
    """Six columns matter, each too little to pay for its digits."""
    return discover(*table(terms=6, noise=4.0), restarts=1)


def used(candidate):
    return {str(s) for s in candidate.equation.expr.free_symbols}


def test_weak_terms_that_help_to_predict_are_chosen(blurred):
    assert {f"x{i}" for i in range(1, 7)} <= used(blurred.best)


def test_the_shortest_description_is_on_the_front_as_well(blurred):
    shortest = min(blurred.front, key=lambda c: c.description_length)

    assert len(used(shortest)) < len(used(blurred.best))


def test_every_candidate_was_measured_on_the_same_rows(blurred):
    lengths = [(c.description_length, c.prediction_length) for c in blurred.front]

    assert np.isfinite(lengths).all()
    assert all(c.held_out_rows == 60 for c in blurred.front)


def test_strong_terms_alone_are_chosen_where_they_are_the_law():
    found = discover(*table(terms=2, noise=0.2), restarts=1)

    assert used(found.best) == {"x1", "x2"}


def test_an_empty_archive_offers_the_mean_and_counts_rounds_without_gain():
    X, y = table(terms=1, noise=1.0)
    data = Table(X, y[:, None])
    features = Features.of(data.X, data.y, logarithms=False, degree=1)
    archive = Archive(Finisher(features, tuple(f"x{i}" for i in range(8)), data))

    for number in range(3):
        archive.add(StepResult(number, "sums", [], 0, 0), Deadline(np.inf))

    assert archive.best.method == "mean"
    assert archive.rounds_without_gain == 3
    assert not archive.parents
    assert not archive.complete


@pytest.mark.parametrize(("law", "settled"), [("line", True), ("wave", False)])
def test_a_search_is_settled_where_the_best_law_leaves_noise(law, settled):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (300, 1))
    left = 0.1 * rng.normal(size=300) if law == "line" else 0.1 * np.sin(3 * X[:, 0])
    y = 2 * X[:, 0] + left
    data = Table(X, y[:, None])
    archive = Archive(Finisher(Features.of(X, data.y, logarithms=False, degree=1), ("x",), data))
    line = Equation.parse("2*x", ("x",))

    assert not archive.settled  # the mean leaves all of it
    archive.candidates.append(archive.finisher.measure([line], [()]))

    assert archive.settled is settled


def test_when_time_is_short_small_networks_are_read_first():
    X = np.linspace(1, 3, 13)[:, None]
    y = X[:, 0] ** 1.5 * (1 + 1e-3 * np.sin(40 * X[:, 0]))
    data = Table(X, y[:, None])
    features = Features.of(data.X, data.y, logarithms=True, degree=8)
    archive = Archive(Finisher(features, ("x",), data))
    fits = [make_fit(features.count, weights, 1e-6) for weights in (6, 2, 4)]
    archive._unread = [("sums", fit) for fit in fits]

    assert [fit.weights for _, fit in archive._worth_reading()] == [2, 4, 6]


def make_fit(inputs, weights, loss):
    """A sum of the first inputs."""
    population, theta = Population.of(linear_network(inputs, weights))
    return Fit(population, theta, loss)


def linear_network(inputs, weights):
    start = layout([Sum(tuple((i, 1.0) for i in range(weights - 1)), (), 1.0)], inputs, lookup("id"))
    return start.structure.network(start.weights, [w != 0 for w in start.weights])


@pytest.mark.parametrize("admits", [None, lambda equation: equation.expr.has(sp.exp)])
def test_a_law_is_freed_of_its_parts_at_the_end_unless_they_are_asked_for(admits):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (300, 1))
    data = Table(X, (2 * np.tanh(X[:, 0]) + 0.1 * rng.normal(size=300))[:, None])
    features = Features.of(X, data.y, logarithms=False, degree=1)
    archive = Archive(Finisher(features, ("x",), data, demands=Demands(admits)))
    long = archive.finisher.measure([Equation.parse("2*tanh(x) + 0.001*exp(x)", ("x",))], [()])
    archive.candidates.append(archive.finisher.refit(long, data))

    front = archive.front(Deadline(np.inf))

    assert ("2*tanh(x)" in map(str, front)) is (admits is None)
