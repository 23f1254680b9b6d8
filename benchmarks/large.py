"""Large tables: ten million rows out of a Parquet file, and two hundred columns of which four matter.

    python benchmarks/large.py rows
    python benchmarks/large.py columns

`rows` measures the peak resident memory of `eqlearn fit`, its imports included; the file is written in pieces
to a temporary folder. `columns` counts a search as right if its law is the truth's.
"""

from __future__ import annotations

import argparse
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from eqlearn import discover, judge, load
from eqlearn.paper.ledger import Ledger
from eqlearn.paper.rates import RIGHT
from eqlearn.symbolic.equation import Equation

ROWS, PIECE = 10_000_000, 500_000
LAW = "x1*x2 + sin(2*x3)/x4"
# Two of the columns matter in a product alone.
WIDE = ("x5*x60 + 2*x120 - x180", "x5*x60 + sin(2*x120) + x180**2")


def write(path: Path) -> None:
    """The table of ten million rows, piece by piece."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = [*(f"x{i}" for i in range(1, 7)), "y"]
    rng = np.random.default_rng(7)
    with pq.ParquetWriter(path, pa.schema([(name, pa.float64()) for name in names])) as file:
        for _ in range(ROWS // PIECE):
            X = rng.uniform(0.5, 2, size=(PIECE, 6))
            y = X[:, 0] * X[:, 1] + np.sin(2 * X[:, 2]) / X[:, 3]
            file.write_table(pa.table(dict(zip(names, [*X.T, y], strict=True))))


def rows(seconds: float) -> dict[str, Any]:
    """`eqlearn fit` on ten million rows, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        path, out = Path(folder) / "large.parquet", Path(folder) / "run"
        write(path)
        began = time.perf_counter()
        eqlearn = str(Path(sys.executable).with_name("eqlearn"))
        command = [eqlearn, "fit", str(path), "--target", "y", "--seconds", str(seconds)]
        subprocess.run([*command, "--out", str(out)], check=True, stdout=subprocess.DEVNULL)
        taken, used = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
        equation = str(load(out / "equation.json"))
        names = tuple(f"x{i}" for i in range(1, 7))
        box = dict.fromkeys(names, (0.5, 2.0))
        verdict = judge(Equation.parse(equation, names), Equation.parse(LAW, names), box)
        return {
            "rows": ROWS, "bytes_of_file": path.stat().st_size, "peak_bytes": 1024 * used.ru_maxrss,
            "seconds": taken, "cpu_seconds": used.ru_utime + used.ru_stime, "equation": equation,
            "tier": verdict.tier,
        }  # fmt: skip


def columns(law: str, noise: float, seed: int, seconds: float) -> dict[str, Any]:
    """A search in two hundred columns."""
    names = tuple(f"x{i}" for i in range(1, 201))
    rng = np.random.default_rng([200, seed])
    X, truth = rng.uniform(-2, 2, size=(1000, 200)), Equation.parse(law, names)
    y = truth(X)
    y = y + noise * y.std() * rng.normal(size=len(y))
    at = time.process_time()
    found = discover(X, y, variables=names, seconds=seconds, seed=seed)
    used = time.process_time() - at
    errors = [c.standard_error for c in found.best.constants[0]] if noise else None
    seen = tuple(sorted(set(re.findall(r"x\d+", f"{law} {found.best.equation}"))))
    box = dict.fromkeys(seen, (-2.0, 2.0))
    ours, theirs = (Equation.parse(str(e), seen) for e in (found.best.equation, truth))
    verdict = judge(ours, theirs, box, standard_errors=errors)
    return {
        "law": law, "noise": noise, "seed": seed, "tier": verdict.tier, "equation": str(found.best.equation),
        "method": found.best.method, "cpu_seconds": used, "ended": found.ended,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("task", choices=("rows", "columns"))
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--first", type=int, default=2_000)
    parser.add_argument("--out", type=Path, default=Path(__file__).parents[1] / "results" / "scale")
    options = parser.parse_args()
    ledger = Ledger(options.out / f"{options.task}.json", {"seconds": options.seconds})
    ledger.plain["command"] = f"python benchmarks/large.py {options.task} --seconds {options.seconds:g}"
    if options.task == "rows":
        trials = {"rows": lambda: rows(options.seconds)}
    else:
        trials = {
            f"{law}, noise {noise:g}": lambda law=law, noise=noise: columns(
                law, noise, options.first, options.seconds
            )
            for law in WIDE
            for noise in (0.0, 0.05)
        }
    for key, trial in trials.items():
        if key not in ledger.trials:
            ledger.add(key, trial())
            print(key, ledger.trials[key])
    print(sum(t["tier"] in RIGHT for t in ledger.trials.values()), "of", len(ledger.trials), "right")


if __name__ == "__main__":
    main()
