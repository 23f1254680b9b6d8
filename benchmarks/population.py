"""How much faster twenty trials of the paper's preset train together than one after another.

Run it with `OMP_NUM_THREADS=1 python benchmarks/population.py`. Both sides are timed in turns and the
fastest repeat of each counts, since other work on the machine can only make a repeat slower.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from time import perf_counter

import torch

from eqlearn import PRESETS, Preset, train_population

ROWS = 256  # as in the released code


def seconds(preset: Preset, members: int) -> float:
    generator = torch.Generator().manual_seed(0)
    x = 2 * torch.rand(ROWS, 2, generator=generator) - 1
    y = x[:, 0] ** 2 + torch.sin(2 * torch.pi * x[:, 1])
    start = perf_counter()
    train_population(preset, x, y, seeds=range(members))
    return perf_counter() - start


def shortened(preset: Preset, steps: int) -> Preset:
    """The preset with `steps` in all, divided among its phases as in the whole."""
    total = sum(phase.steps for phase in preset.schedule)
    phases = (replace(phase, steps=max(1, steps * phase.steps // total)) for phase in preset.schedule)
    return replace(preset, schedule=tuple(phases))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--preset", default="paper", choices=PRESETS)
    parser.add_argument("--members", type=int, default=20)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--repeats", type=int, default=7)
    args = parser.parse_args()
    preset = shortened(PRESETS[args.preset], args.steps)
    seconds(preset, 1), seconds(preset, args.members)
    timed = [(seconds(preset, 1), seconds(preset, args.members)) for _ in range(args.repeats)]
    alone, together = (min(column) for column in zip(*timed, strict=True))
    print(f"preset {preset.name!r}, {args.steps} steps, {ROWS} rows, {torch.get_num_threads()} thread(s)")
    print(f"one member:          {1e3 * alone / args.steps:.2f} ms a step")
    print(f"{args.members} members together: {1e3 * together / args.steps:.2f} ms a step")
    print(f"{args.members * alone / together:.1f} times faster together than one after another")


if __name__ == "__main__":
    main()
