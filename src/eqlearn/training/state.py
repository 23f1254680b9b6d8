"""The state of a training run as named tensors and plain numbers; randomness by seed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from eqlearn.errors import Diverged, InvalidFile, WrongType
from eqlearn.training.members import Failure

Result = TypeVar("Result")


@dataclass(frozen=True, kw_only=True, eq=False)
class TrainingState:
    """A run between two steps: `train(..., resume=state)` continues it as if it had never stopped.

    `phase` is an index into the schedule and `step` the number of steps done in that phase. Tensors are
    named `model.*`, `kept.*`, `optimiser.*` and `loss.*`.
    """

    phase: int
    step: int
    seconds: float
    failures: tuple[Failure, ...]
    tensors: Mapping[str, Tensor]

    def plain(self) -> dict[str, Any]:
        """Everything but the tensors, for JSON."""
        failures = [asdict(failure) for failure in self.failures]
        return {"phase": self.phase, "step": self.step, "seconds": self.seconds, "failures": failures}

    @classmethod
    def of(cls, tensors: Mapping[str, Tensor], plain: Mapping[str, Any]) -> TrainingState:
        """The state from its tensors and the result of `plain`."""
        try:
            failures = tuple(Failure(**failure) for failure in plain["failures"])
            phase, step, seconds = int(plain["phase"]), int(plain["step"]), float(plain["seconds"])
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidFile(f"this is not a training state: {type(error).__name__}: {error}") from error
        return cls(phase=phase, step=step, seconds=seconds, failures=failures, tensors=dict(tensors))

    def part(self, name: str) -> dict[str, Tensor]:
        """Copies of the tensors under `name`, without that prefix."""
        prefix = f"{name}."
        return {k.removeprefix(prefix): t.clone() for k, t in self.tensors.items() if k.startswith(prefix)}


def named(name: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Copies of `tensors`, each under the prefix `name`."""
    return {f"{name}.{key}": tensor.detach().clone() for key, tensor in tensors.items()}


def optimiser_tensors(optimiser: Optimizer) -> dict[str, Tensor]:
    """The state of the optimiser, by parameter number and slot."""
    tensors = {}
    for number, slots in optimiser.state_dict()["state"].items():
        for slot, value in slots.items():
            if isinstance(value, Tensor):
                tensors[f"{number}.{slot}"] = value
            elif value is not None:
                raise WrongType(
                    f"{type(optimiser).__name__} keeps {slot!r} as {type(value).__name__}, not a tensor, so "
                    "its runs can't be taken up again; choose another `optimiser`"
                )
    return tensors


def load_optimiser_(optimiser: Optimizer, tensors: Mapping[str, Tensor]) -> None:
    """Gives a new optimiser the state that `optimiser_tensors` read.

    Each tensor gets the memory layout of its parameter: in another, sums may be rounded differently, and a
    resumed run would end elsewhere.
    """
    parameters = [p for group in optimiser.param_groups for p in group["params"]]
    state: dict[int, dict[str, Tensor]] = {}
    for key, tensor in tensors.items():
        number, _, slot = key.partition(".")
        like = parameters[int(number)]
        alike = tensor.shape == like.shape
        state.setdefault(int(number), {})[slot] = torch.empty_like(like).copy_(tensor) if alike else tensor
    optimiser.load_state_dict({**optimiser.state_dict(), "state": state})


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seeds torch inside the block and restores the caller's random state after it."""
    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        torch.manual_seed(seed)
        yield


@contextmanager
def at_rest(module: nn.Module) -> Iterator[None]:
    """The module in `eval()` inside the block; afterwards every part is in the mode that it was in."""
    modes = {part: part.training for part in module.modules()}
    module.eval()
    try:
        yield
    finally:
        for part, training in modes.items():
            part.training = training


def restart_seed(seed: int, restart: int) -> int:
    """The seed of a trial that begins again for the `restart`-th time, away from those of other trials."""
    return seed + restart * 1_000_003


def restarted(run: Callable[[int], Result], most: int = 20) -> tuple[Result, int]:
    """`run(restart)` for restart 0, 1, ..., until one does not raise `Diverged`; and how many that took.

    The authors' scripts begin a trial again whose loss is NaN, without limit; after `most`, the error stands.
    """
    for restart in range(most):
        try:
            return run(restart), restart
        except Diverged:
            pass
    return run(most), most


def step_generator(seed: int, step: int | torch.Tensor) -> torch.Generator:
    """The generator of one step: what a step draws does not depend on the steps before it."""
    # torch's generator uses only 32 bits of a seed; a prime keeps the steps of two seeds apart.
    return torch.Generator().manual_seed((seed * 1_000_003 + int(step)) % 2**32)
