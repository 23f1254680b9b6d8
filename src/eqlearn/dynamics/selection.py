"""The choice among equations of motion: how shortly they describe the motion itself, not its rates."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import sympy as sp

from eqlearn.dynamics.segments import Segments
from eqlearn.dynamics.shooting import ShootingFit, VectorField, enough_substeps, flow, shoot
from eqlearn.numerics.budget import never
from eqlearn.numerics.criteria import EXACT_MOTION, MOTION_TOLERANCE, SAME_CONSTANT, description_length
from eqlearn.numerics.stepwise import eliminate
from eqlearn.search.candidate import Candidate, formula_costs
from eqlearn.symbolic.equation import Equation
from eqlearn.symbolic.parametric import Constant
from eqlearn.symbolic.snap import snap_in_turn


@dataclass(frozen=True, eq=False)
class Model:
    """Equations of motion as they were fitted to segments of motion."""

    vector_field: VectorField
    fit: ShootingFit
    segments: Segments

    @cached_property
    def equations(self) -> tuple[Equation, ...]:
        """The equations with the fitted constants."""
        return self.vector_field.equations([float(c) for c in self.fit.values])

    @property
    def error(self) -> float:
        """Root mean square residual of the simulations, relative to the spread of the states."""
        return float(np.sqrt((self.fit.errors**2).mean()))

    def motion(self) -> np.ndarray:
        """Each piece as the equations move from its fitted start, `(pieces, times, states)`."""
        fit = self.fit
        substeps = enough_substeps(self.equations, self.segments, fit.errors)
        return np.asarray(flow(self.vector_field, self.segments, fit.values, fit.starts, substeps)[..., 0])

    def length(self, weight: float) -> float:
        """Nats to describe the motion given the equations, and the equations; residuals count by `weight`."""
        if not self.fit.finite:
            return math.inf
        rows = self.segments.rows
        motion = sum(weight * rows * math.log(max(float(e), MOTION_TOLERANCE)) for e in self.fit.errors)
        return motion + self.formula_length

    @cached_property
    def formula_length(self) -> float:
        """Nats to describe the equations, each constant as precisely as it is known once the others are told,
        so that none is short for making up for others. Numbers in exponents and functions are rarer."""
        costs = formula_costs(self.equations, self._constants(self.fit.errors_in_turn), self.segments.rows)
        every = [node for e in self.equations for node in e.expr.atoms(sp.Pow, sp.Function)]
        inside = sum(any(a.has(sp.Float) for a in node.args[node.is_Pow :]) for node in every)
        return description_length(0, 1.0, *costs) + inside * self.segments.settings.rarer * math.log(2)

    @property
    def weight(self) -> float:
        """How much a residual adds to the one before it: little where the misfit is systematic, but each
        piece of motion counts as at least one residual. What is left of exact values is hardly more than a
        few residuals: those of the integrators, ours and another."""
        if self.error < EXACT_MOTION:
            return min(1.0, self.segments.settings.clean_rows / self.segments.rows)
        correlation = min(max(self.fit.correlation, 0.0), 1.0)
        pieces = len(self.segments.values)
        return max((1 - correlation) / (1 + correlation), pieces / max(self.segments.rows, pieces))

    @property
    def constants(self) -> tuple[tuple[Constant, ...], ...]:
        return self._constants(self.fit.standard_errors)

    def _constants(self, errors: np.ndarray) -> tuple[tuple[Constant, ...], ...]:
        pairs = zip(self.fit.values, errors, strict=True)
        every = [Constant(float(v), float(e)) for v, e in pairs]
        return tuple(tuple(every[place]) for place in self.vector_field.places)

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
    equations: Sequence[Equation],
    segments: Segments,
    *,
    before: Model | None = None,
    starts: np.ndarray | None = None,
    iterations: int = 30,
    gain: float = 1e-9,
    stop: Callable[[], bool] = never,
) -> Model:
    """Equations with their constants fitted through the motion, until `stop()` or a step of little `gain`,
    from these `starts`, or those of `before`, if given, which is about as accurate."""
    vector_field = VectorField(equations)
    if starts is None and before is not None and before.fit.starts.shape == segments.values[:, 0].shape:
        starts = before.fit.starts
    # Coarse steps show what is far off; what comes close is integrated as finely as it deserves.
    expected = before.fit.errors if before is not None and before.fit.finite else 1.0
    substeps, values = enough_substeps(equations, segments, expected), None
    while True:
        fit = shoot(
            vector_field, segments, values, starts=starts, substeps=substeps, iterations=iterations,
            gain=gain, stop=stop,
        )  # fmt: skip
        model = Model(vector_field, fit, segments)
        tried, values, starts = substeps, fit.values, fit.starts
        if fit.finite:
            substeps = enough_substeps(model.equations, segments, fit.errors)
        if substeps <= tried or stop():
            return model


def best_together(
    fronts: Sequence[Sequence[Equation]], model: Model, stop: Callable[[], bool] = never
) -> Model:
    """The best of the states' fronts together, beginning with a `model`, without terms it does not need.

    From `stop` on no more alternatives are tried, and no more terms left out.
    """
    tried = {tuple(map(_skeleton, model.equations))}
    for _ in range(model.segments.settings.sweeps):
        before = model
        for k, front in enumerate(fronts):
            for equation in front:
                if stop() or not _may_gain(model, k, equation):
                    continue
                equations = list(map(_skeleton, model.equations))
                equations[k] = _skeleton(equation)
                if tuple(equations) not in tried:
                    tried.add(tuple(equations))
                    trial = _replaced(model, k, equation, stop)
                    model = trial if trial.beats(model) else model
        if model is before:
            break
    return without_spare_terms(model, stop)


def _may_gain(model: Model, state: int, equation: Equation) -> bool:
    """Whether another equation of a state is one, and not longer where nothing is left to mend."""
    mine = model.equations[state]
    exact = model.error < 10 * MOTION_TOLERANCE
    return _skeleton(equation) != _skeleton(mine) and not (exact and equation.complexity >= mine.complexity)


def _skeleton(equation: Equation) -> Equation:
    return equation.with_constants([0.5] * len(equation.constants))


def _replaced(model: Model, state: int, equation: Equation, stop: Callable[[], bool] = never) -> Model:
    """The model with another equation for one state, fitted anew."""
    equations = list(model.equations)
    equations[state] = equation
    before = model if model.fit.finite else None
    gain = model.segments.settings.little_gain
    return fitted_model(equations, model.segments, before=before, gain=gain, stop=stop)


def without_spare_terms(model: Model, stop: Callable[[], bool] = never) -> Model:
    """The model without the terms whose removal makes the description shorter, the least of them first."""

    def smaller(models: list[Model]) -> list[list[Model]]:
        return [
            [
                _replaced(model, k, equation, stop)
                for k in range(len(model.equations))
                for equation in _without_one_term(model, k)
                if not stop()
            ]
            for model in models
        ]

    (model,) = eliminate([model], smaller, lambda model: model.length(model.weight), beats=Model.beats)
    return model


def _without_one_term(model: Model, state: int) -> list[Equation]:
    equation = model.equations[state]
    whole = sp.expand(equation.expr)
    terms = sp.Add.make_args(whole)
    if not 1 < len(terms) <= 12:
        return []
    spare = [term for term in terms if not _plainly_needed(model, state, term)]
    return [Equation(whole - term, equation.variables).simplified() for term in spare]


def _plainly_needed(model: Model, state: int, term: sp.Expr) -> bool:
    """Whether its coefficient's standard error already tells that the motion would be missed, without the
    term, by more than the whole of the equations takes (Wald's test)."""
    number, rows = abs(float(term.as_coeff_Mul()[0])), model.segments.rows
    for constant in model.constants[state]:
        if math.isclose(abs(constant.value), number, rel_tol=SAME_CONSTANT) and constant.standard_error > 0:
            deviations = number / constant.standard_error
            largest = max(float(model.fit.errors.max()), MOTION_TOLERANCE)
            missed = math.hypot(1.0, deviations * model.error / largest / math.sqrt(rows))
            return model.weight * rows * math.log(missed) > model.formula_length
    return False


def snapped(model: Model, stop: Callable[[], bool] = never) -> Model:
    """The model with constants moved to simple numbers near them, as long as the description gets no
    longer."""
    vector_field, segments = model.vector_field, model.segments
    substeps = enough_substeps(model.equations, segments, model.fit.errors)

    def refit(fit: ShootingFit, start: np.ndarray, fixed: np.ndarray) -> ShootingFit:
        return shoot(
            vector_field, segments, start, fixed=fixed, starts=fit.starts, substeps=substeps, iterations=6,
            stop=stop,
        )  # fmt: skip

    def rise(before: ShootingFit, after: ShootingFit) -> float:
        ratios = np.maximum(after.errors, MOTION_TOLERANCE) / np.maximum(before.errors, MOTION_TOLERANCE)
        return model.weight * segments.rows * float(np.log(ratios).sum())

    rarer = segments.settings.rarer if model.error > segments.settings.noisy else 0.0
    numbers, fit = snap_in_turn(model.fit, segments.rows, refit, rise, rarer=rarer, stop=stop)
    final = [equation.simplified() for equation in vector_field.equations(numbers)]
    return fitted_model(final, segments, before=Model(vector_field, fit, segments), stop=stop)
