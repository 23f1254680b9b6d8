"""The paper's search through the estimator: members become candidates, chosen by the same rules."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from eqlearn.errors import InvalidArgument
from eqlearn.estimator import EQLRegressor
from eqlearn.search.gradient import search_by_gradient
from eqlearn.training.presets import PRESETS
from eqlearn.training.schedule import Phase

SHORT = replace(
    PRESETS["paper"],
    schedule=(
        Phase(name="sparsify", steps=150, lr=1e-2, penalty=5e-3, prune_below=0.01),
        Phase(name="fine-tune", steps=50, lr=1e-3),
    ),
    primitives="id*2 square mul",
    hidden_layers=1,
)


def table(rows=30):
    return np.random.default_rng(0).uniform(-1, 1, (rows, 2))


@pytest.fixture(scope="module")
def fitted():
    X = table()
    return EQLRegressor(settings=SHORT, restarts=5).fit(1000 * X, 50 * X[:, 0])


def test_every_member_is_counted(fitted):
    assert fitted.n_trials_ == 5
    assert len(fitted.found_.front) <= 6


def test_the_equation_is_the_network_in_the_users_units(fitted):
    X = table()
    scaled = torch.as_tensor(X / np.abs(X).max(axis=0))

    expected = fitted.found_.best.network(scaled).detach().numpy()[:, 0]

    np.testing.assert_allclose(fitted.predict(1000 * X), expected, rtol=1e-9, atol=1e-9)


def test_a_fit_by_training_beats_the_mean(fitted):
    X = table()

    assert fitted.score(1000 * X, 50 * X[:, 0]) > 0.5


def test_the_same_seed_trains_the_same_networks(fitted):
    X = table()

    again = EQLRegressor(settings=SHORT, restarts=5).fit(1000 * X, 50 * X[:, 0])

    assert again.equations_.equation.tolist() == fitted.equations_.equation.tolist()


@pytest.mark.parametrize(("settings", "penalty"), [("paper", "half"), ("released", "l0")])
def test_presets_are_known_by_name(settings, penalty, monkeypatch):
    seen = {}

    def pretend(preset, X, y, **options):
        seen["preset"] = preset.name
        raise InvalidArgument("enough")

    monkeypatch.setattr("eqlearn.estimator.search_by_gradient", pretend)
    with pytest.raises(InvalidArgument, match="enough"):
        EQLRegressor(settings=settings, penalty=penalty).fit(table(), table()[:, 0])

    assert seen["preset"] == (settings if penalty == "half" else f"{settings}-l0")


@pytest.mark.parametrize(
    ("options", "weight"), [({"seconds": 5.0}, None), ({"warm_start": True}, None), ({}, np.full(30, 0.5))]
)
def test_what_training_can_not_do_is_refused(options, weight):
    with pytest.raises(InvalidArgument, match="can't be used with"):
        EQLRegressor(settings=SHORT, **options).fit(table(), table()[:, 0], sample_weight=weight)


def test_members_that_diverge_are_counted_and_the_mean_is_left():
    wild = replace(SHORT, schedule=(Phase(name="wild", steps=30, lr=1e30),))

    model = EQLRegressor(settings=wild, restarts=3).fit(table(), table()[:, 0])

    assert sum(model.failures_.values()) == 3
    assert model.predict(table()).std() == pytest.approx(0)


def test_no_restarts_are_refused_by_their_name():
    X = np.linspace(-1, 1, 20)[:, None]

    with pytest.raises(InvalidArgument, match="`restarts` must be positive, got 0"):
        EQLRegressor(settings=SHORT, restarts=0).fit(X, X[:, 0])


def test_candidates_say_that_training_found_them():
    X = table()

    found = search_by_gradient(SHORT, X, X[:, 0] * X[:, 1], restarts=2)

    assert {c.method for c in found.front} <= {"gradient", "mean"}
    assert "gradient" in {c.method for c in found.front}
    assert found.restarts == 2
