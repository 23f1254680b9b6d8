"""A run under way, as other processes see it: what it has found, signs of life, a way to ask it to stop."""

from __future__ import annotations

import _thread
import math
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

from eqlearn.errors import InvalidArgument, counted
from eqlearn.report.record import RunRecord, SearchRound, environment, next_round
from eqlearn.runs.folder import LOCK, PROGRESS, STOP, RunFolder
from eqlearn.search.candidate import Candidate, pareto_front, united
from eqlearn.search.search import Found, Progress


@dataclass(frozen=True)
class Pace:
    """Seconds: between two reports if only counts have changed, between two looks for a request to stop, and
    without a sign of life, after which a process is taken for dead."""

    report: float = 0.5
    look: float = 0.2
    silence: float = 30.0  # on a busy machine a sign may be late by some ten seconds


PACE = Pace()


@dataclass
class History:
    """Records each round of a search, for the page at the end and in a file for those who watch; logs a line
    when the best equation changes."""

    folder: RunFolder
    progress: Callable[[Progress], None] | None
    targets: tuple[str, ...]
    settings: Mapping[str, Any]
    data: Mapping[str, Any]
    steps: list[SearchRound] = field(default_factory=list)
    latest: Progress | None = None
    front: tuple[Candidate, ...] = ()
    environment: Mapping[str, Any] = field(default_factory=environment)
    written: float = -math.inf

    def __call__(self, state: Progress) -> None:
        self.steps.append(next_round(self.steps, state))
        if self.steps[-1].equation:
            so_far = f"round {state.round}, {counted(state.restarts, 'restart')}"
            self.folder.log(f"{so_far}: error {state.best.training_error:.3g}, {state.best}")
        # A search that tells no front has one of its best equations on the way.
        front = state.front or united(pareto_front([*self.front, state.best]), [state.best])
        grown = list(map(str, front)) != list(map(str, self.front))
        self.latest, self.front = state, front
        if grown or time.monotonic() - self.written > PACE.report:
            self._write(state)
        if self.progress is not None:
            self.progress(state)

    def _write(self, state: Progress) -> None:
        best = state.best
        front = [c for c in self.front if c.equation.variables == best.equation.variables]
        if len(best.equations) != len(self.targets):
            return  # of a system whose other equations are still to come
        record = RunRecord(
            inputs=best.equation.variables, targets=self.targets, front=tuple(front),
            pick=next(i for i, c in enumerate(front) if str(c) == str(best)),
            noise=(math.nan,) * len(self.targets), restarts=state.restarts, rounds=state.round,
            seconds=state.seconds, ended="", history=tuple(self.steps), data=self.data,
            settings=self.settings, environment=self.environment,
        )  # fmt: skip
        self.folder.write_json(PROGRESS, {**record.to_json(), "began": time.time() - state.seconds})
        self.written = time.monotonic()

    def so_far(self, variables: tuple[str, ...]) -> Found:
        """What there is when a search was interrupted where it could not end by itself: in its last fits."""
        if self.latest is None:
            raise KeyboardInterrupt
        # What a network sees is known to the search alone.
        bare = {str(c): replace(c, network=None) for c in self.front}
        state = self.latest
        return Found(
            best=bare[str(state.best)], front=tuple(bare.values()), restarts=state.restarts,
            rounds=state.round, exact_restarts=0, failures={}, seconds=state.seconds, ended="interrupted",
            variables=variables, inputs=variables,
        )  # fmt: skip


@contextmanager
def stoppable(folder: RunFolder, pace: Pace = PACE) -> Iterator[None]:
    """While the block runs, a request to stop ends it as Ctrl-C does, and the lock shows signs of life.

    Only the main thread of a process can be stopped like that.
    """
    (folder.path / STOP).unlink(missing_ok=True)  # asked of an earlier process
    ended, main = threading.Event(), threading.current_thread() is threading.main_thread()

    def watch(number: signal.Signals) -> None:
        while not ended.wait(pace.look):
            with suppress(FileNotFoundError):
                os.utime(folder.path / LOCK)
            if main and (folder.path / STOP).exists():
                (folder.path / STOP).unlink(missing_ok=True)
                _interrupt_main(number)

    with _interrupting(main) as number:
        watcher = threading.Thread(target=watch, args=(number,), name="stoppable", daemon=True)
        watcher.start()
        try:
            yield
        finally:
            ended.set()
            watcher.join()


@contextmanager
def _interrupting(main: bool) -> Iterator[signal.Signals]:
    """The number of a signal that interrupts the main thread: that of Ctrl-C, unless it is ignored, as it is
    for what a script runs in the background."""
    if not main or callable(signal.getsignal(signal.SIGINT)) or not hasattr(signal, "SIGUSR1"):
        yield signal.SIGINT
        return
    before = signal.signal(signal.SIGUSR1, signal.default_int_handler)
    try:
        yield signal.SIGUSR1
    finally:
        signal.signal(signal.SIGUSR1, before or signal.SIG_DFL)


def _interrupt_main(number: signal.Signals) -> None:
    """Raises a signal in the main thread, also while it waits for something."""
    if hasattr(signal, "pthread_kill"):
        signal.pthread_kill(threading.main_thread().ident or 0, number)
    else:
        _thread.interrupt_main(signal.Signals(number))


def is_alive(folder: RunFolder, pace: Pace = PACE) -> bool:
    """Whether a process has shown signs of life in the folder of late."""
    try:
        return time.time() - (folder.path / LOCK).stat().st_mtime < pace.silence
    except FileNotFoundError:
        return False


def ask_to_stop(folder: RunFolder) -> None:
    """Asks the process that works in a folder to end its search, which keeps the best."""
    if folder.read_status().get("status") != "running" or not is_alive(folder):
        raise InvalidArgument(f"there is no search under way in {folder}")
    folder.write_text(STOP, "")
