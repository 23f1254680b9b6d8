"""Equations you can train: an equation is a layer, found by back-propagation, read as a formula.

The public names are loaded on first use, so that `import eqlearn` and `eqlearn --help` stay fast.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    "eqlearn.core.primitives": ("PRIMITIVES", "Primitive", "register"),
    "eqlearn.core.sparse": ("SparseLinear", "prune_", "weights_left"),
    "eqlearn.core.penalties": ("L0", "Group", "Lq", "SmoothHalf", "sparsity"),
    "eqlearn.core.network": ("EQL", "Init"),
    "eqlearn.core.equation": ("Equation",),
    "eqlearn.core.storage": ("load", "save"),
    "eqlearn.training.schedule": ("Phase",),
    "eqlearn.training.loop": ("train",),
    "eqlearn.training.presets": ("PRESETS", "train_population"),
    "eqlearn.discovery.polish": ("polish",),
    "eqlearn.discovery.eliminate": ("eliminate",),
    "eqlearn.discovery.run": ("Settings", "discover"),
    "eqlearn.discovery.judge": ("Verdict", "judge"),
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
    from eqlearn.core.sparse import weights_left as weights_left


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'eqlearn' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME_OF[name]), name)


def __dir__() -> list[str]:
    return __all__
