"""Polish and elimination: optimal weights with their errors, and none that the data do not need."""

import math

import numpy as np
import pytest
import torch

from eqlearn import errors
from eqlearn.nn.eql import EQL
from eqlearn.nn.sparse import prune_, weights_left
from eqlearn.search.networks.population import Population
from eqlearn.search.networks.refine import eliminate, polish


def quadratic(rows=200, noise=0.0, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(rows, 2))
    return X, 1.5 * X[:, 0] ** 2 - 0.7 * X[:, 1] + 0.2 + noise * rng.normal(size=rows)


def near(sets="id square", **options):
    return EQL(2, 1, sets, 1, bias=True, seed=1, **options).double()


def test_polish_reaches_machine_precision():
    X, y = quadratic()

    polished = polish(near(), X, y)

    assert polished.error < 1e-24
    np.testing.assert_allclose(polished.network(torch.as_tensor(X))[:, 0].detach(), y, atol=1e-11)


def test_polish_leaves_its_argument_and_pruned_weights_alone():
    X, y = quadratic()
    network = near("id*2 square*2")
    prune_(network, below=0.15)
    before = [layer.raw.clone() for layer in network.linears]

    polished = polish(network, X, y).network

    for old, layer, new in zip(before, network.linears, polished.linears, strict=True):
        torch.testing.assert_close(layer.raw, old)
        assert bool((new.weight[~layer.mask] == 0).all())


def test_standard_errors_are_those_of_linear_regression_where_the_network_is_linear():
    X, y = quadratic(noise=0.1)
    network = EQL(2, 1, "square", 1, bias=True, skip=True, seed=0).double()
    with torch.no_grad():
        for layer in network.linears:
            layer.raw.fill_(0.5)
        keep = torch.zeros_like(network.linears[0].mask)
        network.linears[0].keep_(keep)  # the unit is silent: what is left is linear in x, y and 1
        network.linears[1].keep_(torch.tensor([[False, True, True, True]]))

    errors_ = polish(network, X, y).standard_errors[1][0, 1:]

    design = np.column_stack([X, np.ones(len(X))])
    coefficients, residual, *_ = np.linalg.lstsq(design, y, rcond=None)
    covariance = np.linalg.inv(design.T @ design) * residual / (len(X) - 3)
    np.testing.assert_allclose(errors_, np.sqrt(np.diag(covariance)), rtol=1e-6)
    assert len(coefficients) == 3


def test_a_weight_whose_scale_is_free_has_an_infinite_standard_error():
    X, y = quadratic(noise=0.1)

    errors_ = polish(near(), X, y).standard_errors

    assert any(bool(torch.isinf(e).any()) for e in errors_)


def test_several_outputs_are_polished_together():
    X, y = quadratic()

    network = EQL(2, 2, "id*2 square*2", 1, bias=True, seed=2).double()

    assert polish(network, X, np.column_stack([y, X[:, 1]]), steps=200).error < 1e-20


def test_sample_weights_of_zero_hide_rows():
    X, y = quadratic()
    spoiled, weight = y.copy(), np.ones(len(y))
    spoiled[:50], weight[:50] = 100.0, 0.0

    polished = polish(near(), X, spoiled, sample_weight=weight)

    np.testing.assert_allclose(polished.network(torch.as_tensor(X))[50:, 0].detach(), y[50:], atol=1e-9)


def test_elimination_keeps_the_fit_and_takes_what_is_redundant():
    X, y = quadratic()
    network = polish(near("id*2 square*3"), X, y, steps=300).network

    smaller = eliminate(network, X, y)

    population, theta = Population.of(smaller)
    left = population.evaluate(theta, torch.as_tensor(X.T.copy())) - torch.as_tensor(y)
    assert float(left.square().mean()) < 1e-18
    assert int(weights_left(smaller)) <= 6 < int(weights_left(network))


def test_elimination_in_noise_keeps_what_matters():
    X, y = quadratic(noise=0.05)
    network = polish(near("id*2 square*2"), X, y, steps=100).network

    smaller = eliminate(network, X, y)

    residual = smaller(torch.as_tensor(X))[:, 0].detach().numpy() - y
    assert residual.std() < 0.06
    assert int(weights_left(smaller)) < int(weights_left(network))


@pytest.mark.parametrize(
    ("X", "y", "kind"),
    [
        (np.zeros((3, 2)), np.zeros(4), errors.InvalidArgument),
        (np.full((3, 2), np.nan), np.zeros(3), errors.NotFinite),
        (np.zeros((3, 2)), np.array([1, np.inf, 0]), errors.NotFinite),
        (np.zeros((0, 2)), np.zeros(0), errors.InvalidArgument),
    ],
)
def test_bad_data_are_refused(X, y, kind):
    with pytest.raises(kind):
        polish(near(), X, y)


def test_a_population_or_an_empty_network_is_refused():
    X, y = quadratic()
    empty = near()
    prune_(empty, below=1e9)

    with pytest.raises(errors.InvalidArgument, match="member"):
        polish(near(members=2), X, y)
    with pytest.raises(errors.InvalidArgument, match="pruned"):
        polish(empty, X, y)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda X, y: (X.T, y), "holds 2 rows|columns"),
        (lambda X, y: (X[:, :1], y), "`X` has 1 column, the network needs 2"),
        (lambda X, y: (X, np.column_stack([y, y])), "`y` has 2 columns, the network needs 1"),
    ],
)
@pytest.mark.parametrize("act", [polish, eliminate])
def test_data_that_do_not_fit_the_network_are_refused(act, change, words):
    with pytest.raises(errors.InvalidArgument, match=words):
        act(near(), *change(*quadratic()))


@pytest.mark.parametrize("weight", [np.ones(3), -np.ones(200)], ids=["too few", "negative"])
def test_weights_that_can_not_be_are_refused(weight):
    with pytest.raises(errors.InvalidArgument, match="one number per row, none negative"):
        polish(near(), *quadratic(), sample_weight=weight)


def test_weights_of_very_different_size_are_polished_to_the_optimum():
    X, y = quadratic(noise=0.1)
    network = EQL(2, 1, "id", 1, seed=0).double()
    with torch.no_grad():
        network.linears[0].raw.fill_(5000.0)
        network.linears[1].raw.fill_(1e-4)

    best = np.linalg.lstsq(X, y, rcond=None)[1] / len(X)

    assert polish(network, X, y).error == pytest.approx(float(best[0]), rel=1e-6)


def test_the_standard_errors_belong_to_the_weights_that_are_given_back():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (200, 1))
    y = 300 * np.exp(0.5 * X[:, 0]) + rng.normal(size=200)
    network = EQL(1, 1, "exp", 1, seed=0).double()
    with torch.no_grad():
        network.linears[0].raw.fill_(0.4)
        network.linears[1].raw.fill_(250.0)

    polished = polish(network, X, y)

    weights = [float(layer.weight.detach().flatten()[0]) for layer in polished.network.linears]
    rate, factor = weights
    slopes = np.column_stack([factor * X[:, 0] * np.exp(rate * X[:, 0]), np.exp(rate * X[:, 0])])
    covariance = np.linalg.inv(slopes.T @ slopes) * polished.error * 200 / 198
    told = [float(block.flatten()[0]) for block in polished.standard_errors]
    np.testing.assert_allclose(told, np.sqrt(np.diag(covariance)), rtol=1e-6)


def test_elimination_ends_in_time_and_tells_how_it_goes():
    X, y = quadratic(noise=0.05)
    network, told = near("id*4 square*4 mul*3"), []

    eliminate(network, X, y, progress=lambda weights, error: told.append((weights, error)))
    hurried = eliminate(network, X, y, seconds=1e-6)

    weights = [count for count, _ in told]
    assert weights == sorted(weights, reverse=True)
    assert weights[-1] < weights[0] < int(weights_left(network))
    assert 0.5 * 0.05**2 < told[-1][1] < 2 * 0.05**2
    assert int(weights_left(hurried)) > weights[0]


@pytest.mark.parametrize("seconds", [0.0, -1.0, math.nan])
def test_a_time_in_which_nothing_can_be_done_is_refused(seconds):
    with pytest.raises(errors.InvalidArgument, match="`seconds` must be positive"):
        eliminate(near(), *quadratic(), seconds=seconds)


@pytest.mark.parametrize("act", [polish, eliminate])
@pytest.mark.usefixtures("unchecked_types")
def test_a_network_inside_another_module_is_refused_by_name(act):
    X, y = quadratic()

    with pytest.raises(errors.WrongType, match=r"`network` is a Sequential; pass the EQL inside it.*`X`"):
        act(torch.nn.Sequential(torch.nn.Linear(2, 2), near()), X, y)
    with pytest.raises(errors.WrongType, match="`network` is a Linear; pass an `EQL`"):
        act(torch.nn.Linear(2, 1), X, y)
    with pytest.raises(errors.WrongType, match="`network` is a str"):
        act("net", X, y)
