"""Segments: pieces of observed series, all of one length, as the data of a least-squares problem."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.interpolate import make_interp_spline

from eqlearn.dynamics.settings import MOTION, MotionSettings
from eqlearn.validation.trajectories import Trajectories


@dataclass(frozen=True, eq=False)
class Segments:
    """Pieces of series, all of one length, `(pieces, times, states)`, in units of each state's spread.

    They are the data of a least-squares problem rather than `Trajectories`: scaled, and of equations of one
    `form`. `gaps` `(pieces, times - 1)` are the steps of time where not all of them are `dt`, and `weights`,
    like the values, say how much each value counts: nothing if it was not observed, and the less the noisier
    it is; `balance` says so of states as wholes. `drive(times)` gives the inputs `(pieces, inputs)` at times
    `(pieces,)` since each piece's start.
    """

    values: np.ndarray
    scale: np.ndarray
    dt: float
    form: str
    settings: MotionSettings = MOTION
    gaps: np.ndarray | None = None
    weights: np.ndarray | None = None
    drive: Callable[[np.ndarray], np.ndarray] | None = field(default=None, repr=False)
    balance: np.ndarray | float = 1.0

    @staticmethod
    def of(
        trajectories: Trajectories, form: str, steps: int, most: int, scale: np.ndarray | None = None,
        settings: MotionSettings = MOTION, weights: Sequence[np.ndarray] | None = None,
        balance: np.ndarray | float = 1.0,
    ) -> Segments:  # fmt: skip
        """From the trajectories' pieces; the `scale` is their own spread by default, and each series'
        `weights` are one wherever it was observed."""
        scale = trajectories.spread if scale is None else scale
        steps, places = trajectories.piece_places(steps, most)
        cuts = [slice(at, at + steps + 1) for _, at in places]
        values = np.stack([trajectories.series[i][cut] for (i, _), cut in zip(places, cuts, strict=True)])
        counts = None
        if weights is not None:
            counts = np.stack([weights[i][cut] for (i, _), cut in zip(places, cuts, strict=True)])
        seen = np.isfinite(values)
        if not seen.all():
            counts = np.where(seen, 1.0 if counts is None else counts, 0.0)
            values = np.stack([_filled(piece) for piece in values])
        gaps = None
        if trajectories.clocks is not None:
            clocks = [trajectories.clocks[i][cut] for (i, _), cut in zip(places, cuts, strict=True)]
            gaps = np.diff(np.stack(clocks), axis=1)
            gaps = None if np.allclose(gaps, trajectories.dt, rtol=1e-9) else gaps
        drive = _drive(trajectories, places) if trajectories.inputs else None
        return Segments(values / scale, scale, trajectories.dt, form, settings, gaps, counts, drive, balance)

    def part(self, places: np.ndarray) -> Segments:
        """The pieces at these places."""
        drive = self.drive
        if drive is not None:
            whole, every = drive, len(self.values)

            def drive(times: np.ndarray) -> np.ndarray:
                padded = np.zeros(every)
                padded[places] = times
                return np.asarray(whole(padded)[places])

        return replace(
            self, values=self.values[places], drive=drive,
            gaps=None if self.gaps is None else self.gaps[places],
            weights=None if self.weights is None else self.weights[places],
        )  # fmt: skip

    def cut(self, steps: int) -> Segments:
        """The pieces in parts of at most so many steps, each from where the one before ends; steps that are
        left over at a piece's end are left out."""
        pieces, times, count = self.values.shape
        steps = min(steps, times - 1)
        firsts = np.arange(0, times - steps, steps)
        places = firsts[:, None] + np.arange(steps + 1)
        whole, drive, befores = self.drive, None, [self.times(0, int(at)) for at in firsts]
        if whole is not None:

            def drive(times: np.ndarray) -> np.ndarray:
                each = times.reshape(pieces, len(firsts))
                some = [whole(before + each[:, k]) for k, before in enumerate(befores)]
                return np.stack(some, axis=1).reshape(len(times), -1)

        return replace(
            self, values=self.values[:, places].reshape(-1, steps + 1, count), weights=None, drive=drive,
            gaps=None if self.gaps is None else self.gaps[:, places[:, :-1]].reshape(-1, steps),
        )  # fmt: skip

    @property
    def seen(self) -> np.ndarray:
        """Which states were observed at all, `(states,)`."""
        if self.weights is None:
            return np.ones(self.values.shape[2], dtype=bool)
        return np.asarray((self.weights > 0).any(axis=(0, 1)))

    @property
    def rows(self) -> int:
        """How many values of each state test the equations: all but those that the free starts use up."""
        pieces, times, states = self.values.shape
        if self.weights is None:
            return int(pieces * (times - 1))
        observed = int((self.weights > 0).sum())
        return int(max(1, (observed - pieces * states) // max(1, int(self.seen.sum()))))

    def times(self, first: int, last: int) -> np.ndarray | float:
        """The time from one place of each piece to another: `(pieces,)`, or one number for all."""
        return self.dt * (last - first) if self.gaps is None else self.gaps[:, first:last].sum(axis=1)


def _filled(piece: np.ndarray) -> np.ndarray:
    """A piece `(times, states)` with straight lines where values are missing."""
    filled = piece.copy()
    for column in filled.T:
        known = np.flatnonzero(np.isfinite(column))
        column[:] = np.interp(np.arange(len(column)), known, column[known]) if len(known) else 0.0
    return filled


def interpolated(times: np.ndarray, values: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """Inputs `(time, inputs)` as a function of time: cubic splines where these predict every other value
    better than straight lines do, which serve inputs that jump."""
    odd, even = slice(1, len(times) - 1, 2), slice(0, None, 2)
    if len(times) >= 9:
        lines = np.stack([np.interp(times[odd], times[even], column[even]) for column in values.T], axis=1)
        smooth = make_interp_spline(times[even], values[even], k=3)(times[odd])
        if ((smooth - values[odd]) ** 2).sum() <= ((lines - values[odd]) ** 2).sum():
            return make_interp_spline(times, values, k=3)  # type: ignore[no-any-return]
    return make_interp_spline(times, values, k=1)  # type: ignore[no-any-return]


def _drive(
    trajectories: Trajectories, places: Sequence[tuple[int, int]]
) -> Callable[[np.ndarray], np.ndarray]:
    of_series = {i: interpolated(trajectories.times(i), trajectories.inputs[i]) for i, _ in places}
    starts = np.array([trajectories.times(i)[at] for i, at in places])
    members = [(curve, np.array([i == j for i, _ in places])) for j, curve in of_series.items()]

    def inputs(times: np.ndarray) -> np.ndarray:
        found = np.empty((len(starts), len(trajectories.input_names)))
        for curve, mine in members:
            found[mine] = curve(starts[mine] + times[mine])
        return found

    return inputs
