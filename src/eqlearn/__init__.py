"""Equations you can train: an equation is a layer, found by back-propagation, read as a formula.

The public names are loaded on first use, so that `import eqlearn` and `eqlearn --help` stay fast.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    "eqlearn.core.primitives": ("PRIMITIVES", "Primitive", "register"),
    "eqlearn.core.sparse": ("SparseLinear", "prune_", "settle_", "weights_left"),
    "eqlearn.core.penalties": ("L0", "Group", "Lq", "SmoothHalf", "sparsity"),
    "eqlearn.core.network": ("EQL", "Init"),
    "eqlearn.core.equation": ("Equation",),
    "eqlearn.core.storage": ("load", "save"),
    "eqlearn.training.schedule": ("Phase",),
    "eqlearn.training.loop": ("train",),
    "eqlearn.training.presets": ("PRESETS", "train_population"),
    "eqlearn.discovery.polish": ("polish",),
    "eqlearn.discovery.eliminate": ("eliminate",),
    "eqlearn.discovery.refit": ("refit",),
    "eqlearn.discovery.run": ("Settings", "discover"),
    "eqlearn.discovery.judge": ("Verdict", "judge"),
    "eqlearn.systems.trajectories": ("Trajectories",),
    "eqlearn.systems.gauge": ("Gauge", "fit_gauge"),
    "eqlearn.systems.images": ("ImageEncoder",),
    "eqlearn.systems.arithmetic": ("ImageArithmetic",),
    "eqlearn.systems.series": ("SeriesEncoder",),
    "eqlearn.systems.cells": ("EQLCell",),
    "eqlearn.systems.rollout": ("rollout",),
    "eqlearn.systems.dynamics": ("DynamicsSystem",),
    "eqlearn.systems.find": ("find_dynamics",),
    "eqlearn.systems.motion": ("discover_dynamics",),
    "eqlearn.systems.hidden": ("discover_hidden",),
    "eqlearn.estimator": ("EQLRegressor",),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}
__all__ = ["__version__", *sorted(_HOME_OF)]

if TYPE_CHECKING:
    from eqlearn.core.equation import Equation as Equation
    from eqlearn.core.network import EQL as EQL
    from eqlearn.core.network import Init as Init
    from eqlearn.core.penalties import L0 as L0
    from eqlearn.core.penalties import Group as Group
    from eqlearn.core.penalties import Lq as Lq
    from eqlearn.core.penalties import SmoothHalf as SmoothHalf
    from eqlearn.core.penalties import sparsity as sparsity
    from eqlearn.core.primitives import PRIMITIVES as PRIMITIVES
    from eqlearn.core.primitives import Primitive as Primitive
    from eqlearn.core.primitives import register as register
    from eqlearn.core.sparse import SparseLinear as SparseLinear
    from eqlearn.core.sparse import prune_ as prune_
    from eqlearn.core.sparse import settle_ as settle_
    from eqlearn.core.sparse import weights_left as weights_left
    from eqlearn.core.storage import load as load
    from eqlearn.core.storage import save as save
    from eqlearn.discovery.eliminate import eliminate as eliminate
    from eqlearn.discovery.judge import Verdict as Verdict
    from eqlearn.discovery.judge import judge as judge
    from eqlearn.discovery.polish import polish as polish
    from eqlearn.discovery.refit import refit as refit
    from eqlearn.discovery.run import Settings as Settings
    from eqlearn.discovery.run import discover as discover
    from eqlearn.estimator import EQLRegressor as EQLRegressor
    from eqlearn.systems.arithmetic import ImageArithmetic as ImageArithmetic
    from eqlearn.systems.cells import EQLCell as EQLCell
    from eqlearn.systems.dynamics import DynamicsSystem as DynamicsSystem
    from eqlearn.systems.find import find_dynamics as find_dynamics
    from eqlearn.systems.gauge import Gauge as Gauge
    from eqlearn.systems.gauge import fit_gauge as fit_gauge
    from eqlearn.systems.hidden import discover_hidden as discover_hidden
    from eqlearn.systems.images import ImageEncoder as ImageEncoder
    from eqlearn.systems.motion import discover_dynamics as discover_dynamics
    from eqlearn.systems.rollout import rollout as rollout
    from eqlearn.systems.series import SeriesEncoder as SeriesEncoder
    from eqlearn.systems.trajectories import Trajectories as Trajectories
    from eqlearn.training.loop import train as train
    from eqlearn.training.presets import PRESETS as PRESETS
    from eqlearn.training.presets import train_population as train_population
    from eqlearn.training.schedule import Phase as Phase


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'eqlearn' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME_OF[name]), name)


def __dir__() -> list[str]:
    return __all__
