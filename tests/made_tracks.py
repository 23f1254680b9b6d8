"""Coordinates of motions whose law is known, as if they had been read off films."""

import numpy as np
from scipy.integrate import solve_ivp

from eqlearn.latent.film.rollout import Tracks

DT = 1 / 30


def swings(acceleration, starts, frames=60, order=2):
    """One series of places `(frames, 1)` from each start."""
    times = DT * np.arange(frames)

    def rate(t, s):
        return [s[1], acceleration(*s)] if order == 2 else [acceleration(s[0])]

    return [solve_ivp(rate, (0, times[-1]), s, t_eval=times, rtol=1e-9, atol=1e-9).y[:1].T for s in starts]


def pendulums(amplitudes=(0.7, 1.5, 2.3), k=14.0, unit=1.25, bend=0.0):
    """Tracks of pendulums in another unit and with another zero, perhaps bent."""
    series = swings(lambda q, v: -k * np.sin(q), [[a, 0.3] for a in amplitudes])
    return Tracks.of([0.1 + one / unit + bend * one**2 for one in series], DT)
