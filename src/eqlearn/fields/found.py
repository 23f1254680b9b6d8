"""What a search for partial differential equations led to."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from eqlearn.errors import InvalidArgument, NotFinite
from eqlearn.fields.hidden import Hidden, simple_or_fitted
from eqlearn.fields.settings import FIELDS, FieldSettings
from eqlearn.fields.simulation import Grid, Lines, followed, simulated
from eqlearn.fields.terms import Names
from eqlearn.numerics.budget import Deadline
from eqlearn.numerics.criteria import information_criterion
from eqlearn.search.search import Found
from eqlearn.symbolic.equation import Equation
from eqlearn.symbolic.expressions import real_symbol
from eqlearn.symbolic.parametric import Constant
from eqlearn.symbolic.varying import Varying
from eqlearn.validation.fields import Field
from eqlearn.validation.options import check_budget, check_whole

FORMAT, VERSION = "eqlearn-pde", 1


@dataclass(frozen=True, eq=False)
class Reader:
    """A hidden parameter: its name, and which it is of those of a law."""

    name: str
    place: int
    hidden: Hidden


@dataclass(frozen=True)
class FoundPDE:
    """What a search for partial differential equations led to: one equation per field, in `equations`.

    `found` counts and lists as any search does: its candidates hold one equation for each of `targets`, and
    their errors are of integrals over test functions, relative to those of the rates of change, noise
    included. `noise` is the standard deviation of each field's noise as far as it was seen; `unexplained`
    are the targets whose equations miss more than noise and the grid explain. `varying` is the table of
    coefficients that vary along an axis and have no formula, if there are any: `c1[x]` in the equations.
    """

    found: Found
    targets: tuple[str, ...]
    order: int
    noise: dict[str, float]
    unexplained: tuple[str, ...]
    data: Field = field(repr=False)
    readers: tuple[Reader, ...] = field(default=(), repr=False)
    settings: FieldSettings = field(default=FIELDS, repr=False)
    varying: Varying | None = None

    @property
    def equations(self) -> tuple[Equation, ...]:
        """One equation for each of `targets`, in u, u_x, u_xx, ..."""
        return self.found.best.equations

    @property
    def constants(self) -> tuple[tuple[Constant, ...], ...]:
        """The fitted constants of each equation in the order they are read, with standard errors."""
        return self.found.best.constants

    @property
    def latents(self) -> np.ndarray:
        """The hidden parameters of each experiment, `(experiments, parameters)`."""
        columns = [r.hidden.values[:, r.place] for r in self.readers]
        return np.stack(columns, axis=1) if columns else np.empty((len(self.data.experiments), 0))

    @property
    def latent_errors(self) -> np.ndarray:
        """Their standard errors."""
        columns = [r.hidden.errors[:, r.place] for r in self.readers]
        return np.stack(columns, axis=1) if columns else np.empty((len(self.data.experiments), 0))

    def read_latents(self, fields: Any) -> np.ndarray:
        """The hidden parameters of other experiments on the same axes, `(experiments, parameters)`: what
        suits them best, given the equations."""
        other = Field(fields, self.data.axes, self.data.time, periodic=self.data.periodic)
        return np.stack([r.hidden.read(other)[0][:, r.place] for r in self.readers], axis=1)

    @property
    def names(self) -> Names:
        return Names(self.data.names, tuple(self.data.axes))

    def simulate(
        self,
        start: Any,
        times: Any,
        *,
        rates: Any = None,
        axes: Mapping[str, Any] | None = None,
        latents: Sequence[float] = (),
    ) -> dict[str, np.ndarray]:
        """The fields from a start at the first of these times, by name, time last; NaN from where they
        diverge on.

        `start` holds an array for each field, by name (one array for a single field), on the grid of the
        data or on other `axes`; for equations of second order `rates` hold their rates of change there, zero
        by default. Axes that are periodic stay so; at the ends of others the fields keep their values.
        `latents` are the values of the hidden parameters, if there are any.
        """
        grid = self._grid(axes)
        values = _stacked("start", start, self.data.names, grid.shape)
        moving = np.zeros_like(values)
        if rates is not None:
            moving = _stacked("rates", rates, self.data.names, grid.shape)
        instants = np.asarray(times, dtype=np.float64)
        if instants.ndim != 1 or len(instants) < 2 or not (np.diff(instants) > 0).all():
            raise InvalidArgument("`times` must be at least two rising numbers, the first that of the start")
        if len(self.targets) < len(self.data.names):
            raise InvalidArgument("only fields that all have equations can be simulated; leave `targets` out")
        if len(latents) != len(self.readers):
            names = [r.name for r in self.readers]
            raise InvalidArgument(f"`latents` must hold a number for each of {names}, got {len(latents)}")
        values_of = {real_symbol(r.name): float(v) for r, v in zip(self.readers, latents, strict=True)}
        some = [v for v in self.equations[0].variables if real_symbol(v) not in values_of]
        equations = [Equation(e.expr.xreplace(values_of), some) for e in self.equations]
        lines = Lines(equations, self.names, grid, self.order, self.settings, self.varying)
        found = simulated(lines, np.stack([values, moving][: self.order]), instants)
        return dict(zip(self.data.names, found, strict=True))

    def refined(self, candidates: int = 1, seconds: float | None = None) -> FoundPDE:
        """The same with constants that fit the motion best: all observations, by simulation from starts that
        are fitted too. Of so many `candidates` at the end of the front, the likeliest is taken; where motion
        can't be followed (it diverges, is chaotic, or moves at the ends of an axis), all stays as it is."""
        check_whole("candidates", candidates)
        check_budget(seconds, None)
        if len(self.targets) < len(self.data.names) or self.readers or self.varying is not None:
            raise InvalidArgument("only equations of all fields, with the same constants, can be refined")
        stop = Deadline(math.inf if seconds is None else time.time() + seconds)
        levels, tried = [self.noise[n] for n in self.data.names], []
        count = math.prod(self.data.shape) * len(levels) * len(self.data.experiments)
        for one in self.found.front[-candidates:]:
            lines = Lines(one.equations, self.names, self._grid(None), self.order, self.settings)
            values, errors, misfit = followed(lines, self.data, levels, self.settings, stop)
            score = information_criterion(count, misfit, len(values), placed=False)
            tried.append((score, misfit, one, lines, values, errors))
        _, misfit, best, lines, values, errors = min(tried, key=lambda each: each[0])
        if not misfit <= self.settings.motion_misfit:
            return self
        numbers = [simple_or_fitted(v, e) for v, e in zip(values, errors, strict=True)]
        known = {abs(float(n)): e for n, e in zip(numbers, errors, strict=True)}
        equations = [f.with_constants([numbers.pop(0) for _ in f.holders]) for f in lines.formulas]
        constants = [tuple(Constant(c, known.get(abs(c), math.inf)) for c in e.constants) for e in equations]
        chosen = replace(best, equations=tuple(equations), constants=tuple(constants))
        front = (*(c for c in self.found.front if c.complexity < best.complexity), chosen)
        return replace(self, found=replace(self.found, best=chosen, front=front))

    def _grid(self, axes: Mapping[str, Any] | None) -> Grid:
        space = self.data.space
        given = {a: self.data.axes[a] for a in space}
        for name, values in ({} if axes is None else axes).items():
            if name not in given:
                raise InvalidArgument(f"`axes` holds {name!r}, but the fields have {list(space)} in space")
            given[name] = np.asarray(values, dtype=np.float64)
        steps = {a: float(v[-1] - v[0]) / (len(v) - 1) for a, v in given.items()}
        return Grid(given, {a: steps[a] * len(given[a]) for a in space if a in self.data.periodic})

    def latex(self, digits: int | None = 4) -> str:
        """The equations in LaTeX, with partial derivatives; one line each."""
        names = self.names
        lines = []
        for target, equation in zip(self.targets, self.equations, strict=True):
            jets = {v: _latex_jet(names, v) for v in (*equation.variables, target)}
            lines.append(f"{jets[target]} = {_written(equation, jets, digits)}")
        return " \\\\\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        """What was found as plain data for a JSON file."""
        best = self.found.best
        return {
            "format": FORMAT, "version": VERSION, "order": self.order, "targets": list(self.targets),
            "equations": [e.to_json() for e in self.equations], "text": str(self), "latex": self.latex(),
            "constants": [[_plain(c) for c in each] for each in self.constants],
            "error": best.training_error, "noise": self.noise, "unexplained": list(self.unexplained),
            "latents": {r.name: list(self.latents[:, k]) for k, r in enumerate(self.readers)},
            "periodic": sorted(self.data.periodic), "seconds": self.found.seconds,
            "coefficients": None if self.varying is None else self.varying.to_json(),
            "front": [
                {"equations": [str(e) for e in c.equations], "error": c.training_error}
                for c in self.found.front
            ],
        }  # fmt: skip

    def __str__(self) -> str:
        return "\n".join(f"{t} = {e}" for t, e in zip(self.targets, self.equations, strict=True))


def _plain(constant: Constant) -> dict[str, float | None]:
    """A constant as plain data; JSON has no infinity."""
    error = constant.standard_error
    return {"value": constant.value, "standard_error": error if math.isfinite(error) else None}


def _stacked(what: str, given: Any, names: tuple[str, ...], shape: tuple[int, ...]) -> np.ndarray:
    by_name = given if isinstance(given, Mapping) else {names[0]: given} if len(names) == 1 else {}
    if set(by_name) != set(names):
        raise InvalidArgument(f"`{what}` must hold an array for each of {list(names)}, by name")
    arrays = [np.asarray(by_name[n], dtype=np.float64) for n in names]
    if any(a.shape != shape for a in arrays):
        raise InvalidArgument(f"`{what}` must have the grid's shape {shape}, got {[a.shape for a in arrays]}")
    if not all(np.isfinite(a).all() for a in arrays):
        raise NotFinite(f"`{what}` holds NaN or infinite values; fill them")
    return np.stack(arrays)


def _latex_jet(names: Names, variable: str) -> str:
    """A derivative as LaTeX writes it: \\partial^2 u / \\partial x^2."""
    jet = names.read(variable)
    if jet is None or not any(jet.order):
        return variable
    total = sum(jet.order)
    below = " ".join(
        f"\\partial {axis}^{{{n}}}" if n > 1 else f"\\partial {axis}"
        for axis, n in zip(names.axes, jet.order, strict=True)
        if n
    )
    power = f"^{{{total}}}" if total > 1 else ""
    return f"\\frac{{\\partial{power} {names.fields[jet.field]}}}{{{below}}}"


def _written(equation: Equation, jets: Mapping[str, str], digits: int | None) -> str:
    """An equation's LaTeX with names that can't be taken for parts of each other put in, then replaced."""
    import sympy as sp

    from eqlearn.symbolic.expressions import parts

    expr = equation.expr if digits is None else equation.rounded(digits).expr
    if digits is not None:
        expr = expr.xreplace({c: sp.Float(c, digits) for c in parts(expr) if isinstance(c, sp.Float)})
    symbols = {}
    for name, text in jets.items():
        bracketed = "\\partial" in text and re.search(rf"\b{re.escape(name)}\*\*", str(expr))
        symbols[real_symbol(name)] = f"\\left({text}\\right)" if bracketed else text
    return str(sp.latex(expr, symbol_names=symbols))
