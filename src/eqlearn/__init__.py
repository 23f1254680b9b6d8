"""Equations you can train: an equation is a layer, found by back-propagation, read as a formula.

The public names are loaded on first use, so that `import eqlearn` and `eqlearn --help` stay fast.
"""

from __future__ import annotations

import importlib
import warnings
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

_HOMES = {
    # Networks: what you train
    "eqlearn.functions": ("Function", "register_function"),
    "eqlearn.nn.primitives": ("PRIMITIVES", "Primitive", "register"),
    "eqlearn.nn.sparse": ("SparseLinear", "prune_", "settle_", "weights_left"),
    "eqlearn.nn.penalties": ("L0", "Group", "Lq", "Penalty", "SmoothHalf", "sparsity"),
    "eqlearn.nn.eql": ("EQL", "INITS", "Init"),
    # Training: how you train them
    "eqlearn.training.schedule": ("Phase", "Schedule"),
    "eqlearn.training.loop": ("Record", "Training", "train"),
    "eqlearn.training.state": ("TrainingState", "seeded", "step_generator"),
    "eqlearn.training.optimisers": ("RMSPropTF1",),
    "eqlearn.training.presets": ("PRESETS", "GatedL0", "Preset", "TrainedPopulation", "train_population"),
    "eqlearn.training.tensorboard": ("TensorBoardWriter",),
    # Tables to equations
    "eqlearn.estimator": ("EQLRegressor",),
    "eqlearn.search.search": ("Found", "Progress", "discover"),
    "eqlearn.search.settings": ("SCIENCE", "Settings"),
    "eqlearn.search.problem": ("Problem",),
    "eqlearn.search.strategies": ("Strategy", "register_strategy"),
    "eqlearn.search.ansatz.layout": ("Ansatz", "Sum", "Unit"),
    "eqlearn.search.candidate": ("Candidate", "register_rule"),
    "eqlearn.search.networks.refine": ("Polished", "eliminate", "polish"),
    "eqlearn.search.refit": ("Refitted", "refit"),
    "eqlearn.symbolic.parametric": ("Constant",),
    "eqlearn.symbolic.languages": ("Export", "register_export"),
    "eqlearn.symbolic.equation": ("Equation",),
    "eqlearn.verify.judge": ("Verdict", "judge"),
    # Series to equations of motion
    "eqlearn.validation.trajectories": ("Trajectories",),
    "eqlearn.dynamics.discover": ("FoundMotion", "discover_dynamics"),
    "eqlearn.dynamics.hidden": ("discover_hidden",),
    "eqlearn.latent.cells": ("CellShape", "EQLCell", "rollout"),
    "eqlearn.latent.series": ("EncoderShape", "SeriesEncoder"),
    "eqlearn.latent.system": ("DynamicsSystem", "Pairs", "PropagationLoss"),
    "eqlearn.latent.find": ("DynamicsSettings", "FoundDynamics", "encoder_scales", "train_dynamics"),
    "eqlearn.latent.gauge": ("Gauge", "fit_gauge", "rewritten", "without_small"),
    # Images to equations
    "eqlearn.latent.images": ("ImageEncoder", "encode", "take_statistics_"),
    "eqlearn.latent.arithmetic": ("ImageArithmetic",),
    # Files and data
    "eqlearn.io.storage": ("load", "save"),
    "eqlearn.io.checksummed": ("atomic_write", "read_checksummed", "write_tensors"),
    "eqlearn.io.datasets": ("DATASETS", "DataSet", "load_dataset"),
    "eqlearn.report.record": ("environment",),
    "eqlearn.runs.checkpoint": ("followed",),
    # Errors
    "eqlearn.errors": (
        "Diverged",
        "EqlearnError",
        "InvalidArgument",
        "InvalidExpression",
        "InvalidFile",
        "MissingExtra",
        "NotFinite",
        "UnknownName",
        "WrongType",
    ),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}
# Former names, each kept for one release.
_RENAMED = {"find_dynamics": "train_dynamics"}
__all__ = ["__version__", *sorted(_HOME_OF)]

if TYPE_CHECKING:
    from eqlearn.dynamics.discover import FoundMotion as FoundMotion
    from eqlearn.dynamics.discover import discover_dynamics as discover_dynamics
    from eqlearn.dynamics.hidden import discover_hidden as discover_hidden
    from eqlearn.errors import Diverged as Diverged
    from eqlearn.errors import EqlearnError as EqlearnError
    from eqlearn.errors import InvalidArgument as InvalidArgument
    from eqlearn.errors import InvalidExpression as InvalidExpression
    from eqlearn.errors import InvalidFile as InvalidFile
    from eqlearn.errors import MissingExtra as MissingExtra
    from eqlearn.errors import NotFinite as NotFinite
    from eqlearn.errors import UnknownName as UnknownName
    from eqlearn.errors import WrongType as WrongType
    from eqlearn.estimator import EQLRegressor as EQLRegressor
    from eqlearn.functions import Function as Function
    from eqlearn.functions import register_function as register_function
    from eqlearn.io.checksummed import atomic_write as atomic_write
    from eqlearn.io.checksummed import read_checksummed as read_checksummed
    from eqlearn.io.checksummed import write_tensors as write_tensors
    from eqlearn.io.datasets import DATASETS as DATASETS
    from eqlearn.io.datasets import DataSet as DataSet
    from eqlearn.io.datasets import load_dataset as load_dataset
    from eqlearn.io.storage import load as load
    from eqlearn.io.storage import save as save
    from eqlearn.latent.arithmetic import ImageArithmetic as ImageArithmetic
    from eqlearn.latent.cells import CellShape as CellShape
    from eqlearn.latent.cells import EQLCell as EQLCell
    from eqlearn.latent.cells import rollout as rollout
    from eqlearn.latent.find import DynamicsSettings as DynamicsSettings
    from eqlearn.latent.find import FoundDynamics as FoundDynamics
    from eqlearn.latent.find import encoder_scales as encoder_scales
    from eqlearn.latent.find import train_dynamics as train_dynamics
    from eqlearn.latent.gauge import Gauge as Gauge
    from eqlearn.latent.gauge import fit_gauge as fit_gauge
    from eqlearn.latent.gauge import rewritten as rewritten
    from eqlearn.latent.gauge import without_small as without_small
    from eqlearn.latent.images import ImageEncoder as ImageEncoder
    from eqlearn.latent.images import encode as encode
    from eqlearn.latent.images import take_statistics_ as take_statistics_
    from eqlearn.latent.series import EncoderShape as EncoderShape
    from eqlearn.latent.series import SeriesEncoder as SeriesEncoder
    from eqlearn.latent.system import DynamicsSystem as DynamicsSystem
    from eqlearn.latent.system import Pairs as Pairs
    from eqlearn.latent.system import PropagationLoss as PropagationLoss
    from eqlearn.nn.eql import EQL as EQL
    from eqlearn.nn.eql import INITS as INITS
    from eqlearn.nn.eql import Init as Init
    from eqlearn.nn.penalties import L0 as L0
    from eqlearn.nn.penalties import Group as Group
    from eqlearn.nn.penalties import Lq as Lq
    from eqlearn.nn.penalties import Penalty as Penalty
    from eqlearn.nn.penalties import SmoothHalf as SmoothHalf
    from eqlearn.nn.penalties import sparsity as sparsity
    from eqlearn.nn.primitives import PRIMITIVES as PRIMITIVES
    from eqlearn.nn.primitives import Primitive as Primitive
    from eqlearn.nn.primitives import register as register
    from eqlearn.nn.sparse import SparseLinear as SparseLinear
    from eqlearn.nn.sparse import prune_ as prune_
    from eqlearn.nn.sparse import settle_ as settle_
    from eqlearn.nn.sparse import weights_left as weights_left
    from eqlearn.report.record import environment as environment
    from eqlearn.runs.checkpoint import followed as followed
    from eqlearn.search.ansatz.layout import Ansatz as Ansatz
    from eqlearn.search.ansatz.layout import Sum as Sum
    from eqlearn.search.ansatz.layout import Unit as Unit
    from eqlearn.search.candidate import Candidate as Candidate
    from eqlearn.search.candidate import register_rule as register_rule
    from eqlearn.search.networks.refine import Polished as Polished
    from eqlearn.search.networks.refine import eliminate as eliminate
    from eqlearn.search.networks.refine import polish as polish
    from eqlearn.search.problem import Problem as Problem
    from eqlearn.search.refit import Refitted as Refitted
    from eqlearn.search.refit import refit as refit
    from eqlearn.search.search import Found as Found
    from eqlearn.search.search import Progress as Progress
    from eqlearn.search.search import discover as discover
    from eqlearn.search.settings import SCIENCE as SCIENCE
    from eqlearn.search.settings import Settings as Settings
    from eqlearn.search.strategies import Strategy as Strategy
    from eqlearn.search.strategies import register_strategy as register_strategy
    from eqlearn.symbolic.equation import Equation as Equation
    from eqlearn.symbolic.languages import Export as Export
    from eqlearn.symbolic.languages import register_export as register_export
    from eqlearn.symbolic.parametric import Constant as Constant
    from eqlearn.training.loop import Record as Record
    from eqlearn.training.loop import Training as Training
    from eqlearn.training.loop import train as train
    from eqlearn.training.optimisers import RMSPropTF1 as RMSPropTF1
    from eqlearn.training.presets import PRESETS as PRESETS
    from eqlearn.training.presets import GatedL0 as GatedL0
    from eqlearn.training.presets import Preset as Preset
    from eqlearn.training.presets import TrainedPopulation as TrainedPopulation
    from eqlearn.training.presets import train_population as train_population
    from eqlearn.training.schedule import Phase as Phase
    from eqlearn.training.schedule import Schedule as Schedule
    from eqlearn.training.state import TrainingState as TrainingState
    from eqlearn.training.state import seeded as seeded
    from eqlearn.training.state import step_generator as step_generator
    from eqlearn.training.tensorboard import TensorBoardWriter as TensorBoardWriter
    from eqlearn.validation.trajectories import Trajectories as Trajectories
    from eqlearn.verify.judge import Verdict as Verdict
    from eqlearn.verify.judge import judge as judge


def __getattr__(name: str) -> Any:
    if name in _RENAMED:
        new = _RENAMED[name]
        warnings.warn(f"`{name}` is now called `{new}`", DeprecationWarning, stacklevel=2)
        return __getattr__(new)
    if name not in _HOME_OF:
        raise AttributeError(f"module 'eqlearn' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME_OF[name]), name)


def __dir__() -> list[str]:
    return __all__
