"""CPU time of searches, dynamics and a population, this source tree against another: ratios, in one run.

    python benchmarks/ratios.py --against PATH_TO_OTHER_SRC [--repeats 3] [--only NAME]

Every repeat runs each case in both trees, one after the other, in a process of its own, and the median of the
repeats' ratios counts: other work on the machine slows both. A small search of another law runs first,
untimed. The cases are those of `fingerprint.py`, whose budgets are counted in restarts and steps.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import process_time

import fingerprint
import numpy as np
import torch

HERE = Path(__file__).resolve().parents[1] / "src"


def population() -> None:
    """Ten members of the paper's preset, as one tensor program, for a hundredth of its steps."""
    from dataclasses import replace

    from eqlearn import PRESETS, train_population

    preset = PRESETS["paper"]
    phases = tuple(replace(phase, steps=max(1, phase.steps // 100)) for phase in preset.schedule)
    x = 2 * torch.rand(256, 2, generator=torch.Generator().manual_seed(0)) - 1
    train_population(replace(preset, schedule=phases), x, x.prod(dim=1), seeds=range(10))


def cases() -> dict[str, Callable[[], object]]:
    """A table of each kind, each kind of dynamics, and the population."""
    known = dict(fingerprint.cases())
    tables = ("linear", "product", "wave", "root", "rational", "deep", "noisy sum")
    names = [f"table: {name}, seed 0" for name in tables]
    names += [f"dynamics: {name}, seed 0" for name in ("ODE", "noisy ODE", "map", "hidden parameter")]
    return {**{name: known[name] for name in names}, "population": population}


def seconds(run: Callable[[], object]) -> float:
    """CPU seconds of a call, after another search has loaded what all need."""
    torch.set_num_threads(1)
    fingerprint.table("gauss", 0)
    began = process_time()
    run()
    return process_time() - began


def seconds_in(source: Path, name: str) -> float:
    """The same in a process of its own, on that source tree."""
    done = subprocess.run(
        [sys.executable, __file__, "--case", name],
        env={**os.environ, "PYTHONPATH": str(source), "OMP_NUM_THREADS": "1"},
        check=True,
        capture_output=True,
        text=True,
    )
    return float(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--against", type=Path, metavar="SRC", help="the other source tree, as it was before")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", choices=cases(), help="one case alone")
    parser.add_argument(
        "--case", choices=cases(), help="time one case in this process, and print its seconds"
    )
    options = parser.parse_args()
    if options.case:
        print(seconds(cases()[options.case]))
        return
    if options.against is None or not (options.against / "eqlearn" / "__init__.py").is_file():
        parser.error("`--against` must be a source tree that holds the package `eqlearn`")
    ratios = []
    for name in [options.only] if options.only else cases():
        pairs = [(seconds_in(HERE, name), seconds_in(options.against, name)) for _ in range(options.repeats)]
        after, before = (median(column) for column in zip(*pairs, strict=True))
        ratios.append(median(a / b for a, b in pairs))
        print(f"{ratios[-1]:5.2f}  {name}: {after:.3f} s after, {before:.3f} s before", flush=True)
    print(
        f"{np.exp(np.mean(np.log(ratios))):5.2f}  geometric mean of {len(ratios)}, {options.repeats} repeats"
    )


if __name__ == "__main__":
    main()
