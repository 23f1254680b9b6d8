"""Laws ranked in the weak form."""

import numpy as np

from eqlearn.latent.film.laws import known_terms, structures
from eqlearn.latent.film.proposals import Ranking
from eqlearn.search.settings import SCIENCE
from made_tracks import DT, pendulums, swings


def _ranked(series, order=2):
    every = list(structures(known_terms(1, order, SCIENCE), 1, 1, order))
    return sorted(Ranking.of(series, DT, order).proposals(every), key=lambda p: p.left)


def test_a_pendulum_is_a_sine_in_whatever_unit():
    best = _ranked(pendulums().series)[0]

    assert str(best.structure) == "sin"
    assert best.left < 0.02


def test_a_decay_is_of_first_order():
    series = swings(lambda q: -1.5 * q, [[1.0], [-0.6]], order=1)

    best = _ranked(series, order=1)[0]

    assert str(best.structure) == "q"
    np.testing.assert_allclose(best.numbers, [-1.5], rtol=0.02)
