"""Files of networks, equations and training in progress; loading one never runs code from it."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from time import monotonic
from types import NoneType
from typing import Any

import torch
from torch import Tensor

from eqlearn.errors import EqlearnError, InvalidArgument, InvalidFile, WrongType
from eqlearn.io.checksummed import read_checksummed, write_json, write_tensors
from eqlearn.nn.eql import EQL, layer_widths
from eqlearn.nn.primitives import PRIMITIVES, Primitive, format_set, parse_counts
from eqlearn.symbolic.equation import Equation
from eqlearn.training.loop import Beginning, Record
from eqlearn.training.state import TrainingState

NETWORK, VERSION = "eqlearn-network", 1

_FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
_SIZES = ("in_features", "out_features", "members", "skip", "bias")
_STRUCTURE: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("version", "in_features", "out_features"), (int,)),
    "members": (int, NoneType),
    **dict.fromkeys(("skip", "bias", "gates", "training"), (bool,)),
    "layers": (list,),
    "values": (dict,),
}


def save(thing: EQL | Equation, path: str | os.PathLike[str]) -> None:
    """Writes a network as one safetensors file, or an equation as one JSON file, whole or not at all.

    Weights are kept to the bit; NaN is allowed, since a diverged member is a result too.
    """
    if isinstance(thing, Equation):
        write_json(path, thing.to_json())
    elif isinstance(thing, EQL):
        write_tensors(path, _describe(thing), thing.state_dict())
    else:
        raise WrongType(f"`thing` must be an EQL or an Equation, got {type(thing).__name__}")


def load(path: str | os.PathLike[str]) -> EQL | Equation:
    """The network or the equation that `save` wrote.

    A custom primitive must be registered first, under the name it had.

    **Raises:** `InvalidFile` for a file that is truncated, altered, crafted or not ours; nothing in it is
    ever unpickled or evaluated.
    """
    plain, tensors = read_checksummed(path)
    try:
        if plain.get("format") == NETWORK:
            return _network(plain, tensors)
        return Equation.from_json(plain)
    except (EqlearnError, RecursionError) as error:
        raise InvalidFile(f"{path} can't be loaded: {error}") from error


def _describe(net: EQL) -> dict[str, Any]:
    if len({linear.gate is None for linear in net.linears}) > 1:
        raise InvalidArgument(
            "only some layers of the network have gates; call `settle_` on it before saving"
        )
    units = {unit for layer in net.layers for unit in layer.units}
    for unit in units:
        if PRIMITIVES.get(unit.name) is not unit:
            raise InvalidArgument(
                f"primitive {unit.name!r} can't be saved by name; call `register` on it first"
            )
    return {
        "format": NETWORK,
        "version": VERSION,
        **{name: getattr(net, name) for name in _SIZES},
        "gates": net.readout.gate is not None,
        "training": net.training,
        "layers": [format_set(layer.units) for layer in net.layers],
        "values": {unit.name: _probe(unit) for unit in sorted(units, key=lambda u: u.name)},
    }


def _probe(unit: Primitive) -> str:
    """One value of a primitive, which shows whether its name still means the same function."""
    arguments = (torch.tensor(0.37 + 0.11 * i, dtype=torch.float64) for i in range(unit.arity))
    return f"{float(unit(*arguments)):.9e}"


def _network(plain: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> EQL:
    for name, kinds in _STRUCTURE.items():
        if type(plain.get(name)) not in kinds:
            raise InvalidFile(f"its `{name}` is {plain.get(name)!r:.40}")
    if plain["version"] != VERSION:
        raise InvalidFile(f"its version is {plain['version']}; this library reads {VERSION}")
    if not all(isinstance(text, str) for text in plain["layers"]):
        raise InvalidFile("its `layers` are not texts")
    counts = [parse_counts(text) for text in plain["layers"]]
    for unit in {unit for layer in counts for unit, _ in layer}:
        _check_meaning(unit, plain["values"].get(unit.name))
    # Every size is compared with an actual tensor before anything is built from it.
    dtype = tensors["readout.raw"].dtype if "readout.raw" in tensors else None
    if dtype not in _FLOATS:
        raise InvalidFile(f"its weights are of type {dtype}")
    expected = dict(_expected(plain, counts, dtype))
    found = {name: (tuple(t.shape), t.dtype) for name, t in tensors.items()}
    if found != expected:
        name = min(n for n in found.keys() | expected if found.get(n) != expected.get(n))
        raise InvalidFile(f"its tensor {name!r:.60} does not fit the network it describes")
    sizes = {name: plain[name] for name in _SIZES}
    net = EQL(primitives=plain["layers"], hidden_layers=len(counts), gates=plain["gates"], seed=0, **sizes)
    net.to(dtype).load_state_dict(dict(tensors))
    return net.train(plain["training"])


def _check_meaning(unit: Primitive, value: Any) -> None:
    try:
        then, now = float(value), float(_probe(unit))
    except (TypeError, ValueError) as error:
        raise InvalidFile(f"its value of primitive {unit.name!r} is {value!r:.40}") from error
    if not (math.isclose(then, now, rel_tol=1e-6, abs_tol=1e-12) or (math.isnan(then) and math.isnan(now))):
        raise InvalidFile(f"primitive {unit.name!r} meant another function when it was saved")


def _expected(
    plain: Mapping[str, Any], counts: Sequence[Sequence[tuple[Primitive, int]]], dtype: torch.dtype
) -> Iterator[tuple[str, tuple[tuple[int, ...], torch.dtype]]]:
    """The name, shape and type of every tensor in the network's state."""
    units = [sum(count for _, count in layer) for layer in counts]
    arguments = [sum(unit.arity * count for unit, count in layer) for layer in counts]
    names = [*(f"hidden.{depth}.linear" for depth in range(len(counts))), "readout"]
    heights = [*arguments, plain["out_features"]]
    widths = layer_widths(plain["in_features"], units, plain["skip"], plain["bias"])
    members = () if plain["members"] is None else (plain["members"],)
    for name, height, width in zip(names, heights, widths, strict=True):
        shape = (*members, height, width)
        if min(shape) < 1:
            raise InvalidFile(f"its map {name!r} has the shape {shape}")
        yield f"{name}.raw", (shape, dtype)
        yield f"{name}.mask", (shape, torch.bool)
        if plain["gates"]:
            yield f"{name}.gate.log_alpha", (shape, dtype)
            yield f"{name}.gate.seeds", (members or (1,), torch.int64)
            yield f"{name}.gate.step", ((), torch.int64)


def followed(path: Path, start: Beginning, every: float = 20.0) -> Iterator[Record]:
    """Trains to the end and yields the records; the state is written every `every` seconds and at the end.

    ```python
    for record in followed(folder / "training.safetensors", lambda state: train(..., resume=state)):
        ...
    ```

    If the file exists, `start` gets its state, and training continues to the same end. The file remains, so
    that what follows the training may be killed too; remove it once the result is safe.
    """
    state = None
    if path.exists():
        plain, tensors = read_checksummed(path)
        state = TrainingState.of(tensors, plain)
    training = start(state)
    path.parent.mkdir(parents=True, exist_ok=True)
    written = monotonic()
    for record in training:
        yield record
        if monotonic() - written >= every:
            _write(path, training.state())
            written = monotonic()
    _write(path, training.state())


def opened_journal(folder: str | os.PathLike[str], about: Mapping[str, Any]) -> Path:
    """The folder where the trainings of a search are kept, after a check that they are of this search, the
    one that is `about` these data, seed and settings."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "journal.json"
    if not path.exists():
        write_json(path, about)
    elif json.dumps(read_checksummed(path)[0], sort_keys=True) != json.dumps(about, sort_keys=True):
        raise InvalidArgument(
            f"`journal` {folder} belongs to another search (other data, seed or settings); use another folder"
        )
    return folder


def _write(path: Path, state: TrainingState) -> None:
    write_tensors(path, state.plain(), state.tensors)
