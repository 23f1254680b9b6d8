"""Training that a kill does not lose: its state in a file from which it is taken up."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from time import monotonic

from eqlearn.io.checksummed import read_checksummed, write_tensors
from eqlearn.training.loop import Beginning, Record
from eqlearn.training.state import TrainingState


def followed(path: Path, start: Beginning, every: float = 20.0) -> Iterator[Record]:
    """Trains to the end and gives its records; its state is written at a record, `every` seconds, and last.

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
