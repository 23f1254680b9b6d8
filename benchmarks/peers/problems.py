"""The problems of the comparison: the paper's, Nguyen's and physics; and data beyond their ranges."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from eqlearn.paper.benchmark import ROWS, TARGETS
from eqlearn.paper.suites import Problem, find_suite

PHYSICS = Path(__file__).with_name("problems.json")
PHYSICS_ROWS, OUTSIDE_ROWS = 200, 200


def problems() -> tuple[Problem, ...]:
    """All of them, in the order of the page."""
    paper = [Problem("paper", t.name, t.name, t.box, ROWS) for t in TARGETS]
    nguyen = [p for p in find_suite("nguyen") if p.name.removeprefix("Nguyen-").isdigit()]
    physics = [
        Problem(
            "physics",
            p["name"],
            p["formula"],
            {name: (float(low), float(high)) for name, (low, high) in p["ranges"].items()},
            PHYSICS_ROWS,
        )
        for p in json.loads(PHYSICS.read_text(encoding="utf-8"))
    ]
    return (*paper, *nguyen, *physics)


def outside(problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    """Rows from twice the training range, with the truth there.

    A range of positive values reaches from half its least to twice its greatest value, so that lengths and
    temperatures stay positive; any other is stretched about its middle, as the paper's [-1, 1] to [-2, 2].
    """
    rng = np.random.default_rng(20221)
    columns = [rng.uniform(*stretched(*edges), size=OUTSIDE_ROWS) for edges in problem.ranges.values()]
    X = np.stack(columns, axis=1)
    y = problem.truth(X)
    return X[np.isfinite(y)], y[np.isfinite(y)]


def stretched(low: float, high: float) -> tuple[float, float]:
    if low >= 0:
        return low / 2, 2 * high
    return (3 * low - high) / 2, (3 * high - low) / 2
