"""Equations you can train: an equation is a layer, found by back-propagation, read as a formula.

The public names are loaded on first use, so that `import eqlearn` and `eqlearn --help` stay fast; type
checkers see them in `__init__.pyi`.
"""

from __future__ import annotations

import importlib
import warnings
from typing import Any

__version__ = "0.2.0"

_HOMES = {
    # Networks: what you train
    "eqlearn.functions": "Function register_function",
    "eqlearn.nn.primitives": "PRIMITIVES Primitive register",
    "eqlearn.nn.sparse": "SparseLinear prune_ settle_ weights_left",
    "eqlearn.nn.penalties": "L0 Group Lq Penalty SmoothHalf sparsity",
    "eqlearn.nn.eql": "EQL",
    "eqlearn.nn.inits": "INITS Init",
    # Training: how you train them
    "eqlearn.training.schedule": "Phase Schedule",
    "eqlearn.training.direct": "MeanSquaredError",
    "eqlearn.training.loop": "Record Training train",
    "eqlearn.training.state": "TrainingState restart_seed restarted seeded step_generator",
    "eqlearn.training.optimisers": "RMSPropTF1",
    "eqlearn.training.presets": "PRESETS VARYING_PRESETS GatedL0 Preset TrainedPopulation train_population "
    "train_varying",
    "eqlearn.training.tensorboard": "TensorBoardWriter",
    # Tables to equations
    "eqlearn.estimator": "EQLRegressor",
    "eqlearn.search.search": "Found Progress discover",
    "eqlearn.search.settings": "SCIENCE Settings",
    "eqlearn.search.knowledge.knowledge": "Knowledge",
    "eqlearn.search.groups.group_settings": "GroupSettings",
    "eqlearn.symbolic.varying": "Varying",
    "eqlearn.search.problem": "Problem",
    "eqlearn.search.strategies": "Strategy register_strategy",
    "eqlearn.search.ansatz.layout": "Ansatz Sum Unit",
    "eqlearn.search.candidate": "Candidate register_rule",
    "eqlearn.search.networks.refine": "Polished eliminate polish",
    "eqlearn.symbolic.parametric": "Constant Refitted refit",
    "eqlearn.symbolic.languages": "Export register_export",
    "eqlearn.symbolic.equation": "Equation",
    "eqlearn.symbolic.dimensions": "unit_of",
    "eqlearn.verify.judge": "SymbolicSolution Verdict judge symbolic_solution",
    # Series to equations of motion
    "eqlearn.validation.trajectories": "Trajectories",
    "eqlearn.dynamics.discover": "discover_dynamics",
    "eqlearn.dynamics.found": "FoundMotion",
    "eqlearn.dynamics.hidden": "discover_hidden",
    "eqlearn.dynamics.settings": "MotionSettings",
    "eqlearn.dynamics.forms": "Form register_form",
    # Fields to partial differential equations
    "eqlearn.validation.fields": "Field",
    "eqlearn.fields.discover": "discover_pde",
    "eqlearn.fields.found": "FoundPDE",
    "eqlearn.fields.settings": "FieldSettings",
    # Equations behind encoders and in cells
    "eqlearn.latent.motion.cells": "CellShape EQLCell rollout",
    "eqlearn.latent.motion.field_cell": "FieldCell",
    "eqlearn.latent.motion.series": "EncoderShape SeriesEncoder",
    "eqlearn.latent.motion.system": "DynamicsSystem FoundDynamics Pairs PropagationLoss encoder_scales",
    "eqlearn.latent.motion.find": "DynamicsSettings train_dynamics",
    "eqlearn.latent.gauge": "Gauge fit_gauge rewritten without_small",
    "eqlearn.latent.images": "ImageArithmetic ImageEncoder encode take_statistics_",
    "eqlearn.latent.discover": "discover_latent",
    "eqlearn.latent.film.discover_film": "discover_film",
    "eqlearn.latent.film.found_film": "FoundFilm",
    "eqlearn.latent.film.film_settings": "FilmSettings",
    "eqlearn.io.films": "read_film_file",
    "eqlearn.io.made_films": "make_films",
    "eqlearn.latent.stages": "LatentProgress",
    "eqlearn.latent.settings": "DynamicsSearch LatentSettings",
    "eqlearn.latent.found": "FoundLatent LatentCandidate LatentModel",
    "eqlearn.validation.latents": "Gathered",
    "eqlearn.latent.encoder": "Encoder make_encoder register_encoder",
    # Files, data, errors
    "eqlearn.io.storage": "followed save",
    "eqlearn.runs.load": "load",
    "eqlearn.io.checksummed": "atomic_write read_checksummed write_tensors",
    "eqlearn.io.datasets": "DATASETS DataSet load_dataset",
    "eqlearn.validation.checkup": "examine",
    "eqlearn.validation.findings": "Checkup Finding",
    "eqlearn.report.record": "environment",
    "eqlearn.errors": "Diverged EqlearnError InvalidArgument InvalidExpression "
    "InvalidFile MissingExtra NotFinite NotNumbers UnknownName WrongType",
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names.split()}
# Former names, each kept for one release.
_RENAMED = {"find_dynamics": "train_dynamics"}
__all__ = ["__version__", *sorted(_HOME_OF)]


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
