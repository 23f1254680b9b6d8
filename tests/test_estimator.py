"""The estimator: what `fit` finds and keeps, and how it is asked for."""

import pickle
from contextlib import nullcontext

import numpy as np
import pandas as pd
import pytest
import sympy as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from eqlearn.errors import InvalidArgument, UnknownName, WrongType
from eqlearn.estimator import EQLRegressor
from eqlearn.search.candidate import RULES
from eqlearn.search.settings import Settings


def quick(**options):
    """A search small enough for tests, and large enough for a product of two columns."""
    small = {
        "primitives": "id square mul",
        "hidden_layers": 1,
        "restarts": 24,
        "settings": Settings(members=8),
    }
    return EQLRegressor(**(small | options))


def law(X):
    return 3 * X[:, 0] * X[:, 1] + 2


def table(rows=40, columns=2, seed=0):
    return np.random.default_rng(seed).uniform(-1, 1, (rows, columns))


@pytest.fixture(scope="module")
def fitted():
    X = table()
    return quick().fit(X, law(X))


@pytest.fixture(scope="module")
def noisy():
    X = table(rows=300)
    return quick().fit(X, 1.2345 * law(X) + np.random.default_rng(1).normal(0, 0.05, 300))


# --- what is found --------------------------------------------------------------------------------------


def test_the_law_behind_a_table_is_found(fitted):
    assert fitted.equation_.matches("3*x1*x2 + 2")


def test_a_law_without_noise_is_called_exact(fitted):
    assert fitted.found_.exact
    assert fitted.noise_ < 1e-10


def test_the_noise_is_estimated(noisy):
    assert noisy.noise_ == pytest.approx(0.05, rel=0.2)


def test_noise_is_not_called_an_exact_law(noisy):
    assert not noisy.found_.exact


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_numbers_of_any_kind_are_taken(dtype):
    X = np.random.default_rng(0).integers(-4, 5, (40, 2)).astype(dtype)

    model = quick().fit(X, (3 * X[:, 0] * X[:, 1] + 2).astype(dtype))

    assert model.equation_.matches("3*x1*x2 + 2")


@pytest.mark.parametrize(("of_x", "of_y"), [(1e-9, 1.0), (1e9, 1.0), (1.0, 1e-9), (1.0, 1e9), (1e9, 1e-9)])
def test_any_unit_of_measurement_leads_to_the_same_law(of_x, of_y):
    X = table()

    model = quick().fit(X * of_x, law(X) * of_y)

    np.testing.assert_allclose(model.predict(X * of_x), law(X) * of_y, rtol=1e-9, atol=1e-9 * of_y)


def test_constant_and_duplicated_columns_do_no_harm():
    X = table()
    wide = np.column_stack([X, np.full(len(X), 7.0), X[:, 0], np.zeros(len(X))])

    model = quick().fit(wide, law(X))

    np.testing.assert_allclose(model.predict(wide), law(X), rtol=1e-9)


def test_a_constant_target_is_its_own_law():
    X = table()

    model = quick().fit(X, np.full(len(X), 4.25))

    assert model.equation_.matches("4.25")


def test_the_order_of_rows_does_not_matter(fitted):
    X = table()
    order = np.random.default_rng(3).permutation(len(X))

    model = quick().fit(X[order], law(X)[order])

    assert model.equation_ == fitted.equation_


# --- weights --------------------------------------------------------------------------------------------


def test_rows_of_weight_zero_are_as_if_absent(fitted):
    X = table()
    spoilt = np.vstack([X, [[50.0, -50.0]]])
    weight = np.r_[np.ones(len(X)), 0]

    model = quick().fit(spoilt, np.r_[law(X), 1e6], sample_weight=weight)

    assert model.equation_ == fitted.equation_


def test_a_heavy_row_pulls_the_equation_towards_it():
    X, y = np.arange(10.0)[:, None], np.r_[np.zeros(9), 1.0]
    options = {"primitives": "id", "select": lambda front: front[0]}

    light = quick(**options).fit(X, y, sample_weight=np.r_[np.full(9, 0.3), 0.1])
    heavy = quick(**options).fit(X, y, sample_weight=np.r_[np.full(9, 0.1), 100.1])

    assert heavy.predict(X)[-1] > 0.9 > light.predict(X)[-1]


@pytest.mark.parametrize("weight", [np.full(40, -1.0), np.zeros(40), np.ones(3)])
def test_weights_that_make_no_sense_are_refused(weight):
    X = table()

    with pytest.raises(ValueError, match=r"(?i)weight"):
        quick().fit(X, law(X), sample_weight=weight)


# --- names ----------------------------------------------------------------------------------------------


AWKWARD = ["flow rate", "α", r"\dot{x}", "lambda", "x-1", "$y$", "sin", "`"]


@pytest.mark.parametrize("name", AWKWARD)
def test_a_column_of_any_name_becomes_a_variable(name):
    X = table()

    model = quick().fit(pd.DataFrame(X, columns=[name, "x2"]), law(X))

    assert model.equation_.variables == (name, "x2")
    np.testing.assert_allclose(model.equation_(X), law(X), rtol=1e-9)


def test_two_columns_of_one_name_are_refused():
    X = table()

    with pytest.raises(InvalidArgument, match="several columns named 'speed'"):
        quick().fit(pd.DataFrame(X, columns=["speed", "speed"]), law(X))


def test_columns_in_another_order_are_refused_by_predict():
    X = pd.DataFrame(table(), columns=["a", "b"])
    model = quick().fit(X, law(X.to_numpy()))

    with pytest.raises(ValueError, match="feature names"):
        model.predict(X[["b", "a"]])


def test_a_series_gives_the_target_its_name():
    X = table()

    model = quick().fit(X, pd.Series(law(X), name="force"))

    assert model.target_names_ == ["force"]


# --- the front ------------------------------------------------------------------------------------------


def test_the_front_is_a_frame_with_one_pick(noisy):
    frame = noisy.equations_

    assert list(frame.columns) == [
        "complexity", "training_error", "validation_error", "extrapolation_error", "description_length",
        "prediction_length", "exact", "equation", "pick",
    ]  # fmt: skip
    assert frame.pick.sum() == 1
    assert frame.equation[frame.pick].item() == str(noisy.equation_)


def test_along_the_front_complexity_rises_and_error_falls(noisy):
    assert noisy.equations_.complexity.is_monotonic_increasing
    assert noisy.equations_.training_error.is_monotonic_decreasing


def test_predict_takes_any_row_of_the_front(noisy):
    X = table()

    for row, text in noisy.equations_.equation.items():
        equation = noisy.found_.front[row].equation
        assert str(equation) == text
        np.testing.assert_array_equal(noisy.predict(X, index=row), equation(X))


@pytest.mark.parametrize("index", [-1, 1000, [0, 0]])
def test_a_row_that_is_not_on_the_front_is_refused(fitted, index):
    with pytest.raises(InvalidArgument, match="`index`"):
        fitted.predict(table(), index=index)


def test_constants_come_with_errors_and_intervals(noisy):
    frame = noisy.constants_

    assert list(frame.columns) == ["value", "standard_error", "low", "high"]
    assert len(frame) > 0
    assert (frame.low < frame.value).all()
    assert (frame.value < frame.high).all()
    np.testing.assert_allclose(frame.value, noisy.equation_.constants)


@pytest.mark.parametrize("rule", RULES)
def test_every_selection_rule_picks_from_the_front(rule):
    X = table(rows=100)
    y = law(X) + np.random.default_rng(0).normal(0, 0.3, 100)
    far = (2 * X, law(2 * X))

    model = quick(select=rule, restarts=8).fit(X, y, extrapolation=far)

    assert model.found_.best in model.found_.front


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"seconds": "60"}, WrongType, "`seconds` must be a number or None, got '60'"),
        ({"hidden_layers": 1.5}, WrongType, "`hidden_layers` must be a number"),
        ({"random_state": -1}, InvalidArgument, "`random_state` must not be negative"),
        ({"select": lambda front: None}, InvalidArgument, "`select` must give one of the candidates"),
    ],
)
def test_a_parameter_of_the_wrong_kind_is_named(options, error, words):
    X = table(rows=20)

    with pytest.raises(error, match=words):
        EQLRegressor(restarts=1).set_params(**options).fit(X, X[:, 0])


def test_a_function_may_choose(fitted):
    X = table()

    model = quick(select=lambda front: front[0]).fit(X, law(X))

    assert model.equations_.pick[0]


def test_extrapolation_data_are_measured():
    X = table()

    model = quick().fit(X, law(X), extrapolation=(5 * X, law(5 * X)))

    assert model.equations_.extrapolation_error[model.equations_.pick].item() < 1e-9


def test_extrapolation_data_of_another_shape_are_refused():
    X = table()

    with pytest.raises(InvalidArgument, match="`extrapolation` has 2"):
        quick().fit(X, law(X), extrapolation=(X, np.column_stack([law(X), law(X)])))


# --- several targets ------------------------------------------------------------------------------------


@pytest.mark.parametrize("multi_output", ["shared", "separate"])
def test_several_targets_get_an_equation_each(multi_output):
    X = table()
    Y = pd.DataFrame({"u": law(X), "v": X[:, 0] - X[:, 1]})

    model = quick(multi_output=multi_output).fit(X, Y)

    assert model.target_names_ == ["u", "v"]
    assert len(model.equation_) == len(model.sympy()) == len(model.latex()) == len(model.noise_) == 2
    np.testing.assert_allclose(model.predict(X), Y, rtol=1e-8, atol=1e-8)


def test_separate_searches_have_a_front_and_a_pick_each():
    X = table()
    model = quick(multi_output="separate").fit(X, np.column_stack([law(X), X[:, 0]]))

    frame = model.equations_

    assert frame.groupby("output").pick.sum().to_dict() == {"y1": 1, "y2": 1}
    picks = frame.index[frame.pick].tolist()
    np.testing.assert_array_equal(model.predict(X, index=picks), model.predict(X))


def test_separate_searches_are_those_of_each_target_alone(fitted):
    X = table()

    model = quick(multi_output="separate").fit(X, np.column_stack([X[:, 0], law(X)]))

    assert model.equation_[1] == fitted.equation_


def test_one_target_is_found_alike_alone_and_shared(fitted):
    X = table()

    model = quick(multi_output="separate").fit(X, law(X))

    assert model.found_.best == fitted.found_.best


def test_a_target_of_one_column_gives_predictions_of_one_column():
    X = table()

    assert quick().fit(X, law(X)[:, None]).predict(X).shape == (40, 1)


# --- as part of scikit-learn ----------------------------------------------------------------------------


def test_a_clone_finds_the_same_equation(fitted):
    X = table()

    assert clone(fitted).fit(X, law(X)).equation_ == fitted.equation_


def test_a_pickled_model_is_the_same_model(fitted):
    again = pickle.loads(pickle.dumps(fitted))

    np.testing.assert_array_equal(again.predict(table()), fitted.predict(table()))
    assert again.equation_ == fitted.equation_


@pytest.mark.slow
def test_a_grid_search_chooses_the_primitives_that_the_law_needs():
    X = table(rows=60)
    grid = GridSearchCV(quick(restarts=8), {"primitives": ["id", "id mul"]}, cv=3).fit(X, law(X))

    assert grid.best_params_ == {"primitives": "id mul"}


def test_a_pipeline_may_prepare_the_columns():
    X = table()
    pipeline = make_pipeline(FunctionTransformer(np.exp), quick()).fit(X, law(np.exp(X)))

    assert pipeline.score(X, law(np.exp(X))) == pytest.approx(1)


def test_an_unfitted_model_says_so():
    for method in ("predict", "sympy", "latex", "plot"):
        arguments = (table(),) if method == "predict" else ()
        with pytest.raises(NotFittedError):
            getattr(quick(), method)(*arguments)


# --- seeds ----------------------------------------------------------------------------------------------


def test_the_same_number_gives_the_same_front():
    X, y = table(rows=80), np.random.default_rng(0).normal(size=80)

    first, second = (quick(random_state=5, restarts=16).fit(X, y) for _ in range(2))

    pd.testing.assert_frame_equal(first.equations_, second.equations_)


def test_the_global_generators_are_left_alone():
    X = table()
    before = np.random.get_state()[1].copy()  # noqa: NPY002 (it must not move)

    quick(random_state=None, restarts=8).fit(X, law(X))

    np.testing.assert_array_equal(before, np.random.get_state()[1])  # noqa: NPY002


@pytest.mark.parametrize("make", [np.random.RandomState, np.random.default_rng])
def test_a_generator_may_be_the_random_state(make):
    X, y = table(), np.random.default_rng(0).normal(size=40)

    first, second = (quick(random_state=make(1), restarts=8).fit(X, y) for _ in range(2))

    pd.testing.assert_frame_equal(first.equations_, second.equations_)


def test_a_random_state_of_the_wrong_kind_is_refused():
    with pytest.raises(WrongType, match="`random_state`"):
        quick(random_state="seven").fit(table(), law(table()))


# --- budgets, interruption, going on --------------------------------------------------------------------


def test_ctrl_c_keeps_the_best_found_so_far(monkeypatch):
    X, y = table(rows=200), np.random.default_rng(0).normal(size=200)

    def press(progress):
        if progress.round == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr("eqlearn.report.progress.show_progress", lambda *names: nullcontext(press))

    model = EQLRegressor(settings=Settings(patience=10_000), verbose=True).fit(X, y)

    assert (model.found_.ended, model.found_.rounds) == ("interrupted", 2)
    assert np.isfinite(model.predict(X)).all()


def test_a_warm_start_goes_on_to_where_one_long_search_would_be():
    X, y = table(rows=80), np.random.default_rng(0).normal(size=80)
    long = quick(restarts=24).fit(X, y)
    model = quick(restarts=8, warm_start=True).fit(X, y)
    remembered = dict(model._remembered[0].results)

    model.set_params(restarts=24).fit(X, y)

    pd.testing.assert_frame_equal(model.equations_, long.equations_)
    assert all(model._remembered[0].results[number] is outcome for number, outcome in remembered.items())


def test_a_warm_start_on_other_data_says_that_it_starts_anew():
    X = table()
    model = quick(restarts=8, warm_start=True).fit(X, law(X))

    with pytest.warns(UserWarning, match="starts anew"):
        model.fit(X, 2 * law(X))


def test_progress_is_shown_when_asked_for(capsys):
    X = table()

    quick(verbose=True).fit(X, law(X))

    assert "y = " in capsys.readouterr().out


def test_nothing_is_printed_unasked(capsys):
    X = table()

    quick(restarts=8).fit(X, law(X))

    assert capsys.readouterr() == ("", "")


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(
    "wrong",
    [
        {"settings": "newest"},
        {"multi_output": "both"},
        {"penalty": "l2"},
        {"select": "prettiest"},
        {"primitives": "sine"},
        {"settings": "paper", "penalty": "l2"},
    ],
)
def test_a_name_that_is_not_known_is_refused(wrong):
    with pytest.raises(UnknownName):
        quick(**wrong).fit(table(), law(table()))


@pytest.mark.parametrize(
    "wrong", [{"seconds": 0.0}, {"seconds": -1.0}, {"restarts": 0}, {"hidden_layers": 0}]
)
def test_a_budget_of_nothing_is_refused(wrong):
    with pytest.raises(InvalidArgument):
        quick(**wrong).fit(table(), law(table()))


# --- other forms of the equation ------------------------------------------------------------------------


def test_sympy_gives_the_expression(fitted):
    x1, x2 = sp.symbols("x1 x2", real=True)

    assert sp.simplify(fitted.sympy() - (3 * x1 * x2 + 2)).evalf() == pytest.approx(0, abs=1e-12)


def test_latex_gives_the_formula_as_text(fitted):
    assert "x_{1}" in fitted.latex()


# --- large tables ---------------------------------------------------------------------------------------


def test_all_rows_serve_the_fit_though_the_search_sees_few():
    X = table(rows=5_000)
    y = law(X) + np.random.default_rng(0).normal(0, 0.5, 5_000)

    model = quick().fit(X, y)

    # Five thousand rows know a constant some three times better than the 512 that the search sees.
    linear = LinearRegression().fit(X[:, [0]] * X[:, [1]], y)
    assert model.score(X, y) == pytest.approx(linear.score(X[:, [0]] * X[:, [1]], y), abs=1e-4)


@pytest.mark.usefixtures("unchecked_types")
def test_extrapolation_is_named_when_it_does_not_fit():
    X, y = np.arange(10.0)[:, None], np.arange(10.0)

    with pytest.raises(WrongType, match="`extrapolation` must be a pair"):
        EQLRegressor(restarts=1).fit(X, y, extrapolation=X)
    with pytest.raises(InvalidArgument, match="`extrapolation` can't be used: X has 2 features"):
        EQLRegressor(restarts=1).fit(X, y, extrapolation=(np.ones((3, 2)), np.ones(3)))
