import numpy as np
import pytest

from eqlearn import EQLRegressor, Settings, discover
from eqlearn.errors import EqlearnError
from eqlearn.search.robust import Resistance

QUICK = Settings(networks=False, strategies=("linear", "rational", "products"))
LAWS = {
    "x1*x2 + x3": lambda a, b, c: a * b + c,
    "x1/(x2 + x3)": lambda a, b, c: a / (b + c),
    "x2*x3*exp(-x1)": lambda a, b, c: b * c * np.exp(-a),
    "x1**2*sqrt(x2)/x3": lambda a, b, c: a**2 * np.sqrt(b) / c,
}


def spoiled(law, share, seed, rows=200):
    """Clean data of a law, of which a share of rows is wrong by 3 to 30 times the spread."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(0.5, 5, (rows, 3))
    y = LAWS[law](*X.T)
    bad = np.sort(rng.choice(rows, int(share * rows), replace=False))
    y[bad] += y.std() * rng.uniform(3, 30, len(bad)) * rng.choice([-1, 1], len(bad))
    return X, y, bad.tolist()


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(
    "seed", [0, pytest.param(1, marks=pytest.mark.slow), pytest.param(2, marks=pytest.mark.slow)]
)
def test_five_in_a_hundred_gross_outliers_do_not_change_the_law(law, seed):
    X, y, bad = spoiled(law, 0.05, seed)

    found = discover(X, y, loss="auto", settings=QUICK)

    assert found.exact
    assert str(found.best.equation) == law
    assert list(found.outliers) == bad


def test_without_outliers_nothing_is_left_out_and_the_law_is_the_same():
    X, y, _ = spoiled("x1/(x2 + x3)", 0.0, 0)

    plain, robust = (discover(X, y, loss=loss, settings=QUICK) for loss in ("squares", "auto"))

    assert robust.outliers == ()
    assert str(robust.best) == str(plain.best)


@pytest.mark.slow
def test_noise_is_not_taken_for_outliers():
    rng = np.random.default_rng(0)
    X = rng.uniform(0.5, 5, (200, 2))

    found = discover(X, X[:, 0] * X[:, 1] + rng.normal(size=200), loss="auto", settings=QUICK)

    assert len(found.outliers) <= 2


def test_a_steep_corner_of_the_law_is_taken_back():
    rng = np.random.default_rng(0)
    x = np.append(rng.uniform(0.5, 5, 195), [0.01, 0.012, 0.015, 0.02, 0.03])

    found = discover(x, 1 / x, loss="auto", settings=QUICK)

    assert found.outliers == ()
    assert str(found.best.equation) == "1/x"


def test_the_estimator_says_which_rows_as_they_were_given():
    X, y, bad = spoiled("x1*x2 + x3", 0.05, 3)

    model = EQLRegressor(loss="auto", settings=QUICK).fit(X, y)

    assert model.outliers_ == bad
    assert str(model.equation_) == "x1*x2 + x3"


def test_huber_comes_nearer_to_the_truth_than_squares_in_long_tails():
    rng = np.random.default_rng(1)
    x = rng.uniform(1, 5, 300)
    y = 2.5 * x + rng.standard_t(1.5, size=300)
    linear = Settings(networks=False, strategies=("linear",))

    slopes = [
        discover(x, y, loss=loss, settings=linear).best.equation(np.array([[4.0]]))[0]
        for loss in ("squares", "huber")
    ]

    assert abs(slopes[1] - 10) < 0.2
    assert abs(slopes[1] - 10) < abs(slopes[0] - 10)


@pytest.mark.slow
def test_errors_of_measurement_follow_their_rows():
    X, y, bad = spoiled("x1*x2 + x3", 0.05, 0)
    rng = np.random.default_rng(5)
    error = rng.uniform(0.01, 0.1, len(y))

    found = discover(X, y + error * rng.normal(size=len(y)), y_error=error, loss="auto", restarts=8)

    assert set(bad) <= set(found.outliers)
    assert 0.5 < found.best.reduced_chi_square < 2


def test_an_unknown_loss_is_refused():
    with pytest.raises(EqlearnError, match="`loss`"):
        discover([[1.0], [2.0]], [1.0, 2.0], loss="absolute")


def test_presets_of_the_paper_know_least_squares_only():
    with pytest.raises(EqlearnError, match="`loss` can't be used with the preset"):
        EQLRegressor(settings="paper", loss="auto").fit(np.ones((9, 1)), np.ones(9))


@pytest.mark.slow
def test_too_many_outliers_are_no_outliers():
    X, y, _ = spoiled("x1*x2 + x3", 0.45, 0)

    found = discover(X, y, loss="auto", restarts=4)

    assert len(found.outliers) <= Resistance().most * len(y)
