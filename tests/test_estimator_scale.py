"""The estimator on real data, on many columns, under a clock, and on several workers."""

import os
import signal
import threading
import time

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import KFold, cross_val_score

from eqlearn.estimator import EQLRegressor
from eqlearn.io.datasets import load_dataset
from eqlearn.search.settings import Settings


def noise_table(rows=120, columns=3):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (rows, columns))
    return X, X[:, 0] * X[:, 1] + np.sin(2 * X[:, 2]) + rng.normal(0, 0.1, rows)


# --- the same with any number of workers ----------------------------------------------------------------


def searched(n_jobs):
    """A front after enough rounds that several run side by side."""
    X, y = noise_table()
    model = EQLRegressor(settings=Settings(members=4, patience=100), restarts=60, n_jobs=n_jobs)
    return model.fit(X, y).equations_


@pytest.fixture(scope="module")
def alone():
    return searched(n_jobs=1)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_the_same_seed_gives_the_same_front_with_two_workers(alone, backend):
    with joblib.parallel_config(backend):
        pd.testing.assert_frame_equal(searched(n_jobs=2), alone)


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # the cluster's own warnings are no business of ours
def test_a_cluster_that_loses_a_worker_and_gets_others_gives_the_same_front(alone):
    distributed = pytest.importorskip("distributed")
    killed = []

    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        victim = next(iter(client.run(os.getpid).values()))

        def kill_when_busy():
            while not any(client.processing().values()):
                time.sleep(0.05)
            os.kill(victim, signal.SIGKILL)
            killed.append(victim)
            cluster.scale(3)

        killer = threading.Thread(target=kill_when_busy, daemon=True)
        killer.start()
        with joblib.parallel_config("dask"):
            front = searched(n_jobs=2)

    assert killed
    pd.testing.assert_frame_equal(front, alone)


# --- the clock ------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [5.0, 20.0])
def test_the_time_budget_is_kept_within_a_tenth(seconds):
    X, y = noise_table(rows=2000, columns=5)
    model = EQLRegressor(seconds=seconds, settings=Settings(patience=10_000))

    began = time.monotonic()
    model.fit(X, y)
    took = time.monotonic() - began

    assert took == pytest.approx(seconds, rel=0.1)
    assert model.found_.ended == "out of time"


# --- data with no exact law -----------------------------------------------------------------------------


def cross_validated(model, X, y):
    return cross_val_score(model, X, y, cv=KFold(5, shuffle=True, random_state=0)).mean()


RIDGE = RidgeCV(alphas=np.logspace(-4, 3, 15))
READABLE = 50  # nodes: one line of print


@pytest.mark.slow
@pytest.mark.parametrize("name", ["diabetes", "ultrasound"])
def test_without_an_exact_law_the_equation_is_as_good_as_ridge_regression(name):
    if name == "diabetes":
        X, y = load_diabetes(return_X_y=True, as_frame=True)
    else:
        X, y = load_dataset(name).X, load_dataset(name).y

    assert cross_validated(EQLRegressor(), X, y) >= cross_validated(RIDGE, X, y)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["diabetes", "ultrasound"])
def test_without_an_exact_law_the_equation_is_readable_and_not_called_exact(name):
    if name == "diabetes":
        X, y = load_diabetes(return_X_y=True, as_frame=True)
    else:
        X, y = load_dataset(name).X, load_dataset(name).y

    model = EQLRegressor().fit(X, y)

    assert model.equation_.complexity <= READABLE
    assert not model.found_.exact


# --- laws of nature -------------------------------------------------------------------------------------


@pytest.mark.slow
def test_keplers_third_law_is_found_in_the_planets():
    data = load_dataset("kepler")

    model = EQLRegressor().fit(data.X, data.y)

    assert model.equation_.matches("a**(3/2)", box=(0.1, 100))


@pytest.mark.slow
def test_balmers_formula_is_found_in_the_lines_of_hydrogen():
    data = load_dataset("balmer")

    model = EQLRegressor().fit(data.X, data.y)

    # Far outside the data, where only the right formula is right.
    far = pd.DataFrame({"n": [40.0]})
    assert model.predict(far) == pytest.approx(364.6 * 1600 / 1596, rel=1e-4)


# --- many columns ---------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("law", ["product", "sum"])
def test_three_of_thirty_columns_are_found(law):
    rng = np.random.default_rng(0)
    X = rng.uniform(0.5, 2, (300, 30))
    a, b, c = X[:, 4], X[:, 17], X[:, 25]
    y = a * b / c if law == "product" else 3 * a + b**2 - np.sin(2 * c)

    model = EQLRegressor().fit(X, y)

    assert {str(s) for s in model.sympy().free_symbols} == {"x5", "x18", "x26"}
    assert model.score(X, y) == pytest.approx(1, abs=1e-9)
