"""How kinematics and the oscillator are trained: the paper's text, the released code, and ours, as data.

Numbers in brackets are rows of "the paper's text and the authors' code" in docs/paper.md. What the paper does
not give is taken from the released code: the optimiser [12], the spread of first weights [48], the length of
the oscillator's later phases [55] and its batch [58].
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal

from eqlearn import (
    L0,
    CellShape,
    DynamicsSearch,
    DynamicsSettings,
    EncoderShape,
    GatedL0,
    Phase,
    RMSPropTF1,
    Schedule,
    SmoothHalf,
    UnknownName,
)
from eqlearn.paper.benchmark import PAPER, RELEASED
from eqlearn.paper.dynamics.data import KINEMATICS, OSCILLATOR, RELEASED_OSCILLATOR, System

PAPER_OSCILLATOR = "one*2 id*2 square sin exp mul10*2"


@dataclass(frozen=True)
class DynamicsPreset:
    """A system and how its equations are looked for."""

    system: System
    settings: DynamicsSettings | DynamicsSearch


def _kinematics(one: int, five: int, fine: int) -> Schedule:
    return (
        Phase(name="one step", steps=one, lr=1e-2, penalty=1e-3, horizon=1),
        Phase(name="five steps", steps=five, lr=1e-2, penalty=1e-3, horizon=5, prune_below=0.1),  # [43, 44]
        Phase(name="fine-tune", steps=fine, lr=1e-3, horizon=5),
    )


# Neither text nor code says how long the L0 run goes on: as long as the other [42].
_KINEMATICS_L0: Schedule = (
    Phase(name="one step", steps=4_001, lr=1e-2, penalty=1e-3, horizon=1),
    Phase(name="five steps", steps=6_000, lr=1e-2, penalty=1e-3, horizon=5),
)
_PAPER_OSCILLATOR: Schedule = (
    *(Phase(name=f"{h} steps", steps=500, lr=1e-2, penalty=4e-5, horizon=h) for h in (1, 3, 5, 7)),
    Phase(name="25 steps", steps=5_000, lr=2e-3, penalty=2e-4, horizon=25, prune_below=0.01),
    Phase(name="fine-tune", steps=5_000, lr=1e-3, horizon=25),
)
_RELEASED_OSCILLATOR: Schedule = (
    *(
        Phase(
            name=f"{h} steps", steps=500 if h < 9 else 1, lr=1e-2, penalty=4e-5, horizon=h,
            ramp="sin2", ramp_start=500 * i, ramp_steps=7_002,
        )  # [53, 54]
        for i, h in enumerate((1, 3, 5, 7, 9))
    ),
    Phase(
        name="25 steps", steps=5_001, lr=2e-3, penalty=2e-4, horizon=25, prune_below=0.01,
        ramp="sin2", ramp_start=2_001, ramp_steps=7_002,
    ),
    Phase(name="fine-tune", steps=5_001, lr=1e-3, horizon=25),
)  # fmt: skip
_OSCILLATOR_L0: Schedule = (
    *(
        Phase(name=f"{h} steps", steps=1_000, lr=1e-3, penalty=1e-2, horizon=h)
        for h in (1, 2, 3, 4, 5, 7, 10, 15)
    ),
    Phase(name="25 steps", steps=2_001, lr=1e-3, penalty=1e-2, horizon=25),
    Phase(name="lower rate", steps=10_001, lr=1e-4, penalty=1e-2, horizon=25),  # [60]
)

_PAPER_CELL = CellShape(primitives=PAPER, init="released-systems")
_RELEASED_CELL = CellShape(primitives=RELEASED, init="released-systems", constant_input=True)  # [7, 46]
_PAPER_KINEMATICS = DynamicsSettings(
    encoder=EncoderShape(padding="same"),
    cell=_PAPER_CELL,
    schedule=_kinematics(1_000, 4_000, 10_000),
    optimiser=RMSPropTF1,
    penalty=SmoothHalf(a=0.01),
)
_RELEASED_KINEMATICS = DynamicsSettings(
    encoder=EncoderShape(affine=True, padding="same", epsilon=1e-3),  # [33]
    cell=_RELEASED_CELL,
    schedule=_kinematics(2_501, 2_500, 5_001),  # [42, 43, 45]
    optimiser=RMSPropTF1,
    penalty=SmoothHalf(a=0.05),  # [5]
)
_PAPER_OSCILLATOR_RUN = replace(
    _PAPER_KINEMATICS,
    cell=replace(_PAPER_CELL, primitives=PAPER_OSCILLATOR),
    schedule=_PAPER_OSCILLATOR,
    batch=128,
)
_RELEASED_OSCILLATOR_RUN = replace(
    _RELEASED_KINEMATICS, schedule=_RELEASED_OSCILLATOR, batch=128
)  # [52, 53, 58]


def _gated(settings: DynamicsSettings, schedule: Schedule, *, released: bool) -> DynamicsSettings:
    """The L0 version: gates everywhere, or, as in the released code [8], not in the read-out."""
    cell = replace(settings.cell, gates=True, gated_readout=not released)
    return replace(settings, cell=cell, schedule=schedule, penalty=GatedL0() if released else L0())


# Ours, the same for both systems: a search among the paper's functions. The step is written as a change,
# `y' = y + dt f(y, z)`, so that a small dt is no obstacle.
_MODERN = DynamicsSearch(form="residual", primitives=PAPER)


DYNAMICS_PRESETS: Mapping[str, DynamicsPreset] = MappingProxyType(
    {
        "kinematics modern": DynamicsPreset(KINEMATICS, _MODERN),
        "kinematics paper half": DynamicsPreset(KINEMATICS, _PAPER_KINEMATICS),
        "kinematics paper l0": DynamicsPreset(
            KINEMATICS, _gated(_PAPER_KINEMATICS, _KINEMATICS_L0, released=False)
        ),
        "kinematics released half": DynamicsPreset(KINEMATICS, _RELEASED_KINEMATICS),
        "kinematics released l0": DynamicsPreset(
            KINEMATICS, _gated(_RELEASED_KINEMATICS, _KINEMATICS_L0, released=True)
        ),
        "oscillator modern": DynamicsPreset(OSCILLATOR, _MODERN),
        "oscillator paper half": DynamicsPreset(OSCILLATOR, _PAPER_OSCILLATOR_RUN),
        "oscillator paper l0": DynamicsPreset(
            OSCILLATOR, _gated(_PAPER_OSCILLATOR_RUN, _OSCILLATOR_L0, released=False)
        ),
        "oscillator released half": DynamicsPreset(RELEASED_OSCILLATOR, _RELEASED_OSCILLATOR_RUN),
        "oscillator released l0": DynamicsPreset(
            RELEASED_OSCILLATOR,
            replace(
                _gated(_RELEASED_OSCILLATOR_RUN, _OSCILLATOR_L0, released=True),
                encoder=replace(_RELEASED_KINEMATICS.encoder, convolutions=4),  # [59]
            ),
        ),
    }
)


def find_preset(system: str, recipe: str) -> DynamicsPreset:
    """The preset of that system and recipe: `modern`, or another with its penalty, `paper-half`."""
    name = f"{system} {recipe.replace('-', ' ')}"
    if name not in DYNAMICS_PRESETS:
        raise UnknownName(f"no preset {name!r}; the known ones are {', '.join(DYNAMICS_PRESETS)}")
    return DYNAMICS_PRESETS[name]


def quick(preset: DynamicsPreset) -> DynamicsPreset:
    """A tenth of the steps, of a search at least what finds a simple law: to see that everything runs, not to
    be quoted."""

    def shorter(schedule: Schedule, least: int) -> Schedule:
        return tuple(replace(p, steps=min(p.steps, max(least, p.steps // 10))) for p in schedule)

    settings = preset.settings
    if isinstance(settings, DynamicsSearch):
        few = replace(settings.structures, warm_steps=200, starts=1, max_starts=1, structures=60)
        return replace(
            preset, settings=replace(settings, structures=few, distil=shorter(settings.distil, 500))
        )
    schedule = shorter(settings.schedule, 100)
    return replace(preset, settings=replace(settings, schedule=schedule, members=1))


@dataclass(frozen=True)
class Twin:
    """A ReLU network that stands where the EQL cell stands: its depth, how it is trained, and how its
    encoder's series are scaled."""

    depth: int
    schedule: Schedule
    scaling: Literal["state", "time"]


# Recurrent, with shared weights [47, 61], the same encoder and form as the preset, our scaling, and more
# steps than our own equations get.
TWINS: Mapping[str, Twin] = MappingProxyType(
    {
        "kinematics": Twin(
            depth=2,
            schedule=(
                Phase(name="one step", steps=500, lr=3e-3, horizon=1, clip=1.0),
                Phase(name="five steps", steps=2_000, lr=3e-3, horizon=5, clip=1.0, decay="cosine"),
            ),
            scaling="time",
        ),
        "oscillator": Twin(
            depth=4,
            schedule=(
                *(Phase(name=f"{h} steps", steps=250, lr=2e-3, horizon=h, clip=1.0) for h in (1, 3, 5, 7)),
                Phase(name="25 steps", steps=1_000, lr=2e-3, horizon=25, clip=1.0, decay="cosine"),
            ),
            scaling="state",
        ),
    }
)
