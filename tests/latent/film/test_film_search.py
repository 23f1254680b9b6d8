"""Laws compared by simulating them."""

import math
from dataclasses import replace

import numpy as np

from eqlearn.latent.film.contest import Compared, Contest, shortest
from eqlearn.latent.film.film_settings import FILM
from eqlearn.latent.film.journal import FilmJournal
from eqlearn.latent.film.laws import ONE, Structure
from eqlearn.latent.film.proposals import Proposal
from eqlearn.latent.film.rollout import begun
from made_tracks import pendulums

TERMS = {t.name: t for t in ONE}
FEW = replace(FILM, horizons=(0.3, 1.0), parents=(0, 0), survivors=(2, 2))


def _proposal(name, number):
    return Proposal(Structure((TERMS[name],), 1, 2), np.array([number]), np.zeros(1), 1.0, 0.0)


def test_of_a_pendulum_and_a_spring_the_pendulum_foretells(tmp_path):
    contest = Contest(ONE, pendulums(), FEW, journal=FilmJournal(tmp_path))

    found = contest.compared([_proposal("q", -10.0), _proposal("sin", -13.0)])
    again = contest.compared([_proposal("q", -10.0), _proposal("sin", -13.0)])

    best = shortest(found, FEW)
    assert str(best.motion.structure) == "sin"
    assert best.ahead < 0.01 < next(c for c in found if c is not best).error
    np.testing.assert_array_equal(shortest(again, FEW).motion.numbers, best.motion.numbers)


def test_when_time_is_up_the_best_so_far_is_left():
    seen: list[object] = []
    contest = Contest(ONE, pendulums(), FEW, lambda: bool(seen), seen.append)

    found = contest.compared([_proposal("sin", -13.0), _proposal("q", -10.0)])

    assert [str(c.motion.structure) for c in found] == ["sin"]


def test_the_shortest_law_near_the_best_is_taken():
    tracks = pendulums((1.0,))
    short, long = (
        begun(Proposal(Structure(tuple(TERMS[n] for n in names), 1, 2), np.ones(len(names)), np.zeros(1), 1.0,
                       0.0), tracks)
        for names in (("q",), ("q", "v"))
    )  # fmt: skip

    near = shortest([Compared(long, 0.010, 0.010), Compared(short, 0.012, 0.012)])
    far = shortest([Compared(long, 0.010, 0.010), Compared(short, 0.030, 0.012)])
    none = shortest([Compared(long, 0.01, math.inf), Compared(short, 0.03, math.inf)])

    assert near.motion is short
    assert far.motion is long
    assert none.motion in (short, long)
