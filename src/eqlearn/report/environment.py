"""The machine and the versions that a run was made with."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any

PACKAGES = ("torch", "numpy", "scipy", "sympy", "scikit-learn", "joblib", "safetensors")


def environment() -> dict[str, Any]:
    """Plain data; whoever repeats a run needs the same versions for the same digits."""
    import torch

    import eqlearn

    return {
        "eqlearn": eqlearn.__version__,
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in PACKAGES},
        "platform": platform.platform(),
        "processors": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "started": now(),
    }


def now() -> str:
    """The time, to the second, with its zone."""
    return datetime.now(UTC).astimezone().isoformat(timespec="seconds")


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "unknown"
