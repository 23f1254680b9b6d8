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
        Structure(terms, coordinates, 2), np.array(numbers), zero, 0.8,
        np.zeros((5 + coordinates, coordinates)),
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


@pytest.mark.parametrize(
    ("names", "numbers", "said"),
    [
        (("1",), [3.0, -4.0], ["0", "1"]),
        (("1", "v"), [3.0, 4.0, -0.5], ["-0.5*dz1", "-0.5*dz2 + 1"]),
        (("Kq",), [-9.0, 4.0, 4.0, -9.0], ["-13.0*z1", "-5.0*z2"]),
        (("Kq", "v"), [-9.0, 2.0, 8.0, -9.0, -0.1], ["-0.1*dz1 - 13.0*z1", "-0.1*dz2 - 5.0*z2"]),
        (("Kq",), [-1.0, 2.0, -2.0, -1.0], ["-1.0*z1 + 2.0*z2", "-2.0*z1 - 1.0*z2"]),
    ],
)
def test_a_law_in_a_plane_is_told_along_its_own_axes(names, numbers, said):
    found = canonical(_motion(names, numbers, 2))

    assert [str(e.rounded(6)) for e in found.equations] == said


@pytest.mark.parametrize(("names", "numbers"), [(("1",), [3.0, -4.0]), (("Kq",), [-9.0, 2.0, 8.0, -9.0])])
def test_axes_of_its_own_change_no_picture(names, numbers):
    motion = _motion(names, numbers, 2)
    places = np.array([[0.3, 0.1], [-0.7, 0.5]])

    found = canonical(motion).motion
    turned = places @ np.linalg.inv(found.axes).T * motion.scale / found.scale

    np.testing.assert_allclose(motion.read(places), found.read(turned))
    np.testing.assert_allclose(motion.read(motion.starts[:, :2]), found.read(found.starts[:, :2]))
