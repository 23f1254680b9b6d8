"""Measures what `FoundPDE.refined` buys: errors of coefficients before and after, and processor seconds.

    python benchmarks/processor_clock.py benchmarks/fields/refined.py --out results/fields/refined.json

Fields of our own in noise, three draws each. What is in the file already is not run again.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import problems as own
import run

from eqlearn import discover_pde, environment

CASES = [("Fisher-KPP", 0.05), ("Allen-Cahn", 0.05), ("advection-diffusion", 0.2), ("uneven times", 0.05)]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=100)
    parser.add_argument("--draws", type=int, default=3)
    options = parser.parse_args()
    rows = json.loads(options.out.read_text())["rows"] if options.out.exists() else []
    done = {(r["problem"], r["draw"]) for r in rows}
    for draw in range(options.seed, options.seed + options.draws):
        for name, level in CASES:
            if (name, draw) in done:
                continue
            problem = own.problems(options.seed)[name]
            fields, axes = problem.make()
            found = discover_pde(run.noisy(fields, level, draw), axes, order=problem.order)
            began = time.process_time()
            after = found.refined()
            spent = time.process_time() - began
            errors = [run.judged(f.equations[0], problem.truth["u"])[1] for f in (found, after)]
            rows.append({
                "problem": name, "noise": level, "draw": draw, "found": str(found), "refined": str(after),
                "error_found": errors[0], "error_refined": errors[1], "refined_seconds": spent,
            })  # fmt: skip
            print(rows[-1], flush=True)
            options.out.parent.mkdir(parents=True, exist_ok=True)
            plain = {"seed": options.seed, "environment": environment(), "rows": rows}
            options.out.write_text(json.dumps(plain, indent=1) + "\n")


if __name__ == "__main__":
    main()
