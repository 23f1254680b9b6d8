"""Ledgers: every trial that was started, in a JSON file from which the next run goes on."""

from __future__ import annotations

import json
import math
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from eqlearn import InvalidFile, atomic_write, environment


class Ledger:
    """Trials by key, with the command, the settings and the machine that made them."""

    def __init__(self, path: Path, settings: Mapping[str, Any]) -> None:
        self.path = path
        if path.exists():
            self.plain = read_ledger(path)
            if self.plain["settings"] != dict(settings):
                raise InvalidFile(f"{path} was made with other settings; choose another `--out`")
        else:
            command = shlex.join(["eqlearn", *sys.argv[1:]])
            self.plain = {"settings": dict(settings), "command": command, "environment": environment()}
            self.plain["trials"] = {}

    @property
    def trials(self) -> dict[str, dict[str, Any]]:
        trials: dict[str, dict[str, Any]] = self.plain["trials"]
        return trials

    def add(self, key: str, trial: Mapping[str, Any]) -> None:
        """Enters a trial and writes the file; infinite errors are written as null."""
        self.trials[key] = {k: _plain(v) for k, v in trial.items()}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        atomic_write(self.path, (json.dumps(self.plain, indent=1, allow_nan=False) + "\n").encode())


def read_ledger(path: Path) -> dict[str, Any]:
    """The content of a ledger, checked for its shape."""
    try:
        plain = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise InvalidFile(f"{path} is not a ledger of trials: {error}") from error
    if not (isinstance(plain, dict) and {"settings", "environment", "trials"} <= plain.keys()):
        raise InvalidFile(f"{path} is not a ledger of trials; remove it or choose another `--out`")
    return plain


def _plain(value: Any) -> Any:
    """JSON has no word for what is not finite, at any depth."""
    if isinstance(value, Mapping):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
