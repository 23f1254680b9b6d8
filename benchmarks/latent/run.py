"""Laws behind encoders, by `discover_latent` as it comes: every seed counted, results as JSON and a table.

    python benchmarks/latent/run.py --tasks spring,digits-product --seeds 5 --out benchmarks/latent

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

from eqlearn import SCIENCE, Equation, atomic_write, discover_latent, environment
from eqlearn.nn.primitives import PAPER

SETS = {"default": SCIENCE, "paper": PAPER}
# A law is right if an affine map of its latents makes it the true one to this part of the truth's spread.
RIGHT = 0.01


def is_right(found: Equation, task: Task, shared: bool) -> bool:
    """Whether an affine map of the latents (one for all where they share an encoder) turns the law into the
    true one, in the order of slots that suits it best."""
    truth = Equation.parse(task.laws[0], found.variables)
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
    task = TASKS[name](seed)
    began = time.time()
    found = discover_latent(
        task.encoders, task.inputs, task.columns or None, task.y, primitives=SETS[primitives], seed=seed
    )
    seconds = time.time() - began
    shared = len({id(e) for e in task.encoders.values()}) < len(task.encoders)
    agreed, of = found.agreement
    return {
        "task": name, "seed": seed, "primitives": primitives, "law": str(found.equation),
        "right": is_right(found.equation, task, shared), "seconds": round(seconds, 1), "error": found.error,
        "held_error": found.held_error, "head_error": found.head_error, "agreed": agreed, "starts": of,
    }  # fmt: skip


def page(ledger: dict[str, Any]) -> str:
    """The table of all trials, what it shows, and what made it."""
    about = ledger["environment"]
    return (
        "# Laws behind encoders\n\n`discover_latent` as it comes, on tasks that set nothing of it; each seed "
        "that was started is counted. A law is right if an affine map of its latents turns it into the true "
        "one (of the signal and the spots: the law with the simplest bend of the hidden quantity). The error "
        "is the part of the target's variance that is left, beside what a smooth network left.\n\n"
        f"{table(ledger['trials'])}\n`python benchmarks/latent/run.py`, eqlearn {about['eqlearn']}, "
        f"torch {about['packages']['torch']}, {about['started']}.\n"
    )


def table(trials: list[dict[str, Any]]) -> str:
    lines = [
        "| task | primitives | right | laws | slowest, s | error, median (head's) |",
        "|---|---|---|---|---|---|",
    ]
    for name in TASKS:
        for primitives in SETS:
            mine = [t for t in trials if t["task"] == name and t["primitives"] == primitives]
            if mine:
                laws = ", ".join(f"`{law}`" for law in dict.fromkeys(str(t["law"]) for t in mine))
                errors = [float(np.median([t[k] for t in mine])) for k in ("error", "head_error")]
                right = sum(bool(t["right"]) for t in mine)
                lines.append(
                    f"| {name} | {primitives} | {right} of {len(mine)} | {laws} | "
                    f"{max(t['seconds'] for t in mine):.0f} | {errors[0]:.1e} ({errors[1]:.1e}) |"
                )
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tasks", default=",".join(TASKS))
    parser.add_argument("--primitives", default="default", help="default, paper, or both by a comma")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first", type=int, default=100, help="the first seed; development used 0 to 9")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / "tasks.json"
    ledger = json.loads(path.read_text()) if path.exists() else {"environment": environment(), "trials": []}
    for seed in range(options.first, options.first + options.seeds):
        for name in options.tasks.split(","):
            for primitives in options.primitives.split(","):
                done = {(t["task"], t["seed"], t["primitives"]) for t in ledger["trials"]}
                if (name, seed, primitives) in done:
                    continue
                one = trial(name, seed, primitives)
                print(json.dumps(one), flush=True)
                if path.exists():  # another process may have added to it
                    ledger = json.loads(path.read_text())
                ledger["trials"].append(one)
                ledger["trials"].sort(
                    key=lambda t: (list(TASKS).index(t["task"]), t["primitives"], t["seed"])
                )
                atomic_write(path, (json.dumps(ledger, indent=1) + "\n").encode())
                atomic_write(options.out / "tasks.md", page(ledger).encode())


if __name__ == "__main__":
    main()
