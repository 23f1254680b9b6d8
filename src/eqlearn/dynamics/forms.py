"""Forms of equations of motion: what the equations give, how data show it, how it becomes a step of time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from scipy.integrate import DOP853

from eqlearn.dynamics.derivatives import smooth
from eqlearn.dynamics.settings import MotionSettings
from eqlearn.errors import WrongType
from eqlearn.symbolic.equation import Equation
from eqlearn.validation.options import checked_choice, enter
from eqlearn.validation.trajectories import Trajectories

CellForm: TypeAlias = Literal["map", "residual", "ode"]
Rate: TypeAlias = "Callable[[Any], Any]"


def _rk4(f: Rate, y: Any, dt: Any) -> Any:
    half = dt / 2
    a = f(y)
    b = f(y + half * a)
    c = f(y + half * b)
    d = f(y + dt * c)
    return y + dt / 6 * (a + (b + b) + (c + c) + d)


# `step(f, y, dt)` for a rate of change f: on tensors and on SymPy's columns alike.
STEPPERS: dict[str, Callable[[Rate, Any, Any], Any]] = {
    "euler": lambda f, y, dt: y + dt * f(y),
    "midpoint": lambda f, y, dt: y + dt * f(y + dt / 2 * f(y)),
    "rk4": _rk4,
}


def step_once(f: Rate, y: Any, *, form: CellForm, stepper: str, dt: Any) -> Any:
    """The next states: `f(y)` for a map, `y + dt f(y)` for a residual, `f` integrated over dt for an ODE."""
    if form == "map":
        return f(y)
    return STEPPERS["euler" if form == "residual" else stepper](f, y, dt)


@dataclass(frozen=True)
class Form:
    """A kind of system of equations `f`, one for each state.

    `table(trajectories, settings)` gives states and what the equations should give there, `(rows, states)`;
    `step(f, y, dt, substeps)` the states one step of time later, which must be linear in `y` and `f`, as the
    formulas of Runge and Kutta are, since slopes travel along; `dt` is an array where steps differ. `label`
    says what a state's equation is of. A form that is `continuous` needs a step of time and series of
    `min_times`, and is simulated in steps as fine as the noise asks for.
    """

    name: str
    label: Callable[[str], str]
    table: Callable[[Trajectories, MotionSettings], tuple[np.ndarray, np.ndarray]]
    step: Callable[[Rate, np.ndarray, Any, int], np.ndarray]
    continuous: bool = False
    min_times: int = 2

    def __post_init__(self) -> None:
        for field in ("label", "table", "step"):
            if not callable(getattr(self, field)):
                raise WrongType(f"form {self.name!r}: `{field}` must be a function")


def _rates(trajectories: Trajectories, settings: MotionSettings) -> tuple[np.ndarray, np.ndarray]:
    """States and their rates of change, smoothed, on rows spread evenly over all times."""
    states, rates = smooth(trajectories.long, trajectories.dt, settings)
    X, y = np.concatenate(states), np.concatenate(rates)
    rows = np.unique(np.linspace(0, len(X) - 1, min(len(X), settings.rate_rows)).round().astype(int))
    return X[rows], y[rows]


def _successors(trajectories: Trajectories, settings: MotionSettings) -> tuple[np.ndarray, np.ndarray]:
    """States and what follows them, as they are."""
    series = trajectories.series
    return np.concatenate([one[:-1] for one in series]), np.concatenate([one[1:] for one in series])


def _rk8(f: Rate, y: np.ndarray, dt: Any) -> np.ndarray:
    """A step of order eight (Dormand & Prince; Hairer, Nørsett & Wanner 1993)."""
    slopes = np.empty((len(DOP853.B), y.size))

    def moved(weights: np.ndarray) -> np.ndarray:
        return np.asarray(y + dt * (weights @ slopes[: len(weights)]).reshape(y.shape))

    for stage in range(len(slopes)):
        slopes[stage] = f(moved(DOP853.A[stage, :stage])).ravel()
    return moved(DOP853.B)


def _integrated(f: Rate, y: np.ndarray, dt: Any, substeps: int) -> np.ndarray:
    """By one step of order four; where that is not enough, by half as many of order eight."""
    if substeps < 2:
        return np.asarray(_rk4(f, y, dt))
    for _ in range(substeps // 2):
        y = _rk8(f, y, dt / (substeps // 2))
    return y


FORMS: dict[str, Form] = {
    # Seven values: the narrowest window whose polynomial another, two degrees higher, can judge.
    "ode": Form("ode", lambda name: f"d{name}/dt", _rates, _integrated, True, 7),
    "map": Form("map", lambda name: f"{name}'", _successors, lambda f, y, dt, substeps: f(y)),
}


def register_form(form: Form) -> Form:
    """Makes a form known by its name, for `discover_dynamics(series, form=name)`."""
    if not isinstance(form, Form):
        raise WrongType(f"`form` must be a Form, got {form!r}")
    return enter("a form", form.name, form, FORMS)


def find_form(name: str) -> Form:
    """The form of that name."""
    return FORMS[checked_choice("`form` of dynamics", name, FORMS)]


def simulate(
    equations: Sequence[Equation],
    start: np.ndarray,
    steps: int,
    dt: float,
    form: str,
    *,
    latents: np.ndarray | None = None,
    substeps: int = 4,
) -> np.ndarray:
    """The motion from starts `(pieces, states)`, as `(pieces, steps + 1, states)`; NaN from where it leaves
    the range of float64 on. `latents` `(pieces, latents)` are inputs of the equations that stay as they are.
    """
    given = np.empty((len(start), 0)) if latents is None else latents
    step = find_form(form).step

    def rate(state: np.ndarray) -> np.ndarray:
        inputs = np.concatenate([state, given], axis=1)
        return np.stack([equation(inputs) for equation in equations], axis=1)

    motion = [np.asarray(start, dtype=np.float64)]
    with np.errstate(all="ignore"):
        for _ in range(steps):
            motion.append(step(rate, motion[-1], dt, substeps))
    values = np.stack(motion, axis=1)
    values[~np.isfinite(values).all(axis=2)] = np.nan
    return values
