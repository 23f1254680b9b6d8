"""Training schedules as data: phases, and how learning rate and penalty change within one."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from eqlearn.errors import InvalidArgument, WrongType

Ramp: TypeAlias = Literal["constant", "linear", "sin2"]
Decay: TypeAlias = Literal["none", "cosine", "one-cycle"]

# The factor of the penalty at the fraction `t` of the ramp; "sin2" is the released code's sin²(π·i/(1.1·n)).
RAMPS: dict[Ramp, Callable[[float], float]] = {
    "constant": lambda t: 1.0,
    "linear": lambda t: min(t, 1.0),
    "sin2": lambda t: math.sin(math.pi * t / 1.1) ** 2,
}


def _fall(t: float) -> float:
    return 0.5 * (1 + math.cos(math.pi * t))


def _one_cycle(t: float) -> float:
    """From 1/25 up to 1 in the first three tenths, then down to 1e-4."""
    return 1 - 0.96 * _fall(t / 0.3) if t < 0.3 else 1e-4 + (1 - 1e-4) * _fall((t - 0.3) / 0.7)


# The factor of the learning rate at the fraction `t` of what follows the warm-up.
DECAYS: dict[Decay, Callable[[float], float]] = {
    "none": lambda t: 1.0,
    "cosine": _fall,
    "one-cycle": _one_cycle,
}


@dataclass(frozen=True, kw_only=True)
class Phase:
    """One phase of training: a number of steps at a learning rate, with a weight λ of the penalty.

    `warm_up` steps raise the rate from zero, then `decay` lowers it. `ramp` changes λ over `ramp_steps` (by
    default those of the phase), of which `ramp_start` lie before the phase, for a ramp that spans phases.
    `prune_below` prunes once, at the end of the phase. `clip` bounds the norm of each member's gradient.
    `horizon` is the number of steps that recurrent systems unroll.
    """

    name: str
    steps: int
    lr: float
    penalty: float = 0.0
    ramp: Ramp = "constant"
    ramp_start: int = 0
    ramp_steps: int | None = None
    warm_up: int = 0
    decay: Decay = "none"
    prune_below: float | None = None
    clip: float | None = None
    horizon: int | None = None

    def __post_init__(self) -> None:
        if problems := self._problems():
            raise InvalidArgument(f"phase {self.name!r}: {'; '.join(problems)}")

    def _problems(self) -> list[str]:
        threshold = self.prune_below
        rules = (
            ("steps", self.steps >= 1, "at least 1"),
            ("lr", 0 < self.lr < math.inf, "positive and finite"),
            ("penalty", 0 <= self.penalty < math.inf, "zero or positive, and finite"),
            ("ramp", self.ramp in RAMPS, f"one of {', '.join(RAMPS)}"),
            ("ramp_start", self.ramp_start >= 0, "zero or positive"),
            ("ramp_steps", self.ramp_steps is None or self.ramp_steps >= 1, "at least 1"),
            ("warm_up", 0 <= self.warm_up <= max(self.steps, 0), f"from 0 to `steps`={self.steps}"),
            ("decay", self.decay in DECAYS, f"one of {', '.join(DECAYS)}"),
            ("prune_below", threshold is None or 0 < threshold < math.inf, "positive and finite"),
            ("clip", self.clip is None or 0 < self.clip < math.inf, "positive and finite"),
            ("horizon", self.horizon is None or self.horizon >= 1, "at least 1"),
        )
        broken = [(name, rule) for name, holds, rule in rules if not holds]
        problems = [f"`{name}` must be {rule}, got {getattr(self, name)!r}" for name, rule in broken]
        if self.warm_up > 0 and self.decay == "one-cycle":
            problems.append(f"`decay`='one-cycle' warms up by itself, leave out `warm_up`={self.warm_up}")
        return problems

    def lr_at(self, step: int) -> float:
        """The learning rate at a step, counted from zero."""
        if step < self.warm_up:
            return self.lr * (step + 1) / self.warm_up
        return self.lr * DECAYS[self.decay]((step - self.warm_up) / max(self.steps - self.warm_up, 1))

    def penalty_at(self, step: int) -> float:
        """λ at a step, counted from zero."""
        return self.penalty * RAMPS[self.ramp]((step + self.ramp_start) / (self.ramp_steps or self.steps))


Schedule: TypeAlias = tuple[Phase, ...]


def check_schedule(schedule: Sequence[Phase]) -> Schedule:
    """The schedule as a tuple, or one error that lists everything wrong with it."""
    if isinstance(schedule, Phase):
        raise WrongType("`schedule` must be a sequence of phases; put the one in parentheses, `(phase,)`")
    if strangers := [type(phase).__name__ for phase in schedule if not isinstance(phase, Phase)]:
        raise WrongType(f"`schedule` must hold Phase objects, got {', '.join(strangers)}")
    problems = [] if schedule else ["it is empty; give at least one Phase"]
    names = [phase.name for phase in schedule]
    for name in sorted({n for n in names if names.count(n) > 1}):
        problems.append(f"{names.count(name)} phases are named {name!r}; records tell them apart by name")
    if problems:
        raise InvalidArgument(f"`schedule`: {'; '.join(problems)}")
    return tuple(schedule)
