"""Formulas for free functions, found in their tables or simple, and fitted through the integrals."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import sympy as sp
import torch
from torch import Tensor

from eqlearn.errors import NotFinite
from eqlearn.fields.evidence import Standard
from eqlearn.fields.free import FreeFit, free_column, values_of
from eqlearn.fields.law import Law
from eqlearn.fields.likelihood import Likelihood, Part
from eqlearn.fields.terms import Names
from eqlearn.nn.primitives import PrimitivesLike, parse_kinds
from eqlearn.numerics.budget import never
from eqlearn.numerics.covariance import errors_from_slopes
from eqlearn.numerics.criteria import information_criterion
from eqlearn.numerics.least_squares import Rule, SquareRoot, levenberg_marquardt
from eqlearn.numerics.subsets import Subset
from eqlearn.search.candidate import structure_cost
from eqlearn.search.groups.coefficients import KINDS
from eqlearn.search.search import discover
from eqlearn.symbolic.equation import Equation
from eqlearn.symbolic.expressions import fitted, real_symbol
from eqlearn.symbolic.parametric import Constant, Formula
from eqlearn.symbolic.snap import snap_in_turn
from eqlearn.symbolic.tape import lower


@dataclass(frozen=True, eq=False)
class WeakFit:
    """Values of all constants, first the other terms' coefficients, with standard errors; and the mean
    squared misfit relative to the target's."""

    values: np.ndarray
    standard_errors: np.ndarray
    loss: float


@dataclass(frozen=True, eq=False)
class FormulaTerm:
    """Terms at some `places` of a free fit, beside a formula for its free function."""

    fit: FreeFit
    places: tuple[int, ...]
    formula: Formula
    _slopes: dict[tuple[int, int], Any] = field(default_factory=dict, repr=False)

    @property
    def columns(self) -> np.ndarray:
        return self.fit.form.columns(self.fit.terms)[:, list(self.places)]

    def _tape(self, constant: int, order: int) -> Any:
        """The formula (`constant` -1) or its slope by a constant, differentiated by the variable."""
        if (constant, order) not in self._slopes:
            symbols = [sp.Dummy(f"c{k}", real=True) for k in range(len(self.formula.holders))]
            variable = real_symbol(self.fit.term.variable)
            expr = self.formula.filled(symbols)
            found = expr if constant < 0 else sp.diff(expr, symbols[constant])
            found = sp.diff(found, variable, order) if order else found
            found = found.replace(sp.DiracDelta, lambda *_: sp.S.Zero)  # nothing is at a corner
            found = found.replace(sp.sign, lambda inner: inner / sp.Abs(inner))
            self._slopes[constant, order] = lower(found, [variable, *symbols])
        return self._slopes[constant, order]

    def integral(self, constants: np.ndarray, by: int = -1) -> np.ndarray:
        """The integrals of the formula's term, or of its slope by one constant."""
        numbers = [np.float64(c) for c in constants]

        def function(values: np.ndarray, order: int) -> np.ndarray:
            found = self._tape(by, order).evaluate([values, *numbers])
            return np.asarray(np.broadcast_to(found, values.shape), dtype=np.float64)

        return free_column(self.fit.form, self.fit.term, function)

    def solved(self, start: np.ndarray, fixed: np.ndarray | None = None, steps: int = 30) -> WeakFit:
        """Least squares from `start`, some constants `fixed`."""
        target, columns = self.fit.form.column(self.fit.target), self.columns
        count = columns.shape[1]
        scale = float(np.linalg.norm(target))
        held = np.zeros(len(start), dtype=bool) if fixed is None else fixed

        def linearise(point: Tensor) -> SquareRoot:
            values = point[0].numpy()
            with np.errstate(all="ignore"):
                residual = (columns @ values[:count] + self.integral(values[count:]) - target) / scale

            def slopes() -> tuple[np.ndarray, None]:
                own = [self.integral(values[count:], k) for k in range(len(values) - count)]
                every = np.column_stack([columns, *own]) / scale
                return np.nan_to_num(every, posinf=0.0, neginf=0.0)[None], None

            return SquareRoot(residual[None], slopes, 1)

        point, system = levenberg_marquardt(
            linearise, torch.tensor(start)[None], Rule(0 if held.all() else steps),
            fixed=torch.from_numpy(held)[None] if held.any() else None, stop=never,
        )  # fmt: skip
        loss, free = float(system.loss), np.flatnonzero(~held)
        errors = np.zeros(len(start))
        # Rows overlap: only so many of them are independent.
        freedom = max(self.fit.form.independent - len(free), 1.0)
        errors[free] = errors_from_slopes(system.slopes[0][0][:, free], loss / freedom)
        return WeakFit(point[0].numpy(), errors, loss)

    def nats(self, likelihood: Likelihood, at: WeakFit, free: Sequence[int]) -> float:
        """Minus the logarithm of the likelihood, with `free` constants where it is least."""
        count, place = len(self.places), self.fit.form.field.names.index(self.fit.term.variable)
        constants, powers = at.values[count:], self.fit.term.powers
        slopes: list[list[np.ndarray | None]] = []
        for smooth in likelihood.smooth:
            fields = [u[likelihood.points] for u in smooth]
            own, slope = (self._tape(-1, k).evaluate([fields[place], *constants]) for k in (0, 1))
            carried = math.prod(u**p for u, p in zip(fields, powers, strict=True))
            slopes.append([own * np.ones_like(fields[place]) if p else None for p in powers])
            slopes[-1][place] = slope * carried * np.ones_like(fields[place])
        values = self.integral(constants)
        parts = [likelihood.part(self.fit.terms[p]) for p in self.places]
        parts.append(Part(self.fit.term.order, values[likelihood.rows], slopes))
        moves = [self.columns.T[k] if k < count else self.integral(constants, k - count) for k in free]
        return likelihood.nats(parts, [*at.values[:count], 1.0], np.array([*moves, 0 * values]).T)


def formula_laws(
    fit: FreeFit,
    places: Sequence[int],
    standard: Standard,
    noise: float,
    names: Names,
    *,
    before: Subset,
    plain: Callable[[Likelihood], float | None],
    primitives: PrimitivesLike,
    seconds: float,
    seed: int,
) -> list[Law]:
    """Laws in which a free function has a formula: those of its table's front and simple ones, fitted through
    the integrals; scored by what they gain over the sum `before`, by likelihood where that has a length."""
    points, curve, spread, start = _table(fit, places)
    if not np.isfinite(curve).all() or np.ptp(curve) == 0:
        return []
    tried: list[Equation] = []
    for kind in KINDS:
        front = discover(
            points[:, None], curve, primitives=primitives, variables=[fit.term.variable],
            seconds=seconds / len(KINDS), seed=seed, hidden_layers=2, settings=kind,
            sample_weight=(spread.min() / spread) ** 2,
        ).front  # fmt: skip
        ranked = sorted(front, key=lambda c: c.description_length)[: fit.form.settings.formulas]
        tried += [c.equation for c in ranked]
    tried += _single_functions(fit, points, curve, spread, primitives)
    every = (_law(fit, tuple(places), e, start, standard, noise, names) for e in tried)
    found = list({str(one[0].expr.evalf(6)): one for one in every if one is not None}.values())
    likelihood = Likelihood(fit.form, fit.target)
    followed = fit.term.variable not in names.axes and all(likelihood.follows(fit.terms[p]) for p in places)
    other = plain(likelihood) if followed else None
    if other is None:
        return [replace(law, score=law.score - standard.score(before)) for law, *_ in found]
    chance = 0.5 * standard.observations / (noise + standard.floor)
    found = sorted(found, key=lambda f: f[2] + chance * f[0].error ** 2)[: fit.form.settings.formulas]
    return [replace(law, score=length(likelihood) + price - other) for law, length, price in found]


def _single_functions(
    fit: FreeFit, points: np.ndarray, curve: np.ndarray, spread: np.ndarray, primitives: PrimitivesLike
) -> list[Equation]:
    """c*f(b*u), c*f(b*u**2), c*f(b/u), c*f(b/u**2), also times u or beside d or d*u, nearest to a curve."""
    symbol, settings = real_symbol(fit.term.variable), fit.form.settings
    kinds = [1 / (1 + symbol), *(p.symbolic(symbol) for p in parse_kinds(primitives) if p.arity == 1)]
    found: dict[bool, list[tuple[float, Any]]] = {False: [], True: []}
    for kind, power, inner in itertools.product(kinds, (0, 1), (1, 2, -1, -2)):
        if inner < 0 and points.min() * points.max() <= 0:
            continue
        base, inside = points**power / spread, points.astype(float) ** inner
        rates = np.geomspace(*settings.rates, settings.function_points) / np.abs(inside).max()
        rates = np.append(rates, [] if kind is kinds[0] else -rates)
        for beside, some in found.items():
            away = np.outer(base, base) / (base @ base) * beside
            target = curve / spread - away @ (curve / spread)
            with np.errstate(all="ignore"):
                values = sp.lambdify(symbol, kind, "numpy")(rates[:, None] * inside) * base
                rows = values - values @ away
                gains = (rows @ target) ** 2 / np.square(rows).sum(axis=1)
                gains = np.nan_to_num(gains, nan=-math.inf, posinf=-math.inf)
                best = int(np.argmax(gains))
                factor = float(rows[best] @ target / np.square(rows[best]).sum())
                rest = float(base @ (curve / spread - factor * values[best]) / (base @ base))
            expr = fitted(factor) * kind.subs(symbol, fitted(float(rates[best])) * symbol**inner)
            expr = (expr + (fitted(rest) if beside else 0)) * symbol**power
            some.append((float(target @ target - gains[best]), expr))
    ranked = (sorted(some, key=lambda f: f[0])[: settings.simple] for some in found.values())
    return [Equation(e, (symbol.name,)) for some in ranked for gap, e in some if gap < math.inf]


def _table(fit: FreeFit, places: Sequence[int]) -> tuple[np.ndarray, ...]:
    """A free function at points where the data determine it: points, values, how uncertain they are, and the
    coefficients of the terms beside it."""
    values = values_of(fit.form, fit.term.variable)
    edge = fit.form.settings.function_edge
    low, high = np.nanquantile(values, [edge, 1 - edge])
    points = np.linspace(low, high, fit.form.settings.function_points)
    curve, spread, start = fit.curve(places, points)
    known = spread <= fit.form.settings.max_spread * np.median(spread)
    return points[known], curve[known], spread[known], start


def _law(
    fit: FreeFit,
    places: tuple[int, ...],
    equation: Equation,
    start: np.ndarray,
    standard: Standard,
    noise: float,
    names: Names,
) -> tuple[Law, Callable[[Likelihood], float], float] | None:
    """A formula's law, fitted and snapped, the nats of what it misses, and its price; none without values."""
    expr = equation.expr if equation.constants else equation.expr * fitted(1.0 + 1e-12)
    formula = Formula(sp.S(expr), equation.variables)
    model = FormulaTerm(fit, places, formula)
    try:
        first = model.solved(np.concatenate([start, formula.constants]))
    except NotFinite:
        return None
    if not math.isfinite(first.loss):
        return None
    observations = max(round(standard.observations), 2)

    def rise(before: WeakFit, after: WeakFit) -> float:
        base = noise + standard.floor
        return 0.5 * observations * math.log((after.loss + base) / (before.loss + base))

    numbers, final = snap_in_turn(
        first, observations, lambda f, values, held: model.solved(values, held, steps=8), rise
    )
    numbers = [n if not isinstance(n, sp.Basic) or n.is_Rational else float(n) for n in numbers]
    parts = [names.expression(fit.terms[p]) for p in places]
    pairs = zip(numbers, parts, strict=False)
    terms = [(fitted(n * c) if isinstance(n, float) else n * c) * rest for n, (c, rest) in pairs]
    function = formula.filled([n if isinstance(n, sp.Basic) else fitted(n) for n in numbers[len(places) :]])
    whole = sp.Add(*terms, fit.term.expression(names, function))
    if whole.has(sp.nan, sp.zoo, sp.oo):
        return None
    constants = tuple(
        Constant(abs(float(n)) * (parts[k][0] if k < len(places) else 1), float(final.standard_errors[k]))
        for k, n in enumerate(numbers)
        if isinstance(n, float)
    )
    misfit = 1 + max(final.loss - noise, 0.0) / (max(standard.noise, noise) + standard.floor)
    shapes = (function, 1 / sp.expand(1 / function))
    price = min(structure_cost(f, 1) for f in shapes) + len(places) * math.log(max(standard.places, 2))
    parameters = len(places) + len(formula.constants)
    score = information_criterion(observations, misfit, parameters, placed=False) + price
    missed = standard.unexplained(final.loss, noise)
    free = [k for k, n in enumerate(numbers) if isinstance(n, float)]
    price += 0.5 * len(free) * math.log(observations)
    law = Law(whole, constants, math.sqrt(final.loss), math.sqrt(noise), score, missed)
    return law, partial(model.nats, at=final, free=free), price
