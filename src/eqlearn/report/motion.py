"""Some series of a run that looked for dynamics, kept with it to be drawn beside what the equations say."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from eqlearn.core.equation import Equation
from eqlearn.errors import InvalidFile
from eqlearn.systems.motion import FORMS
from eqlearn.systems.simulation import simulate

FORMAT, VERSION = "eqlearn-motion", 1
SERIES, TIMES = 3, 600


@dataclass(frozen=True, eq=False)
class Motion:
    """Observed series `(time, states)`, the start `(series, states)` of each as it was fitted, and its hidden
    parameters `(series, latents)`."""

    observed: tuple[np.ndarray, ...]
    starts: np.ndarray
    latents: np.ndarray
    dt: float
    form: str

    def simulated(self, equations: Sequence[Equation]) -> list[np.ndarray]:
        """What the equations say of each series from its start on."""
        motions = []
        for one, start, latents in zip(self.observed, self.starts, self.latents, strict=True):
            steps = len(one) - 1
            motion = simulate(equations, start[None], steps, self.dt, self.form, latents=latents[None])
            motions.append(motion[0])
        return motions

    def plain(self) -> dict[str, Any]:
        return {"format": FORMAT, "version": VERSION, "dt": self.dt, "form": self.form}

    def tensors(self) -> dict[str, Tensor]:
        arrays = {f"series.{i}": one for i, one in enumerate(self.observed)}
        arrays |= {"starts": self.starts, "latents": self.latents}
        return {name: torch.as_tensor(np.ascontiguousarray(a)) for name, a in arrays.items()}

    @staticmethod
    def read(
        plain: Mapping[str, Any], tensors: Mapping[str, Tensor], states: int, inputs: int, where: str
    ) -> Motion:
        """The motion that `plain` and `tensors` gave, its sizes compared with the run's."""
        count = len(tensors) - 2
        names = {"starts", "latents", *(f"series.{i}" for i in range(count))}
        if plain.get("format") != FORMAT or plain.get("version") != VERSION or set(tensors) != names:
            raise InvalidFile(f"{where} holds no motion that this version of eqlearn reads")
        dt, form = plain.get("dt"), plain.get("form")
        if not isinstance(dt, float) or not 0 < dt < math.inf or form not in FORMS:
            raise InvalidFile(f"{where} is damaged: its step of time is {dt!r:.40}, its form {form!r:.40}")
        if not all(t.dtype == torch.float64 and bool(t.isfinite().all()) for t in tensors.values()):
            raise InvalidFile(f"{where} is damaged: it holds something else than finite numbers")
        arrays = {name: tensor.numpy() for name, tensor in tensors.items()}
        observed = tuple(arrays[f"series.{i}"] for i in range(count))
        fits = arrays["starts"].shape == (count, states) and arrays["latents"].shape == (
            count,
            inputs - states,
        )
        whole = all(a.ndim == 2 and a.shape[1] == states and 2 <= len(a) <= TIMES for a in observed)
        if not (fits and whole and count <= SERIES):
            raise InvalidFile(f"{where} does not fit the run")
        return Motion(observed, arrays["starts"], arrays["latents"], dt, str(form))
