"""How often formulas drawn at random are found: seeds that nobody has looked at, every trial counted.

    python benchmarks/random_formulas.py --seconds 10 --count 100

A trial that is in the file already is not run again. Development uses `--first` below 1,000.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

from eqlearn import discover, judge, symbolic_solution
from eqlearn.paper.ledger import Ledger
from eqlearn.paper.random_formulas import REPORT, Drawing, random_formula
from eqlearn.paper.rates import RIGHT
from eqlearn.paper.suites import FRESH

DRAWING = Drawing(rows=500)


def trial(seed: int, seconds: float) -> dict[str, Any]:
    """One search, as it comes, judged by identity and by SRBench's rule."""
    problem = random_formula(seed, DRAWING)
    X, y = problem.data(seed)
    began, at = time.perf_counter(), time.process_time()
    found = discover(X, y, variables=tuple(problem.ranges), seconds=seconds, seed=seed)
    if found.ended == "interrupted":
        raise KeyboardInterrupt  # half a search is no trial; the same command does it whole
    taken, used = time.perf_counter() - began, time.process_time() - at
    best = found.best
    verdict = judge(best.equation, problem.truth, problem.ranges, seconds=20.0)
    second = symbolic_solution(best.equation, problem.truth, *problem.data(FRESH + seed))
    return {
        "formula": problem.formula, "seed": seed, "tier": verdict.tier, "reason": verdict.reason,
        "srbench": second.solved, "equation": str(best.equation), "method": best.method,
        "training_error": best.training_error, "seconds": taken, "cpu_seconds": used, "ended": found.ended,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--first", type=int, default=REPORT.start)
    parser.add_argument("--out", type=Path, default=Path(__file__).parents[1] / "results" / "random")
    options = parser.parse_args()
    ledger = Ledger(options.out / f"{options.seconds:g}s.json", {"seconds": options.seconds})
    ledger.plain["command"] = f"python benchmarks/random_formulas.py --seconds {options.seconds:g}"
    for seed in range(options.first, options.first + options.count):
        if str(seed) not in ledger.trials:
            ledger.add(str(seed), trial(seed, options.seconds))
    trials = ledger.trials.values()
    right = sum(t["tier"] in RIGHT for t in trials)
    print(f"{right} of {len(trials)} right, {sum(t['srbench'] for t in trials)} by SRBench's rule")


if __name__ == "__main__":
    main()
