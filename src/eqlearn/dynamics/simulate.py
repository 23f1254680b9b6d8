"""Motion simulated from equations, with steps of time as fine as the noise asks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from eqlearn.dynamics.integrate import advance
from eqlearn.dynamics.shooting import Segments
from eqlearn.numerics.criteria import MOTION_TOLERANCE
from eqlearn.symbolic.equation import Equation

MOST_SUBSTEPS = 32


def simulate(
    equations: Sequence[Equation],
    start: np.ndarray,
    steps: int,
    dt: float,
    form: str,
    *,
    latents: np.ndarray | None = None,
    substeps: int = 4,
) -> np.ndarray:
    """The motion from starts `(pieces, states)`, as `(pieces, steps + 1, states)`; NaN from where it leaves
    the range of float64 on. `latents` `(pieces, latents)` are inputs of the equations that stay as they are.
    """
    given = np.empty((len(start), 0)) if latents is None else latents

    def rate(state: np.ndarray) -> np.ndarray:
        inputs = np.concatenate([state, given], axis=1)
        return np.stack([equation(inputs) for equation in equations], axis=1)

    motion = [np.asarray(start, dtype=np.float64)]
    with np.errstate(all="ignore"):
        for _ in range(steps):
            motion.append(advance(rate, motion[-1], dt, form, substeps))
    values = np.stack(motion, axis=1)
    values[~np.isfinite(values).all(axis=2)] = np.nan
    return values


def enough_substeps(equations: Sequence[Equation], segments: Segments, noise: float) -> int:
    """How often a step must be divided for a simulation's own error to vanish behind the noise; not at all
    if it diverges however fine the steps are."""
    if segments.form == "map":
        return 1
    some = segments.values[:: max(1, len(segments.values) // 8)]
    start, steps = some[:, 0] * segments.scale, some.shape[1] - 1
    substeps = 1
    coarse = simulate(equations, start, steps, segments.dt, "ode", substeps=substeps)
    while substeps < MOST_SUBSTEPS:
        fine = simulate(equations, start, steps, segments.dt, "ode", substeps=2 * substeps)
        with np.errstate(all="ignore"):
            gaps = np.abs(fine - coarse) / segments.scale
        if np.isfinite(gaps).all() and gaps.max(initial=0.0) <= max(MOTION_TOLERANCE, 0.02 * noise):
            break
        substeps, coarse = 2 * substeps, fine
    return substeps if np.isfinite(coarse).all() else 1
