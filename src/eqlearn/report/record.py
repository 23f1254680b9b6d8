"""A finished search as plain data, the content of `run.json`; reading it runs nothing."""

from __future__ import annotations

import math
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from eqlearn.errors import EqlearnError, InvalidArgument, InvalidFile
from eqlearn.search.candidate import Candidate
from eqlearn.search.search import Found, Progress
from eqlearn.symbolic.equation import Equation
from eqlearn.symbolic.parametric import Constant
from eqlearn.symbolic.printing import write
from eqlearn.symbolic.varying import Varying

FORMAT, VERSION = "eqlearn-run", 1
# No search of ours makes longer fronts or histories.
MOST_CANDIDATES, MOST_ROUNDS = 1000, 1_000_000
# The numbers by which candidates are chosen.
MEASURES = (
    "training_error", "validation_error", "extrapolation_error", "description_length", "prediction_length",
)  # fmt: skip


@dataclass(frozen=True)
class SearchRound:
    """The state of the search after a round; `equation` is the best one if it is new, otherwise empty."""

    round: int
    restarts: int
    seconds: float
    error: float
    complexity: int
    equation: str = ""


def next_round(steps: Sequence[SearchRound], progress: Progress) -> SearchRound:
    """The next round, from a progress report."""
    text, best = str(progress.best), progress.best
    new = text != next((s.equation for s in reversed(steps) if s.equation), "")
    counts = (progress.round, progress.restarts, progress.seconds)
    return SearchRound(*counts, best.training_error, best.complexity, text if new else "")


@dataclass(frozen=True)
class RunRecord:
    """What was searched, how, and what was found.

    `front` is the Pareto front, simplest first, and `pick` the index of the chosen candidate. `noise` is the
    standard deviation of the residuals of each target, in the user's units. `network_inputs` are the names of
    the inputs of the chosen network.
    """

    inputs: tuple[str, ...]
    targets: tuple[str, ...]
    front: tuple[Candidate, ...]
    pick: int
    noise: tuple[float, ...]
    restarts: int
    rounds: int
    seconds: float
    ended: str
    exact_restarts: int = 0
    failures: Mapping[str, int] = field(default_factory=dict)
    history: tuple[SearchRound, ...] = ()
    network_inputs: tuple[str, ...] = ()
    data: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, Any] = field(default_factory=dict)

    @property
    def best(self) -> Candidate:
        return self.front[self.pick]

    def candidate(self, index: int | None = None) -> Candidate:
        """The candidate at an index of the front; by default the chosen one."""
        if index is None:
            return self.best
        if not 0 <= index < len(self.front):
            raise InvalidArgument(f"there is no equation {index}; the front has 0 to {len(self.front) - 1}")
        return self.front[index]

    @staticmethod
    def of(
        found: Found,
        targets: tuple[str, ...],
        noise: tuple[float, ...],
        steps: Sequence[SearchRound],
        data: Mapping[str, Any],
        settings: Mapping[str, Any],
    ) -> RunRecord:
        """The record of a search that has just ended; `data` and `settings` describe its input."""
        return RunRecord(
            inputs=found.variables, targets=targets, front=found.front,
            pick=next(i for i, c in enumerate(found.front) if c is found.best), noise=noise,
            restarts=found.restarts, rounds=found.rounds, seconds=found.seconds, ended=found.ended,
            exact_restarts=found.exact_restarts, failures=found.failures, history=tuple(steps),
            network_inputs=found.inputs, data=data, settings=settings, environment=environment(),
        )  # fmt: skip

    def to_json(self) -> dict[str, Any]:
        """Plain data, all digits kept."""
        scalars = ("pick", "restarts", "rounds", "ended", "exact_restarts", "seconds")
        return {
            "format": FORMAT,
            "version": VERSION,
            "inputs": list(self.inputs),
            "targets": list(self.targets),
            "front": [_plain_candidate(c) for c in self.front],
            **{name: getattr(self, name) for name in scalars},
            "noise": [_plain_number(n) for n in self.noise],
            "failures": dict(self.failures),
            "history": [
                [s.round, s.restarts, s.seconds, _plain_number(s.error), s.complexity, s.equation]
                for s in self.history
            ],
            "network_inputs": list(self.network_inputs),
            "data": dict(self.data),
            "settings": dict(self.settings),
            "environment": dict(self.environment),
        }

    @staticmethod
    def from_json(data: Mapping[str, Any], where: str) -> RunRecord:
        """The record from the result of `to_json`; `where` names it in messages."""
        if data.get("status") == "running":
            raise InvalidFile(f"{where} is of a run that has not ended; continue it with `--resume`")
        if data.get("format") != FORMAT or data.get("version") != VERSION:
            raise InvalidFile(f"{where} is not of a run that this version of eqlearn reads")
        try:
            return _record(data)
        except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
            kind = "" if isinstance(error, EqlearnError) else f"{type(error).__name__}: "
            raise InvalidFile(f"{where} is damaged: {kind}{error}") from error


def _plain_number(value: float) -> float | str | None:
    """NaN (nothing was measured) as None and infinity as text, for JSON."""
    return value if math.isfinite(value) else None if math.isnan(value) else str(value)


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str | None):
        raise TypeError(f"{value!r:.40} is not a number")
    return math.nan if value is None else float(value)


def _plain_candidate(candidate: Candidate) -> dict[str, Any]:
    outputs = [
        {
            "expression": write(equation.expr, equation.variables),
            "constants": [[_plain_number(c.value), _plain_number(c.standard_error)] for c in constants],
        }
        for equation, constants in zip(candidate.equations, candidate.constants, strict=True)
    ]
    return {
        "outputs": outputs,
        "complexity": candidate.complexity,
        **{name: _plain_number(getattr(candidate, name)) for name in MEASURES},
        "exact": candidate.exact,
        "reduced_chi_square": _plain_number(candidate.reduced_chi_square),
        "held_out_rows": candidate.held_out_rows,
        "method": candidate.method,
        **({} if candidate.varying is None else {"varying": candidate.varying.to_json()}),
    }


def _record(data: Mapping[str, Any]) -> RunRecord:
    inputs, targets = _names(data["inputs"]), _names(data["targets"])
    front = tuple(_candidate(c, inputs, len(targets)) for c in data["front"][:MOST_CANDIDATES])
    pick = int(data["pick"])
    if not 0 <= pick < len(front):
        raise ValueError(f"there is no candidate {pick}")
    noise = tuple(_number(n) for n in data["noise"])
    if len(noise) != len(targets):
        raise ValueError(f"there are {len(noise)} noise levels for {len(targets)} targets")
    steps = tuple(
        SearchRound(int(s[0]), int(s[1]), _number(s[2]), _number(s[3]), int(s[4]), str(s[5]))
        for s in data["history"][:MOST_ROUNDS]
    )
    return RunRecord(
        inputs=inputs, targets=targets, front=front, pick=pick, noise=noise,
        restarts=int(data["restarts"]), rounds=int(data["rounds"]), seconds=_number(data["seconds"]),
        ended=str(data["ended"]), exact_restarts=int(data["exact_restarts"]),
        failures={str(k): int(v) for k, v in data["failures"].items()},
        history=steps, network_inputs=_names(data["network_inputs"], distinct=False),
        data=dict(data["data"]), settings=dict(data["settings"]), environment=dict(data["environment"]),
    )  # fmt: skip


def _names(values: Any, distinct: bool = True) -> tuple[str, ...]:
    if not isinstance(values, list) or not all(isinstance(v, str) and v for v in values):
        raise TypeError("a list of names is not one")
    if distinct and len(set(values)) < max(1, len(values)):
        raise ValueError("names are missing or there twice")
    return tuple(values)


def _candidate(data: Mapping[str, Any], variables: tuple[str, ...], outputs: int) -> Candidate:
    # These were missing in earlier versions.
    data = {"prediction_length": None, "method": "", "reduced_chi_square": None, **data}
    varying = Varying.from_json(data["varying"]) if data.get("varying") else None
    variables = variables if varying is None else (*variables, *varying.names)
    equations = tuple(Equation.parse(str(o["expression"]), variables) for o in data["outputs"])
    pairs = [o["constants"] for o in data["outputs"]]
    measures: dict[str, Any] = {name: _number(data[name]) for name in MEASURES}
    if len(equations) != outputs:
        raise ValueError(f"a candidate has {len(equations)} equations for {outputs} targets")
    return Candidate(
        equations=equations,
        constants=tuple(tuple(Constant(_number(v), _number(s)) for v, s in each) for each in pairs),
        exact=bool(data["exact"]),
        held_out_rows=int(data["held_out_rows"]),
        method=str(data["method"]),
        varying=varying,
        reduced_chi_square=_number(data["reduced_chi_square"]),
        **measures,
    )


PACKAGES = ("torch", "numpy", "scipy", "sympy", "scikit-learn", "joblib", "safetensors")


def environment() -> dict[str, Any]:
    """Versions, machine and time as plain data: the same digits need the same versions."""
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
