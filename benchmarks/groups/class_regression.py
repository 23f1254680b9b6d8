"""Ten laws, twenty groups of thirty rows, 1 % noise: are structure and sharing found, not told which?

    python benchmarks/groups/class_regression.py --seeds 0 1 2 --out results/groups/class_regression.json

A trial is right if as many constants vary as in the law, and if the equation of the first, the middle and
the last group is the law's there: `judge` says so (tier `paper` or stricter: constants may be 5 % off, and a
plain number such as 26/5 counts as a constant), and its values are off by no more than the noise of a row.
`strict` is the tier where plain numbers must be the law's own. Trials in the file are kept.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import sympy as sp
from laws import GROUPS, LAWS, NOISE, Law

from eqlearn import Equation, atomic_write, discover, environment, judge


def trial(law: Law, seed: int) -> dict[str, Any]:
    """One search, and whether it found the law."""
    X, y, groups, constants = law.draw(seed)
    began = time.process_time()
    best = discover(X, y, groups=groups, variables=list(law.columns), seed=seed).best
    seconds = time.process_time() - began
    varying = 0 if best.varying is None else len(best.varying.names)
    tiers, strict, off, equations = [], [], [], []
    for place in (0, GROUPS // 2, GROUPS - 1):
        one = best.equation if best.varying is None else best.varying.equation_of(best.equation, place)
        truth, box = law.truth(constants[place]), dict(law.columns)
        tiers.append(judge(with_floats(one), truth, box).tier)
        strict.append(judge(one, truth, box).tier)
        off.append(float(np.sqrt(np.mean((one(X[groups == place]) - truth(X[groups == place])) ** 2))))
        equations.append(str(one))
    structure = all(tier != "wrong" for tier in tiers) and max(off) <= NOISE * float(y.std())
    sharing = varying == len(law.varying)
    return {
        "law": law.name, "formula": law.formula, "seed": seed, "equation": str(best.equation),
        "equations": equations, "varying": varying, "tiers": tiers, "strict": strict,
        "off": off, "structure": structure, "sharing": sharing,
        "right": structure and sharing, "cpu_seconds": round(seconds, 1),
    }  # fmt: skip


def with_floats(equation: Equation) -> Equation:
    """The same equation with its exact coefficients as fitted constants; exponents stay."""

    def floated(node: Any) -> Any:
        if isinstance(node, sp.Pow):
            return sp.Pow(floated(node.base), node.exp) if not node.is_number else sp.Float(node, 17)
        if node.is_number:
            return node if node in (-1, 0, 1) else sp.Float(node, 17)
        return node.func(*map(floated, node.args)) if node.args else node

    return Equation(floated(equation.expr), equation.variables)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--laws", nargs="+", default=[law.name for law in LAWS])
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    trials = json.loads(options.out.read_text())["trials"] if options.out.exists() else []
    done = {(t["law"], t["seed"]) for t in trials}
    for seed in options.seeds:
        for law in LAWS:
            if law.name in options.laws and (law.name, seed) not in done:
                trials.append(trial(law, seed))
                print(trials[-1], flush=True)
                right = sum(t["right"] for t in trials)
                result = {"right": right, "of": len(trials), "trials": trials, "environment": environment()}
                atomic_write(options.out, (json.dumps(result, indent=1) + "\n").encode())


if __name__ == "__main__":
    main()
