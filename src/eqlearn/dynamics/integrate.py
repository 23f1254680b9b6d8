"""One step of time: of a map, or of a differential equation by Euler, midpoint or Runge-Kutta."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import numpy as np


def advance(
    f: Callable[[np.ndarray], np.ndarray], y: np.ndarray, dt: float, form: str, substeps: int
) -> np.ndarray:
    """One step of a map, or of the classical fourth-order Runge-Kutta method."""
    if form == "map":
        return f(y)
    for _ in range(substeps):
        y = STEPPERS["rk4"](f, y, dt / substeps)
    return y


Form: TypeAlias = Literal["map", "residual", "ode"]
Rate: TypeAlias = "Callable[[Any], Any]"


def _euler(f: Rate, y: Any, dt: Any) -> Any:
    return y + dt * f(y)


def _midpoint(f: Rate, y: Any, dt: Any) -> Any:
    return y + dt * f(y + dt / 2 * f(y))


def _rk4(f: Rate, y: Any, dt: Any) -> Any:
    a = f(y)
    b = f(y + dt / 2 * a)
    c = f(y + dt / 2 * b)
    d = f(y + dt * c)
    return y + dt / 6 * (a + 2 * b + 2 * c + d)


# `step(f, y, dt)` for a rate of change f: on tensors and on SymPy's columns alike.
STEPPERS: dict[str, Callable[[Rate, Any, Any], Any]] = {
    "euler": _euler,
    "midpoint": _midpoint,
    "rk4": _rk4,
}


def step_once(f: Rate, y: Any, *, form: Form, stepper: str, dt: Any) -> Any:
    """The next states: `f(y)` for a map, `y + dt f(y)` for a residual, `f` integrated over dt for an ODE."""
    if form == "map":
        return f(y)
    return STEPPERS["euler" if form == "residual" else stepper](f, y, dt)
