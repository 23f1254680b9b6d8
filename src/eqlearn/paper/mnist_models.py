"""Trained arithmetic systems on disk: the encoder's tensors and the equation, each a safe file."""

from __future__ import annotations

from dataclasses import asdict, fields
from pathlib import Path

from torch import nn

from eqlearn import EQL, ImageArithmetic, InvalidFile, load, read_checksummed, save, write_tensors
from eqlearn.paper.mnist import Condition, build

FORMAT = "eqlearn-image-arithmetic"
_SYSTEM, _EQUATION = "system.safetensors", "equation.safetensors"


def save_system(folder: Path, model: ImageArithmetic, condition: Condition, side: int) -> None:
    """Writes the system into `folder`; the equation also by itself, for `eqlearn.load`."""
    folder.mkdir(parents=True, exist_ok=True)
    plain = {"format": FORMAT, "condition": asdict(condition), "side": side}
    own = model.encoder if isinstance(model.equation, EQL) else model
    write_tensors(folder / _SYSTEM, plain, own.state_dict())
    if isinstance(model.equation, EQL):
        save(model.equation, folder / _EQUATION)


def load_system(folder: Path) -> tuple[ImageArithmetic, Condition]:
    """The system that `save_system` wrote, in `eval()`."""
    plain, tensors = read_checksummed(folder / _SYSTEM)
    if plain.get("format") != FORMAT:
        raise InvalidFile(f"{folder / _SYSTEM} holds no image arithmetic")
    known = {field.name for field in fields(Condition)}
    try:
        condition = Condition(**{name: plain["condition"][name] for name in known})
        model = build(condition, int(plain["side"]), 0)
        own: nn.Module = model if condition.network == "relu" else model.encoder
        own.load_state_dict(tensors)
    except (LookupError, TypeError, ValueError, RuntimeError) as error:
        raise InvalidFile(f"{folder / _SYSTEM} does not fit what it says it is: {error}") from error
    if condition.network == "eql":
        equation = load(folder / _EQUATION)
        if not isinstance(equation, EQL):
            raise InvalidFile(f"{folder / _EQUATION} holds no network")
        model.equation = equation
    return model.eval(), condition
