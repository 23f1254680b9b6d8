"""The canonical gauge on latents whose truth is known: what the encoders can make up for goes."""

from dataclasses import replace

import numpy as np
import pytest
import sympy as sp
import torch

from eqlearn.latent.comparison.canonical import reduce
from eqlearn.latent.comparison.structures import SHIFT
from eqlearn.symbolic.equation import Equation
from made_latents import fitted_choice, uniform

ROWS = 400
K, X, Q = uniform(ROWS, 0.5, 2, 0), uniform(ROWS, 0.3, 3, 1), uniform(ROWS, 0.5, 1.5, 2)
A, B = uniform(ROWS, 0, 9, 3), uniform(ROWS, 0, 9, 4)


def reduced(choice):
    found = reduce(choice.data, choice.fit)
    return found, [str(e) for e in found.equations(choice.names, choice.columns)]


def latent(found, choice, slot=0):
    s = choice.data.slots[slot]
    return (choice.data.designs[s.input] @ found.fit.bends[s.group][s.place]).numpy()


@pytest.mark.parametrize(
    ("y", "tree", "text"),
    [
        (3 * K * X, ("mul", 0, 1), "k*x"),
        (-3 * K * X + X, ("mul", 0, 1), "-k*x"),
        (3 * K + 2 * X + 5, ("add", 0, 1), "k + 2*x"),
        (torch.sqrt(2 * K * X), ("sqrt", ("mul", 0, 1)), "sqrt(k*x)"),
        (torch.exp(-K * X), ("exp", ("mul", 0, 1)), "exp(-k*x)"),
        (X / (K + X), ("div", 1, ("add", 0, 1)), "x/(k + x)"),
        # What is added can't be nothing, but one; a column that stands twice has no factor.
        (0.6 / (K / X + 0.6), ("inv", (SHIFT, ("div", 0, 1))), "1/(k/x + 1)"),
        (K * X + X**2 / 2, ("mul", 1, ("add", 0, 1)), "x*(k + x)/2"),
    ],
)
def test_redundant_constants_go(y, tree, text):
    choice = fitted_choice({"k": torch.log(K)}, {"x": X}, y, tree)
    found, (law,) = reduced(choice)

    assert sp.simplify(sp.sympify(law) - sp.sympify(text)) == 0
    assert float(np.mean(latent(found, choice) > 0)) > 0.95
    assert found.fit.error < 1e-4


def test_a_constant_that_the_data_need_stays_with_its_error():
    # Of y = (2.37 + x) * k + noise only the scale of k is free.
    noise = 0.05 * torch.randn(ROWS, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    choice = fitted_choice({"k": K}, {"x": X}, K * (X + 2.37) + noise, ("mul", 0, ("shift", 1)))
    found, (law,) = reduced(choice)

    (constant,) = Equation.parse(law, ["k", "x"]).constants
    place = int(np.flatnonzero(np.isclose(found.fit.numbers, constant))[0])
    assert 0.001 < found.errors[place] < 0.2
    assert abs(constant - 2.37) < 4 * found.errors[place]
    assert place not in found.exact
    assert all(found.errors[held] == 0 for held in found.exact)


def test_a_simple_constant_is_snapped():
    choice = fitted_choice({"k": K}, {"x": X}, K * (X + 2.0001), ("mul", 0, ("shift", 1)))

    _, (law,) = reduced(choice)

    assert sp.simplify(sp.sympify(law) - sp.sympify("k*(x + 2)")) == 0


def test_where_the_zero_of_a_latent_is_free_its_mean_is_zero():
    choice = fitted_choice({"a": A / 3, "b": B / 3}, {}, (A - B) ** 2, ("square", ("sub", 0, 1)), shared=True)
    found, (law,) = reduced(choice)

    assert sp.expand(sp.sympify(law) - sp.sympify("(a - b)**2")) == 0
    both = np.concatenate([latent(found, choice, 0), latent(found, choice, 1)])
    assert abs(both.mean()) < 1e-6
    truth = np.concatenate([A, B])
    assert abs(np.corrcoef(both, truth)[0, 1]) > 0.9999
    assert both.std() == pytest.approx(truth.std(), rel=0.01)  # the scale is the target's


def test_the_law_has_the_values_of_the_fit():
    choice = fitted_choice(
        {"k": K**2}, {"x": X, "q": Q}, Q * torch.exp(-K * X) + 1, ("mul", 2, ("exp", ("mul", 0, 1)))
    )
    found = reduce(choice.data, choice.fit)
    (law,) = found.equations(choice.names, choice.columns)

    values = law({"k": latent(found, choice), "x": X.numpy(), "q": Q.numpy()})

    left = float(np.mean((values - choice.data.y[0].numpy()) ** 2) / choice.data.y.var(correction=0))
    assert left == pytest.approx(found.fit.error, rel=1e-3, abs=1e-9)


def test_each_output_has_its_equation():
    both = torch.stack([2 * K * X, K + X], dim=1)
    choice = fitted_choice({"k": torch.log(K)}, {"x": X}, both, ("mul", 0, 1), ("add", 0, 1))
    found, laws = reduced(choice)

    assert len(laws) == 2
    assert found.fit.error < 1e-4
    # One scale is free: the factor is in one of them.
    assert sp.expand(sp.sympify(laws[0]) / sp.sympify("k*x")).is_number
    assert {str(v) for v in sp.sympify(laws[1]).free_symbols} == {"k", "x"}


def test_numbers_that_are_known_are_held():
    choice = fitted_choice({"k": K}, {"x": X}, 3 * K * X, ("mul", 0, 1))
    first = reduce(choice.data, choice.fit)

    again = reduce(choice.data, first.fit, known=first.exact)

    assert again.exact == first.exact
    for place, number in first.exact.items():
        assert again.fit.numbers[place] == float(number)
    assert again.fixed.sum() == len(first.exact)


def test_a_stop_leaves_a_law_that_holds():
    choice = fitted_choice({"k": K}, {"x": X}, 3 * K * X, ("mul", 0, 1))

    found = reduce(choice.data, choice.fit, stop=lambda: True)

    assert found.exact == {}
    assert found.fit.error <= choice.error * (1 + 1e-6) + 1e-12


def test_rows_that_were_misread_do_not_move_the_last_fit():
    first = reduced(choice := fitted_choice({"k": K}, {"x": X}, K * X, ("mul", 0, 1)))[0]
    wrong = choice.data.y.clone()
    wrong[0, ::20] += 5.0

    again = reduce(replace(choice.data, y=wrong), first.fit, known=first.exact)

    assert np.abs(latent(again, choice) - latent(first, choice)).max() < 1e-3


@pytest.mark.parametrize(("noise", "left"), [(0.0, 0), (0.1, 0), (3.0, 20)])
def test_only_rows_far_from_a_fit_are_outliers(noise, left):
    choice = fitted_choice({"k": K}, {"x": X}, K * X, ("mul", 0, 1))
    moved = choice.data.y + 0.05 * torch.randn(1, ROWS, generator=torch.Generator().manual_seed(0)).double()
    moved[0, ::20] += noise

    assert replace(choice.data, y=moved).near(choice.fit, 5.0, 1e-4).rows == ROWS - left
