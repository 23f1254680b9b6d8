"""Coordinates of pictures."""

import numpy as np
import pytest

from eqlearn.io.made_films import make_films
from eqlearn.latent.film.coordinates import film_coordinates, one_coordinate
from eqlearn.latent.film.pictures import Components


def _straightness(found, truth):
    columns = np.column_stack([found, np.ones(len(found))])
    left = truth - columns @ np.linalg.lstsq(columns, truth, rcond=None)[0]
    return float((left.std(axis=0) / truth.std(axis=0)).max())


def _seen(name, **options):
    films, paths = make_films(name, **options)
    frames = [film[..., None] for film in films]
    components = Components.of(frames)
    return frames, np.concatenate([components.points(f) for f in frames]), np.concatenate(paths)


@pytest.mark.parametrize("name", ["pendulum", "spring"])
def test_the_length_of_a_curve_of_pictures_is_the_angle_or_place(name):
    _, points, truth = _seen(name, films=3, frames=100)

    found = one_coordinate(points)

    assert _straightness(found.values, truth) < 0.03
    assert found.left < 0.02


def test_what_moves_in_a_plane_has_two_coordinates():
    frames, points, truth = _seen("planet", films=4, frames=150)

    found = film_coordinates(frames, points, None)

    assert found.values.shape[1] == 2
    assert _straightness(found.values, truth) < 0.3
