import warnings

import numpy as np
import pytest

from eqlearn.symbolic.effective_variance import fit_measured
from eqlearn.symbolic.equation import Equation
from eqlearn.symbolic.parametric import Formula

FORMS = {
    "2.0*x + 1.0": (lambda b, x: b[0] * x + b[1], (2.0, 1.0)),
    "3.0*exp(-0.5*x) + 0.5": (lambda b, x: b[0] * np.exp(b[1] * x) + b[2], (3.0, -0.5, 0.5)),
    "4.0*x**1.5": (lambda b, x: b[0] * x ** b[1], (4.0, 1.5)),
}


def measured(form, size, seed=0, rows=80):
    function, true = FORMS[form]
    rng = np.random.default_rng(seed)
    x = rng.uniform(1, 5, rows)
    x_error, y_error = size * rng.uniform(0.5, 2, (2, rows))
    return (
        x + x_error * rng.normal(size=rows),
        function(true, x) + y_error * rng.normal(size=rows),
        x_error,
        y_error,
    )


def by_odr(form, x, y, x_error, y_error):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # newer versions of SciPy leave ODR to a package of its own
        odr = pytest.importorskip("scipy.odr")
        function, true = FORMS[form]
        data = odr.RealData(x, y, sx=x_error, sy=y_error)
        return odr.ODR(data, odr.Model(function), beta0=true).run()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("seed", range(3))
def test_it_agrees_with_orthogonal_distance_regression(form, seed):
    x, y, x_error, y_error = measured(form, 0.05, seed)
    other = by_odr(form, x, y, x_error, y_error)

    fit = fit_measured(Formula.of(Equation.parse(form, ("x",))), x[:, None], y, y_error, x_error[:, None])

    errors = np.sqrt(np.diag(other.cov_beta))
    scale = max(1.0, np.sqrt(fit.chi_square / fit.freedom))
    np.testing.assert_array_less(np.abs([c.value for c in fit.constants] - other.beta), 0.25 * errors)
    np.testing.assert_allclose([c.standard_error for c in fit.constants], scale * errors, rtol=0.05)
    np.testing.assert_allclose(fit.chi_square, other.sum_square, rtol=0.02)


def test_a_line_through_points_with_errors_in_x_is_not_too_flat():
    rng = np.random.default_rng(1)
    x = rng.uniform(-2, 2, 4000)
    seen, y = x + rng.normal(size=4000), 2 * x + 0.1 * rng.normal(size=4000)
    formula = Formula.of(Equation.parse("2.0*x", ("x",)))

    plain = formula.fit(seen[:, None], y).values[0]
    fit = fit_measured(formula, seen[:, None], y, np.full(4000, 0.1), np.ones((4000, 1)))

    assert plain < 1.3  # attenuated by 1 + var(error)/var(x)
    assert fit.constants[0].value == pytest.approx(2.0, abs=0.2)


def test_intervals_hold_the_truth_as_often_as_they_say():
    inside = 0
    for seed in range(60):
        x, y, x_error, y_error = measured("2.0*x + 1.0", 0.1, seed, rows=40)
        fit = fit_measured(
            Formula.of(Equation.parse("2.0*x + 1.0", ("x",))), x[:, None], y, y_error, x_error[:, None]
        )
        low, high = fit.constants[0].interval()
        inside += low <= 2.0 <= high

    assert inside >= 50  # of 60 at 95 %: fewer happen once in 2,000 times


def test_errors_that_are_stated_too_small_widen_the_intervals():
    x, y, x_error, y_error = measured("2.0*x + 1.0", 0.1)
    formula = Formula.of(Equation.parse("2.0*x + 1.0", ("x",)))

    honest, boast = (
        fit_measured(formula, x[:, None], y, s * y_error, s * x_error[:, None]) for s in (1, 0.1)
    )

    assert boast.constants[0].standard_error == pytest.approx(honest.constants[0].standard_error, rel=0.3)


def test_a_formula_without_constants_has_a_chi_square():
    x = np.linspace(1, 2, 9)

    fit = fit_measured(
        Formula.of(Equation.parse("x**2", ("x",))), x[:, None], x**2 + 0.3, np.full(9, 0.1), np.zeros((9, 1))
    )

    assert fit.chi_square == pytest.approx(81.0)
    assert fit.constants == ()
