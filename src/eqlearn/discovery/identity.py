"""Whether two formulas are one function: points to compare them on, and their largest relative deviation."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import sympy as sp

from eqlearn.errors import InvalidArgument

SEED = 2019
NEAR, WIDE, AFAR = 256, 1024, 256
# A true identity survives on any box; A·sin(x/A) for x does not, however close it is on a small one.
REACHES = (4e2, 4e4)
DIGITS = 50


@dataclass(frozen=True)
class Clock:
    """A moment after which work stops."""

    end: float

    @staticmethod
    def of(seconds: float) -> Clock:
        return Clock(time.monotonic() + seconds)

    def check(self) -> None:
        if time.monotonic() > self.end:
            raise TimeoutError


@dataclass(frozen=True, eq=False)
class Formula:
    """An expression compiled with its float constants as parameters, in the order in which they appear."""

    template: sp.Expr
    arguments: tuple[sp.Symbol, ...]
    parameters: tuple[sp.Symbol, ...]
    constants: np.ndarray

    @staticmethod
    def of(expr: sp.Expr, variables: Sequence[str]) -> Formula:
        """Variables are told by name alone; what else their symbols assume is forgotten."""
        arguments = {name: sp.Dummy(f"x{i}") for i, name in enumerate(variables)}
        parameters: list[sp.Symbol] = []
        constants: list[float] = []

        def rebuilt(node: Any) -> Any:
            if isinstance(node, sp.Float):
                parameters.append(sp.Dummy(f"c{len(constants)}"))
                constants.append(float(node))
                return parameters[-1]
            if isinstance(node, sp.Symbol):
                return arguments[node.name]
            return node.func(*(rebuilt(a) for a in node.args)) if node.args else node

        template = rebuilt(expr)
        return Formula(template, tuple(arguments.values()), tuple(parameters), np.array(constants, float))

    def __call__(self, points: np.ndarray, constants: np.ndarray | None = None) -> np.ndarray:
        """Values at points `(variables, ...)`; NaN where they are not real."""
        constants = self.constants if constants is None else constants
        with np.errstate(all="ignore"):
            values = np.asarray(self._on_arrays(*points, *constants))
        if np.iscomplexobj(values):
            values = np.where(values.imag == 0, values.real, np.nan)
        shape = np.broadcast_shapes(points.shape[1:], constants.shape[1:])
        return np.broadcast_to(values.astype(float), shape)

    def with_constants(self, constants: np.ndarray) -> sp.Expr:
        """The expression again, on `arguments`, with these constants in their places."""
        return self.template.xreplace(
            {p: sp.Float(c, 17) for p, c in zip(self.parameters, constants, strict=True)}
        )

    @cached_property
    def _on_arrays(self) -> Callable[..., Any]:
        return sp.lambdify([*self.arguments, *self.parameters], self.template, ["scipy", "numpy"])

    @cached_property
    def in_mpmath(self) -> Callable[..., Any]:
        """The same function in arbitrary precision, of points and constants one after another."""
        growing = {name: _bounded(name) for name in ("exp", "sinh", "cosh")}
        return sp.lambdify([*self.arguments, *self.parameters], self.template, [growing, "mpmath"])


def _bounded(name: str) -> Callable[[Any], Any]:
    import mpmath

    def function(g: Any) -> Any:
        if abs(g) > 1e15:  # exponents of exponents would fill the memory before they end
            raise OverflowError
        return getattr(mpmath, name)(g)

    return function


@dataclass(frozen=True, eq=False)
class Ground:
    """Points on which a formula is compared with the truth; the first `near` of them in the training box.

    Deviations are relative to `scale`: the truth's distance from its median on the training box, but at
    least its typical distance, so that zeros of the truth ask for nothing impossible and a large constant
    hides nothing.
    """

    truth: Formula
    points: np.ndarray
    values: np.ndarray
    scale: np.ndarray
    near: int

    def some(self, keep: Any) -> Ground:
        return Ground(self.truth, self.points[:, keep], self.values[keep], self.scale[keep], self.near)

    def __len__(self) -> int:
        return len(self.values)

    @property
    def in_training_box(self) -> Ground:
        return self.some(slice(0, self.near))


def survey(truth: Formula, box: Mapping[str, tuple[float, float]]) -> Ground:
    """Points of the training box, and of one four times as wide where the truth can be followed to them."""
    rng = np.random.default_rng(SEED)
    near = _draw(box, 1.0, NEAR, rng)
    near = near[:, np.isfinite(truth(near))]
    if near.shape[1] < NEAR // 4:
        raise InvalidArgument(
            f"the truth is real and finite at {near.shape[1]} of {NEAR} points of `box`; "
            "give the ranges on which it was sampled"
        )
    draws = _draw(box, 4.0, 4 * WIDE, rng)
    values = truth(draws)
    wide = draws[:, np.isfinite(values)][:, :WIDE]
    if np.isnan(values).any():
        wide = wide[:, _can_be_followed(truth, wide, box)]
    points = np.concatenate([near, wide], axis=1)
    ground = _measured(truth, points, near.shape[1])
    steady = _steady(ground, 1e-9, rng)
    steady[: ground.near] = True
    return ground.some(steady)


def survey_afar(ground: Ground, box: Mapping[str, tuple[float, float]]) -> Ground | None:
    """Points far outside the box, or None where the truth has no real values or changes too fast there."""
    rng = np.random.default_rng(SEED + 1)
    points = np.concatenate([_draw(box, reach, AFAR, rng) for reach in REACHES], axis=1)
    values = ground.truth(points)
    if np.isnan(values).any():
        return None
    points = points[:, np.isfinite(values)]
    near = ground.in_training_box.points
    afar = _measured(ground.truth, np.concatenate([near, points], axis=1), ground.near)
    steady = _steady(afar, 1e-7, rng)
    steady[: ground.near] = False
    return afar.some(steady) if steady.sum() >= 32 else None


def _draw(
    box: Mapping[str, tuple[float, float]], factor: float, rows: int, rng: np.random.Generator
) -> np.ndarray:
    low, high = np.array(list(box.values()), dtype=float).T
    unit = rng.uniform(-1.0, 1.0, (len(box), rows))
    return (low + high)[:, None] / 2 + factor * (high - low)[:, None] / 2 * unit


def _can_be_followed(truth: Formula, points: np.ndarray, box: Mapping[str, tuple[float, float]]) -> np.ndarray:
    # Beyond a stretch without real values lies another branch: sqrt(p/rho) is real for p, rho < 0 too, and
    # sqrt(p)/sqrt(rho), the same formula to whoever measured p, rho > 0, is not. So the walk from the
    # training box, one variable after another, has to stay real.
    low, high = np.array(list(box.values()), dtype=float).T[:, :, None]
    at = np.clip(points, low, high)
    steps = np.linspace(0.0, 1.0, 17)[1:]
    keep = np.ones(points.shape[1], dtype=bool)
    for k in range(len(points)):
        walk = np.repeat(at[:, :, None], len(steps), axis=2)
        walk[k] += steps * (points[k] - at[k])[:, None]
        keep &= ~np.isnan(truth(walk)).any(axis=1)
        at[k] = points[k]
    return keep


def _measured(truth: Formula, points: np.ndarray, near: int) -> Ground:
    values = truth(points)
    middle = np.median(values[:near])
    largest = np.abs(values[:near]).max()
    distance = np.abs(values - middle)
    typical = float(np.median(distance[:near]))
    if distance[:near].max() <= 1e-12 * largest:
        typical = largest
    # Constants have 16 digits: a millionth of the largest value is the least in which 9 can be asked for.
    floor = max(typical, 1e-6 * largest) or 1.0
    return Ground(truth, points, values, np.maximum(distance, floor), near)


def _steady(ground: Ground, tolerance: float, rng: np.random.Generator) -> np.ndarray:
    # Where the truth itself is upset by the rounding of its arguments (beside a pole, after thousands of
    # periods), no formula with rounded constants can agree with it.
    nudge = 1.0 + 1e-13 * rng.choice([-1.0, 1.0], ground.points.shape)
    change = np.abs(ground.truth(ground.points * nudge) - ground.values) / ground.scale
    return np.asarray(change <= tolerance)


def deviation(
    formula: Formula, constants: np.ndarray, ground: Ground, *, tolerance: float, clock: Clock
) -> float:
    """The largest relative deviation from the truth on the ground; infinite where the formula is not real.

    Points that fail in float64 are tried again in high precision, as long as they are a minority: there the
    formula may only have cancelled or overflowed.
    """
    clock.check()
    with np.errstate(all="ignore"):
        deviations = np.abs(formula(ground.points, constants) - ground.values) / ground.scale
    deviations = np.where(np.isfinite(deviations), deviations, np.inf)
    failing = np.flatnonzero(deviations >= tolerance)
    if 0 < len(failing) < len(ground) / 2:
        for index in failing[np.argsort(-deviations[failing], kind="stable")]:
            clock.check()
            deviations[index] = _precise_deviation(formula, constants, ground, int(index))
            if deviations[index] >= tolerance:
                break
    return float(deviations.max(initial=0.0))


def _precise_deviation(formula: Formula, constants: np.ndarray, ground: Ground, index: int) -> float:
    import mpmath

    with mpmath.workdps(DIGITS):
        point = [mpmath.mpf(float(v)) for v in ground.points[:, index]]
        try:
            value = formula.in_mpmath(*point, *(mpmath.mpf(float(c)) for c in constants))
            truth = ground.truth.in_mpmath(*point, *(mpmath.mpf(float(c)) for c in ground.truth.constants))
            difference = value - truth
            real = mpmath.im(difference) == 0 and mpmath.isfinite(difference)
            return float(abs(difference) / float(ground.scale[index])) if real else np.inf
        except (ArithmeticError, ValueError):  # outside the domain of one of its functions
            return np.inf
