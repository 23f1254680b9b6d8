"""Equations you can train: an equation is a layer, found by back-propagation, read as a formula.

The public names are loaded on first use, so that `import eqlearn` and `eqlearn --help` stay fast.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    "eqlearn.functions": ("Function", "register_function"),
    "eqlearn.nn.primitives": ("PRIMITIVES", "Primitive", "register"),
    "eqlearn.nn.sparse": ("SparseLinear", "prune_", "settle_", "weights_left"),
    "eqlearn.nn.penalties": ("L0", "Group", "Lq", "SmoothHalf", "sparsity"),
    "eqlearn.nn.eql": ("EQL", "Init"),
    "eqlearn.symbolic.equation": ("Equation",),
    "eqlearn.io.storage": ("load", "save"),
    "eqlearn.training.schedule": ("Phase",),
    "eqlearn.training.loop": ("train",),
    "eqlearn.training.presets": ("PRESETS", "train_population"),
    "eqlearn.search.networks.refine": ("eliminate", "polish"),
    "eqlearn.search.refit": ("refit",),
    "eqlearn.search.settings": ("Settings",),
    "eqlearn.search.search": ("discover",),
    "eqlearn.verify.judge": ("Verdict", "judge"),
    "eqlearn.validation.trajectories": ("Trajectories",),
    "eqlearn.latent.gauge": ("Gauge", "fit_gauge"),
    "eqlearn.latent.images": ("ImageEncoder",),
    "eqlearn.latent.arithmetic": ("ImageArithmetic",),
    "eqlearn.latent.series": ("SeriesEncoder",),
    "eqlearn.latent.cells": ("EQLCell", "rollout"),
    "eqlearn.latent.system": ("DynamicsSystem",),
    "eqlearn.latent.find": ("find_dynamics",),
    "eqlearn.dynamics.discover": ("discover_dynamics",),
    "eqlearn.dynamics.hidden": ("discover_hidden",),
    "eqlearn.estimator": ("EQLRegressor",),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}
__all__ = ["__version__", *sorted(_HOME_OF)]

if TYPE_CHECKING:
    from eqlearn.dynamics.discover import discover_dynamics as discover_dynamics
    from eqlearn.dynamics.hidden import discover_hidden as discover_hidden
    from eqlearn.estimator import EQLRegressor as EQLRegressor
    from eqlearn.functions import Function as Function
    from eqlearn.functions import register_function as register_function
    from eqlearn.io.storage import load as load
    from eqlearn.io.storage import save as save
    from eqlearn.latent.arithmetic import ImageArithmetic as ImageArithmetic
    from eqlearn.latent.cells import EQLCell as EQLCell
    from eqlearn.latent.cells import rollout as rollout
    from eqlearn.latent.find import find_dynamics as find_dynamics
    from eqlearn.latent.gauge import Gauge as Gauge
    from eqlearn.latent.gauge import fit_gauge as fit_gauge
    from eqlearn.latent.images import ImageEncoder as ImageEncoder
    from eqlearn.latent.series import SeriesEncoder as SeriesEncoder
    from eqlearn.latent.system import DynamicsSystem as DynamicsSystem
    from eqlearn.nn.eql import EQL as EQL
    from eqlearn.nn.eql import Init as Init
    from eqlearn.nn.penalties import L0 as L0
    from eqlearn.nn.penalties import Group as Group
    from eqlearn.nn.penalties import Lq as Lq
    from eqlearn.nn.penalties import SmoothHalf as SmoothHalf
    from eqlearn.nn.penalties import sparsity as sparsity
    from eqlearn.nn.primitives import PRIMITIVES as PRIMITIVES
    from eqlearn.nn.primitives import Primitive as Primitive
    from eqlearn.nn.primitives import register as register
    from eqlearn.nn.sparse import SparseLinear as SparseLinear
    from eqlearn.nn.sparse import prune_ as prune_
    from eqlearn.nn.sparse import settle_ as settle_
    from eqlearn.nn.sparse import weights_left as weights_left
    from eqlearn.search.networks.refine import eliminate as eliminate
    from eqlearn.search.networks.refine import polish as polish
    from eqlearn.search.refit import refit as refit
    from eqlearn.search.search import discover as discover
    from eqlearn.search.settings import Settings as Settings
    from eqlearn.symbolic.equation import Equation as Equation
    from eqlearn.training.loop import train as train
    from eqlearn.training.presets import PRESETS as PRESETS
    from eqlearn.training.presets import train_population as train_population
    from eqlearn.training.schedule import Phase as Phase
    from eqlearn.validation.trajectories import Trajectories as Trajectories
    from eqlearn.verify.judge import Verdict as Verdict
    from eqlearn.verify.judge import judge as judge


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'eqlearn' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME_OF[name]), name)


def __dir__() -> list[str]:
    return __all__
