"""Processor seconds and memory for three fields of 324 x 149 points and 201 times, clean and with noise.

    python benchmarks/fields/large.py --out results/fields/large.json

A scalar is carried and spreads, w_t = -w_x - 0.3*w_y + 0.02*(w_xx + w_yy), beside two fields of a flow that
it does not depend on. The memory is the process's largest, the fields (three of 78 MB) included.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from pathlib import Path

import numpy as np
from run import noisy

from eqlearn import discover_pde, environment


def made() -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    x, y, t = np.linspace(0, 9, 324), np.linspace(-2, 2, 149), np.linspace(0, 6, 201)
    places = np.meshgrid(x, y, t, indexing="ij", sparse=True)
    generator, w = np.random.default_rng(0), np.zeros((324, 149, 201))
    for _ in range(12):
        (a, b), phase, size = generator.normal(size=2) * 2, generator.uniform(0, 6), generator.normal()
        carried = a * (places[0] - places[2]) + b * (places[1] - 0.3 * places[2])
        w += size * np.exp(-0.02 * (a * a + b * b) * places[2]) * np.cos(carried + phase)
    u = 1 + 0.3 * np.sin(places[1] + 0.2 * places[2]) * np.cos(0.7 * places[0])
    v = 0.3 + 0.2 * np.cos(places[0] + 0.1 * places[2]) * np.sin(places[1])
    return {"w": w, "u": u, "v": v}, {"x": x, "y": y, "t": t}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--noise", type=float, nargs="*", default=[0.0, 0.01])
    options = parser.parse_args()
    rows = json.loads(options.out.read_text())["rows"] if options.out.exists() else []
    fields, axes = made()
    for level in (n for n in options.noise if n not in {r["noise"] for r in rows}):
        began = time.process_time()
        found = discover_pde(noisy(fields, level, 0), axes, targets=["w"])
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        rows.append(
            {
                "noise": level, "equation": str(found), "unexplained": list(found.unexplained),
                "processor_seconds": time.process_time() - began, "memory_mb": memory,
            }
        )  # fmt: skip
        print(rows[-1], flush=True)
        plain = {"command": __doc__.split("\n\n")[1].strip(), "environment": environment(), "rows": rows}
        options.out.write_text(json.dumps(plain, indent=1) + "\n")


if __name__ == "__main__":
    main()
