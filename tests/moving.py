"""Series of known systems, integrated by scipy, which shares no code with the library."""

import numpy as np
from scipy.integrate import solve_ivp


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
