"""One training step (loss, penalty, gradients, update) of the paper's network: alone, in populations, and
beside the same network in plain PyTorch, unit by unit.

    python benchmarks/step.py [--rows 256] [--rounds 40] [--threads 1] [--device cpu] [--out FILE.json]

Each round times every case once, one after the other, and the best round counts. On one thread of the CPU the
clock is the processor time of this process, which is the time on the wall when nothing else runs.
"""

import argparse
import json
import math
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn

from eqlearn import EQL, PRESETS, Phase, environment, train
from eqlearn.training.direct import MeanSquaredError

ALWAYS, RATE, PENALTY, A = 10**9, 1e-3, 5e-3, 0.01
INPUTS = 3
# The paper's units, as in the authors' code: also a constant has an argument, which it does not look at.
UNITS: list[tuple[int, Callable[..., Tensor]]] = [
    *[(1, torch.ones_like)] * 2,
    *[(1, lambda g: g)] * 4,
    *[(1, lambda g: g**2)] * 4,
    *[(1, lambda g: torch.sin(2 * math.pi * g))] * 2,
    *[(1, torch.exp)] * 2,
    *[(1, lambda g: torch.sigmoid(20 * g))] * 2,
    *[(2, lambda a, b: a * b)] * 2,
]


class Plain(nn.Module):
    """The paper's network as one would write it down: a column for each argument, unit by unit."""

    def __init__(self) -> None:
        super().__init__()
        arguments, units = sum(arity for arity, _ in UNITS), len(UNITS)
        shapes = ((INPUTS, arguments, 0.1), (units, arguments, 0.5), (units, 1, 1.0))
        self.weights = nn.ParameterList(spread * torch.randn(i, o) for i, o, spread in shapes)

    def forward(self, x: Tensor) -> Tensor:
        *hidden, last = self.weights
        for weight in hidden:
            g, place, out = x @ weight, 0, []
            for arity, unit in UNITS:
                out.append(unit(*(g[:, place + k] for k in range(arity))))
                place += arity
            x = torch.stack(out, dim=1)
        return x @ last

    def penalty(self) -> Tensor:
        total = torch.zeros((), device=self.weights[0].device)
        for w in self.weights:
            near = torch.sqrt(-(w**4) / (8 * A**3) + 3 * w**2 / (4 * A) + 3 * A / 8)
            total = total + torch.where(w.abs() < A, near, w.abs().sqrt()).sum()
        return total


def data(rows: int, device: str) -> tuple[Tensor, Tensor]:
    x = torch.rand(rows, INPUTS, generator=torch.Generator().manual_seed(0)).to(device) * 2 - 1
    return x, x.prod(dim=1, keepdim=True)


def plain_steps(rows: int, device: str) -> Callable[[int], None]:
    net, (x, y) = Plain().to(device), data(rows, device)
    optimiser = torch.optim.RMSprop(net.parameters(), lr=RATE, alpha=0.9, eps=1e-10)

    def steps(count: int) -> None:
        for _ in range(count):
            optimiser.zero_grad()
            loss = nn.functional.mse_loss(net(x), y) + PENALTY * net.penalty()
            loss.backward()
            optimiser.step()

    return steps


def our_steps(members: int | None, rows: int, device: str) -> Callable[[int], None]:
    preset, (x, y) = PRESETS["paper"], data(rows, device)
    shape = (INPUTS, 1, preset.primitives)
    net = EQL(*shape, members=members, init=preset.init, seed=0).to(device)
    phase = Phase(name="sparsify", steps=ALWAYS, lr=RATE, penalty=PENALTY)
    run = train(
        net, MeanSquaredError(x, y), (phase,),
        penalty=preset.penalty, optimiser=preset.optimiser, record_every=1,
    )  # fmt: skip

    def steps(count: int) -> None:
        run.record_every = run.step + count  # a record at the end only
        next(run)

    return steps


def best_times(
    cases: dict[str, Callable[[int], None]], rounds: int, clock: Callable[[], float]
) -> dict[str, float]:
    """Seconds per step: the best of so many rounds, each of some ten milliseconds per case."""

    def timed(case: Callable[[int], None], count: int) -> float:
        start = clock()
        case(count)
        return (clock() - start) / count

    counts = {name: max(1, round(0.02 / timed(case, 3))) for name, case in cases.items()}
    best = dict.fromkeys(cases, math.inf)
    for _ in range(rounds):
        for name, case in cases.items():
            best[name] = min(best[name], timed(case, counts[name]))
    return best


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--threads", type=int, default=1, help="one is fastest for tensors as small as these")
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--out", type=Path, help="a JSON file for the figures")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    plain = "plain PyTorch, unit by unit"
    cases = {plain: plain_steps(options.rows, options.device)}
    cases |= {f"{n or 1} together" if n else "one network": our_steps(n, options.rows, options.device)
              for n in (None, 20, 200)}  # fmt: skip
    on_cpu = options.threads == 1 and options.device == "cpu"
    times = best_times(cases, options.rounds, time.process_time if on_cpu else _synchronised(options.device))
    rates = {name: times[plain] * (1 if name in (plain, "one network") else int(name.split()[0])) / seconds
             for name, seconds in times.items()}  # fmt: skip
    print(f"{'':28s} {'ms per step':>12s} {'rate per trial':>15s}")
    for name, seconds in times.items():
        print(f"{name:28s} {1e3 * seconds:12.3f} {rates[name]:14.1f}x")
    if options.out:
        given = " ".join(
            f"--{name} {getattr(options, name)}" for name in ("rows", "rounds", "threads", "device")
        )
        words = f"python benchmarks/step.py {given}"
        record = {"command": words, "seconds": times, "rates": rates, "environment": environment()}
        options.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def _synchronised(device: str) -> Callable[[], float]:
    def clock() -> float:
        if device == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter()

    return clock


if __name__ == "__main__":
    main()
