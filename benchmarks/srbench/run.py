"""SRBench's protocol here: its data layout, its split and noise, the adapter of this folder, and both judges.

    python benchmarks/srbench/run.py /path/to/pmlb/datasets --only 'strogatz_*' --trials 10 --seconds 60

A run that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from layout import Dataset, Split, folders, read, split
from regressor import complexity, est, model
from sklearn.base import clone
from sklearn.metrics import r2_score

from eqlearn import EqlearnError, EQLRegressor, judge, symbolic_solution
from eqlearn.paper.ledger import Ledger
from eqlearn.paper.rates import RIGHT

ROOT = Path(__file__).parent.parent.parent
ACCURATE = 0.999  # an R² above it is SRBench's other count of successes


def seeds(trials: int) -> list[int]:
    """SRBench's seeds: the first of a hundred, drawn as that project says it drew them."""
    return [int(seed) for seed in np.random.RandomState(42).randint(2**15 - 1, size=100)[:trials]]


def measured(data: Dataset, seed: int, seconds: float, noise: Mapping[str, float]) -> dict[str, Any]:
    """One trial: the fit, its scores, and what both judges say where there is a truth."""
    rows = split(data, seed, **noise)
    fitted = clone(est).set_params(seconds=seconds, random_state=seed)
    record: dict[str, Any] = {"dataset": data.name, "seed": seed, "rows": len(rows.y)}
    began = time.perf_counter()
    try:
        fitted.fit(rows.X, rows.y)
    except EqlearnError as error:
        return {**record, "failure": str(error), **_verdicts("wrong", "no equation", False, "no equation")}
    if fitted.found_.ended == "interrupted":
        raise KeyboardInterrupt  # half a search is no trial; the same command does it whole
    record["seconds"] = time.perf_counter() - began
    record["ended"] = fitted.found_.ended
    record["equation"] = model(fitted, rows.X)
    record["model_size"] = complexity(fitted)
    record["r2_train"], record["r2_test"] = (
        _r2(y, fitted.predict(X)) for X, y in ((rows.X, rows.y), (rows.X_test, rows.y_test))
    )
    return {**record, **_judged(fitted, data, rows, noisy=any(noise.values()))}


def _judged(fitted: EQLRegressor, data: Dataset, rows: Split, *, noisy: bool) -> dict[str, Any]:
    if data.truth is None:
        return _verdicts(None, data.flaw, None, data.flaw)
    errors = [c.standard_error for c in fitted.found_.best.constants[0]] if noisy else None
    try:
        ours = judge(fitted.equation_, data.truth, data.box, standard_errors=errors)
        tier, reason = str(ours.tier), ours.reason
    except EqlearnError as error:  # the truth is not defined on most of the box that the data span
        tier, reason = None, str(error)
    theirs = symbolic_solution(fitted.equation_, data.truth, rows.X_test.to_numpy(), rows.y_test)
    return _verdicts(tier, reason, theirs.solved, theirs.reason)


def _verdicts(tier: str | None, reason: str, solved: bool | None, why: str) -> dict[str, Any]:
    return {"tier": tier, "reason": reason, "srbench": solved, "srbench_reason": why}


def _r2(y: np.ndarray, predicted: np.ndarray) -> float | None:
    return float(r2_score(y, predicted)) if np.isfinite(predicted).all() else None


def summary(trials: Sequence[Mapping[str, Any]]) -> str:
    """Successes of all trials started, by each count; None is a verdict that could not be given."""
    counts = {
        "solved by SRBench's rule": [t["srbench"] for t in trials if t["srbench"] is not None],
        "right by eqlearn's judge": [t["tier"] in RIGHT for t in trials if t["tier"] is not None],
        f"R² above {ACCURATE} on test rows": [(t.get("r2_test") or 0.0) > ACCURATE for t in trials],
    }
    return "\n".join(f"{name}: {sum(found)} of {len(found)}" for name, found in counts.items())


def datasets(root: Path, pattern: str) -> Iterator[Dataset]:
    """Those that can be read; of each other, one sentence on standard error."""
    for folder in folders(root, pattern):
        try:
            data = read(folder)
        except EqlearnError as error:
            print(f"left out: {error}", file=sys.stderr)
            continue
        if data is not None:
            yield data


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("root", type=Path, help="the folder of the data sets' folders, such as pmlb/datasets")
    parser.add_argument("--only", default="*", help="a pattern of names: 'feynman_*'")
    parser.add_argument(
        "--trials", type=int, default=10, help="SRBench's first seeds, at most 100 (default 10)"
    )
    parser.add_argument("--seconds", type=float, default=60.0, help="the budget of a trial (default 60)")
    parser.add_argument("--target-noise", type=float, default=0.0, help="SRBench has 0, 0.001, 0.01 and 0.1")
    parser.add_argument("--feature-noise", type=float, default=0.0, help="the same for every column")
    parser.add_argument(
        "--out", type=Path, default=ROOT / "runs" / "srbench", help="the folder for the results"
    )
    args = parser.parse_args(arguments)

    noise = {"target_noise": args.target_noise, "feature_noise": args.feature_noise}
    settings = {"seconds": args.seconds, **noise}
    name = f"srbench-{args.seconds:g}s-target{args.target_noise:g}-features{args.feature_noise:g}.json"
    try:
        ledger = Ledger(args.out / name, settings)
    except EqlearnError as error:
        raise SystemExit(str(error)) from error
    if not ledger.trials:
        ledger.plain["command"] = " ".join(["python benchmarks/srbench/run.py", *(arguments or sys.argv[1:])])
    seen = 0
    for data in datasets(args.root, args.only):
        seen += 1
        for seed in seeds(args.trials):
            key = f"{data.name} {seed}"
            if key in ledger.trials:
                continue
            record = measured(data, seed, args.seconds, noise)
            ledger.add(key, record)
            said = record.get("equation", record.get("failure", ""))
            print(f"{record['tier'] or '-':8} {record['srbench']!s:5} {key}: {said[:90]}", flush=True)
    if seen == 0:
        raise SystemExit(f"no data set for regression in {args.root} fits {args.only!r}")
    print(f"\n{summary(list(ledger.trials.values()))}\n{ledger.path}")


if __name__ == "__main__":
    main()
