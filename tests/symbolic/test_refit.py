"""Refitting: constants and standard errors that others certified, on good data; sentences on bad data."""

import numpy as np
import pandas as pd
import pytest

from eqlearn import Equation, errors
from eqlearn.io.datasets import load_dataset
from eqlearn.symbolic.parametric import refit

LINE = Equation.parse("1.0*x + 1.0", ["x"])


def line(rows=50, noise=0.1, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, rows)
    return x, 2.5 * x - 0.7 + noise * rng.normal(size=rows)


def by_size(refitted):
    return sorted(refitted.constants, key=lambda c: abs(c.value))


def test_constants_and_standard_errors_are_those_that_nist_certified():
    data = load_dataset("ultrasound")
    start = Equation.parse("exp(-0.1*distance)/(0.01 + 0.02*distance)", ["distance"])

    small, middle, large = by_size(refit(start, data.X, data.y))

    assert [abs(c.value) for c in (small, middle, large)] == pytest.approx(
        [5.1653291286e-03, 1.2150007096e-02, 1.6657666537e-01], rel=1e-6
    )
    assert [c.standard_error for c in (small, middle, large)] == pytest.approx(
        [6.6621605126e-04, 1.5304234767e-03, 3.8303286810e-02], rel=1e-5
    )


def test_the_equation_has_the_fitted_constants_and_its_error():
    x, y = line()

    fitted = refit(LINE, x, y)

    assert fitted.equation.constants == pytest.approx([c.value for c in fitted.constants])
    assert fitted.error == pytest.approx(fitted.equation.error(x, y), rel=1e-9)


def test_the_given_equation_stays_as_it_is():
    refit(LINE, *line())

    assert Equation.parse("1.0*x + 1.0", ["x"]) == LINE


def test_exact_numbers_stay():
    x, y = line()

    fitted = refit(Equation.parse("5/2*x + 0.1", ["x"]), x, y)

    assert len(fitted.constants) == 1
    assert fitted.equation.matches(f"5/2*x + {fitted.constants[0].value!r}")


def test_clean_data_give_the_truth_with_no_error_to_speak_of():
    x, y = line(noise=0.0)

    for constant in refit(LINE, x, y).constants:
        assert constant.value in (pytest.approx(2.5, rel=1e-12), pytest.approx(-0.7, rel=1e-12))
        assert constant.standard_error < 1e-12


def test_columns_of_a_data_frame_are_found_by_name():
    x, y = line()
    frame = pd.DataFrame({"other": np.zeros_like(x), "x": x})

    assert refit(LINE, frame, y) == refit(LINE, x, y)


def test_rows_of_no_weight_do_not_count():
    x, y = line()
    weight = (np.arange(50) < 30).astype(float)

    whole, part = refit(LINE, x, y, sample_weight=weight), refit(LINE, x[:30], y[:30])

    assert [c.standard_error for c in whole.constants] == pytest.approx(
        [c.standard_error for c in part.constants], rel=1e-9
    )


def test_three_standard_errors_hold_the_truth():
    far = 0
    for seed in range(40):
        constants = refit(LINE, *line(seed=seed)).constants
        truths = [min((2.5, -0.7), key=lambda t, c=c: abs(t - c.value)) for c in constants]
        pairs = zip(constants, truths, strict=True)
        far += sum(abs(c.value - t) > 3 * c.standard_error for c, t in pairs)

    assert far <= 3  # of 80, of which one in 370 is expected


def test_a_constant_that_another_can_make_up_for_has_no_standard_error():
    x, y = line()
    twins = Equation.parse("0.5*a + 0.7*b + 0.1", ["a", "b"])

    constants = refit(twins, np.column_stack([x, x]), y).constants

    assert sorted(np.isinf(c.standard_error) for c in constants) == [False, True, True]


def test_an_equation_without_constants_is_only_measured():
    x, y = line()

    fitted = refit(Equation.parse("x", ["x"]), x, y)

    assert fitted.constants == ()
    assert fitted.error == pytest.approx(np.sqrt(np.mean((x - y) ** 2)))


def test_a_single_constant_is_the_mean():
    fitted = refit(Equation(1.5, []), np.zeros((4, 0)), [1.0, 2.0, 3.0, 4.0])

    assert fitted.equation.constants == pytest.approx([2.5])


@pytest.mark.parametrize(
    ("change", "kind", "words"),
    [
        ({"x": np.array([0.1, 0.2])}, errors.InvalidArgument, "50"),
        ({"x": np.full(50, np.nan)}, errors.NotFinite, "`X` holds 50 NaN"),
        ({"y": np.full(50, np.inf)}, errors.NotFinite, "`y` holds 50 NaN"),
        ({"x": [0.1, 0.2], "y": [1.0, 2.0]}, errors.InvalidArgument, "2 rows of any weight for 2 constants"),
        ({"x": np.ones((50, 2))}, errors.InvalidArgument, "shape"),
        ({"y": np.ones((50, 2))}, errors.InvalidArgument, "one number for each"),
        ({"equation": Equation.parse("0.5*log(x)", ["x"])}, errors.NotFinite, "not finite on"),
        ({"sample_weight": -np.ones(50)}, errors.InvalidArgument, "none negative"),
    ],
    ids=str,
)
def test_bad_input_is_explained(change, kind, words):
    x, y = line()
    arguments = {"equation": LINE, "x": x, "y": y, "sample_weight": None, **change}

    with pytest.raises(kind, match=words):
        refit(arguments["equation"], arguments["x"], arguments["y"], sample_weight=arguments["sample_weight"])


def test_a_root_at_its_edge_is_fitted():
    side = np.linspace(-1, 1, 9)  # holds 0, where the slope of the root is infinite
    X = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    equation = Equation.parse("sqrt(2.0*x**2 + 3.0*y**2)", ["x", "y"])

    fitted = refit(equation, X, np.sqrt(1.3 * X[:, 0] ** 2 + 0.7 * X[:, 1] ** 2))

    np.testing.assert_allclose([c.value for c in fitted.constants], [1.3, 0.7], rtol=1e-10)
