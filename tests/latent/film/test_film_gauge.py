"""The units in which a law is shortest."""

import math
from dataclasses import replace

import numpy as np
import pytest

from eqlearn.latent.film.laws import ONE, TWO, Structure
from eqlearn.latent.film.rollout import Motion
from eqlearn.latent.film.units import canonical, in_unit


def _motion(names, numbers, coordinates=1):
    every = ONE if coordinates == 1 else TWO
    terms = tuple(next(t for t in every if t.name == name) for name in names)
    zero = np.zeros(coordinates)
    return Motion(
        Structure(terms, coordinates, 2), np.array(numbers), zero, 0.8, np.zeros((6, coordinates)),
        ((0, 0, 60),), np.ones((1, 2 * coordinates)), 0.0, np.full(len(numbers), 0.1),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("names", "numbers", "said"),
    [
        (("1",), [-3.2], "1"),
        (("q", "q3"), [4.0, -12.0], "-z**3 + 4.0*z"),
        (("q",), [-9.0], "-9.0*z"),
        (("sin", "v"), [-14.0, -0.1], "-0.1*dz - 14.0*sin(z)"),
    ],
)
def test_what_the_unit_can_make_one_is_one(names, numbers, said):
    found = canonical(_motion(names, numbers))

    assert str(found.equations[0].rounded(6)) == said
    assert len(found.constants) == len(numbers) - sum(found.exact)


def test_a_planet_has_no_constant():
    found = canonical(_motion(("r-3q",), [-0.3], 2))

    assert found.exact == (True,)
    assert math.isclose(found.motion.numbers[0], -1.0)


def test_a_change_of_unit_changes_no_picture():
    motion = _motion(("q", "q3"), [4.0, -12.0])
    places = np.array([[0.3], [-0.7]])

    other = in_unit(motion, 0.5)

    np.testing.assert_allclose(motion.read(places), other.read(places / 0.5))
    assert replace(other).numbers[0] == 4.0


def test_a_pendulum_that_stands_on_its_head_is_turned_round():
    motion = _motion(("sin",), [14.0])

    found = canonical(motion).motion

    np.testing.assert_allclose(found.numbers, [-14.0])
    np.testing.assert_allclose(found.read(found.starts[:, :1]), motion.read(motion.starts[:, :1]))
