"""Gauge fixing: a latent z comes with an arbitrary scale and shift; here they are fitted, applied or chosen.

Equations in a canonical gauge are the simplest ones that a shift and a scale of z can give:

1. the change of each state in a step (`y' - y` for a map) is written as a sum of terms `c · zᵏ · m(states)`;
2. the *shift* is the one after which the fewest terms are left, counting a term as gone when it is smaller
   than `tolerance` times the largest that shares its states; among equals, the one nearest to z's own zero;
3. the *scale* makes the largest coefficient of z, per unit of time, exactly 1 in size;
4. the *sign* makes the parameter positive where all observed values share a sign; otherwise it makes that
   largest coefficient positive.

So a perfect run prints `u' = u + v + z/2` and `v' = v + z`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy as sp
import torch
from jaxtyping import Float
from torch import Tensor

from eqlearn.errors import InvalidArgument, NotFinite
from eqlearn.symbolic.equation import Equation
from eqlearn.symbolic.expressions import fitted, real_symbol


@dataclass(frozen=True)
class Gauge:
    """`parameter = scale · z + shift`, with the correlation of the two where it was fitted to a truth."""

    scale: float
    shift: float
    correlation: float | None = None

    def __post_init__(self) -> None:
        if not (math.isfinite(self.scale) and math.isfinite(self.shift)) or self.scale == 0:
            raise InvalidArgument(
                f"a gauge needs a finite `scale` other than 0 and a finite `shift`, got {self.scale} and "
                f"{self.shift}; z does not vary with the parameter"
            )

    def parameter(self, z: Any) -> Any:
        """The parameter where the latent is `z`: numbers, arrays, tensors or symbols."""
        scale, shift = self._numbers(z)
        return scale * z + shift

    def latent(self, parameter: Any) -> Any:
        """The latent of a parameter: numbers, arrays, tensors or symbols."""
        scale, shift = self._numbers(parameter)
        return (parameter - shift) / scale

    def _numbers(self, like: Any) -> tuple[Any, Any]:
        """Scale and shift; beside symbols, with all their digits."""
        symbolic = isinstance(like, sp.Basic)
        return (fitted(self.scale), fitted(self.shift)) if symbolic else (self.scale, self.shift)

    @property
    def inverse(self) -> Gauge:
        """The line the other way: `z = (parameter - shift) / scale`."""
        return Gauge(1 / self.scale, -self.shift / self.scale, self.correlation)


def fit_gauge(z: Float[Tensor, " series"], parameter: Float[Tensor, " series"]) -> Gauge:
    """The straight line of least squares through the true parameter against z, and their correlation, about
    the means, as `scipy.stats.linregress` has them, whose tests and import are not needed here."""
    if z.shape != parameter.shape or len(z) < 3:
        raise InvalidArgument(
            f"a line needs 3 pairs or more, got {len(z)} of `z` and {len(parameter)} others"
        )
    if not bool(torch.isfinite(z).all() and torch.isfinite(parameter).all()):
        raise NotFinite("`z` and `parameter` must be finite; did the encoder diverge?")
    x, y = z.double() - z.double().mean(), parameter.double() - parameter.double().mean()
    if float(x.norm()) == 0 or float(y.norm()) == 0:
        raise InvalidArgument("`z` or the `parameter` is the same in all series, so there is no line")
    scale = float(x @ y / (x @ x))
    correlation = float(x @ y / (x.norm() * y.norm()))
    return Gauge(scale, float(parameter.double().mean() - scale * z.double().mean()), correlation)


def rewritten(equation: Equation, gauge: Gauge, latent: str, parameter: str) -> Equation:
    """The equation with its latent expressed by the parameter of that name, multiplied out."""
    if latent not in equation.variables:
        raise InvalidArgument(f"`latent` {latent!r} is not among the variables {equation.variables}")
    replaced = equation.expr.subs(real_symbol(latent), gauge.latent(real_symbol(parameter)))
    names = [parameter if name == latent else name for name in equation.variables]
    return Equation(sp.expand(replaced), names)


def without_small(
    equation: Equation, sample: Mapping[str, Any], tolerance: float, *, beside: str | None = None
) -> Equation:
    """A new equation without the terms whose root mean square on the `sample` is below `tolerance` times
    that of the largest, which is the measure of what can be read off. Its error is its own.

    With `beside`, a variable's name, terms are compared with the change only: the largest term but that
    variable's own, since a map's `y' = y + ...` is all but the identity for a small step of time.
    """
    expr = sp.expand(equation.expr)
    terms = list(sp.Add.make_args(expr))
    values = (Equation(term, equation.variables)(sample) for term in terms)
    sizes = [float(np.sqrt(np.mean(np.square(value)))) for value in values]
    own = None if beside is None else real_symbol(beside)
    pairs = list(zip(terms, sizes, strict=True))
    others = [size for term, size in pairs if own is None or term.as_coeff_Mul()[1] != own]
    limit = tolerance * max(others, default=0.0)
    kept = [term for term, size in pairs if size >= limit]
    return Equation(sp.Add(*kept), equation.variables)


def canonical_gauge(
    equations: Sequence[Equation],
    latent: str,
    z: Float[Tensor, " series"],
    *,
    states: Sequence[str],
    dt: float = 1.0,
    form: str = "map",
    tolerance: float = 1e-2,
) -> Gauge:
    """The shift and scale of the latent that make the equations simplest; see the top of this module.

    `equations` give the next values of `states` (`form` "map"), or their rates of change ("ode"). `z` are
    the values seen. Equations that are no polynomials in the latent keep their z.
    """
    symbol = real_symbol(latent)
    changes = [
        e.expr - real_symbol(state) if form == "map" else e.expr
        for e, state in zip(equations, states, strict=True)
    ]
    per_time = dt if form == "map" else 1.0
    tables = [_in_powers(change, symbol) for change in changes]
    if any(table is None for table in tables):
        return Gauge(1.0, 0.0)
    series = [np.array(c) / per_time for table in tables if table is not None for c in table.values()]
    moving = [c for c in series if len(c) > 1 and np.abs(c[1:]).max() > 0]
    if not moving:
        return Gauge(1.0, 0.0)
    spread = float(z.double().std()) or 1.0
    zero = min(_zeros(moving), key=lambda at: (_terms_at(series, at, spread, tolerance), abs(at)))
    slopes = [_expanded(c, zero)[1] for c in moving]
    steepest = max(slopes, key=abs)
    if steepest == 0:
        return Gauge(1.0, -zero)
    away = z.double() - zero
    positive = bool((away > 0).all()) or (not bool((away < 0).all()) and steepest > 0)
    scale = abs(steepest) if positive else -abs(steepest)
    return Gauge(scale, -scale * zero)


def _in_powers(change: sp.Expr, symbol: sp.Symbol) -> dict[sp.Expr, list[float]] | None:
    """For each expression in the states alone, its coefficients of 1, z, z², ...; None for no polynomial."""
    table: dict[sp.Expr, dict[int, float]] = {}
    for term in sp.Add.make_args(sp.expand(change)):
        number, rest = term.as_coeff_Mul()
        power, others = 0, []
        for factor in sp.Mul.make_args(rest):
            base, exponent = factor.as_base_exp()
            if base == symbol and exponent.is_Integer and exponent > 0:
                power += int(exponent)
            elif factor.has(symbol):
                return None
            else:
                others.append(factor)
        row = table.setdefault(sp.Mul(*others), {})
        row[power] = row.get(power, 0.0) + float(number)
    return {key: [row.get(k, 0.0) for k in range(max(row) + 1)] for key, row in table.items()}


def _zeros(polynomials: Sequence[np.ndarray]) -> list[float]:
    """Where a coefficient vanishes, as candidates for the origin; z's own zero is always one."""
    candidates = [0.0]
    for coefficients in polynomials:
        roots = np.polynomial.polynomial.polyroots(np.trim_zeros(coefficients, "b"))
        candidates += [float(r.real) for r in roots if abs(r.imag) <= 1e-9 * max(1.0, abs(r))]
    return candidates


def _expanded(coefficients: np.ndarray, at: float) -> np.ndarray:
    """The coefficients about another origin: of powers of `z - at`."""
    shifted = np.polynomial.Polynomial(coefficients)(np.polynomial.Polynomial([at, 1.0]))
    return np.pad(np.atleast_1d(shifted.coef), (0, max(0, len(coefficients) - len(shifted.coef))))


def _terms_at(series: Sequence[np.ndarray], at: float, spread: float, tolerance: float) -> int:
    """How many terms are left with the origin there, each weighed over one spread of z."""
    count = 0
    for coefficients in series:
        sizes = np.abs(_expanded(coefficients, at)) * spread ** np.arange(len(coefficients))
        count += int((sizes > tolerance * sizes.max()).sum())
    return count
