"""What the runner and a worker say to each other: a task in, answers out, each a line of JSON.

Workers import it in their own environment, so it needs nothing but Python.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Task:
    """A table, and how many CPU seconds there are to find its equation."""

    variables: list[str]
    X: list[list[float]]
    y: list[float]
    seconds: float
    seed: int


class OutOfTime(BaseException):
    """The CPU seconds are spent. Not an `Exception`, which a peer might take for a failed attempt."""


@dataclass(frozen=True)
class Desk:
    """Where a worker hands in its answers; the clock starts once everything is imported and read."""

    out: Any
    began: float

    def spent(self) -> float:
        """CPU seconds of this process since the clock started."""
        return time.process_time() - self.began

    def answer(self, expression: str) -> None:
        """Hands in the best equation so far; the last one in time counts."""
        self.write(expression=expression)

    def failed(self, reason: str) -> None:
        """Notes an attempt that came to nothing, where a worker goes on with another."""
        self.write(failed=reason)

    def write(self, **entry: str) -> None:
        line = {"cpu": self.spent(), "memory": peak_memory(), **entry}
        self.out.write(json.dumps(line) + "\n")
        self.out.flush()


def serve(solve: Callable[[Task, Desk], str]) -> None:
    """Reads a task, solves it, and says how it ended; call it after all imports.

    The clock raises `OutOfTime` wherever Python is at that moment; a peer deep in compiled code is stopped by
    the limit of the operating system, and what it answered before that counts.
    """
    task = Task(**json.load(sys.stdin))
    # What peers print must not come between the answers.
    desk = Desk(os.fdopen(os.dup(1), "w"), time.process_time())
    os.dup2(2, 1)
    guard = int(time.process_time() + 1.5 * task.seconds) + 5
    resource.setrlimit(resource.RLIMIT_CPU, (guard, resource.getrlimit(resource.RLIMIT_CPU)[1]))
    signal.signal(signal.SIGPROF, _stop)
    # Again and again, for a bare `except` may swallow the first.
    signal.setitimer(signal.ITIMER_PROF, task.seconds, 0.1)
    try:
        ended = solve(task, desk)
    except OutOfTime:
        ended = "out of time"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
    desk.write(ended=ended)


def _stop(signal_number: int, frame: Any) -> None:
    raise OutOfTime


def peak_memory() -> int:
    """The most bytes this process has held; of its parent nothing, which `getrusage` counts on Linux."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(li for li in status.read_text().splitlines() if li.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
