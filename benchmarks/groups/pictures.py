"""A spring between two points that are only seen, whose stiffness changes in time: is the law found?

    python benchmarks/groups/pictures.py --seeds 0 1 2 3 4 --out results/groups/pictures.json

Each point is a bright spot in a picture of 64 pixels; one encoder reads both pictures, and the time is a
column. Targets are the force (5 - t)/4*(x1 - x2) and the potential (5 - t)/4*(x1 - x2)**2 (Zhang, Kim et al.
2022). A trial is right if the law found is that one up to the unit and the zero of x: on random latents, both
have the same ratio to within 2 %. Trials in the file are kept.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from eqlearn import atomic_write, discover_latent, environment

LAWS = {"force": 1, "potential": 2}


def trial(name: str, seed: int, seconds: float) -> dict[str, Any]:
    """One search, and whether it found the law."""
    rng = np.random.default_rng(seed)
    x, t = rng.uniform(0, 1, (2, 2000)), rng.uniform(0, 4, 2000)
    y = (5 - t) / 4 * (x[0] - x[1]) ** LAWS[name]
    pixels = np.linspace(-0.1, 1.1, 64)
    pictures = np.exp(-(((pixels - x[..., None]) / 0.06) ** 2))
    seen = {f"x{k + 1}": torch.tensor(pictures[k], dtype=torch.float32) for k in range(2)}
    torch.manual_seed(seed)
    encoder = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 1))
    began = time.process_time()
    found = discover_latent(
        {"x1": encoder, "x2": encoder},
        seen,
        {"t": torch.tensor(t)},
        torch.tensor(y),
        seconds=seconds,
        seed=seed,
    )
    spent = time.process_time() - began
    equation = found.equations[0]
    z = {"x1": rng.normal(size=500), "x2": rng.normal(size=500), "t": rng.uniform(0, 4, 500)}
    truth = (5 - z["t"]) * (z["x1"] - z["x2"]) ** LAWS[name]
    unknown = [v for v in equation.variables if v not in z]
    far = np.abs(truth) > 0.05 * np.abs(truth).max()
    spread = np.inf
    if not unknown:
        ratio = (equation(np.stack([z[v] for v in equation.variables], axis=1)) / truth)[far]
        spread = float(np.ptp(ratio) / np.abs(np.median(ratio)))
    return {
        "law": name, "seed": seed, "equation": str(found), "error": float(found.error),
        "agreement": list(found.agreement), "spread": spread, "right": bool(spread < 0.02),
        "cpu_seconds": round(spent, 1),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--laws", nargs="+", default=list(LAWS))
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    trials = json.loads(options.out.read_text())["trials"] if options.out.exists() else []
    done = {(t["law"], t["seed"]) for t in trials}
    for seed in options.seeds:
        for name in options.laws:
            if (name, seed) not in done:
                trials.append(trial(name, seed, options.seconds))
                print(trials[-1], flush=True)
                result = {"right": sum(t["right"] for t in trials), "of": len(trials), "trials": trials}
                text = json.dumps({**result, "environment": environment()}, indent=1) + "\n"
                atomic_write(options.out, text.encode())


if __name__ == "__main__":
    main()
