"""Pictures as points."""

import numpy as np

from eqlearn.latent.film.pictures import Components, averaged


def test_large_pictures_are_averaged_to_the_side_asked_for():
    frames = np.arange(2 * 8 * 6).reshape(2, 8, 6, 1).astype(float)

    small = averaged(frames, 4)

    assert small.shape == (2, 4, 3, 1)
    assert small[0, 0, 0, 0] == frames[0, :2, :2].mean()


def test_components_hold_what_moves_and_leave_out_noise():
    generator = np.random.default_rng(0)
    x = np.linspace(2, 10, 40)
    film = np.exp(-((np.arange(12) - x[:, None]) ** 2) / 4)[:, None, :, None] * np.ones((1, 9, 1, 1))

    found = Components.of([film + 0.05 * generator.normal(size=film.shape)])

    assert 1 < found.axes.shape[1] < 12
    assert found.points(film).shape == (40, found.axes.shape[1])
