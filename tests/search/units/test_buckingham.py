from fractions import Fraction

from eqlearn.search.units.buckingham import buckingham
from eqlearn.validation.units import Dimension

LENGTH, TIME, MASS = (Dimension.of({name: 1}) for name in ("[length]", "[time]", "[mass]"))
SPEED = Dimension.of({"[length]": 1, "[time]": -1})
ENERGY = MASS * SPEED**2


def test_the_pendulum_has_one_product_and_no_group():
    (groups,) = buckingham([LENGTH, SPEED * TIME**-1], TIME, 100)

    assert groups.scale == (Fraction(1, 2), Fraction(-1, 2))
    assert groups.groups == ()


def test_every_group_is_without_a_unit_and_the_scale_has_the_targets():
    columns = [MASS, SPEED, SPEED, Dimension(), LENGTH, TIME]

    choices = buckingham(columns, ENERGY, 100)

    assert choices
    for groups in choices:
        for powers, wanted in [(groups.scale, ENERGY), *((g, Dimension()) for g in groups.groups)]:
            product = Dimension()
            for dimension, power in zip(columns, powers, strict=True):
                product = product * dimension**power
            assert product == wanted
        assert len(groups.groups) == len(columns) - 3


def test_a_unit_out_of_reach_has_no_groups():
    assert buckingham([LENGTH, TIME], MASS, 100) == []
