"""Targets seen through an transformed last unit."""

import numpy as np
import pytest
import torch

from eqlearn.nn.primitives import lookup, parse_set
from eqlearn.search.ansatz.target_transform import noisy_transforms, slope_of, transforms


def test_the_logarithm_of_what_is_below_one_is_seen_as_what_it_is_of():
    x = torch.linspace(0.1, 0.9, 20, dtype=torch.float64)

    (transform,) = transforms(parse_set("log"), torch.log(x)[None])

    torch.testing.assert_close(transform.target[0], x)


def noisy_exponential():
    x = torch.linspace(0.0, 8.0, 200, dtype=torch.float64)
    noise = 0.02 * torch.from_numpy(np.random.default_rng(0).normal(size=200))
    return x, (torch.exp(-x) + noise)[None]


def test_a_logarithm_is_taken_of_noisy_values_where_they_stand_out_of_the_noise():
    x, y = noisy_exponential()
    assert transforms(parse_set("exp"), y) == []  # some values are negative

    ((transform, weights),) = noisy_transforms(parse_set("id exp"), y, 1.0, 24)

    counted = weights > 0
    assert counted[x.numpy() < 2].all()
    assert not counted[y[0].numpy() < 0.02].any()
    left = weights * (transform.target[0].numpy() + x.numpy())  # by weight, it is as noise of the target is
    scale = weights[0] / y[0, 0].item()
    assert left[counted].std() == pytest.approx(0.02 * scale, rel=0.3)


def test_a_transform_that_few_rows_have_a_part_in_is_left_out():
    _, y = noisy_exponential()

    assert noisy_transforms(parse_set("exp"), y, 1.0, 150) == []


def test_negative_values_are_seen_with_their_sign():
    x, y = noisy_exponential()

    ((transform, _),) = noisy_transforms(parse_set("exp"), -y, 1.0, 24)

    assert transform.amplitude == -1.0
    assert np.allclose(transform.target[0].numpy()[:20], -x.numpy()[:20], atol=0.2)


def test_a_negative_target_is_the_negative_of_a_unit_that_has_one_sign():
    x = torch.linspace(-0.2, 0.2, 100, dtype=torch.float64)
    (sigmoid,) = parse_set("sigmoid")

    ((transform, _),) = noisy_transforms([sigmoid], -sigmoid(x)[None], 1.0, 24)

    assert transform.amplitude == -1.0
    torch.testing.assert_close(transform.target[0], x)


@pytest.mark.parametrize("name", ["exp", "sin1", "sqrt", "tanh", "cube", "inv"])
def test_a_slope_is_the_derivative(name):
    at, step = np.linspace(0.3, 2.0, 9), 1e-6
    function = lookup(name)

    def value(v):
        return function(torch.from_numpy(v)).numpy()

    assert np.allclose(slope_of(function, at), (value(at + step) - value(at - step)) / (2 * step), rtol=1e-6)
