"""The run folder: its files and its lock; reading it runs nothing."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

import torch
from filelock import FileLock, Timeout

from eqlearn.errors import InvalidArgument, InvalidFile
from eqlearn.io.checksummed import atomic_write, read_checksummed, write_json, write_tensors
from eqlearn.io.storage import load, save
from eqlearn.nn.eql import EQL
from eqlearn.report.motion import Motion
from eqlearn.report.payload import Sample
from eqlearn.report.record import MEASURES, RunRecord, now
from eqlearn.symbolic.printing import printable, write

RUN, EQUATION, EQUATIONS, NETWORK = "run.json", "equation.json", "equations.csv", "network.safetensors"
SAMPLE, LOG, REPORT, ROUNDS, LOCK = "sample.safetensors", "log.txt", "report.html", "rounds", ".lock"
MOTION, CONSTANTS = "motion.safetensors", "constants.csv"
# While a run is under way, what it has found and that somebody asks it to stop; and what a reader has pinned.
PROGRESS, STOP, FAVOURITE = "progress.json", "stop", "favourite.json"


class RunFolder:
    """A folder that holds one run; it must be `locked` before anything is written."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    @staticmethod
    def numbered(parent: Path, name: str) -> RunFolder:
        """A new folder of that name, with the first free number appended if the name is taken."""
        for number in count(1):
            path = parent / (name if number == 1 else f"{name}-{number}")
            with suppress(FileExistsError):
                path.mkdir(parents=True)
                break
        return RunFolder(path)

    def __str__(self) -> str:
        return repr(str(self.path))

    @property
    def holds_run(self) -> bool:
        return (self.path / RUN).exists()

    @contextmanager
    def locked(self, ours: tuple[str, ...] = ()) -> Iterator[None]:
        """Makes the folder if necessary, and keeps other processes out of it while the block runs; the
        operating system frees the lock of a process that died. Files named `ours` may be there."""
        there = [p.name for p in self.path.iterdir()] if self.path.is_dir() else []
        strangers = [name for name in there if name not in (ROUNDS, *ours) and not name.startswith(".")]
        if self.path.exists() and not self.path.is_dir():
            raise InvalidArgument(f"{self} is a file; name a folder for the run")
        if strangers and not self.holds_run:
            raise InvalidArgument(
                f"{self} holds other files, {min(strangers)!r} among them; choose another folder"
            )
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            with FileLock(self._checked(LOCK), timeout=0):
                for remnant in [*self.path.glob(".*.tmp"), *self.path.glob(f"{ROUNDS}/**/.*.tmp")]:
                    remnant.unlink()  # of a process that was killed while it wrote
                yield
        except Timeout as error:
            raise InvalidArgument(
                f"another process is at work in {self}; wait for it, or choose another folder"
            ) from error

    def clear(self) -> None:
        """Removes a run that never began, and the folder if nothing else is in it."""
        for name in (RUN, LOG, LOCK, SAMPLE, PROGRESS, STOP):
            (self.path / name).unlink(missing_ok=True)
        if not any(self.path.iterdir()):
            self.path.rmdir()

    def _checked(self, name: str) -> Path:
        path = self.path / name
        if path.is_symlink():
            raise InvalidFile(f"{name} in {self} is a link to somewhere else, and is not written through")
        return path

    def write_json(self, name: str, plain: Mapping[str, Any]) -> None:
        write_json(self._checked(name), plain)

    def write_text(self, name: str, text: str) -> None:
        atomic_write(self._checked(name), text.encode())

    def log(self, line: str) -> None:
        """Adds a line, with the time, to the log."""
        with self._checked(LOG).open("a", encoding="utf-8") as file:
            file.write(f"{now()} {printable(line)}\n")

    def write_results(self, record: RunRecord, sample: Sample, motion: Motion | None = None) -> None:
        """Writes everything but the page; `run.json`, which says that the run has ended, comes last."""
        self.write_sample(sample)
        if motion is not None:
            write_tensors(self._checked(MOTION), motion.plain(), motion.tensors())
        if record.best.network is not None:
            save(record.best.network, self._checked(NETWORK))
        else:
            self._checked(NETWORK).unlink(missing_ok=True)
        for k, equation in enumerate(record.best.equations):
            save(equation, self._checked(EQUATION if k == 0 else f"equation-{k + 1}.json"))
        self.write_text(EQUATIONS, _front_csv(record))
        if record.best.varying is not None:
            self.write_text(CONSTANTS, record.best.varying.frame().to_csv(index=False, lineterminator="\n"))
        self.write_json(RUN, {**record.to_json(), "status": "finished"})
        for name in (PROGRESS, STOP):
            (self.path / name).unlink(missing_ok=True)

    def write_sample(self, sample: Sample) -> None:
        """Writes the rows that pages show, which are known before anything is found."""
        tensors = {name: torch.as_tensor(getattr(sample, name)) for name in ("X", "y", "part", "ranges")}
        if sample.group is not None:
            tensors["group"] = torch.as_tensor(sample.group)
        write_tensors(self._checked(SAMPLE), {"format": "eqlearn-sample"}, tensors)

    def read_status(self) -> dict[str, Any]:
        """The content of `run.json`, of a finished or unfinished run."""
        if self.path.is_file():
            raise InvalidArgument(f"{self} is a file; name the folder of a run")
        if not self.path.is_dir():
            raise InvalidArgument(f"there is no run folder {self}")
        if not self.holds_run:
            raise InvalidArgument(f"{self} holds no run of eqlearn: it has no {RUN}")
        try:
            return read_checksummed(self.path / RUN)[0]
        except InvalidFile as error:
            raise InvalidFile(f"{error}; the run is lost, begin one in another folder") from error

    def read(self) -> RunRecord:
        return RunRecord.from_json(self.read_status(), str(self.path / RUN))

    def read_sample(self, record: RunRecord) -> Sample:
        path = self.path / SAMPLE
        if not path.exists():
            raise InvalidFile(f"{self} is not whole: {SAMPLE} is missing")
        _, tensors = read_checksummed(path)
        if set(tensors) - {"group"} != {"X", "y", "part", "ranges"} or tensors["part"].dtype != torch.uint8:
            raise InvalidFile(f"{path} is not a sample of data")
        sample = Sample(**{name: tensor.numpy() for name, tensor in tensors.items()})
        sample.check(len(record.inputs), len(record.targets))
        return sample

    def read_motion(self, record: RunRecord) -> Motion | None:
        """The series of a search for dynamics; None for any other."""
        path = self.path / MOTION
        if "form" not in record.data or not path.exists():
            return None
        plain, tensors = read_checksummed(path)
        states = len(record.targets)
        return Motion.read(plain, tensors, record.inputs[:states], len(record.inputs) - states, str(path))

    def read_network(self, record: RunRecord) -> EQL | None:
        """The network of the chosen equation; None for a constant."""
        if not (self.path / NETWORK).exists():
            return None
        network = load(self.path / NETWORK)
        sizes = (len(record.network_inputs), len(record.targets))
        if not isinstance(network, EQL) or (network.in_features, network.out_features) != sizes:
            raise InvalidFile(f"{self.path / NETWORK} is not the network of this run")
        return network


def _front_csv(record: RunRecord) -> str:
    """The front, one row per candidate, to all digits."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    names = ["equation"] if len(record.targets) == 1 else [f"equation of {t}" for t in record.targets]
    writer.writerow(["pick", "complexity", *MEASURES, "exact", *names])
    for i, c in enumerate(record.front):
        formulas = [write(e.expr, e.variables) for e in c.equations]
        numbers = [repr(getattr(c, name)) for name in MEASURES]
        writer.writerow([int(i == record.pick), c.complexity, *numbers, int(c.exact), *formulas])
    return file.getvalue()
