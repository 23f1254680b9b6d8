"""A law behind encoders, found: its equation, the model that computes it, and the latents in its gauge."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from eqlearn.errors import InvalidArgument, InvalidFile, listed
from eqlearn.io.checksummed import read_checksummed, write_json, write_tensors
from eqlearn.latent.comparison.bend import Basis, Bend
from eqlearn.latent.comparison.served import Slot
from eqlearn.latent.gauge import Gauge
from eqlearn.latent.page import latent_page
from eqlearn.latent.warm_start import Encoders
from eqlearn.symbolic.equation import Equation
from eqlearn.symbolic.parametric import Constant
from eqlearn.validation.latents import Batch, Input, read_columns
from eqlearn.validation.options import did_you_mean

FORMAT, VERSION = "eqlearn-latent", 1
LAW, MODEL = "law.json", "model.safetensors"


class LatentModel(nn.Module):
    """From inputs and columns to the targets: encoders, the change of their latents into the canonical gauge,
    and the equations, computed in float64 just as they are printed."""

    def __init__(
        self,
        encoders: Encoders,
        bends: Sequence[Bend],
        slots: Sequence[Slot],
        equations: Sequence[Equation],
        columns: Sequence[str],
    ) -> None:
        super().__init__()
        self.encoders = encoders.hold_()
        self.bends = nn.ModuleList(bends)
        self.slots, self.columns = tuple(slots), tuple(columns)
        self.equations = nn.ModuleList(equation.torch() for equation in equations)
        self.eval()

    def latents(self, inputs: Mapping[str, Input]) -> Tensor:
        """The latents `(rows, slots)` in the canonical gauge, in float64."""
        rows = len(next(iter(inputs.values())))
        empty = torch.zeros(rows, 0, dtype=torch.float64)
        z = self.encoders(Batch(inputs, empty, empty))
        bent = [self.bends[g](z[i].double()) for i, g in enumerate(self.encoders.groups)]
        return torch.stack([bent[slot.input][:, slot.place] for slot in self.slots], dim=1)

    def forward(self, inputs: Mapping[str, Input], columns: Any = None) -> Tensor:
        """The targets `(rows,)`, or `(rows, outputs)` of several."""
        self._check(inputs)
        z = self.latents(inputs)
        table = torch.cat([z, read_columns(columns, self.columns, len(z)).to(z.device)], dim=1)
        values = torch.cat([equation(table) for equation in self.equations], dim=1)
        return values[:, 0] if len(self.equations) == 1 else values

    def _check(self, inputs: Mapping[str, Input]) -> None:
        if not isinstance(inputs, Mapping):
            raise InvalidArgument("`inputs` must be a dictionary of tensors by name")
        if missing := [name for name in self.encoders.names if name not in inputs]:
            raise InvalidArgument(f"`inputs` lacks {listed(missing)}")


@dataclass(frozen=True, eq=False)
class LatentCandidate:
    """One law of the front: its equations with latents as this law would have them, its size, and the part of
    the targets' variance that it leaves with the encoders free to bend but not trained on."""

    equations: tuple[Equation, ...]
    complexity: int
    error: float

    @property
    def equation(self) -> Equation:
        return self.equations[0]

    def __str__(self) -> str:
        return "; ".join(map(str, self.equations))


@dataclass(frozen=True, eq=False)
class FoundLatent:
    """What `discover_latent` found.

    `equations` are in the names of latents and columns, in the canonical gauge; `equation` is the first (of
    one target, the only) one. `constants` are their fitted constants in reading order, with standard errors,
    for each equation. `front` are the laws that were compared, the simplest first; `equivalent` are laws that
    no data could tell from the one that was found, since they differ by a bend of a latent.

    `error` and `held_error` are the parts of the targets' variance that are left on rows that training saw,
    and on rows held back; `head_error` what a smooth network in the equation's place left. `agreement` is how
    many of the independent starts came to this law, and of how many.
    """

    equations: tuple[Equation, ...]
    constants: tuple[tuple[Constant, ...], ...]
    front: tuple[LatentCandidate, ...]
    equivalent: tuple[tuple[Equation, ...], ...]
    gauges: dict[str, Gauge]
    agreement: tuple[int, int]
    error: float
    held_error: float
    head_error: float
    seconds: float
    ended: str
    targets: tuple[str, ...] = ("y",)
    history: tuple[dict[str, Any], ...] = ()
    shown: dict[str, Any] = field(default_factory=dict)
    network: LatentModel | None = None

    @property
    def equation(self) -> Equation:
        """The equation of the first target."""
        return self.equations[0]

    @property
    def model(self) -> LatentModel:
        """The module from inputs and columns to targets: `found.model(inputs, columns)`."""
        if self.network is None:
            raise InvalidArgument(
                "this law was loaded without its encoders; give them, `eqlearn.load(folder, encoders={...})`"
            )
        return self.network

    @property
    def gauge(self) -> dict[str, Gauge]:
        """For each latent, the straight line nearest to it in the encoder's raw output, and how straight the
        relation is (its correlation). For an encoder of several outputs, the output that is nearest."""
        return self.gauges

    @torch.no_grad()
    def latent(self, name: str, x: Input) -> Tensor:
        """The latent of an input, `(rows,)`, in the canonical gauge; `(rows, n)` where a law uses several."""
        model = self.model.eval()
        if name not in model.encoders.names:
            hint = did_you_mean(name, model.encoders.names)
            raise InvalidArgument(f"there is no encoder {name!r}: {hint}")
        group = model.encoders.groups[model.encoders.names.index(name)]
        pieces = (x[begin : begin + 1_000] for begin in range(0, len(x), 1_000))
        read = [model.encoders.of_group(group, piece).double() for piece in pieces]
        bent = torch.cat([model.bends[group](z) for z in read])
        return bent[:, 0] if bent.shape[1] == 1 else bent

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Writes the law as JSON and the weights as safetensors into a folder; `eqlearn.load` reads it."""
        path = Path(folder)
        path.mkdir(parents=True, exist_ok=True)
        model = self.model
        write_tensors(path / MODEL, {"format": FORMAT, "version": VERSION}, model.state_dict())
        write_json(path / LAW, self.to_json())

    def to_json(self) -> dict[str, Any]:
        """Everything but the weights, as plain data."""
        model = self.model
        return {
            "format": FORMAT,
            "version": VERSION,
            "targets": list(self.targets),
            "equations": [e.to_json() for e in self.equations],
            "constants": [[[c.value, _plain(c.standard_error)] for c in each] for each in self.constants],
            "front": [
                {
                    "equations": [e.to_json() for e in c.equations],
                    "complexity": c.complexity,
                    "error": c.error,
                }
                for c in self.front
            ],
            "equivalent": [[e.to_json() for e in each] for each in self.equivalent],
            "gauges": {n: [g.scale, g.shift, g.correlation] for n, g in self.gauges.items()},
            "agreement": list(self.agreement),
            **{n: getattr(self, n) for n in ("error", "held_error", "head_error", "seconds", "ended")},
            "names": list(model.encoders.names),
            "groups": list(model.encoders.groups),
            "sizes": list(model.encoders.sizes),
            "slots": [[s.name, s.input, s.group, s.place] for s in model.slots],
            "columns": list(model.columns),
            "functions": [list(b.coefficients.shape) for b in model.bends if isinstance(b, Bend)],
            "history": list(self.history),
            "shown": self.shown,
        }

    def report(self, folder: str | os.PathLike[str]) -> Path:
        """Writes the report page, `report.html`, into a folder."""
        path = Path(folder)
        path.mkdir(parents=True, exist_ok=True)
        target = path / "report.html"
        target.write_text(latent_page(self), encoding="utf-8")
        return target

    def __str__(self) -> str:
        return "\n".join(f"{t} = {e}" for t, e in zip(self.targets, self.equations, strict=True))


def _plain(value: float) -> float | None:
    return value if np.isfinite(value) else None


def load_latent(
    folder: str | os.PathLike[str], encoders: Mapping[str, nn.Module] | None = None
) -> FoundLatent:
    """What `FoundLatent.save` wrote. The weights go into copies of the `encoders`, of the kinds that were
    trained; without them there are equations but no model."""
    path = Path(folder)
    plain, _ = read_checksummed(path / LAW)
    if plain.get("format") != FORMAT or plain.get("version") != VERSION:
        raise InvalidFile(f"{path / LAW} holds no law behind encoders that this version reads")
    try:
        equations = tuple(Equation.from_json(e) for e in plain["equations"])
        constants = tuple(
            tuple(Constant(float(v), float("inf") if e is None else float(e)) for v, e in each)
            for each in plain["constants"]
        )
        front = tuple(
            LatentCandidate(
                tuple(Equation.from_json(e) for e in c["equations"]), int(c["complexity"]), float(c["error"])
            )
            for c in plain["front"]
        )
        equivalent = tuple(tuple(Equation.from_json(e) for e in each) for each in plain["equivalent"])
        gauges = {str(n): Gauge(*g) for n, g in plain["gauges"].items()}
        slots = [Slot(str(a), int(b), int(c), int(d)) for a, b, c, d in plain["slots"]]
        network = None if encoders is None else _network(path, plain, encoders, equations, slots)
        agreed, of = plain["agreement"]
        return FoundLatent(
            equations,
            constants,
            front,
            equivalent,
            gauges,
            (int(agreed), int(of)),
            float(plain["error"]),
            float(plain["held_error"]),
            float(plain["head_error"]),
            float(plain["seconds"]),
            str(plain["ended"]),
            tuple(map(str, plain["targets"])),
            tuple(plain["history"]),
            dict(plain["shown"]),
            network,
        )
    except (LookupError, TypeError, ValueError, RuntimeError) as error:
        if isinstance(error, InvalidArgument):
            raise
        raise InvalidFile(f"{path / LAW} can't be loaded: {error}") from error


def _network(
    path: Path,
    plain: Mapping[str, Any],
    encoders: Mapping[str, nn.Module],
    equations: Sequence[Equation],
    slots: Sequence[Slot],
) -> LatentModel:
    names = list(map(str, plain["names"]))
    if list(encoders) != names:
        raise InvalidArgument(f"`encoders` must be for {listed(names)}, in this order; got {list(encoders)}")
    sizes = {n: int(plain["sizes"][g]) for n, g in zip(names, plain["groups"], strict=True)}
    reading = Encoders(deepcopy(dict(encoders)), sizes)
    if list(reading.groups) != list(plain["groups"]):
        raise InvalidArgument("`encoders` must share weights where the saved ones did: the same object twice")
    bends = []
    for size, (count, functions) in zip(plain["sizes"], plain["functions"], strict=True):
        basis = Basis.of_size(int(size), int(functions))
        bends.append(Bend(basis, torch.zeros(int(count), int(functions), dtype=torch.float64)))
    model = LatentModel(reading, bends, slots, equations, tuple(plain["columns"]))
    _, tensors = read_checksummed(path / MODEL)
    try:
        model.load_state_dict(tensors)
    except RuntimeError as error:
        raise InvalidArgument(f"`encoders` are not of the kind that was saved: {error}") from error
    return model.eval()
