"""Operon's part in the comparison: the settings of its own example, five generations at a time."""

from __future__ import annotations

import numpy as np
from protocol import Desk, Task, serve
from pyoperon.sklearn import SymbolicRegressor

SYMBOLS = "add,sub,mul,div,square,sin,cos,exp,log,sqrt,tanh,pow,constant,variable"
CRITERION = "bayesian_information_criterion"
PIECE = 5


def solve(task: Task, desk: Desk) -> str:
    X, y = np.array(task.X), np.array(task.y)
    model = SymbolicRegressor(
        allowed_symbols=SYMBOLS,
        objectives=["r2", "length"],
        optimizer_iterations=10,
        model_selection_criterion=CRITERION,
        generations=PIECE,
        max_evaluations=10**9,
        # A generator, because a number would give every piece the same random numbers.
        random_state=np.random.default_rng(task.seed),
        warm_start=True,
    )
    best, piece = np.inf, 0.0
    while desk.spent() + piece / 2 < task.seconds:
        began = desk.spent()
        model.fit(X, y)
        piece = desk.spent() - began
        score = min(found[CRITERION] for found in model.pareto_front_)
        if score < best:
            best = score
            desk.answer(model.get_model_string(model.model_, 15, task.variables))
    return "out of time"


if __name__ == "__main__":
    serve(solve)
