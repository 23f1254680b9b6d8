"""From a fit to a candidate: constants that have a value of their own, and errors on the data at hand."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from eqlearn import EQL, Equation, discover
from eqlearn.search.features import Features
from eqlearn.search.finish import Finisher, _simpler
from eqlearn.symbolic.parametric import Constant, Formula
from eqlearn.validation.table import Table

X = np.linspace(0.5, 3.0, 40)[:, None]
NOISE = 0.05 * np.random.default_rng(0).normal(size=40)


def measured(formula, y):
    """A finisher for this target, and the formula as its candidate, constants as they are."""
    table = Table(X, y[:, None])
    finisher = Finisher(Features.of(table.X, table.y, logarithms=False, degree=1), ("x",), table)
    equation = Equation.parse(formula, ["x"])
    fit = Formula.of(equation).fit(X, y, steps=0)
    return finisher, finisher.measure([equation], [fit.constants])


def test_the_errors_are_those_of_the_equation_relative_to_the_spread():
    y = 2 * X[:, 0] + NOISE
    _, candidate = measured("2*x", y)

    assert candidate.training_error == pytest.approx(np.sqrt(np.mean(NOISE**2)) / y.std(), rel=1e-9)
    assert not candidate.exact


def test_all_rows_serve_to_fit_the_constants():
    finisher, candidate = measured("1.5*x + 0.1", 2 * X[:, 0] + NOISE)

    fitted = finisher.refit(candidate, finisher.training)

    assert [c.value for c in fitted.constants[0]] == pytest.approx([2.0, 0.0], abs=0.05)
    assert all(c.standard_error > 0 for c in fitted.constants[0])


def test_constants_that_can_make_up_for_each_other_are_left_alone():
    finisher, candidate = measured("exp(1.0986e9/(x + 1.0e9))*x", 3 * X[:, 0] + NOISE)
    assert Formula.of(candidate.equation).fit(X, finisher.training.y[:, 0]).loose == [0, 1]

    fitted = finisher.refit(candidate, finisher.training)

    assert fitted.equation == candidate.equation
    assert fitted.constants == candidate.constants


def test_the_mean_is_what_is_left_when_all_else_fails():
    y = 2 * X[:, 0] + NOISE
    finisher, _ = measured("x", y)

    mean = finisher.constant()

    assert mean.equation.constants == pytest.approx([y.mean()])
    assert mean.training_error == pytest.approx(1.0)


def test_bars_around_what_has_one_sign_on_the_data_are_left_out():
    table = Table(X, (-3 * X[:, 0])[:, None])
    finisher = Finisher(Features.of(table.X, table.y, logarithms=False, degree=1), ("x",), table)
    net = EQL(1, 1, primitives="abs", hidden_layers=1, seed=0).double().eval()
    with torch.no_grad():
        net.hidden[0].linear.raw.copy_(torch.tensor([[-2.0]]))
        net.readout.raw.copy_(torch.tensor([[-1.5]]))

    (equation,) = finisher.read(net)

    assert "abs" not in str(equation)
    assert equation(X) == pytest.approx(-3 * X[:, 0] / X.max())


def test_as_many_constants_as_rows_are_not_believed():
    X, y = np.array([[1.0], [2.0]]), np.array([3.0, 5.0])

    fit = Formula.of(Equation.parse("1.5*x**2 + 2.5*x + 0.5", ("x",))).fit(X, y)

    assert np.isinf(fit.standard_errors).all()


def test_rows_left_out_say_nothing_where_each_of_them_is_needed():
    X = np.arange(1.0, 8.0)[:, None]
    table = Table(X, 1 / X)
    finisher = Finisher(Features.of(X, table.y, logarithms=False, degree=1), ("x",), table)

    one, three = (
        finisher.measure([Equation.parse(text, ("x",))], [()]) for text in ("0.9/x", "0.9/(x - 0.1) + 0.3*x")
    )

    assert np.isfinite(one.prediction_length)
    assert np.isnan(three.prediction_length)


def test_what_overflows_is_infinitely_wrong_without_a_warning():
    X = np.linspace(1, 2, 20)[:, None]
    table, far = Table(X, np.exp(X)), Table(1e3 * X, X)
    finisher = Finisher(Features.of(X, table.y, logarithms=False, degree=1), ("x",), table, extrapolation=far)

    assert finisher.measure([Equation.parse("exp(x)", ("x",))], [()]).extrapolation_error == np.inf


def test_a_target_that_varies_little_about_a_large_mean_is_measured_by_its_spread():
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, 400)
    y = 1000 + 0.5 * x + 0.5 * rng.normal(size=400)

    found = discover(x[:, None], y, restarts=1)

    left = np.std(y - found.best.equation(x[:, None]))
    assert found.best.training_error == pytest.approx(left / y.std(), rel=0.05)
    assert not found.exact


@pytest.mark.parametrize("mean", [1e3, 1e4, 1e6])
def test_an_exact_law_about_a_large_mean_is_exact(mean):
    x = np.linspace(-1, 1, 50)

    assert discover(x[:, None], mean + 0.5 * x**2, restarts=1).exact


def test_bars_stay_where_a_row_of_validation_has_the_other_sign():
    table = Table(np.array([[1.0], [2.0], [3.0]]), np.array([[1.0], [2.0], [3.0]]), None)
    other = Table(np.array([[-1.0]]), np.array([[1.0]]), None)
    network = EQL(1, 1, "abs", 1, seed=0).double()
    with torch.no_grad():
        for layer in network.linears:
            layer.raw.fill_(1.0)
    features = Features.of(table.X, table.y, logarithms=False, degree=1)

    assert "abs" not in str(Finisher(features, ("x",), table).read(network)[0]).lower()
    assert "abs" in str(Finisher(features, ("x",), table, other).read(network)[0]).lower()


def law_and_finisher(law, noise=0.0):
    rng = np.random.default_rng(0)
    rows = rng.uniform(0.1, 0.45, size=(60, 3))
    names = ("x", "y", "z")
    y = Equation.parse(law, names)(rows) + noise * rng.normal(size=60)
    table = Table(rows, y[:, None])
    return Finisher(Features.of(table.X, table.y, logarithms=False, degree=1), names, table), names


LONG = "((y - 4.48)*(1 - x - z) + x)/(1 - x - z)"


def candidate_of(finisher, names, text):
    equation = Equation.parse(text, names)
    fit = Formula.of(equation).fit(finisher.training.X, finisher.training.y[:, 0], steps=3)
    return finisher.measure([equation], [fit.constants], method="rational")


@pytest.mark.parametrize("noise", [0.0, 0.01])
def test_a_law_in_a_long_form_is_delivered_in_its_shortest(noise):
    finisher, names = law_and_finisher("x/(1 - x - z) + y - 4.48", noise)
    text = "(4.48*x + 4.48*z - 4.48 + x - x*y - y*z + y)/(1 - x - z)"
    candidate = candidate_of(finisher, names, text)

    short = finisher.in_brief(candidate)

    assert short.complexity <= 11 < candidate.complexity
    assert short.description_length < candidate.description_length
    assert short.exact == candidate.exact
    assert short.method == "rational"
    assert short.training_error <= max(candidate.training_error * 1.001, 1e-10)


def test_what_can_not_be_said_more_briefly_is_the_same_candidate():
    finisher, names = law_and_finisher("x*y + z")
    candidate = candidate_of(finisher, names, "x*y + z")

    assert finisher.in_brief(candidate) is candidate


def test_out_of_time_a_candidate_stays_as_it_is():
    finisher, names = law_and_finisher("x/(1 - x - z) + y - 4.48")
    late = replace(finisher, stop=lambda: True)
    candidate = candidate_of(late, names, LONG)

    assert late.in_brief(candidate) is candidate


@pytest.mark.parametrize(
    ("law", "said"),
    [
        ("x*tanh(6*y)/z", "x*tanh(6*y)/(z - 0.0001/sin(7*y))"),  # a term and a function
        ("cos(9*x*y)", "1.004*cos(9.008*x*y)"),  # constants that only together are simple
        ("x*y + 2.6*z", "x*y + 2.6*z**1.01 + 0.004*exp(x)"),
    ],
)
def test_in_noise_a_law_is_freed_of_what_only_fits_it(law, said):
    finisher, names = law_and_finisher(law, 0.01)
    candidate = candidate_of(finisher, names, said)

    pruned = finisher.pruned(candidate)

    assert pruned.complexity == Equation.parse(law, names).complexity
    assert pruned.description_length < candidate.description_length
    assert pruned.method == candidate.method


def test_what_a_law_needs_is_left_in():
    finisher, names = law_and_finisher("2.61*x*exp(y) + 0.73*z", 0.01)
    candidate = finisher.refit(candidate_of(finisher, names, "2.61*x*exp(y) + 0.73*z"), finisher.training)

    assert finisher.pruned(candidate) is candidate
    assert replace(finisher, stop=lambda: True).pruned(candidate) is candidate


def test_a_shorter_form_that_is_not_real_is_no_form():
    equation = Equation.parse("(x - 1)**(3/4) + 1.5*y", ["x", "y"])

    forms = [str(form) for form in _simpler(equation, [Constant(1.5, 0.01)])]

    assert "1.5*y" in forms
    assert not any("(-1)" in form for form in forms)
