"""From a fitted network to a candidate: read, collapse redundant constants, snap, measure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np
import sympy as sp
import torch

from eqlearn.nn.eql import EQL
from eqlearn.numerics.budget import never
from eqlearn.numerics.criteria import (
    EXACT_ERROR,
    FLATTEST,
    MAX_SNAP_ERRORS,
    NEGLIGIBLE,
    ROWS_PER_CONSTANT,
    SNAP_ERRORS,
    description_length,
    prediction_length,
)
from eqlearn.search.candidate import Candidate, formula_costs, leave_one_out, structure_cost
from eqlearn.search.features import Features
from eqlearn.search.knowledge.demands import NO_DEMANDS, Demands
from eqlearn.search.networks.fit import Fit
from eqlearn.symbolic.brief import brief
from eqlearn.symbolic.equation import Equation
from eqlearn.symbolic.expressions import NOT_REAL, real_symbol
from eqlearn.symbolic.parametric import Constant, ConstantFit, Formula
from eqlearn.symbolic.snap import simple_number, snap_constant, snap_in_turn
from eqlearn.validation.table import Table

Whole: TypeAlias = tuple[tuple[Equation, ...], tuple[tuple[Constant, ...], ...]]  # equations, and constants


@dataclass(frozen=True)
class Finisher:
    """Turns fits into candidates, all measured on the same data."""

    features: Features
    variables: tuple[str, ...]
    training: Table
    validation: Table | None = None
    extrapolation: Table | None = None
    stop: Callable[[], bool] = never  # no more fitting and snapping from then on
    demands: Demands = NO_DEMANDS

    @cached_property
    def spreads(self) -> np.ndarray:
        """What errors of each target are divided by: its spread in training. Where that is next to nothing
        beside its values, so little of them that rounding stays below what counts as exact."""
        y = self.training.y
        smallest = FLATTEST * np.abs(y).max(axis=0)
        return np.where(smallest > 0, np.maximum(y.std(axis=0), smallest), 1.0)

    @cached_property
    def _seen(self) -> np.ndarray:
        """All rows that a formula is read for."""
        return self.training.X if self.validation is None else np.vstack([self.training.X, self.validation.X])

    def network(self, fit: Fit) -> EQL:
        """The fitted network with its output in the user's units; its inputs are the scaled ones."""
        return self.in_units_(fit.population.network(0, fit.theta))

    @torch.no_grad()
    def in_units_(self, network: EQL) -> EQL:
        """The same network, its output changed to the user's units."""
        network.readout.raw.mul_(torch.as_tensor(self.features.units)[:, None])
        return network

    def read(self, network: EQL) -> tuple[Equation, ...]:
        """The network's equations in the user's variables."""
        symbols = [real_symbol(name) for name in self.variables]
        column = network.symbolic(self.features.symbolic(symbols))
        plain = (Equation(expression, self.variables).simplified() for expression in column)
        return tuple(self._without_idle_bars(equation) for equation in plain)

    def _without_idle_bars(self, equation: Equation) -> Equation:
        """|g| as g or -g, where g has one sign on all rows of training and validation."""
        signs: dict[sp.Expr, sp.Expr] = {}
        for bars in equation.expr.atoms(sp.Abs):
            inner = bars.args[0]
            values = Equation(inner, self.variables)(self._seen)
            if (values >= 0).all() or (values <= 0).all():
                signs[bars] = inner if (values >= 0).all() else -inner
        if not signs:
            return equation
        return Equation(equation.expr.xreplace(signs), self.variables).simplified()

    def candidate(self, fit: Fit, method: str, snap: bool = True) -> Candidate | None:
        """The candidate that a fit stands for; none if its formula is not finite on the data, or if its
        constants can't be tidied.

        Snapping also drops terms that do not pay for their digits; without it, all of them stay.
        """
        network = self.network(fit)
        read = self.read(network)
        tidied = [self.tidied(equation, k, snap) for k, equation in enumerate(read)]
        if any(s is None for s in tidied):
            return None
        equations, constants = zip(*(s for s in tidied if s is not None), strict=True)
        return self.measure(equations, constants, network, method)

    def in_brief(self, candidate: Candidate) -> Candidate:
        """The candidate with its equations in the shortest forms that have the same values on all rows; as it
        is, if they fit no better or their description is longer."""
        forms = [brief(equation, self._seen, stop=self.stop) for equation in candidate.equations]
        if all(form is equation for form, equation in zip(forms, candidate.equations, strict=True)):
            return candidate
        whole = candidate.equations, candidate.constants
        for k, form in enumerate(forms):
            made = self._with(whole, k, form)
            if made is None:
                return candidate
            whole = made
        short = self.measure(*whole, candidate.network, candidate.method)
        worse = short.training_error > max(candidate.training_error, EXACT_ERROR) * 1.001
        return candidate if worse or short.description_length > candidate.description_length else short

    def pruned(self, candidate: Candidate) -> Candidate:
        """The candidate without what only fits noise: one part after the other left out, or all constants
        moved to simple numbers, as long as the description gets shorter."""
        best = candidate
        while True:
            trials = (
                self._with((best.equations, best.constants), k, form)
                for k, equation in enumerate(best.equations)
                for form in _simpler(equation, best.constants[k])
                if not self.stop()
            )
            lengths = {trial: self._description(*trial, self.training) for trial in trials if trial}
            shortest = min(lengths, key=lambda trial: lengths[trial], default=None)
            if shortest is None or not lengths[shortest] < best.description_length - 1e-6:
                break
            best = self.measure(*shortest, best.network, best.method)

        tidied = [self.tidied(equation, k, snap=True) for k, equation in enumerate(best.equations)]
        if best is candidate or any(t is None for t in tidied):
            return best
        equations, constants = zip(*(t for t in tidied if t is not None), strict=True)
        short = self.measure(equations, constants, best.network, best.method)
        return best if short.description_length > best.description_length else short

    def _with(self, whole: Whole, output: int, form: Equation) -> Whole | None:
        """Equations and their constants with another form of one of them, fitted; none if it can't be."""
        table, formula = self.training, Formula.of(form)
        fit = formula.fit(table.X, table.y[:, output], table.weight, stop=self.stop)
        if fit.loose or not math.isfinite(fit.error):
            return None
        equations, constants = list(whole[0]), list(whole[1])
        equations[output], constants[output] = formula.with_constants(list(fit.values)), fit.constants
        return tuple(equations), tuple(constants)

    def constant(self) -> Candidate:
        """The mean: what every equation has to beat, and what is left when all else fails."""
        table = self.training
        means = np.average(table.y, axis=0, weights=table.weight)
        errors = table.y.std(axis=0) / math.sqrt(table.rows)
        equations = [Equation(sp.Float(float(m), 17), self.variables) for m in means]
        constants = [(Constant(float(m), float(e)),) for m, e in zip(means, errors, strict=True)]
        return self.measure(equations, constants)

    def measure(
        self,
        equations: Sequence[Equation],
        constants: Sequence[tuple[Constant, ...]],
        network: EQL | None = None,
        method: str = "mean",
    ) -> Candidate:
        """The candidate with its errors and lengths."""
        error = self.error(equations, self.training)
        return Candidate(
            equations=tuple(equations),
            training_error=error,
            description_length=self._description(equations, constants, self.training),
            prediction_length=self._prediction(equations, self.training),
            exact=error < EXACT_ERROR,
            validation_error=self.error(equations, self.validation),
            extrapolation_error=self.error(equations, self.extrapolation),
            constants=tuple(constants),
            network=network,
            held_out_rows=0 if self.validation is None else self.validation.rows,
            method=method,
        )

    def refit(self, candidate: Candidate, table: Table, stop: Callable[[], bool] = never) -> Candidate:
        """The candidate with its constants fitted to all rows until `stop()`, and its lengths on them; its
        held-out error stays what it was, as do constants that all rows leave loose."""
        equations, constants = [], []
        for k, equation in enumerate(candidate.equations):
            formula = Formula.of(equation)
            fit = formula.fit(table.X, table.y[:, k], table.weight, stop=stop)
            if not math.isfinite(fit.error):
                return replace(candidate, description_length=math.inf, prediction_length=math.inf)
            constants.append(candidate.constants[k] if fit.loose else fit.constants)
            equations.append(equation if fit.loose else formula.with_constants(list(fit.values)))
        return replace(
            candidate,
            equations=tuple(equations),
            constants=tuple(constants),
            training_error=self.error(equations, self.training),
            extrapolation_error=self.error(equations, self.extrapolation),
            description_length=self._description(equations, constants, table),
            prediction_length=self._prediction(equations, table),
        )

    def _description(
        self, equations: Sequence[Equation], constants: Sequence[tuple[Constant, ...]], table: Table
    ) -> float:
        rows = table.rows * len(equations)
        return description_length(
            rows,
            self.error(equations, table),
            *formula_costs(equations, constants, rows, self.demands.prices),
        )

    def _prediction(self, equations: Sequence[Equation], table: Table) -> float:
        if any(table.rows < ROWS_PER_CONSTANT * len(e.constants) for e in equations):
            return math.nan
        left = [leave_one_out(e, table.X, table.y[:, k], table.weight) for k, e in enumerate(equations)]
        with np.errstate(over="ignore"):
            square = float(np.square(np.array(left) / self.spreads[:, None]).mean())
        error = math.sqrt(square) if math.isfinite(square) else math.inf
        structure = sum(structure_cost(e.expr, len(self.variables)) for e in equations)
        return prediction_length(table.rows * len(equations), error, structure)

    def error(self, equations: Sequence[Equation], table: Table | None) -> float:
        """Root-mean-square error, each target over its spread in training; NaN without data."""
        if table is None:
            return math.nan
        residual = (np.stack([e(table.X) for e in equations], axis=1) - table.y) / self.spreads
        weight = np.ones(table.rows) if table.weight is None else table.weight
        with np.errstate(all="ignore"):  # what overflows is infinitely wrong
            square = float((residual**2).mean(axis=1) @ weight / weight.sum())
        return math.sqrt(square) if math.isfinite(square) else math.inf

    def tidied(
        self, equation: Equation, output: int, snap: bool
    ) -> tuple[Equation, tuple[Constant, ...]] | None:
        """Constants fitted, redundant ones collapsed, simple ones snapped."""
        table = Table(self.training.X, self.training.y[:, output], self.training.weight)
        for _ in range(6):
            formula = Formula.of(equation)
            fit = formula.fit(table.X, table.y, table.weight, stop=self.stop)
            if not math.isfinite(fit.error):
                return None
            if not fit.loose:
                break
            equation = _collapse(formula, fit)
        else:
            return None
        if not snap:
            return formula.with_constants(list(fit.values)), fit.constants
        spread = float(self.spreads[output])
        snapped, fit = _snap(formula, fit, table, spread, self.stop)
        final = formula.with_constants(snapped).simplified()
        again = Formula.of(final)
        refit = again.fit(table.X, table.y, table.weight, stop=self.stop)
        if refit.loose or refit.error > max(fit.error, EXACT_ERROR * spread) * 1.001:
            return None
        return again.with_constants(list(refit.values)), refit.constants


def _simpler(equation: Equation, constants: Sequence[Constant]) -> Iterator[Equation]:
    """The equation without one of its terms, factors, functions or exponents, and with its constants at
    simple numbers."""
    forms: dict[sp.Expr, None] = {}
    for node in sp.preorder_traversal(equation.expr):
        if isinstance(node, sp.Add | sp.Mul):
            rest = [node.func(*(a for a in node.args if a is not arg)) for arg in node.args]
        else:
            rest = list(node.args[:1])
        forms |= dict.fromkeys(equation.expr.xreplace({node: other}) for other in rest)
    errors = (c.standard_error * MAX_SNAP_ERRORS / SNAP_ERRORS for c in constants)
    near = [simple_number(c.value, error) for c, error in zip(constants, errors, strict=True)]
    numbers = [c.value if n is None else n for c, n in zip(constants, near, strict=True)]
    forms[Formula.of(equation).filled(numbers) if any(near) else equation.expr] = None
    for form in forms:
        real = not any(n.is_number and n.is_real is False for n in sp.preorder_traversal(form))
        if form != equation.expr and form.free_symbols and real and not form.has(*NOT_REAL):
            yield Equation(form, equation.variables)


def _collapse(formula: Formula, fit: ConstantFit) -> Equation:
    """Fixes one constant that others can make up for at the simplest value near it."""
    index = fit.loose[0]
    value = float(fit.values[index])
    simple = snap_constant(value, 0.5 * abs(value)) or sp.Integer(1)
    numbers: list[sp.Expr | float] = [float(v) for v in fit.values]
    numbers[index] = simple
    return formula.with_constants(numbers).simplified()


def _snap(
    formula: Formula, fit: ConstantFit, table: Table, spread: float, stop: Callable[[], bool]
) -> tuple[list[sp.Expr | float], ConstantFit]:
    floor = EXACT_ERROR * spread

    def refit(fit: ConstantFit, start: np.ndarray, fixed: np.ndarray) -> ConstantFit:
        return formula.fit(table.X, table.y, table.weight, start=start, fixed=fixed, steps=8)

    def rise(before: ConstantFit, after: ConstantFit) -> float:
        return table.rows * (math.log(max(after.error, floor)) - math.log(max(before.error, floor)))

    def negligible(fit: ConstantFit, i: int) -> bool:
        return bool(abs(fit.values[i]) * fit.influences[i] < NEGLIGIBLE * spread)

    return snap_in_turn(fit, table.rows, refit, rise, negligible=negligible, stop=stop)
