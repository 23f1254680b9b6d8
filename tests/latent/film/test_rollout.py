"""Laws fitted through the motion."""

import numpy as np
import torch

from eqlearn.latent.film.film_settings import FILM
from eqlearn.latent.film.laws import ONE, Structure
from eqlearn.latent.film.proposals import Proposal
from eqlearn.latent.film.rollout import Shooting, begun, bends, fitted, followed
from made_tracks import pendulums

SINE = Structure((next(t for t in ONE if t.name == "sin"),), 1, 2)


def _begun(tracks):
    return begun(Proposal(SINE, np.array([-12.0]), np.zeros(1), 1.0, 0.0), tracks)


def test_a_pendulum_in_another_unit_comes_out_in_radians():
    tracks = pendulums()

    motion = fitted(fitted(_begun(tracks), tracks, 20), tracks, 60, steps=20)

    np.testing.assert_allclose(motion.numbers, [-14.0], rtol=1e-3)
    np.testing.assert_allclose([abs(motion.scale), motion.shift[0]], [0.8, 0.1], atol=2e-3)
    path = followed(motion, tracks)
    np.testing.assert_allclose(motion.read(path[2][:, :1]), tracks.series[2], atol=5e-3)


def test_a_bend_of_the_coordinate_is_found_beside_the_law():
    tracks = pendulums(bend=0.02)

    motion = fitted(fitted(_begun(tracks), tracks, 20), tracks, 60, steps=20)

    np.testing.assert_allclose(motion.numbers, [-14.0], rtol=0.03)
    assert np.abs(motion.bend).max() > 0.005


def test_slopes_are_those_of_differences():
    tracks = pendulums((1.5,)).until(0.4)
    shooting = Shooting(_begun(tracks), tracks, 12, FILM)
    point = shooting.start() + 0.01
    slopes, own = shooting.linearise(point).slopes
    step = 1e-6

    for place in range(int(shooting.ends[-1])):
        moved = [point.clone() for _ in range(2)]
        moved[0][0, place] += step
        moved[1][0, place] -= step
        high, low = (shooting.linearise(p).residual for p in moved)
        np.testing.assert_allclose(slopes[..., place], (high - low) / (2 * step), atol=1e-4)
    assert own is not None
    assert torch.isfinite(torch.from_numpy(own)).all()


def test_bends_have_no_straight_part():
    u = np.linspace(-2, 2, 201)[:, None]

    values, slopes = bends(u, FILM)

    straight = np.column_stack([u, np.ones(201)])
    assert np.abs(np.linalg.lstsq(straight, values, rcond=None)[0]).max() < 0.05
    np.testing.assert_allclose(np.gradient(values[:, 0], u[:, 0])[5:-5], slopes[5:-5, 0, 0], atol=1e-2)
