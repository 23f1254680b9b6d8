"""What a search for dynamics led to: equations of motion, and the motion that follows from them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from eqlearn.dynamics.forms import simulate
from eqlearn.dynamics.segments import Segments, interpolated
from eqlearn.dynamics.shooting import VectorField, flow
from eqlearn.errors import InvalidArgument, counted, listed
from eqlearn.search.search import Found
from eqlearn.symbolic.equation import Equation
from eqlearn.validation.trajectories import Trajectories


@dataclass(frozen=True)
class FoundMotion:
    """What a search for dynamics led to: one equation per state, in `found.best.equations`.

    `found` counts and lists as any search does; its candidates hold one equation for each of `targets`, and
    their errors are of simulations over `horizon` steps from fitted starts, in units of the states' spread.
    `noise` is the residual of the simulations of each state, in its own units. `rows` are the tables that
    were searched: states, and their rates or next values; `inputs` names the columns that drive the motion,
    and `even` are the states that it is shown with, at equal steps of time. `latents` `(series, latents)` are
    the hidden parameters of each series, where there are such, and `latent_errors` their standard errors.
    """

    found: Found
    targets: tuple[str, ...]
    noise: tuple[float, ...]
    horizon: int
    dt: float
    form: str
    rows: tuple[np.ndarray, np.ndarray] = field(repr=False)
    inputs: tuple[str, ...] = ()
    even: Trajectories | None = field(repr=False, default=None)
    latents: np.ndarray = field(repr=False, default_factory=lambda: np.empty((0, 0)))
    latent_errors: np.ndarray = field(repr=False, default_factory=lambda: np.empty((0, 0)))

    @property
    def equations(self) -> tuple[Equation, ...]:
        return self.found.best.equations

    def simulate(self, start: Any, steps: int, latents: Any = (), inputs: Any = None) -> np.ndarray:
        """The motion from a start `(states,)`, as `(steps + 1, states)`, with these hidden parameters and
        inputs `(steps + 1, inputs)`; NaN from where it diverges on."""
        values = np.asarray(start, dtype=np.float64)
        if values.shape != (len(self.targets),):
            raise InvalidArgument(f"`start` must hold {len(self.targets)} states, got shape {values.shape}")
        if self.inputs:
            return self._driven(values, steps, inputs)
        hidden = np.asarray(latents, dtype=np.float64).reshape(-1)
        count = len(self.found.variables) - len(values)
        if len(hidden) != count:
            raise InvalidArgument(f"`latents` must hold {counted(count, 'number')}, got {len(hidden)}")
        motion = simulate(self.equations, values[None], steps, self.dt, self.form, latents=hidden[None])
        return np.asarray(motion[0])

    def _driven(self, start: np.ndarray, steps: int, inputs: Any) -> np.ndarray:
        drive = np.asarray([] if inputs is None else inputs, dtype=np.float64).reshape(-1, len(self.inputs))
        if len(drive) != steps + 1:
            raise InvalidArgument(
                f"`inputs` must hold {listed(self.inputs)} at {steps + 1} times, {self.dt:g} apart, "
                f"got {len(drive)}"
            )
        still = np.zeros((1, steps + 1, len(start)))
        curve = interpolated(self.dt * np.arange(steps + 1), drive)
        one = Segments(still, np.ones(len(start)), self.dt, self.form, drive=lambda times: curve(times))
        law = VectorField(self.equations)
        return np.asarray(flow(law, one, law.start, start[None], 4)[0, :, :, 0])

    def __str__(self) -> str:
        return "\n".join(f"{t} = {e}" for t, e in zip(self.targets, self.equations, strict=True))
