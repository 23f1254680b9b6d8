"""Terms whose coefficients vary are told from terms with constant ones and from terms that are not there."""

import numpy as np
import pytest

from eqlearn.numerics.blocks import Blocks
from eqlearn.numerics.splines import Splines
from eqlearn.numerics.subsets import Regression

AT = np.linspace(0, 6, 400)
TERMS = np.random.default_rng(0).normal(size=(400, 5))


def blocks_of(target, floor=1e-8):
    splines = Splines.over(AT, 9, 3)
    blocks = TERMS[:, :, None] * splines.design(AT)[:, None]
    columns = np.column_stack([TERMS, blocks.reshape(len(AT), -1)])
    return Blocks(Regression.of(columns, target), 5, splines.count, floor)


@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_constant_and_varying_terms_are_found(noise):
    target = 2 * TERMS[:, 1] + np.sin(AT) * TERMS[:, 3]
    target = target + noise * np.random.default_rng(1).normal(size=400)

    best = blocks_of(target).best(4, 4)[0]

    assert best == ((1, False), (3, True))


def test_noise_alone_needs_no_term():
    assert blocks_of(np.random.default_rng(1).normal(size=400)).best(4, 4)[0] == ()


def test_a_support_with_more_columns_than_rows_allow_is_not_taken():
    blocks = blocks_of(TERMS[:, 0])
    few = Blocks(Regression.of(np.tile(TERMS[:12], 10), TERMS[:12, 0], independent=12.0), 5, 9, 1e-8)

    assert np.isfinite(blocks.score(((0, True),)))
    assert few.score(((0, True),)) == np.inf
