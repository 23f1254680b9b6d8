import numpy as np
import pandas as pd
import pytest

from eqlearn import EQLRegressor, Settings, discover
from eqlearn.errors import InvalidArgument
from eqlearn.search.measured import first_weights
from eqlearn.validation.table import Table, Uncertainty

QUICK = Settings(networks=False, strategies=("linear", "products", "elimination"))


@pytest.mark.slow
def test_rows_with_small_errors_decide():
    rng = np.random.default_rng(0)
    x = rng.uniform(1, 5, 200)
    error = np.where(np.arange(200) % 2, 0.01, 30.0)
    y = 2 * x**2 + error * rng.normal(size=200)

    found = discover(x, y, y_error=error, settings=QUICK)

    assert found.best.equation(np.array([[3.0]]))[0] == pytest.approx(18, abs=0.05)
    assert found.best.reduced_chi_square == pytest.approx(1.0, abs=0.4)


@pytest.mark.slow
def test_errors_of_known_size_keep_noise_out_of_the_law():
    rng = np.random.default_rng(3)
    x = rng.uniform(1, 5, 60)

    found = discover(x, 3 * x + rng.normal(size=60), y_error=1.0, settings=QUICK)

    assert found.best.equation.complexity <= 3


def test_the_estimator_takes_errors_by_the_names_of_columns():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.uniform(1, 5, 80), "b": rng.uniform(1, 5, 80)})
    seen = frame + rng.normal(size=frame.shape) * [0.05, 0.02]

    model = EQLRegressor(settings=QUICK).fit(
        seen, frame.a * frame.b, y_error=0.01, x_error={"a": 0.05, "b": 0.02}
    )

    assert str(model.equation_) == "a*b"
    assert 0.5 < model.found_.best.reduced_chi_square < 2


def test_presets_of_the_paper_know_no_errors():
    x = np.linspace(1, 2, 20)[:, None]

    with pytest.raises(InvalidArgument, match="`y_error` can't be used with the preset"):
        EQLRegressor(settings="paper").fit(x, x[:, 0], y_error=0.1)


def test_first_weights_know_where_a_function_is_steep():
    x = np.linspace(0, 4, 60)
    errors = Uncertainty(np.full((60, 1), 0.01), np.full((60, 1), 0.1))

    weight = first_weights(Table(x[:, None], (x**2)[:, None], None, errors))

    assert weight[2] > 10 * weight[-1]
    assert weight.mean() == pytest.approx(1.0)
