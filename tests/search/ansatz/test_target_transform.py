"""Targets seen through an transformed last unit."""

import torch

from eqlearn.nn.primitives import parse_set
from eqlearn.search.ansatz.target_transform import transforms


def test_the_logarithm_of_what_is_below_one_is_seen_as_what_it_is_of():
    x = torch.linspace(0.1, 0.9, 20, dtype=torch.float64)

    (transform,) = transforms(parse_set("log"), torch.log(x)[None])

    torch.testing.assert_close(transform.target[0], x)
