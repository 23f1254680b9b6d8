"""Structures ranked on all groups."""

import numpy as np
import torch
from made import grouped

from eqlearn.search.groups.group_settings import GroupSettings
from eqlearn.search.groups.rank import Ranking, noise_by_group, total
from eqlearn.symbolic.equation import Equation

RNG = np.random.default_rng(0)


def equations(*texts):
    return [Equation.parse(text, ["x"]) for text in texts]


def test_the_true_structure_wins_and_equal_ones_are_fitted_once():
    rows, _, _ = grouped(lambda x, c: c[0] * np.exp(-x[0]), RNG.uniform(1, 2, 6), noise=0.01)
    ranking = Ranking(rows, GroupSettings())

    ranking.add(equations("2.0*x + 1.0", "1.5*exp(-0.9*x)", "x + 3", "1.0*exp(-1.1*x)"))

    best = ranking.finalists()[0][0]
    assert len(ranking.fits) == 2
    assert "exp" in str(best.key)
    assert not ranking.exact


def test_structures_of_more_numbers_than_rows_allow_are_left_out():
    rows, _, _ = grouped(lambda x, c: c[0] * x[0], [1.0, 2.0, 3.0], rows=3)
    ranking = Ranking(rows, GroupSettings())

    ranking.add(equations("1.0*x**3 + 2.0*x**2 + 3.0*x + 4.0", "2.0*x"))

    assert [str(key) for key in ranking.fits] == ["_c0*x"]


def test_noise_in_proportion_to_the_spread_is_recognised():
    constants = np.geomspace(1, 100, 8)
    rows, _, _ = grouped(lambda x, c: c[0] * x[0], constants, rows=30)
    noisy = rows.y + 0.02 * rows.spreads[rows.codes] * torch.from_numpy(RNG.normal(size=rows.rows))
    ranking = Ranking(type(rows)(rows.columns, noisy, rows.codes, rows.root, rows.count), GroupSettings())
    ranking.add(equations("2.0*x"))

    ((_, fit),) = ranking.fits.values()

    noise = noise_by_group(fit)
    assert float(noise[-1] / noise[0]) > 30
    assert total(fit) < 0
