"""Series of known systems, integrated by scipy, which shares no code with the library."""

import numpy as np
from scipy.integrate import solve_ivp

from eqlearn.latent.motion.system import Pairs
from eqlearn.latent.settings import LatentSettings
from eqlearn.validation.trajectories import Trajectories

# Enough for a law of few terms.
QUICK = LatentSettings(
    warm_steps=200, starts=1, max_starts=1, structures=60, kept=18, screened=100, compared=500,
    serving_starts=3, growth=0,
)  # fmt: skip


def lorenz(t, s):
    x, y, z = s
    return [10 * (y - x), x * (28 - z) - y, x * y - 8 / 3 * z]


def lotka_volterra(t, s):
    u, v = s
    return [1.1 * u - 0.4 * u * v, 0.1 * u * v - 0.4 * v]


def damped(t, s):
    x, v = s
    return [v, -2 * x - 0.3 * v]


def series_of(system, starts, end, dt, noise=0.0, seed=0):
    """One array `(time, states)` for each start; `noise` is relative to each state's spread."""
    times = np.arange(0, end + dt / 2, dt)
    clean = [
        solve_ivp(system, (0, times[-1]), start, t_eval=times, rtol=1e-10, atol=1e-12, method="DOP853").y.T
        for start in starts
    ]
    spread, rng = np.concatenate(clean).std(axis=0), np.random.default_rng(seed)
    return [one + noise * spread * rng.normal(size=one.shape) for one in clean]


def hidden_pairs(
    rates, starts, parameter, names, dt=0.1, observed=40, steps=20, series=60, noise=0.0, seed=0
):
    """Pairs of series of a system `rates(t, s, p)`; each pair has a p within `parameter`, each series a start
    within `starts`, a range for each state."""
    rng = np.random.default_rng(seed)
    p = rng.uniform(*parameter, size=series)

    def drawn(times):
        first = [[rng.uniform(*r) for r in starts] for _ in p]
        states = np.stack(
            [
                series_of(lambda t, s, p=one: rates(t, s, p), [start], (times - 1) * dt, dt)[0]
                for one, start in zip(p, first, strict=True)
            ]
        )
        states += noise * states.std(axis=(0, 1)) * rng.normal(size=states.shape)
        return Trajectories(states, dt, names, p)

    return Pairs(drawn(observed), drawn(steps + 1))
