"""Laws behind encoders, by `discover_latent` as it comes: every seed counted, results as JSON and a table.

    python benchmarks/latent/run.py --tasks spring,digits-product --primitives paper --seeds 5

A trial that is in the file already is not run again, so that a run can be taken up.
"""

from __future__ import annotations

import argparse
import json
import time
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.optimize import least_squares
from tasks import TASKS, Task

from eqlearn import SCIENCE, EqlearnError, Equation, InvalidExpression, atomic_write, discover_latent
from eqlearn.nn.primitives import PAPER
from eqlearn.paper.ledger import Ledger
from eqlearn.paper.pages.latents import LATENTS_TELL, latents_table

SETS = {"default": SCIENCE, "paper": PAPER}
# A law is right if an affine map of its latents makes it the true one to this part of the truth's spread.
RIGHT = 0.01


def is_right(found: Equation, task: Task, shared: bool) -> bool:
    """Whether an affine map of the latents (one for all where they share an encoder) turns the law into the
    true one, in the order of slots that suits it best."""
    try:
        truth = Equation.parse(task.laws[0], found.variables)
    except InvalidExpression:  # it has other latents than the true one, so many that none has its name
        return False
    latents = [name for name in found.variables if name not in task.columns]
    rng = np.random.default_rng(0)
    points = {name: rng.uniform(0.5, 9.0, 300) for name in latents}
    points |= {name: rng.choice(values.numpy(), 300) for name, values in task.columns.items()}
    want = truth(points)

    def left(theta: np.ndarray, order: tuple[str, ...]) -> np.ndarray:
        pairs = [theta[:2]] * len(latents) if shared else theta.reshape(-1, 2)
        moved = dict(points)
        for (scale, shift), name, source in zip(pairs, latents, order, strict=True):
            moved[name] = scale * points[source] + shift
        with np.errstate(all="ignore"):
            return np.nan_to_num((found(moved) - want) / want.std(), nan=1e3, posinf=1e3, neginf=-1e3)

    count = 2 if shared else 2 * len(latents)
    for order in permutations(latents) if not shared else [tuple(latents)]:
        for sign in (1.0, -1.0):
            start = np.tile([sign, 0.0], count // 2)
            fit = least_squares(lambda theta, order=order: left(theta, order), start)
            if np.sqrt(2 * fit.cost / 300) < RIGHT:
                return True
    return False


def trial(name: str, seed: int, primitives: str) -> dict[str, Any]:
    """One search, from a seed of its own; one that fails is a trial, too."""
    task, began, at = TASKS[name](seed), time.time(), time.process_time()
    told: dict[str, Any] = {"task": name, "seed": seed, "primitives": primitives, "law": "", "right": False}
    told |= dict.fromkeys(("error", "held_error", "head_error"), 1.0)
    try:
        found = discover_latent(
            task.encoders, task.inputs, task.columns or None, task.y, primitives=SETS[primitives], seed=seed
        )
    except EqlearnError as error:
        return {**told, **_taken(began, at), "failure": str(error)}
    taken = _taken(began, at)
    shared = len({id(e) for e in task.encoders.values()}) < len(task.encoders)
    agreed, starts = found.agreement
    return {
        **told, "law": str(found.equation), "right": is_right(found.equation, task, shared),
        "error": found.error, "held_error": found.held_error, "head_error": found.head_error,
        "agreed": agreed, "starts": starts, "ended": found.ended, **taken,
    }  # fmt: skip


def _taken(began: float, at: float) -> dict[str, float]:
    """Seconds by the clock, and of the processor, which other work on the machine does not change much."""
    return {
        "seconds": round(time.time() - began, 1), "cpu_seconds": round(time.process_time() - at, 1)
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tasks", default=",".join(TASKS))
    parser.add_argument("--primitives", choices=SETS, default="default")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first", type=int, default=100, help="the first seed; development used 0 to 9")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path(__file__).parents[2] / "results" / "latent")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    ledger = Ledger(options.out / f"{options.primitives}.json", {"primitives": options.primitives})
    ledger.plain["command"] = "python benchmarks/latent/run.py" + " --primitives paper" * (
        options.primitives == "paper"
    )
    for seed in range(options.first, options.first + options.seeds):
        for name in options.tasks.split(","):
            if (key := f"{name}, seed {seed}") not in ledger.trials:
                ledger.add(key, trial(name, seed, options.primitives))
                print(json.dumps(ledger.trials[key]), flush=True)
                told = f"# Laws behind encoders, {options.primitives} primitives\n\n{LATENTS_TELL}"
                atomic_write(
                    ledger.path.with_suffix(".md"), f"{told}\n\n{latents_table(ledger.plain)}\n".encode()
                )


if __name__ == "__main__":
    main()
