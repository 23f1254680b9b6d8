"""Ledgers of trials, and training that a kill does not lose: files from which a run is taken up."""

from __future__ import annotations

import json
import math
import shlex
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from time import monotonic
from typing import Any

from eqlearn.errors import InvalidFile
from eqlearn.io.checksummed import atomic_write, read_checksummed, write_tensors
from eqlearn.report.record import environment
from eqlearn.training.loop import Beginning, Record
from eqlearn.training.state import TrainingState


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
            self.plain = {
                "settings": dict(settings), "command": command, "environment": environment(), "trials": {},
            }  # fmt: skip

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


def followed(path: Path, start: Beginning, every: float = 20.0) -> Iterator[Record]:
    """Trains to the end and gives its records; at a record, its state is written every few seconds.

    ```python
    for record in followed(folder / "training.safetensors", lambda state: train(..., resume=state)):
        ...
    ```

    Where the file is there, `start` gets its state and training goes on from it, to the same end. The file
    stays when training is over, so that what follows may be killed too; whoever has the result removes it.
    """
    training = start(_read(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    written = monotonic()
    for record in training:
        yield record
        if monotonic() - written >= every:
            _write(path, training.state())
            written = monotonic()
    _write(path, training.state())


def _read(path: Path) -> TrainingState | None:
    if not path.exists():
        return None
    plain, tensors = read_checksummed(path)
    return TrainingState.of(tensors, plain)


def _write(path: Path, state: TrainingState) -> None:
    write_tensors(path, state.plain(), state.tensors)
