"""Some series of a search for dynamics, and drawings of them beside the simulated ones."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from eqlearn.dynamics.forms import FORMS, simulate
from eqlearn.errors import InvalidFile
from eqlearn.report.charts import Frame, around, figure
from eqlearn.symbolic.equation import Equation
from eqlearn.validation.trajectories import Trajectories

FORMAT, VERSION = "eqlearn-motion", 1
SERIES, TIMES = 3, 600


@dataclass(frozen=True, eq=False)
class Motion:
    """Observed series, their fitted starts `(series, states)` and hidden parameters `(series, latents)`."""

    observed: Trajectories
    starts: np.ndarray
    latents: np.ndarray
    form: str

    def simulated(self, equations: Sequence[Equation]) -> list[np.ndarray]:
        """Each series as the equations simulate it from its start."""
        dt, starts = self.observed.dt, zip(self.observed.series, self.starts, self.latents, strict=True)
        return [
            simulate(equations, start[None], len(one) - 1, dt, self.form, latents=latents[None])[0]
            for one, start, latents in starts
        ]

    def plain(self) -> dict[str, Any]:
        return {"format": FORMAT, "version": VERSION, "dt": self.observed.dt, "form": self.form}

    def tensors(self) -> dict[str, Tensor]:
        arrays = {f"series.{i}": one for i, one in enumerate(self.observed.series)}
        arrays |= {"starts": self.starts, "latents": self.latents}
        return {name: torch.as_tensor(np.ascontiguousarray(a)) for name, a in arrays.items()}

    @staticmethod
    def read(
        plain: Mapping[str, Any],
        tensors: Mapping[str, Tensor],
        names: Sequence[str],
        latents: int,
        where: str,
    ) -> Motion:
        """The motion from the results of `plain` and `tensors`, checked against the sizes of the run."""
        count = len(tensors) - 2
        held = {"starts", "latents", *(f"series.{i}" for i in range(count))}
        if plain.get("format") != FORMAT or plain.get("version") != VERSION or set(tensors) != held:
            raise InvalidFile(f"{where} holds no motion that this version of eqlearn reads")
        dt, form = plain.get("dt"), plain.get("form")
        if isinstance(form, str) and form not in FORMS:
            raise InvalidFile(f"{where} has equations of the form {form!r:.40}, which is not registered here")
        if not isinstance(dt, float) or not 0 < dt < math.inf or form not in FORMS:
            raise InvalidFile(f"{where} is damaged: its step of time is {dt!r:.40}, its form {form!r:.40}")
        if not all(t.dtype == torch.float64 and bool(t.isfinite().all()) for t in tensors.values()):
            raise InvalidFile(f"{where} is damaged: it holds something else than finite numbers")
        arrays = {name: tensor.numpy() for name, tensor in tensors.items()}
        observed = tuple(arrays[f"series.{i}"] for i in range(count))
        sizes = {"starts": (count, len(names)), "latents": (count, latents)}
        fits = all(arrays[name].shape == size for name, size in sizes.items())
        whole = all(a.ndim == 2 and a.shape[1] == len(names) and 2 <= len(a) <= TIMES for a in observed)
        if not (fits and whole and count <= SERIES):
            raise InvalidFile(f"{where} does not fit the run")
        trajectories = Trajectories.unchecked(observed, dt, names)
        return Motion(trajectories, arrays["starts"], arrays["latents"], str(form))


# More points than this would hide each other.
POINTS = 240


def motion_figures(motion: Motion, equations: Sequence[Equation]) -> str:
    """One chart per series and state: dots were observed, lines are simulated."""
    simulated = motion.simulated(equations)
    figures = []
    for i, (seen, said) in enumerate(zip(motion.observed.series, simulated, strict=True)):
        label = f"Series {i + 1}: " if len(simulated) > 1 else ""
        for k, name in enumerate(motion.observed.names):
            chart = _chart(motion.observed.times(i), seen[:, k], said[:, k], name)
            figures.append(figure(f"{label}{name}", chart))
    return "".join(figures)


def _chart(times: np.ndarray, seen: np.ndarray, said: np.ndarray, name: str) -> str:
    # The line ends where the simulation leaves the range of the observations.
    frame = Frame((0.0, float(times[-1])), around(seen, 0.15))
    some = np.unique(np.linspace(0, len(seen) - 1, min(POINTS, len(seen))).round().astype(int))
    drawn = frame.dots(times[some], seen[some]) + frame.line(times, said)
    return frame.svg(drawn, f"{name} against time: observed, and simulated from the start")
