"""Trajectories made ready for a search: even steps of time, states without noise, how noisy each value is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import sympy as sp

from eqlearn.dynamics.derivatives import choose_windows, deviations, filtered, noise_level, smoother
from eqlearn.dynamics.forms import Form
from eqlearn.dynamics.resampled import Stretch, evenly
from eqlearn.dynamics.segments import Segments
from eqlearn.dynamics.selection import Model, fitted_model
from eqlearn.dynamics.settings import MotionSettings
from eqlearn.dynamics.sums import SumOfTerms
from eqlearn.dynamics.weak import WeakForm
from eqlearn.symbolic.equation import Equation
from eqlearn.symbolic.expressions import real_symbol
from eqlearn.symbolic.parametric import Formula
from eqlearn.validation.trajectories import Trajectories, velocity_names


@dataclass(frozen=True, eq=False)
class Smoothing:
    """Even series `(time, states)`, their noise's deviations, and for each state what smooths each series."""

    series: list[np.ndarray]
    sigma: list[np.ndarray]
    smoothers: list[list[np.ndarray]]

    @property
    def count(self) -> int:
        return int(self.series[0].shape[1])


@dataclass(frozen=True, eq=False)
class Prepared:
    """What a search sees of trajectories, whose states are all that the equations are of.

    `table` holds states and inputs, and what the equations should give there; `noise` is each state's, in
    units of its spread; `states` are where the `weak` forms take the equations, one form for each state, and
    `observed` the same with their noise. Equations that are `known` beforehand, by place, are not searched
    for. `even` are the states at equal steps of time, as they were observed.
    """

    trajectories: Trajectories
    form: Form
    settings: MotionSettings
    table: tuple[np.ndarray, np.ndarray]
    noise: np.ndarray
    states: np.ndarray
    observed: np.ndarray
    weak: tuple[WeakForm, ...]
    weights: tuple[np.ndarray, ...] | None = None
    known: dict[int, Equation] = field(default_factory=dict)
    even: Trajectories | None = None
    smoothing: Smoothing | None = None

    @staticmethod
    def of(trajectories: Trajectories, form: Form, settings: MotionSettings, order: int = 1) -> Prepared:
        """From trajectories of equations of that `order`."""
        if form.continuous:
            return _continuous(trajectories, form, settings, order)
        count = len(trajectories.names)
        X, y = form.table(_with_inputs(trajectories), settings)
        rows = np.unique(np.linspace(0, len(X) - 1, min(len(X), settings.max_tests)).round().astype(int))
        weak = tuple(WeakForm(np.eye(len(rows)), y[rows, k], settings.clean_rows) for k in range(count))
        return Prepared(
            trajectories, form, settings, (X, y[:, :count]), np.zeros(count), X[rows], X[rows], weak
        )

    @property
    def noisy(self) -> bool:
        """Whether the noise is more than an integrator's error."""
        return bool((self.noise > self.settings.noisy).any())

    @property
    def targets(self) -> tuple[str, ...]:
        """What each equation gives."""
        names = self.trajectories.names
        if not self.known:
            return tuple(map(self.form.label, names))
        positions = names[: len(self.known)]
        return (*map(self.form.label, positions), *(f"d²{name}/dt²" for name in positions))

    @property
    def sought(self) -> list[int]:
        """The states whose equations are not known."""
        return [k for k in range(len(self.trajectories.names)) if k not in self.known]

    def clean(self) -> Prepared:
        """The same, if what smoothing takes away is no noise but the motion."""
        silent = None if not self.known else tuple((w > 0) * 1.0 for w in self.weights or ())
        clean = np.zeros_like(self.noise)
        weak = tuple(replace(one, most_independent=self.settings.clean_rows) for one in self.weak)
        return replace(self, states=self.observed, noise=clean, weak=weak, weights=silent, smoothing=None)

    def reweighted(self, state: int, slopes: np.ndarray) -> WeakForm:
        """A state's weak form that counts noise in the states where its equation has these `slopes`
        `(rows, states)`, too."""
        noise = self.smoothing
        if noise is None:
            return self.weak[state]
        order = 2 if self.known else 1
        own = state % noise.count
        errors, row = [], 0
        for place, one in enumerate(noise.series):
            part = slopes[row : row + len(one)]
            row += len(one)
            every = [
                part[:, k, None] * noise.smoothers[k][place] * noise.sigma[place][:, k]
                for k in (own, *(k for k in range(noise.count) if k != own))
            ]
            errors.append(np.concatenate(every, axis=1))
        return WeakForm.of(
            [one[:, own] for one in noise.series], self.trajectories.dt, [s[:, own] for s in noise.sigma],
            order, self.settings, errors,
        )  # fmt: skip

    def followed(self, model: Model) -> Prepared | None:
        """The same with states as a model moves, which has far less noise than smoothed ones; none where
        the series are not as they were observed."""
        whole, places = self.trajectories, self.trajectories.long_places
        if self.smoothing is None or whole.clocks is not None or self.known or not model.fit.finite:
            return None
        motion = model.motion() * model.segments.scale
        steps, starts = whole.piece_places(motion.shape[1] - 1, len(motion))
        count, row = motion.shape[2], dict(zip(places, np.cumsum([0, *map(len, whole.long)]), strict=False))
        states = self.states.copy()
        for (series, at), piece in zip(starts, motion, strict=True):
            states[row[series] + at : row[series] + at + steps + 1, :count] = piece
        return replace(self, states=states, smoothing=None) if np.isfinite(states).all() else None

    def grown(self, model: Model, stop: Callable[[], bool]) -> Model:
        """A model of noisy motion as it is fitted to pieces twice as long, and again, while it follows them;
        they start as its own do."""
        (own, times, _), places = model.segments.values.shape, self.trajectories.piece_places
        steps, noisy = times - 1, model.fit.finite and model.error > self.settings.noisy
        while noisy and steps <= self.settings.long_steps and not stop():
            segments = self.segments(steps, self.settings.fit_segments)
            if segments.values.shape != model.segments.values.shape:
                known = dict(zip(places(times - 1, own)[1], model.fit.starts, strict=True))
                every = zip(places(steps, len(segments.values))[1], segments.values[:, 0], strict=True)
                starts = np.stack([known.get(place, value) for place, value in every])
                longer = fitted_model(model.equations, segments, starts=starts, stop=stop)
                if not longer.error <= self.settings.above_noise * model.error:
                    break
                model, (own, times, _) = longer, segments.values.shape
            steps = 2 * steps + 1
        return model

    def written(self, sums: Sequence[SumOfTerms]) -> list[Equation]:
        """Sums as equations; in noise, also with coefficients of one where they are near it."""
        found, near = [one.equation(self.trajectories.variables) for one in sums], self.settings.near_one
        if not self.noisy:
            return found
        for place, formula in enumerate(map(Formula.of, list(found))):
            ones = [sp.Integer(round(c)) if abs(abs(c) - 1) < near else c for c in formula.constants]
            found.insert(2 * place + 1, formula.with_constants(ones))
        # Lengths are near each other, and forms must not tell laws apart.
        return list(dict.fromkeys(equation.simplified() for equation in found))

    def segments(self, steps: int, most: int) -> Segments:
        """Pieces of the series of so many steps, at most so many."""
        level = self.noise if (self.noise > self.settings.noisy).all() else np.ones_like(self.noise)
        return Segments.of(
            self.trajectories, self.form.name, steps, most, settings=self.settings, weights=self.weights,
            balance=np.exp(np.log(level).mean()) / level,
        )  # fmt: skip


def _with_inputs(trajectories: Trajectories) -> Trajectories:
    if not trajectories.inputs:
        return trajectories
    both = [
        np.concatenate(pair, axis=1) for pair in zip(trajectories.series, trajectories.inputs, strict=True)
    ]
    return Trajectories.unchecked(both, trajectories.dt, trajectories.variables)


def _continuous(trajectories: Trajectories, form: Form, settings: MotionSettings, order: int) -> Prepared:
    stretches = evenly(trajectories, form.min_times, settings)
    count, dt = len(trajectories.names), trajectories.dt
    series = [stretch.states for stretch in stretches]
    noise = noise_level(series, settings) / trajectories.spread
    noisy = noise > settings.clean
    windows = choose_windows(series, settings)
    states = [np.where(noisy, s, one) for s, one in zip(filtered(series, windows, 0), series, strict=True)]
    # What is clean counts the same at all times.
    sigma = [np.where(noisy, each, 1.0) for each in deviations(series, states, settings)]
    weak = tuple(
        replace(
            WeakForm.of([one[:, k] for one in series], dt, [s[:, k] for s in sigma], order, settings),
            most_independent=None if noisy[k] else settings.clean_rows,
        )
        for k in range(count)
    )
    weights = smoothing = None
    if noisy.all() and sum(map(len, series)) <= settings.max_reweighted:
        each = [[smoother(window, len(one)) for one in series] for window in windows]
        smoothing = Smoothing(series, sigma, each)
    if noisy.any():
        mean = 1 / np.sqrt((1 / np.concatenate(sigma) ** 2).mean(axis=0))
        left = np.concatenate([(one - s) / d for one, s, d in zip(series, states, sigma, strict=True)]) * mean
        noise = np.where(noisy, np.sqrt((left**2).mean(axis=0)) / trajectories.spread, noise)
        weights = _at_observations(trajectories, stretches, [mean / d for d in sigma], 1.0)
    if order == 2:
        rates = [slopes / dt for slopes in filtered(series, windows, 1)]
        series = [np.concatenate(pair, axis=1) for pair in zip(series, rates, strict=True)]
        states = [np.concatenate(pair, axis=1) for pair in zip(states, rates, strict=True)]
        trajectories, weights, known = _second_order(trajectories, stretches, rates, weights)
        noise = np.concatenate([noise, np.zeros(count)])
    observed, columns = (
        [np.concatenate([s, one.inputs], axis=1) for s, one in zip(each, stretches, strict=True)]
        for each in (series, states)
    )
    X, y = form.table(Trajectories.unchecked(observed, dt, trajectories.variables), settings)
    prepared = Prepared(
        trajectories, form, settings, (X, y[:, : len(trajectories.names)]), noise, np.concatenate(columns),
        np.concatenate(observed), weak, weights,
        even=Trajectories.unchecked(series, dt, trajectories.names), smoothing=smoothing,
    )  # fmt: skip
    return prepared if order == 1 else replace(prepared, weak=weak + weak, known=known)


def _at_observations(
    trajectories: Trajectories, stretches: list[Stretch], values: list[np.ndarray], outside: float
) -> tuple[np.ndarray, ...]:
    """Values on the stretches, at the times of the series themselves."""
    found = [np.full((len(one), values[0].shape[1]), outside) for one in trajectories.series]
    for stretch, each in zip(stretches, values, strict=True):
        times = trajectories.times(stretch.place)
        inside = (times >= stretch.times[0]) & (times <= stretch.times[-1])
        for k, column in enumerate(each.T):
            found[stretch.place][inside, k] = np.interp(times[inside], stretch.times, column)
    return tuple(found)


def _second_order(
    trajectories: Trajectories,
    stretches: list[Stretch],
    rates: list[np.ndarray],
    weights: tuple[np.ndarray, ...] | None,
) -> tuple[Trajectories, tuple[np.ndarray, ...], dict[int, Equation]]:
    """The same motion with velocities, which were not observed and count nothing, as further states."""
    names, count = trajectories.names, len(trajectories.names)
    velocities = velocity_names(names)
    guessed = _at_observations(trajectories, stretches, rates, 0.0)
    whole = Trajectories.unchecked(
        [np.concatenate(pair, axis=1) for pair in zip(trajectories.series, guessed, strict=True)],
        trajectories.dt, (*names, *velocities),
    )  # fmt: skip
    for name in ("clocks", "inputs", "input_names"):
        whole.__dict__[name] = getattr(trajectories, name)
    counts = weights or tuple(np.ones_like(one) for one in trajectories.series)
    known = {k: Equation(real_symbol(v), whole.variables) for k, v in enumerate(velocities)}
    silent = tuple(np.concatenate([w, np.zeros((len(w), count))], axis=1) for w in counts)
    return whole, silent, known
