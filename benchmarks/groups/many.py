"""How time and memory grow with the number of groups: one law, 100 rows a group, 1 % noise.

    python benchmarks/groups/many.py --out results/groups/many.json

Each number of groups runs in a process of its own, which says its own peak of memory.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from eqlearn import atomic_write, discover, environment


def measured(groups: int, seed: int) -> dict[str, Any]:
    """One search of a * exp(-k*t) + b with a by group."""
    rng = np.random.default_rng(seed)
    codes = np.arange(groups).repeat(100)
    t, a = rng.uniform(0, 4, len(codes)), rng.uniform(1, 5, groups)
    clean = a[codes] * np.exp(-0.62 * t) + 0.31
    y = clean + 0.01 * clean.std() * rng.normal(size=len(t))
    began = time.process_time()
    best = discover(t[:, None], y, groups=codes, variables=["t"], seed=seed).best
    seconds = time.process_time() - began
    found = best.varying.values[:, 0]
    return {
        "groups": groups, "rows": len(t), "seed": seed, "equation": str(best.equation),
        "correlation": float(np.corrcoef(found, a)[0, 1]), "cpu_seconds": round(seconds, 1),
        "peak_megabytes": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--groups", type=int, nargs="+", default=[100, 1_000, 10_000])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    if options.out is None:
        print(json.dumps(measured(options.groups[0], options.seed)))
        return
    trials = []
    for groups in options.groups:
        command = [sys.executable, __file__, "--groups", str(groups), "--seed", str(options.seed)]
        trials.append(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
        print(trials[-1], flush=True)
        text = json.dumps({"trials": trials, "environment": environment()}, indent=1) + "\n"
        atomic_write(options.out, text.encode())


if __name__ == "__main__":
    main()
