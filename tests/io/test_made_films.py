"""Films that the package makes."""

import numpy as np
import pytest

from eqlearn.errors import EqlearnError
from eqlearn.io.made_films import SCENES, make_films


@pytest.mark.parametrize("name", SCENES)
def test_every_scene_stays_in_its_picture_and_moves(name):
    films, paths = make_films(name, films=2, frames=200, noise=0.0)

    assert films[0].shape == (200, 27, 24)
    assert len(paths[0]) == 200
    assert all(film.max(axis=(1, 2)).min() > 0.3 for film in films)
    assert np.ptp(paths[0]) > 0.1


def test_a_film_depends_on_its_seed_alone():
    first, again, other = (make_films("spring", 1, 20, seed=s)[0][0] for s in (0, 0, 1))

    np.testing.assert_array_equal(first, again)
    assert np.abs(first - other).max() > 0.1


def test_a_film_that_there_is_not_is_refused():
    with pytest.raises(EqlearnError, match="pendulum"):
        make_films("pendelum")
