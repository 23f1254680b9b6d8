"""Fields with known equations, made quickly: sums of exact solutions, or spectral steps on small grids."""

import numpy as np
from scipy.integrate import solve_ivp

X = np.linspace(0, 20, 96, endpoint=False)
T = np.linspace(0, 4, 81)
WAVE = 2j * np.pi * np.fft.fftfreq(96, 20 / 96)


def d(u, order=1):
    return np.fft.ifft(WAVE**order * np.fft.fft(u)).real


def start(seed=0, modes=4, size=1.0):
    generator = np.random.default_rng(seed)
    k = 2 * np.pi * np.arange(1, modes + 1)[:, None] / 20
    u = (generator.normal(size=(modes, 1)) * np.sin(k * X + generator.uniform(0, 7, (modes, 1)))).sum(0)
    return size * u / u.std()


def solved(rate, *starts, times=T):
    """Fields `(fields, x, t)` of a periodic line."""
    shape = (len(starts), len(X))
    answer = solve_ivp(
        lambda t, y: np.stack(rate(*y.reshape(shape))).ravel(), (times[0], times[-1]),
        np.stack(starts).ravel(), t_eval=times, method="LSODA", rtol=1e-8, atol=1e-9,
    )  # fmt: skip
    return answer.y.reshape(*shape, len(times))


def with_noise(u, level, seed=0):
    return u + level * u.std() * np.random.default_rng(seed).normal(size=u.shape)


def burgers():
    return solved(lambda u: [-u * d(u) + 0.3 * d(u, 2)], start())[0]
