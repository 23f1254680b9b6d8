"""A template: a law whose form is known but for some parts, which are searched for in turn.

At first every part is a polynomial in its columns, and all are fitted together. Then each is searched for in
its working response: the values it would need for the whole to be right to first order, given the others
(local scoring, Hastie & Tibshirani 1986; for sums this is backfitting), each row weighed by the slope of the
whole. A formula that is found takes the polynomial's place, and all parts are fitted anew.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations_with_replacement, islice, product
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from eqlearn.errors import InvalidArgument
from eqlearn.functions import NUMPY
from eqlearn.numerics.budget import never
from eqlearn.numerics.criteria import EXACT_ERROR, description_length
from eqlearn.numerics.least_squares import Rule, SquareRoot, levenberg_marquardt
from eqlearn.search.knowledge.unknowns import Part, Written
from eqlearn.symbolic.equation import Equation
from eqlearn.symbolic.expressions import fitted
from eqlearn.symbolic.parametric import Formula
from eqlearn.validation.table import Table


@dataclass(frozen=True)
class TemplateSettings:
    """How parts are searched for: polynomials of at most `max_degree` with `rows_per_term` rows for each of
    their terms, from constants `starts` in units of the target (and plain ones); `rounds` through all parts;
    of each front the best `kept` are tried together with the others', at most `max_combinations`."""

    max_degree: int = 6
    rows_per_term: int = 6
    starts: tuple[float, ...] = (1.0, 0.3)
    max_starts: int = 12
    steps: int = 60
    rounds: int = 2
    kept: int = 3
    max_combinations: int = 12
    min_slope: float = 1e-6  # relative to the largest: rows that say less of a part say nothing
    symbols: int = 8  # of an alphabet, for lengths of formulas


TEMPLATE = TemplateSettings()


@dataclass(frozen=True, eq=False)
class Polynomial:
    """A part as a polynomial: orthogonal terms `(rows, terms)`, of which the first is constant."""

    terms: np.ndarray
    start: np.ndarray

    @classmethod
    def of(cls, X: np.ndarray, settings: TemplateSettings, constant: float) -> Polynomial:
        rows, columns = X.shape
        scale = np.ptp(X, axis=0) if rows else np.ones(columns)
        z = (X - X.mean(axis=0)) / np.where(scale > 0, scale, 1.0)
        each = [np.ones(rows)]
        for degree in range(1, settings.max_degree + 1):
            more = [
                np.prod(z[:, list(c)], axis=1) for c in combinations_with_replacement(range(columns), degree)
            ]
            if not more or (len(each) + len(more)) * settings.rows_per_term > rows:
                break
            each += more
        basis = np.linalg.qr(np.stack(each, axis=1))[0] * math.sqrt(rows)
        basis *= np.sign(basis[0, 0])
        return cls(basis, np.eye(len(each))[0] * constant)

    def linearise(self, constants: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.terms @ constants, self.terms


@dataclass(frozen=True, eq=False)
class Found:
    """A part as a formula in its columns."""

    equation: Equation
    X: np.ndarray

    @property
    def start(self) -> np.ndarray:
        return self.formula.constants

    @cached_property
    def formula(self) -> Formula:
        return Formula.of(self.equation)

    @cached_property
    def columns(self) -> Tensor:
        return torch.tensor(np.ascontiguousarray(self.X.T))

    def linearise(self, constants: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.formula.linearise(self.columns, constants)


# What a part is for now: both have constants to `start` from, and give values `(rows,)` and slopes by them.
Model: TypeAlias = Polynomial | Found


@dataclass(frozen=True, eq=False)
class Together:
    """The parts fitted together: what each is with its constants, and the root mean square error."""

    models: dict[Part, Model]
    constants: dict[Part, np.ndarray]
    error: float

    def values(self, part: Part) -> np.ndarray:
        return self.models[part].linearise(self.constants[part])[0]


@dataclass(frozen=True, eq=False)
class Template:
    """A law with unknown parts, and the rows to find them in; `search` is one for a table with names, that
    gives the equations of its front with the best first."""

    written: Written
    table: Table
    columns: tuple[str, ...]
    search: Callable[[Table, Sequence[str]], list[Equation]]
    settings: TemplateSettings = TEMPLATE
    stop: Callable[[], bool] = never

    @cached_property
    def whole(self) -> Formula:
        """The law as a function of columns and parts; numbers in it stay as they are for now."""
        names = tuple(part.symbol.name for part in self.written.parts)
        return Formula(self.written.expr, (*self.columns, *names))

    def inputs(self, part: Part) -> np.ndarray:
        return self.table.X[:, [self.columns.index(name) for name in part.columns]]

    def linearise(self, values: Mapping[Part, np.ndarray]) -> tuple[np.ndarray, list[np.ndarray]]:
        """The whole `(rows,)`, and its slopes by each part."""
        own = [np.broadcast_to(c, self.table.rows) for c in self.whole.constants]
        given = [*self.table.X.T, *(values[p] for p in self.written.parts), *own]
        value, slopes = self.whole.differentiated
        places = range(len(self.columns), len(self.columns) + len(self.written.parts))
        with np.errstate(all="ignore"):
            every = [value, *(slopes.get(k) for k in places)]
            run = [0.0 if tape is None else tape.run(NUMPY, given, (), np.float64) for tape in every]
        first, *rest = (np.array(np.broadcast_to(each, self.table.rows), dtype=float) for each in run)
        return first, rest

    def together(self, models: dict[Part, Model]) -> Together:
        """All parts fitted together."""
        counts = [len(models[part].start) for part in self.written.parts]
        places = np.split(np.arange(sum(counts)), np.cumsum(counts)[:-1])
        weight = self.table.weight
        root = np.ones(self.table.rows) if weight is None else np.sqrt(weight / weight.mean())

        def linearise(point: Tensor) -> SquareRoot:
            numbers = point[0].numpy()
            each = {
                p: models[p].linearise(numbers[at]) for p, at in zip(self.written.parts, places, strict=True)
            }
            whole, slopes = self.linearise({p: v for p, (v, _) in each.items()})
            inner = [each[p][1] * s[:, None] for p, s in zip(self.written.parts, slopes, strict=True)]
            jacobian = np.nan_to_num(np.hstack(inner), nan=0.0, posinf=0.0, neginf=0.0) * root[:, None]
            return SquareRoot(((whole - self.table.y[:, 0]) * root)[None], lambda: (jacobian[None], None))

        start = np.concatenate([models[part].start for part in self.written.parts])
        point, system = levenberg_marquardt(
            linearise, torch.tensor(start)[None], Rule(self.settings.steps), stop=self.stop
        )
        numbers = point[0].numpy()
        constants = {p: numbers[at] for p, at in zip(self.written.parts, places, strict=True)}
        return Together(models, constants, math.sqrt(float(system.loss)))

    def begun(self) -> Together:
        """All parts as polynomials; the best of several starts."""
        size = float(np.abs(self.table.y).mean()) or 1.0
        parts, levels = self.written.parts, sorted({*self.settings.starts, size, -size})
        starts = islice(
            product(levels, repeat=len(parts)),
            0,
            None,
            max(1, len(levels) ** len(parts) // self.settings.max_starts),
        )
        tried = [
            self.together(
                {p: Polynomial.of(self.inputs(p), self.settings, c) for p, c in zip(parts, s, strict=True)}
            )
            for s in starts
        ]
        best = min(tried, key=lambda t: t.error)
        if not math.isfinite(best.error):
            raise InvalidArgument(
                f"the `template` {self.written.expr} has no values like the target's, whatever its parts"
            )
        return best

    def response(self, part: Part, state: Together) -> Table:
        """What the part would have to be, row by row, given the others, and how much each row says of it."""
        values = {p: state.values(p) for p in self.written.parts}
        whole, slopes = self.linearise(values)
        slope = slopes[self.written.parts.index(part)]
        with np.errstate(all="ignore"):
            wanted = values[part] + (self.table.y[:, 0] - whole) / slope
            weight = slope**2 * (1.0 if self.table.weight is None else self.table.weight)
        usable = np.isfinite(wanted) & np.isfinite(weight)
        usable &= np.abs(slope) > self.settings.min_slope * np.nanmax(np.abs(slope))
        if usable.sum() < 2:
            raise InvalidArgument(f"the data say nothing of the part {part.symbol.name} of the `template`")
        weight = weight[usable] / weight[usable].mean()
        plain = np.ptp(weight) <= 1e-12  # then the search is one without weights
        return Table(self.inputs(part)[usable], wanted[usable, None], None if plain else weight)

    def solved(self) -> Iterator[Equation]:
        """The law with formulas in the place of its parts, those that fit best first in every round."""
        state = self.begun()
        fronts: dict[Part, list[Equation]] = {}
        for _ in range(self.settings.rounds):
            for part in self.written.functions:
                if self.stop() and len(fronts) == len(self.written.functions):
                    return
                fronts[part] = self.search(self.response(part, state), part.columns)[: self.settings.kept]
                state = min((self._with(state, part, e) for e in fronts[part]), key=self._length)
            yield self.filled(state)
            exact = state.error <= EXACT_ERROR * (float(self.table.y.std()) or 1.0)
            for chosen in islice(product(*fronts.values()), self.settings.max_combinations):
                formulas = {p: Found(e, self.inputs(p)) for p, e in zip(fronts, chosen, strict=True)}
                yield self.filled(self.together({**_as_fitted(state), **formulas}))
            if exact:
                return

    def _with(self, state: Together, part: Part, equation: Equation) -> Together:
        """The parts fitted together with a formula for one of them, the others from where they are."""
        return self.together({**_as_fitted(state), part: Found(equation, self.inputs(part))})

    def _length(self, state: Together) -> float:
        formulas = [m.equation for m in state.models.values() if isinstance(m, Found)]
        rows, error = self.table.rows, state.error / (float(self.table.y.std()) or 1.0)
        numbers = 0.5 * math.log(rows) * sum(len(m.start) for m in state.models.values())
        nodes = sum(equation.complexity for equation in formulas)
        return description_length(rows, error, numbers, nodes, self.settings.symbols)

    def filled(self, state: Together) -> Equation:
        """The law with every part as it is in a state in which all are formulas, and constants as numbers."""
        places: dict[Any, Any] = {}
        for part in self.written.parts:
            model, numbers = state.models[part], state.constants[part]
            if isinstance(model, Found):
                places[part.symbol] = model.formula.filled(numbers)
            else:  # the constant term of a part without columns
                places[part.symbol] = fitted(float(numbers[0]))
        return Equation(self.written.expr.xreplace(places), self.columns)


def _as_fitted(state: Together) -> dict[Part, Model]:
    """What the parts are, to start from the constants they have now."""
    models: dict[Part, Model] = {}
    for part, model in state.models.items():
        numbers = state.constants[part]
        if isinstance(model, Found):
            models[part] = Found(model.formula.with_constants(list(numbers)), model.X)
        elif isinstance(model, Polynomial):
            models[part] = Polynomial(model.terms, numbers)
    return models
