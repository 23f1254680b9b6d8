"""One trial: a system's worker in a process of its own, and what its answers are worth."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from conversion import equation, without_dust
from problems import outside

from eqlearn import EqlearnError, Equation, judge
from eqlearn.paper.rates import RIGHT
from eqlearn.paper.suites import Problem

# Answers a little after the budget still count: compiled code can't be stopped at any moment.
GRACE = 1.1
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
# What reading a strange formula may raise, from Python's parser, ours, or SymPy.
UNREADABLE = (EqlearnError, SyntaxError, ArithmeticError, TypeError, ValueError, RecursionError)
# A formula longer than this is not swept: no truth here has a tenth of its nodes.
MOST_NODES = 300
# By the clock on the wall, so more than the default: the other cores may be busy.
JUDGE_SECONDS = 20.0
# SymPy's caches are shared by all threads, so one of them judges at a time.
JUDGING = threading.Lock()


@dataclass(frozen=True)
class System:
    """A system under comparison: its name, the interpreter of its environment, and its worker."""

    name: str
    python: Path
    worker: Path


@dataclass(frozen=True)
class Trial:
    """One system on one problem with one seed."""

    system: System
    problem: Problem
    seed: int
    seconds: float

    @property
    def key(self) -> str:
        return f"{self.system.name} {self.problem.name} {self.seed}"


@dataclass(frozen=True)
class Talk:
    """All that a worker said, and why it fell silent if it did so too early."""

    lines: list[dict[str, Any]]
    flaw: str
    wall: float


def listen(trial: Trial) -> Talk:
    """Runs a worker in a process of its own; whatever happens to it is a value."""
    X, y = trial.problem.data(trial.seed)
    task = {
        "variables": list(trial.problem.ranges), "X": X.tolist(), "y": y.tolist(),
        "seconds": trial.seconds, "seed": trial.seed,
    }  # fmt: skip
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        try:
            done = subprocess.run(
                [str(trial.system.python), str(trial.system.worker)], input=json.dumps(task).encode(),
                capture_output=True, cwd=folder, timeout=60 * trial.seconds + 300,
                env={**os.environ, **ONE_THREAD},
            )  # fmt: skip
            said, flaw = done.stdout, _flaw(done)
        except subprocess.TimeoutExpired as stopped:
            said, flaw = stopped.stdout or b"", f"still running after {stopped.timeout:g} s"
        except OSError as error:
            said, flaw = b"", f"could not be started: {error}"
    lines = [json.loads(line) for line in said.splitlines(keepends=True) if line.endswith(b"\n")]
    return Talk(lines, flaw, time.perf_counter() - began)


def _flaw(done: subprocess.CompletedProcess[bytes]) -> str:
    if done.returncode < 0:
        return f"killed by {signal.Signals(-done.returncode).name}"
    last = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
    return f"{last[0][:200] if last else 'no word of why'}" if done.returncode else ""


def measured(trial: Trial) -> dict[str, Any]:
    """A trial's record; without a readable answer in time it is `wrong`, and `failure` says why."""
    talk = listen(trial)
    answers = [line for line in talk.lines if "expression" in line]
    timely = [line for line in answers if line["cpu"] <= GRACE * trial.seconds]
    failed = [line["failed"] for line in talk.lines if "failed" in line]
    record = {
        "system": trial.system.name, "suite": trial.problem.suite, "problem": trial.problem.name,
        "seed": trial.seed, "tier": "wrong", "reason": "no answer", "equation": "", "complexity": None,
        "extrapolation_error": math.inf, "cpu": max((li["cpu"] for li in talk.lines), default=None),
        "cpu_to_right": None, "memory": max((li["memory"] for li in talk.lines), default=None),
        "wall": talk.wall, "ended": next((li["ended"] for li in talk.lines if "ended" in li), "died"),
        "failed_attempts": len(failed), "failure": talk.flaw or None,
    }  # fmt: skip
    if not timely:
        late = "its first answer came after the budget" if answers else "no answer in time"
        record["failure"] = talk.flaw or (f"no answer: {failed[-1]}"[:200] if failed else late)
        return record
    with JUDGING:
        try:
            record.update(_judged(trial, [(line["cpu"], line["expression"]) for line in timely]))
        except UNREADABLE as error:
            record["failure"] = f"an answer that can't be read: {type(error).__name__}: {error}"[:200]
    return record


def _judged(trial: Trial, answers: Sequence[tuple[float, str]]) -> dict[str, Any]:
    """The last answer's verdict, and since when the answers have been right."""
    problem, X = trial.problem, trial.problem.data(trial.seed)[0]
    since, text = answers[-1]
    latest = equation(trial.system.name, text, tuple(problem.ranges), X)
    tier, reason = verdict(latest, problem, X)
    if tier in RIGHT:
        for cpu, text in _backwards(answers):
            if not _right(trial, text, X):
                break
            since = cpu
    return {
        "tier": tier,
        "reason": reason[:200],
        "equation": str(latest)[:1000],
        "complexity": latest.complexity,
        "extrapolation_error": extrapolation_error(latest, problem),
        "cpu_to_right": since if tier in RIGHT else None,
    }


def _right(trial: Trial, text: str, X: np.ndarray) -> bool:
    try:
        found = equation(trial.system.name, text, tuple(trial.problem.ranges), X)
    except UNREADABLE:
        return False
    return verdict(found, trial.problem, X)[0] in RIGHT


def _backwards(answers: Sequence[tuple[float, str]]) -> Iterator[tuple[float, str]]:
    """The answers backwards; of equal ones in a row, only the earliest."""
    for k in range(len(answers) - 1, -1, -1):
        if k == 0 or answers[k - 1][1] != answers[k][1]:
            yield answers[k]


def verdict(found: Equation, problem: Problem, X: np.ndarray) -> tuple[str, str]:
    """The judge's, on the equation as delivered or without the dust of its fit, whichever is better."""
    first = judge(found, problem.truth, problem.ranges, seconds=JUDGE_SECONDS)
    if first.tier in RIGHT or found.complexity > MOST_NODES:
        return first.tier, first.reason
    try:
        clean = without_dust(found, X)
    except UNREADABLE:  # what is left of it may have no value
        return first.tier, first.reason
    second = judge(clean, problem.truth, problem.ranges, seconds=JUDGE_SECONDS)
    best = first if first.at_least(second.tier) else second
    return best.tier, best.reason


def extrapolation_error(found: Equation, problem: Problem) -> float:
    """Root mean square deviation on twice the training range, relative to the truth's spread there."""
    X, y = outside(problem)
    with np.errstate(all="ignore"):
        error = float(np.sqrt(np.mean((found(X) - y) ** 2)) / np.std(y))
    return error if math.isfinite(error) else math.inf
