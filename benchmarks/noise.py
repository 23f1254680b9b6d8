"""Noise: the paper's ten functions through `EQLRegressor()` as it comes, and how honest the error bars are.

    python benchmarks/noise.py default --count 20
    python benchmarks/noise.py coverage --count 200

A trial that is in the file already is not run again. Seeds below 1,000 are for development. What is `covered`
is a constant whose 95 % interval, its value and 1.96 standard errors to either side, holds the value that the
same formula has without noise; it is asked where the structure is right.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from eqlearn import EQLRegressor, Equation, Settings, discover, judge
from eqlearn.paper.benchmark import TARGETS
from eqlearn.paper.ledger import Ledger
from eqlearn.paper.rates import RIGHT
from eqlearn.search.settings import Reading
from eqlearn.symbolic.parametric import Formula

NOISE = 0.1
# Laws whose constants are no simple numbers; c are drawn for each run.
LAWS = (
    "{0}*x + {1}",
    "{0}*x*y + {1}*z",
    "{0}*x**2 + {1}*y + {2}",
    "{0}*exp({1}*x)",
    "{0}*x**{1}*y**{2}",
    "{0}*x/({1} + x)",
    "{0}*log(x) + {1}*y",
    "{0}*sqrt(x) + {1}*x*y",
)
# Enough to find these; how long a search goes on does not change a law's error bars.
QUICK = Settings(
    strategies=("linear", "rational", "profiled", "subsets"), networks=False, reading=Reading(max_last=3)
)


def default(number: int, first: int) -> dict[str, Any]:
    """One of the ten functions, with nothing said but the data."""
    target, seed = TARGETS[number % 10], first + number // 10
    X, y = target.data(seed, NOISE)
    began, at = time.perf_counter(), time.process_time()
    model = EQLRegressor(random_state=seed).fit(pd.DataFrame(X, columns=target.variables), y)
    taken, used = time.perf_counter() - began, time.process_time() - at
    best = model.found_.best
    errors = [c.standard_error for c in best.constants[0]]
    verdict = judge(best.equation, target.truth, target.box, standard_errors=errors)
    return {
        "function": target.name, "seed": seed, "tier": verdict.tier, "reason": verdict.reason,
        "equation": str(best.equation), "method": best.method, "seconds": taken, "cpu_seconds": used,
        "ended": model.found_.ended,
    }  # fmt: skip


def coverage(number: int, first: int) -> dict[str, Any]:
    """A law with constants of its own in noise, and whether the intervals hold them."""
    rng = np.random.default_rng([1968, first + number])
    form, rows = LAWS[number % len(LAWS)], int(rng.integers(50, 500))
    noise = float(np.exp(rng.uniform(*np.log([0.01, 0.2]))))
    formula = form.format(*np.round(rng.uniform(0.6, 2.9, size=3), 4))
    names = tuple(name for name in "xyz" if name in formula.replace("exp", ""))
    box = dict.fromkeys(names, (0.5, 3.0))
    truth = Equation.parse(formula, names)
    X = rng.uniform(0.5, 3.0, size=(rows, len(names)))
    clean = truth(X)
    y = clean + noise * clean.std() * rng.normal(size=rows)
    found = discover(X, y, variables=names, settings=QUICK, seed=number)
    best = found.best
    errors = [c.standard_error for c in best.constants[0]]
    verdict = judge(best.equation, truth, box, standard_errors=[10 * e for e in errors])
    trial = {
        "formula": formula, "rows": rows, "noise": noise, "equation": str(best.equation),
        "tier": verdict.tier, "errors": errors,
    }  # fmt: skip
    if verdict.tier in RIGHT:
        fit = Formula.of(best.equation).fit(X, clean)
        found_values = Formula.of(best.equation).constants
        # A constant that snapped to a wrong number leaves the others no way to be right.
        trial["snapped_wrong"] = bool(fit.error > 1e-9 * clean.std())
        trial["deviations"] = [
            float((a - b) / e) for a, b, e in zip(found_values, fit.values, errors, strict=True)
        ]
    return trial


def said_of_default(trials: list[dict[str, Any]]) -> str:
    right = sum(t["tier"] in RIGHT for t in trials)
    median = statistics.median(t["seconds"] for t in trials)
    cpu = statistics.median(t["cpu_seconds"] for t in trials)
    return f"{right} of {len(trials)} right, median {median:.1f} s ({cpu:.1f} s of CPU)"


def said_of_coverage(trials: list[dict[str, Any]]) -> str:
    right = [t for t in trials if t["tier"] in RIGHT]
    deviations = [d for t in right for d in t["deviations"] if not t["snapped_wrong"]]
    covered = sum(abs(d) <= 1.96 for d in deviations)
    wrong = sum(t["snapped_wrong"] for t in right)
    return (
        f"{len(right)} of {len(trials)} structures right; {covered} of {len(deviations)} intervals "
        f"({covered / max(1, len(deviations)):.1%}) hold the true value; in {wrong} a constant snapped wrong"
    )


TASKS: dict[str, tuple[Callable[[int, int], dict[str, Any]], Callable[[list[dict[str, Any]]], str]]] = {
    "default": (default, said_of_default),
    "coverage": (coverage, said_of_coverage),
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("task", choices=TASKS)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--first", type=int, default=2_000)
    parser.add_argument("--out", type=Path, default=Path(__file__).parents[1] / "results" / "noise")
    options = parser.parse_args()
    run, said = TASKS[options.task]
    ledger = Ledger(options.out / f"{options.task}.json", {"first": options.first, "noise": NOISE})
    ledger.plain["command"] = f"python benchmarks/noise.py {options.task} --count {options.count}"
    for number in range(options.count):
        if str(number) not in ledger.trials:
            trial = run(number, options.first)
            ledger.add(str(number), trial)
            print(trial["tier"], trial["equation"], flush=True)
    ledger.plain["said"] = said(list(ledger.trials.values())[: options.count])
    ledger.add("0", ledger.trials["0"])  # writes the file
    print(ledger.plain["said"])


if __name__ == "__main__":
    main()
