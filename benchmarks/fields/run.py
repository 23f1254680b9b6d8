"""Measures `discover_pde` on fields of our own, from starts that no setting was tuned on.

    python benchmarks/fields/run.py --out results/fields/own.json

Each problem is solved from one start (`--seed`; development used 0) and shown clean and with white noise of
some parts of each field's standard deviation. Terms are right if the equations hold those of the truth and no
others; where a function is inside, if values agree to 2 %. The coefficient error is the worst of all.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from pathlib import Path

import numpy as np
import sympy as sp
from problems import problems

from eqlearn import Equation, discover_pde, environment


def truth_of(terms: dict[str, float], variables: tuple[str, ...]) -> Equation:
    return Equation.parse(" + ".join(f"({c})*({t})" for t, c in terms.items()), variables)


def judged(found: Equation, terms: dict[str, float]) -> tuple[bool, float]:
    """Whether the terms are right, and the worst relative error of a coefficient."""
    names = {s.name for t in terms for s in sp.sympify(t).free_symbols}
    true = truth_of(terms, tuple(dict.fromkeys((*found.variables, *sorted(names)))))
    mine, theirs = (sp.expand(e.expr).as_coefficients_dict() for e in (found, true))
    if {str(k) for k in mine} == {str(k) for k in theirs}:
        values = {str(k): float(v) for k, v in theirs.items()}
        return True, max(abs(float(v) / values[str(k)] - 1) for k, v in mine.items())
    if true.expr.atoms(sp.Function) or any("/" in t for t in terms):
        generator = np.random.default_rng(0)
        sample = {v: generator.uniform(0.3, 2.0, 500) for v in true.variables}
        gap = np.sqrt(np.mean((found(sample) - true(sample)) ** 2) / np.mean(true(sample) ** 2))
        return bool(gap < 0.02), float(gap)
    return False, float("nan")


def table(rows: list[dict], levels: list[float]) -> str:
    """What was found, for the eye."""
    title = " | ".join(f"noise {level:.0%}" for level in levels)
    lines = [
        "Made by `python benchmarks/fields/run.py --out results/fields/own.json`; one start of each, another "
        "than in development. A tick: all terms right and no others, and the worst coefficient's error.",
        "",
        f"| problem | {title} |",
        "|---|" + "---|" * len(levels),
    ]
    for name in dict.fromkeys(r["problem"] for r in rows):
        by_level = {r["noise"]: r for r in rows if r["problem"] == name}
        cells = [_cell(by_level.get(level)) for level in levels]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    right = [sum(r["right"] for r in rows if r["noise"] == level) for level in levels]
    of = [sum(r["noise"] == level for r in rows) for level in levels]
    lines.append(f"| right | {' | '.join(f'{a} of {b}' for a, b in zip(right, of, strict=True))} |")
    return "\n".join(lines) + "\n"


def _cell(row: dict | None) -> str:
    if row is None:
        return ""
    if row["right"]:
        return f"✓ {row['coefficient_error']:.1%}"
    return "✗ " + "; ".join(f"`{line[:90]}`" for line in row["found"])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--noise", type=float, nargs="*", default=[0.0, 0.01, 0.2])
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--seed", type=int, default=100)
    options = parser.parse_args()
    rows = json.loads(options.out.read_text())["rows"] if options.out.exists() else []
    done = {(r["problem"], r["noise"]) for r in rows}
    for name, problem in problems(options.seed).items():
        if options.only and name not in options.only:
            continue
        levels = [n for n in options.noise if (name, n) not in done]
        fields, axes = problem.make() if levels else ({}, {})
        for level in levels:
            generator = np.random.default_rng(options.seed)
            noisy = {k: v + level * v.std() * generator.normal(size=v.shape) for k, v in fields.items()}
            began, busy = time.time(), time.process_time()
            found = discover_pde(noisy, axes, order=problem.order)
            verdicts = [judged(e, problem.truth[n]) for n, e in zip(fields, found.equations, strict=True)]
            rows.append({
                "problem": name, "noise": level, "shape": [len(a) for a in axes.values()],
                "right": all(v[0] for v in verdicts), "coefficient_error": max(v[1] for v in verdicts),
                "found": str(found).splitlines(), "unexplained": list(found.unexplained),
                "seconds": time.time() - began, "processor_seconds": time.process_time() - busy,
            })  # fmt: skip
            print(
                name, level, rows[-1]["right"], rows[-1]["coefficient_error"], rows[-1]["found"], flush=True
            )
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            plain = {"seed": options.seed, "memory_mb": memory, "environment": environment(), "rows": rows}
            options.out.parent.mkdir(parents=True, exist_ok=True)
            options.out.write_text(json.dumps(plain, indent=1) + "\n")
            options.out.with_suffix(".md").write_text(table(rows, options.noise))


if __name__ == "__main__":
    main()
