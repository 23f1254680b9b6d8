"""Which constants are shared, and which of them are plain numbers."""

import numpy as np
from made import grouped

from eqlearn.search.groups.group_fit import fit_from_many
from eqlearn.search.groups.sharing import shared, snapped
from eqlearn.search.groups.structure import freed, parametrisations
from eqlearn.symbolic.equation import Equation

RNG = np.random.default_rng(3)
FACTORS = (0.5, 2.0)


def own_fit(law, constants, text, **options):
    rows, _, _ = grouped(law, constants, **options)
    structure = freed(Equation.parse(text, ["x"]))
    first = next(parametrisations(structure, rows.columns[:, :15], 1))
    return fit_from_many(first, rows, first.start, FACTORS, steps=40)


def test_a_constant_that_differs_by_little_more_than_its_error_is_not_shared():
    constants = 5 + 0.05 * RNG.normal(size=20)
    fit = own_fit(lambda x, c: c[0] * x[0] + 1, constants, "2.0*x + 1.0", noise=0.01, rows=30)

    few = shared(fit, 20)

    assert few.common.tolist() == [False, True]


def test_constants_that_are_the_same_are_shared_and_plain_ones_told_as_such():
    fit = own_fit(lambda x, c: 3 * x[0] + c[0], RNG.uniform(1, 2, 12), "2.0*x + 1.0", noise=0.01, rows=30)

    few = shared(fit, 20)
    after, numbers = snapped(few, 8)

    assert few.common.tolist() == [True, False]
    assert numbers == {0: 3}
    assert after.error < few.error * 1.01


def test_nothing_is_shared_that_varies_in_exact_data():
    constants = np.stack([RNG.uniform(1, 2, 8), RNG.uniform(1, 2, 8)], axis=1)
    fit = own_fit(lambda x, c: c[0] * np.exp(-c[1] * x[0]), constants, "exp(-x)")

    assert not shared(fit, 20).common.any()
