"""Measures the search for laws of motion in films, every seed counted.

    python benchmarks/film/run.py --out results/film/films.json                  # made films, five seeds each
    python benchmarks/film/run.py --real FRAMES.npy --fps 29.97 --first 390 --out results/film/real.json

A seed draws the starts and the noise of made films; of a film that is given, it draws how many of the first
60 frames are left out, and one part in a hundred of noise. Films that were searched are left as they are: a
run that was stopped goes on.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from eqlearn import discover_film, environment, make_films

# What is right: the law with `c` for each number that the film's unit does not fix, and these numbers.
TRUTH = {
    "pendulum": ("sin", [-14.15]),
    "spring": ("q", [-9.0]),
    "damped spring": ("q + v", [-16.0, -0.5]),
    "duffing": ("q + q3", [4.0, -1.0]),
    "ball": ("1", [1.0]),
    "planet": ("r-3q", [-1.0]),
    "plane spring": ("Kq", [-9.0, -4.0]),
    "throw": ("1", [1.0]),
    "two springs": ("Kq", [-13.0, -5.0]),
}


# The angle read off the real pendulum's pictures directly: benchmarks/film/direct.py.
PENDULUM = ("sin + v", [-11.73, -0.076])


def varied(frames: np.ndarray, seed: int) -> np.ndarray:
    """A film that begins later and is noisier."""
    generator = np.random.default_rng(seed)
    later = frames[generator.integers(60) :]
    return np.asarray(later + 0.01 * float(np.ptp(frames)) * generator.normal(size=later.shape))


def measured(name: str, frames: Any, fps: float, truth: tuple[str, list[float]], seed: int) -> dict[str, Any]:
    """One search, and what came of it."""
    before = time.process_time()
    found = discover_film(frames, fps, seconds=None)
    law, right = truth
    terms = [t.name for t in found.motion.structure.terms]
    same = found.order == 2 and sorted(terms) == sorted(law.split(" + "))
    numbers = [float(n) for n in found.motion.numbers if n]  # what a turn of the axes makes zero is none
    same = same and len(numbers) == len(right)
    both = zip(sorted(numbers), sorted(right), strict=True) if same else ()
    off = max((abs(n / c - 1) for n, c in both), default=None)
    return {
        "film": name, "seed": seed, "law": str(found), "terms": sorted(terms), "right_terms": same,
        "numbers": numbers,
        "largest_relative_error": off, "missed": found.error, "missed_ahead": found.ahead,
        "front": [f"{c} ({c.training_error:.4f}, {c.validation_error:.4f})" for c in found.front],
        "fits": found.tried, "cpu_seconds": round(time.process_time() - before, 1),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--films", nargs="*", default=list(TRUTH))
    parser.add_argument("--seeds", type=int, nargs="*", default=[10, 11, 12, 13, 14])
    parser.add_argument("--real", type=Path)
    parser.add_argument("--fps", type=float, default=30.0)
    parser.add_argument("--first", type=int, default=None)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    args = vars(options) | {"real": options.real and options.real.name, "out": str(options.out)}
    done = json.loads(options.out.read_text())["trials"] if options.out.exists() else []
    for seed in options.seeds:
        for name in ["real"] if options.real else options.films:
            if any(t["film"] == name and t["seed"] == seed for t in done):
                continue
            if options.real:
                trial = measured(
                    name, varied(np.load(options.real)[: options.first], seed), options.fps, PENDULUM, seed
                )
            else:
                trial = measured(name, make_films(name, seed=seed)[0], 30.0, TRUTH[name], seed)
            done.append(trial)
            options.out.parent.mkdir(parents=True, exist_ok=True)
            options.out.write_text(
                json.dumps({"options": args, "environment": environment(), "trials": done}, indent=1)
            )
            options.out.with_suffix(".md").write_text(table(done))


def table(trials: list[dict[str, Any]]) -> str:
    """The trials as Markdown."""
    lines = [
        "| film | seed | law | terms right | largest error | missed | foretold | CPU s |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for t in sorted(trials, key=lambda t: (t["film"], t["seed"])):
        off = "" if t["largest_relative_error"] is None else f"{100 * t['largest_relative_error']:.2f} %"
        lines.append(
            f"| {t['film']} | {t['seed']} | `{t['law']}` | {'yes' if t['right_terms'] else 'no'} | {off} | "
            f"{100 * t['missed']:.2f} % | {100 * t['missed_ahead']:.2f} % | {t['cpu_seconds']} |"
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
