"""Series as they were observed, at any times and with values missing, on even steps of time."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from scipy.interpolate import make_interp_spline

from eqlearn.dynamics.segments import interpolated
from eqlearn.dynamics.settings import MotionSettings
from eqlearn.errors import InvalidArgument
from eqlearn.validation.trajectories import Trajectories


@dataclass(frozen=True, eq=False)
class Stretch:
    """Part of the series of that place, at even times: states, and inputs beside them."""

    place: int
    times: np.ndarray
    states: np.ndarray
    inputs: np.ndarray


def evenly(trajectories: Trajectories, fewest: int, settings: MotionSettings) -> list[Stretch]:
    """The long series at even steps of time: as they are where steps are even and nothing is missing, else
    interpolated, in stretches of at least `fewest` times between which there are long gaps."""
    found = []
    for place in trajectories.long_places:
        one, times = trajectories.series[place], trajectories.times(place)
        inputs = trajectories.inputs[place] if trajectories.inputs else np.empty((len(one), 0))
        if np.isfinite(one).all() and np.allclose(np.diff(times), trajectories.dt, rtol=1e-6):
            found.append(Stretch(place, times, one, inputs))
            continue
        for low, high in _stretches(times, one, settings.max_gap * trajectories.dt):
            even = np.arange(low, high + 1e-9 * trajectories.dt, trajectories.dt)
            states = [_at(even, times, column, settings) for column in one.T]
            known = interpolated(times, inputs)(even) if inputs.shape[1] else np.empty((len(even), 0))
            found.append(Stretch(place, even, np.stack(states, axis=1), known))
    found = [stretch for stretch in found if len(stretch.times) >= fewest]
    if not found:
        raise InvalidArgument(
            f"no stretch of `series` has {fewest} times without a long gap, so there is no rate of change; "
            "give longer series, or more of their values"
        )
    half = float(np.median([len(stretch.times) for stretch in found])) / 2
    return [stretch for stretch in found if len(stretch.times) >= half]


def _stretches(times: np.ndarray, one: np.ndarray, longest: float) -> list[tuple[float, float]]:
    """From when to when every state was observed, without a gap longer than this."""
    breaks: list[tuple[float, float]] = []
    for column in one.T:
        seen = times[np.isfinite(column)]
        if not len(seen):
            return []
        breaks += [(-np.inf, seen[0]), (seen[-1], np.inf)]
        breaks += [(a, b) for a, b in itertools.pairwise(seen) if b - a > longest]
    found, start = [], -np.inf
    for low, high in sorted(breaks):
        if start > -np.inf and low > start:
            found.append((float(start), float(low)))
        start = max(start, high)
    return found


def _at(even: np.ndarray, times: np.ndarray, column: np.ndarray, settings: MotionSettings) -> np.ndarray:
    """One state at other times: by a spline of degree five through exact values, by straight lines through
    noisy ones, which a spline would amplify."""
    seen = np.isfinite(column)
    t, x = times[seen], column[seen]
    if len(t) >= 14:
        odd, few = slice(1, len(t) - 1, 2), slice(0, None, 2)
        off = make_interp_spline(t[few], x[few], k=5)(t[odd]) - x[odd]
        if np.sqrt((off**2).mean()) < settings.exact_spline * x.std():
            return np.asarray(make_interp_spline(t, x, k=5)(even))
    return np.asarray(np.interp(even, t, x))
