"""The choice among equations of motion: how shortly they describe the motion itself, not its rates."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import sympy as sp

from eqlearn.core.equation import Equation
from eqlearn.discovery.least_squares import never
from eqlearn.discovery.select import Candidate, Constant, description_length, formula_costs
from eqlearn.discovery.snap import snap_in_turn
from eqlearn.systems.shooting import TOLERANCE, Flow, Shot, Stretches, shoot
from eqlearn.systems.simulation import enough_substeps

# Sweeps over all states in which each tries its alternatives.
SWEEPS = 3
# Simulations that reach the observed values so closely are right to rounding and the integrator's error.
EXACT_MOTION = 10 * TOLERANCE


@dataclass(frozen=True, eq=False)
class Model:
    """Equations of motion as they were fitted to stretches of motion."""

    flow: Flow
    shot: Shot
    stretches: Stretches

    @cached_property
    def equations(self) -> tuple[Equation, ...]:
        """The equations with the fitted constants."""
        return self.flow.equations([float(c) for c in self.shot.values])

    @property
    def error(self) -> float:
        """Root mean square of what the simulations leave over, relative to the spread of the states."""
        return float(np.sqrt((self.shot.errors**2).mean()))

    def length(self, weight: float) -> float:
        """Nats to tell the motion given the equations, and the equations; residuals count with `weight`."""
        if not self.shot.finite:
            return math.inf
        rows = self.stretches.rows
        told = sum(weight * rows * math.log(max(float(e), TOLERANCE)) for e in self.shot.errors)
        return told + description_length(0, 1.0, *formula_costs(self.equations, self.constants, rows))

    @property
    def weight(self) -> float:
        """How much a residual tells that the one before it did not: little where the misfit is systematic,
        but each piece of motion tells as much as one residual. Rounding adds up along a motion and is no
        misfit."""
        if self.error < EXACT_MOTION:
            return 1.0
        correlation = min(max(self.shot.correlation, 0.0), 1.0)
        pieces = len(self.stretches.values)
        return max((1 - correlation) / (1 + correlation), pieces / max(self.stretches.rows, pieces))

    @property
    def constants(self) -> tuple[tuple[Constant, ...], ...]:
        pairs = zip(self.shot.values, self.shot.standard_errors, strict=True)
        every = [Constant(float(v), float(e)) for v, e in pairs]
        return tuple(tuple(every[place]) for place in self.flow.places)

    def candidate(self) -> Candidate:
        """The equations as a candidate, their constants filled in."""
        return Candidate(
            equations=self.equations, training_error=self.error, description_length=self.length(self.weight),
            exact=self.error < EXACT_MOTION, constants=self.constants,
        )  # fmt: skip

    def beats(self, other: Model) -> bool:
        """Whether this is the shorter description; the more accurate one says how much residuals count."""
        weight = min(self, other, key=lambda model: model.error).weight
        return self.length(weight) < other.length(weight)


def fitted_model(
    equations: Sequence[Equation], stretches: Stretches, *, before: Model | None = None, iterations: int = 8
) -> Model:
    """Equations with their constants fitted through the motion; `before` lends its pieces' starts."""
    flow = Flow(equations)
    same = before is not None and before.shot.starts.shape == stretches.values[:, 0].shape
    starts = before.shot.starts if before is not None and same else None
    # Coarse steps show what is far off; what comes close is integrated as finely as it deserves.
    substeps = enough_substeps(equations, stretches, 1.0)
    shot = shoot(flow, stretches, starts=starts, substeps=substeps, iterations=iterations)
    while shot.finite:
        model = Model(flow, shot, stretches)
        finer = enough_substeps(model.equations, stretches, float(shot.errors.min()))
        if finer <= substeps:
            break
        substeps = finer
        shot = shoot(
            flow, stretches, shot.values, starts=shot.starts, substeps=substeps, iterations=iterations
        )
    return Model(flow, shot, stretches)


def best_together(
    fronts: Sequence[Sequence[Equation]],
    first: Sequence[Equation],
    stretches: Stretches,
    stop: Callable[[], bool] = never,
) -> Model:
    """The best of the states' fronts together, beginning with the `first`, without terms it does not need.

    From `stop` on no more alternatives are tried, and no more terms left out.
    """
    model = fitted_model(first, stretches)
    for _ in range(SWEEPS):
        before = model
        for k, front in enumerate(fronts):
            for equation in front:
                if not stop() and _may_gain(model, k, equation):
                    model = _better(model, k, equation)
        if model is before:
            break
    return without_spare_terms(model, stop)


def _may_gain(model: Model, state: int, equation: Equation) -> bool:
    """Whether another equation of a state is one, and not longer where all simulations are exact already."""
    mine = model.equations[state]
    exact = bool((model.shot.errors <= TOLERANCE).all())
    return _skeleton(equation) != _skeleton(mine) and not (exact and equation.complexity >= mine.complexity)


def _skeleton(equation: Equation) -> Equation:
    return equation.with_constants([0.5] * len(equation.constants))


def _better(model: Model, state: int, equation: Equation) -> Model:
    equations = list(model.equations)
    equations[state] = equation
    trial = fitted_model(equations, model.stretches, before=model if model.shot.finite else None)
    return trial if trial.beats(model) else model


def without_spare_terms(model: Model, stop: Callable[[], bool] = never) -> Model:
    """The model without the terms whose removal makes the description shorter, the least of them first."""
    while True:
        shorter = [(k, e) for k, whole in enumerate(model.equations) for e in _without_one_term(whole)]
        trials = [_better(model, k, equation) for k, equation in shorter if not stop()]
        trials = [trial for trial in trials if trial is not model]
        if not trials:
            return model
        model = min(trials, key=lambda trial: trial.length(trial.weight))


def _without_one_term(equation: Equation) -> list[Equation]:
    whole = sp.expand(equation.expr)
    terms = sp.Add.make_args(whole)
    if not 1 < len(terms) <= 12:
        return []
    return [Equation(whole - term, equation.variables).simplified() for term in terms]


def snapped(model: Model) -> Model:
    """The model with constants moved to simple numbers near them, as long as the description gets no
    longer."""
    flow, stretches = model.flow, model.stretches
    substeps = enough_substeps(model.equations, stretches, float(model.shot.errors.min()))

    def refit(shot: Shot, start: np.ndarray, fixed: np.ndarray) -> Shot:
        return shoot(flow, stretches, start, fixed=fixed, starts=shot.starts, substeps=substeps, iterations=6)

    def rise(before: Shot, after: Shot) -> float:
        ratios = np.maximum(after.errors, TOLERANCE) / np.maximum(before.errors, TOLERANCE)
        return model.weight * stretches.rows * float(np.log(ratios).sum())

    numbers, shot = snap_in_turn(model.shot, stretches.rows, refit, rise)
    final = [equation.simplified() for equation in flow.equations(numbers)]
    return fitted_model(final, stretches, before=Model(flow, shot, stretches))
