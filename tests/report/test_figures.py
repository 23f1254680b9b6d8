"""Figures: every kind draws what it says, for any names, and says so when it can't."""

import io

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from eqlearn.errors import InvalidArgument, UnknownName
from eqlearn.estimator import EQLRegressor
from eqlearn.nn.eql import EQL
from eqlearn.report.figures import KINDS, Picture, draw
from eqlearn.search.candidate import Candidate
from eqlearn.symbolic.equation import Equation
from eqlearn.symbolic.printing import quote


def candidate(text, error, names=("x", "y"), network=None):
    equation = Equation.parse(text, names)
    return Candidate((equation,), error, 0.0, error < 1e-10, network=network)


def picture(text="2.5*x + sin(y)", error=1e-3, names=("x", "y"), outputs=("z",), predicted=None):
    network = EQL(2, 1, "id sin mul", 2, bias=True, seed=0)
    best = candidate(text, error, names, network)
    front = [candidate("1.5", 1.0), best]
    true = np.linspace(-1, 1, 30)
    predicted = true + 0.01 if predicted is None else predicted
    return Picture(front, best, true, predicted, inputs=names, outputs=outputs)


def png(figure):
    buffer = io.BytesIO()
    figure.savefig(buffer, dpi=40)
    return buffer.getvalue()


@pytest.mark.parametrize("kind", ["all", *KINDS])
def test_every_kind_is_drawn(kind):
    figure = draw(picture(), kind, Figure())

    assert len(figure.axes) == (4 if kind == "all" else 1)
    assert png(figure).startswith(b"\x89PNG")


@pytest.mark.parametrize("name", ["$x_1$", "$", r"\frac{", "a_{", "força µ", "<b>", "x" * 300])
def test_any_name_is_drawn_as_it_is(name):
    best = candidate(f"2.5*{quote(name)} + y", 1e-3, (name, "y"), EQL(2, 1, "id sin", 1, seed=0))
    shown = Picture([best], best, np.arange(5.0), np.arange(5.0), inputs=(name, "y"), outputs=(name,))

    assert png(draw(shown, "all", Figure()))


def test_the_chosen_equation_is_marked_on_the_front():
    ax = draw(picture(error=1e-3), "pareto", Figure()).axes[0]

    marked = next(line for line in ax.lines if line.get_label() == "chosen")
    assert marked.get_xydata()[0] == pytest.approx((picture().best.complexity, 1e-3))


def test_an_exact_fit_is_drawn_on_a_logarithmic_axis():
    assert png(draw(picture(error=0.0), "pareto", Figure()))


def test_residuals_are_what_is_left():
    ax = draw(picture(), "residuals", Figure()).axes[0]

    points = ax.lines[-1].get_ydata()
    np.testing.assert_allclose(points, -0.01, atol=1e-12)


def test_rows_without_a_value_are_left_out():
    predicted = np.linspace(-1, 1, 30)
    predicted[:3] = np.nan

    ax = draw(picture(predicted=predicted), "predictions", Figure()).axes[0]

    assert len(ax.lines[-1].get_xdata()) == 27


def test_nothing_to_draw_is_an_error():
    with pytest.raises(InvalidArgument, match="no finite value"):
        draw(picture(predicted=np.full(30, np.nan)), "residuals", Figure())


def test_a_constant_has_no_network_and_is_drawn_all_the_same():
    constant = candidate("1.5", 1.0)
    shown = Picture([constant], constant, np.arange(5.0), np.full(5, 1.5), inputs=("x", "y"))

    assert png(draw(shown, "all", Figure()))


def test_an_unknown_kind_is_refused():
    with pytest.raises(UnknownName, match="no plot of `kind` 'pie'"):
        draw(picture(), "pie", Figure())


def test_drawing_leaves_the_users_settings_alone():
    import matplotlib

    before = dict(matplotlib.rcParams)
    draw(picture(), "all", Figure())

    assert dict(matplotlib.rcParams) == before


@pytest.fixture(scope="module")
def fitted():
    X = np.random.default_rng(0).uniform(0.5, 2, (50, 2))
    Y = pd.DataFrame({"u": X[:, 0] * X[:, 1], "v": X[:, 0] ** 2})
    return EQLRegressor(primitives="id square mul pow", hidden_layers=1, restarts=16).fit(X, Y)


@pytest.fixture
def no_windows():
    import matplotlib
    from matplotlib import pyplot as plt

    before = matplotlib.get_backend()
    plt.switch_backend("agg")
    yield
    plt.close("all")
    plt.switch_backend(before)


@pytest.mark.usefixtures("no_windows")
@pytest.mark.parametrize("kind", ["all", *KINDS])
def test_a_fitted_model_plots_itself(fitted, kind):
    assert png(fitted.plot(kind, output=1))


@pytest.mark.usefixtures("no_windows")
def test_a_model_plots_other_data(fitted):
    X = np.full((7, 2), 1.5)

    ax = fitted.plot("predictions", X=X, y=np.full((7, 2), 2.25)).axes[0]

    assert len(ax.lines[-1].get_xdata()) == 7


def test_data_to_plot_come_in_pairs(fitted):
    with pytest.raises(InvalidArgument, match="given together"):
        fitted.plot(X=np.ones((3, 2)))


def test_an_output_that_is_not_there_is_refused(fitted):
    with pytest.raises(InvalidArgument, match="no `output` 2"):
        fitted.plot(output=2)
