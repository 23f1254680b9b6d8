"""Films as users hand them over, good and bad."""

import numpy as np
import pytest

from eqlearn.errors import EqlearnError
from eqlearn.validation.films import read_films

MOVING = np.random.default_rng(0).uniform(size=(30, 8, 9))


@pytest.mark.parametrize(
    ("frames", "films", "colours"),
    [
        (MOVING, 1, 1),
        ([MOVING, MOVING[:25]], 2, 1),
        (np.stack([MOVING, MOVING]), 2, 1),
        (np.stack([MOVING] * 3, axis=3), 1, 3),
        ((255 * MOVING).astype(np.uint8), 1, 1),
    ],
)
def test_one_film_or_several_come_in_one_form(frames, films, colours):
    read = read_films(frames, 30)

    assert len(read.frames) == films
    assert read.frames[0].shape == (30, 8, 9, colours)
    assert read.frames[0].max() <= 1
    assert read.dt == pytest.approx(1 / 30)


@pytest.mark.parametrize(
    ("frames", "fps", "message"),
    [
        (MOVING[:1], 30, "1 frame; a law"),
        (MOVING[:19], 30, "19 frames"),
        (np.ones((30, 8, 8)), 30, "nothing moves"),
        (np.where(MOVING > 0.99, np.nan, MOVING), 30, "NaN"),
        ([MOVING, np.stack([MOVING] * 3, axis=3)], 30, "in grey and films in colour"),
        ([MOVING, MOVING[:, :7]], 30, "different sizes, 7 x 9 and 8 x 9"),
        (MOVING[:, :2], 30, "too small"),
        (MOVING[0], 30, "must be"),
        (np.array([["a"]]), 30, "must be numbers"),
        (MOVING, 0, "`fps` must be positive"),
        (MOVING, float("nan"), "`fps` must be positive"),
        (MOVING, "30", "`fps` must be a number"),
        (MOVING, None, "`fps` must be a number"),
    ],
)
def test_what_is_no_film_is_refused_in_one_sentence(frames, fps, message):
    with pytest.raises(EqlearnError, match=message) as refused:
        read_films(frames, fps)

    assert "\n" not in str(refused.value)
