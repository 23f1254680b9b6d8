"""Sets of formulas from the literature, for measuring how often the search finds the right one."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import numpy as np

from eqlearn import Equation, UnknownName, discover, judge, symbolic_solution

FRESH = 1_000_000  # added to a trial's seed it draws the rows on which SRBench's judge measures R²


@dataclass(frozen=True)
class Problem:
    """A formula, the ranges its variables are drawn from, and how many rows a trial sees."""

    suite: str
    name: str
    formula: str
    ranges: dict[str, tuple[float, float]]
    rows: int

    @property
    def truth(self) -> Equation:
        return Equation.parse(self.formula, tuple(self.ranges))

    def data(self, seed: int, noise: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
        """Uniform in the ranges; rows where the formula is not finite are left out. Noise is a part of the
        target's root mean square, as SRBench has it."""
        rng = np.random.default_rng([20220, seed])
        X = np.stack([rng.uniform(low, high, size=self.rows) for low, high in self.ranges.values()], axis=1)
        y = self.truth(X)
        X, y = X[np.isfinite(y)], y[np.isfinite(y)]
        return X, y + noise * np.sqrt(np.mean(y**2)) * rng.normal(size=len(y)) if noise else y


@cache
def suites() -> dict[str, tuple[Problem, ...]]:
    """All suites by name."""
    text = resources.files("eqlearn.paper").joinpath("problems.json").read_text(encoding="utf-8")
    return {
        suite: tuple(
            Problem(
                suite,
                p["name"],
                p["formula"],
                {k: (float(low), float(high)) for k, (low, high) in p["ranges"].items()},
                p["rows"],
            )
            for p in problems
        )
        for suite, problems in json.loads(text).items()
    }


def find_suite(name: str) -> tuple[Problem, ...]:
    """The problems of one suite."""
    if name not in suites():
        raise UnknownName(f"no suite named {name!r}; the known ones are {', '.join(suites())}")
    return suites()[name]


def trials(
    problem: Problem, seeds: Sequence[int], seconds: float, noise: float = 0.0
) -> Iterator[dict[str, Any]]:
    """One record per seed, with default settings; every seed started is counted, by both judges."""
    for seed in seeds:
        X, y = problem.data(seed, noise)
        began = time.perf_counter()
        found = discover(X, y, variables=tuple(problem.ranges), seconds=seconds, seed=seed)
        if found.ended == "interrupted":
            raise KeyboardInterrupt  # half a search is no trial; the same command does it whole
        used = time.perf_counter() - began
        errors = [c.standard_error for c in found.best.constants[0]] if noise else None
        verdict = judge(found.best.equation, problem.truth, problem.ranges, standard_errors=errors)
        second = symbolic_solution(found.best.equation, problem.truth, *problem.data(FRESH + seed))
        yield {
            "problem": problem.name,
            "seed": seed,
            "tier": verdict.tier,
            "reason": verdict.reason,
            "srbench": second.solved,
            "equation": str(found.best.equation),
            "training_error": found.best.training_error,
            "seconds": used,
            "restarts": found.restarts,
            "method": found.best.method,
            "ended": found.ended,
        }
