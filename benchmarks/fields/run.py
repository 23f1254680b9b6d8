"""Measures `discover_pde` on fields of our own, from starts that no setting was tuned on, or on classic ones.

    python benchmarks/fields/run.py --out results/fields/own.json
    EQLEARN_FIELDS=... python benchmarks/fields/run.py --set classic --out results/fields/classic.json
    python benchmarks/fields/run.py --set drawn --noise 0 0.01 0.1 --out results/fields/drawn.json

Each problem is solved from one start (`--seed`; development used 0) and shown clean and with white noise of
some parts of each field's root mean square, in so many `--draws`. Terms are right if the equations hold those
of the truth and no others; where a function is inside, if values agree to 2 %. The coefficient error is the
worst of all. What is in the file already is not run again.

With `--peer`, a Python that has PySINDy, its three ways answer for the same arrays in the place of ours; each
is right if it is at any of ten thresholds, with the coefficients that it has there.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import classic
import drawn
import numpy as np
import problems as own
import reactions
import sympy as sp
from problems import Problem

from eqlearn import Equation, FoundPDE, discover_pde, environment

SETS = {
    "own": own.problems,
    "classic": classic.problems,
    "drawn": drawn.problems,
    "reactions": reactions.problems,
}


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


def noisy(fields: dict[str, np.ndarray], level: float, seed: int) -> dict[str, np.ndarray]:
    """With white noise of this part of each field's root mean square."""
    generator = np.random.default_rng(seed)
    return {
        k: v + level * np.sqrt(np.mean(np.square(v, dtype=float))) * generator.normal(size=v.shape)
        if level
        else v
        for k, v in fields.items()
    }


def table(rows: list[dict], levels: list[float], command: str) -> str:
    """What was found, for the eye: right draws, and the worst and the median coefficient error of those."""
    title = " | ".join(f"noise {level:.0%}" for level in levels)
    lines = [
        f"Made by `{command}`. Right draws, and where there are any the worst (and of several the median) "
        "error of a coefficient; what was found in place of the truth once for each. A peer has the best of "
        "ten thresholds, by the truth; eqlearn has one setting."
    ]
    for method in dict.fromkeys(r.get("method", "eqlearn") for r in rows):
        mine = [r for r in rows if r.get("method", "eqlearn") == method]
        lines += ["", f"| {method} | {title} |", "|---|" + "---|" * len(levels)]
        for name in dict.fromkeys(r["problem"] for r in mine):
            cells = [_cell([r for r in mine if (r["problem"], r["noise"]) == (name, lv)]) for lv in levels]
            lines.append(f"| {name} | {' | '.join(cells)} |")
        right = [sum(r["right"] for r in mine if r["noise"] == level) for level in levels]
        of = [sum(r["noise"] == level for r in mine) for level in levels]
        lines.append(f"| right | {' | '.join(f'{a} of {b}' for a, b in zip(right, of, strict=True))} |")
    return "\n".join(lines) + "\n"


def _cell(draws: list[dict]) -> str:
    errors = sorted(r["coefficient_error"] for r in draws if r["right"])
    if not draws:
        return ""
    worst = f", {errors[-1]:.2%}" if errors else ""
    middle = f" ({errors[len(errors) // 2]:.2%})" if len(errors) > 1 else ""
    wrong = next((" ✗ " + "; ".join(f"`{e[:90]}`" for e in r["found"]) for r in draws if not r["right"]), "")
    return f"{len(errors)} of {len(draws)}{worst}{middle}{wrong}"


def measured(name: str, problem: Problem, level: float, draw: int, fields: dict, axes: dict) -> dict:
    """One search, and how right it is."""
    began, busy = time.time(), time.process_time()
    found: FoundPDE = discover_pde(
        noisy(fields, level, draw), axes, order=problem.order, targets=list(problem.truth)
    )
    pairs = zip(problem.truth.values(), found.equations, strict=True)
    verdicts = [judged(equation, terms) for terms, equation in pairs]
    row = {
        "problem": name, "noise": level, "draw": draw, "shape": [len(a) for a in axes.values()],
        "right": all(v[0] for v in verdicts), "coefficient_error": max(v[1] for v in verdicts),
        "found": str(found).splitlines(), "unexplained": list(found.unexplained),
        "seconds": time.time() - began, "processor_seconds": time.process_time() - busy,
    }  # fmt: skip
    print(name, level, draw, row["right"], row["coefficient_error"], row["found"], flush=True)
    return row


def of_peer(
    python: Path, name: str, problem: Problem, level: float, draw: int, fields: dict, axes: dict
) -> list[dict]:
    """What PySINDy's three ways find, each at the threshold that suits it best."""
    task = {"fields": list(fields), "targets": list(problem.truth), "axes": list(axes)}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "field.npz"
        np.savez(path, **noisy(fields, level, draw), **axes)
        command = [str(python), str(Path(__file__).with_name("pysindy_worker.py")), str(path)]
        done = subprocess.run(command, input=json.dumps(task), capture_output=True, text=True, check=True)
    told = json.loads(done.stdout)
    rows = []
    for way, answer in told["answers"].items():
        verdicts, best = [], []
        for terms, texts in zip(problem.truth.values(), answer["equations"], strict=False):
            variables = tuple(sorted({s.name for e in (*texts, *terms) for s in sp.sympify(e).free_symbols}))
            each = [(*judged(Equation.parse(e, variables), terms), e) for e in texts]
            right, error, text = min(each, key=lambda v: (not v[0], v[1]))
            verdicts.append((right, error))
            best.append(text)
        row = {
            "method": f"PySINDy {told['version']}, {way}", "problem": name, "noise": level, "draw": draw,
            "right": bool(verdicts) and all(v[0] for v in verdicts), "found": best, "unexplained": [],
            "coefficient_error": max((v[1] for v in verdicts), default=float("nan")),
            "failure": answer["failure"], "processor_seconds": answer["seconds"],
        }  # fmt: skip
        print(name, level, draw, row["method"], row["right"], row["coefficient_error"], flush=True)
        rows.append(row)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--set", choices=list(SETS), default="own")
    parser.add_argument("--noise", type=float, nargs="*", default=[0.0, 0.01, 0.2])
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--draws", type=int, default=1)
    parser.add_argument("--seed", type=int, default=100, help="of the starts, and of the first draw of noise")
    parser.add_argument("--peer", type=Path, help="a Python with PySINDy, which answers in our place")
    options = parser.parse_args()
    held = json.loads(options.out.read_text()) if options.out.exists() else {"rows": [], "command": ""}
    rows = held["rows"]
    done = {(r["problem"], r["noise"], r["draw"]) for r in rows if ("method" in r) == bool(options.peer)}
    command = held["command"] or f"python benchmarks/fields/run.py {' '.join(sys.argv[1:])}"
    for name, problem in SETS[options.set](options.seed).items():
        if options.only and name not in options.only:
            continue
        todo = [
            (level, options.seed + draw)
            for level in options.noise
            for draw in range(options.draws if level else 1)
            if (name, level, options.seed + draw) not in done
        ]
        fields, axes = problem.make() if todo else ({}, {})
        for level, draw in todo:
            if options.peer:
                rows += of_peer(options.peer, name, problem, level, draw, fields, axes)
            else:
                rows.append(measured(name, problem, level, draw, fields, axes))
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            plain = {
                "command": command, "seed": options.seed, "memory_mb": memory, "environment": environment(),
                "rows": rows,
            }  # fmt: skip
            options.out.parent.mkdir(parents=True, exist_ok=True)
            options.out.write_text(json.dumps(plain, indent=1) + "\n")
            levels = sorted({r["noise"] for r in rows})
            options.out.with_suffix(".md").write_text(table(rows, levels, command))


if __name__ == "__main__":
    main()
