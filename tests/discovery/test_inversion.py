"""Targets seen through an inverted last unit."""

import torch

from eqlearn.core.primitives import parse_set
from eqlearn.discovery.inversion import inversions


def test_the_logarithm_of_what_is_below_one_is_seen_as_what_it_is_of():
    x = torch.linspace(0.1, 0.9, 20, dtype=torch.float64)

    (inversion,) = inversions(parse_set("log"), torch.log(x)[None])

    torch.testing.assert_close(inversion.target[0], x)
