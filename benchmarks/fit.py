"""How the time and memory of a fit grow with rows and columns, and how long the first things take.

Run it with `python benchmarks/fit.py`. Each fit runs in a process of its own, so that its peak memory is its
own; what is compared is timed in turns and the fastest repeat of each counts. A search runs on one thread, so
times are those of the processor: a busy machine does not change them. Searches in noise have no exact law to
stop at, so both sides of a ratio start the same number of networks.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
from pathlib import Path
from time import process_time

import numpy as np

from eqlearn import EQLRegressor, load_dataset


def fit_noise(rows: int, columns: int, restarts: int) -> None:
    """Fits three terms and noise, and prints what it took."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (rows, columns))
    y = 3 * X[:, 0] * X[:, 1] + np.sin(2 * X[:, 2]) + rng.normal(0, 0.1, rows)
    start = process_time()
    EQLRegressor(restarts=restarts).fit(X, y)
    report(process_time() - start)


def fit_shipped() -> None:
    data = load_dataset("kepler")
    start = process_time()
    model = EQLRegressor().fit(data.X, data.y)
    report(process_time() - start, equation=f"{data.target} = {model.equation_}")


def report(seconds: float, **more: str) -> None:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024  # Linux counts in kilobytes
    print(json.dumps({"seconds": seconds, "bytes": peak} | more))


def in_a_process(*arguments: object) -> dict[str, float | str]:
    """What a fit took, timed in a fresh interpreter."""
    command = [sys.executable, __file__, *map(str, arguments)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    result: dict[str, float | str] = json.loads(done.stdout.splitlines()[-1])
    return result


def compare(many: tuple[int, int], few: tuple[int, int], restarts: int, repeats: int) -> tuple[float, float]:
    """The ratio of times, and the peak memory of the larger in gigabytes."""
    seconds: dict[tuple[int, int], list[float]] = {many: [], few: []}
    peak = 0.0
    for _ in range(repeats):
        for shape, taken in seconds.items():
            result = in_a_process("noise", *shape, restarts)
            taken.append(float(result["seconds"]))
            peak = max(peak, float(result["bytes"]) / 1e9)
    return min(seconds[many]) / min(seconds[few]), peak


def help_seconds(repeats: int) -> float:
    """From the command to its help on the screen."""
    command = [str(Path(sys.executable).with_name("eqlearn")), "--help"]
    best = float("inf")
    for _ in range(repeats):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        best = min(best, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--restarts", type=int, default=64)
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args()
    shipped = in_a_process("shipped")
    print(f"{shipped['equation']} found in {shipped['seconds']:.1f} s (at most 30)")
    ratio, peak = compare((1_000_000, 5), (10_000, 5), args.restarts, args.repeats)
    print(f"1,000,000 rows take {ratio:.2f} times as long as 10,000 (at most 3), {peak:.2f} GB at peak (2)")
    ratio, _ = compare((1_000, 30), (1_000, 3), args.restarts, args.repeats)
    print(f"30 columns take {ratio:.2f} times as long as 3 (at most 5)")
    print(f"`eqlearn --help` takes {help_seconds(args.repeats):.2f} s (at most 0.5)")


if __name__ == "__main__":
    if sys.argv[1:2] == ["noise"]:
        fit_noise(*map(int, sys.argv[2:]))
    elif sys.argv[1:2] == ["shipped"]:
        fit_shipped()
    else:
        main()
