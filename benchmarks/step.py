"""One training step of the paper's parts, alone, in populations, and beside the same part in plain PyTorch:
the network (loss, penalty, gradients, update), unit by unit; the rollout of a cell of two networks through 25
steps of time, and the encoder of series, there and back.

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

from eqlearn import (
    PRESETS,
    CellShape,
    EncoderShape,
    EQLCell,
    MeanSquaredError,
    Phase,
    SeriesEncoder,
    environment,
    rollout,
    train,
)
from eqlearn.paper.dynamics.presets import PAPER_OSCILLATOR

ALWAYS, RATE, PENALTY, A = 10**9, 1e-3, 5e-3, 0.01
INPUTS, HORIZON, BATCH, TIMES = 3, 25, 128, 500  # the last three: the oscillator's
PLAIN = "plain PyTorch"
# The paper's units, as in the authors' code: also a constant has an argument, which it does not look at.
KINDS: dict[str, tuple[int, Callable[..., Tensor]]] = {
    "one": (1, torch.ones_like),
    "id": (1, lambda g: g),
    "square": (1, lambda g: g**2),
    "sin": (1, lambda g: torch.sin(2 * math.pi * g)),
    "exp": (1, torch.exp),
    "sigmoid": (1, lambda g: torch.sigmoid(20 * g)),
    "mul": (2, lambda a, b: a * b),
    "mul10": (2, lambda a, b: 10 * a * b),
}
Steps = Callable[[int], None]


def units(text: str) -> list[tuple[int, Callable[..., Tensor]]]:
    """The units of a set such as "one*2 id"."""
    words = [word.partition("*") for word in text.split()]
    return [KINDS[name] for name, _, count in words for _ in range(int(count or 1))]


class Plain(nn.Module):
    """The paper's network as one would write it down: a column for each argument, unit by unit."""

    def __init__(self, primitives: str, spreads: tuple[float, float, float] = (0.1, 0.5, 1.0)) -> None:
        super().__init__()
        self.units = units(primitives)
        arguments, count = sum(arity for arity, _ in self.units), len(self.units)
        shapes = zip((INPUTS, count, count), (arguments, arguments, 1), spreads, strict=True)
        self.weights = nn.ParameterList(spread * torch.randn(i, o) for i, o, spread in shapes)

    def forward(self, x: Tensor) -> Tensor:
        *hidden, last = self.weights
        for weight in hidden:
            g, place, out = x @ weight, 0, []
            for arity, unit in self.units:
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


class PlainEncoder(nn.Module):
    """The paper's encoder of series in torch's own layers."""

    def __init__(self) -> None:
        super().__init__()
        first, second = (nn.Conv1d(n, 16, 5, padding="same") for n in (2, 16))
        dense = (nn.Linear(16 * TIMES, 16), nn.ReLU(), nn.Linear(16, 1), nn.BatchNorm1d(1, affine=False))
        self.layers = nn.Sequential(first, nn.ReLU(), second, nn.ReLU(), nn.Flatten(), *dense)

    def forward(self, x: Tensor) -> Tensor:
        latent: Tensor = self.layers(x.mT) / 2
        return latent


def drawn(*shape: int, device: str) -> Tensor:
    return torch.rand(shape, generator=torch.Generator().manual_seed(0)).to(device) * 2 - 1


def plain_steps(rows: int, device: str) -> Steps:
    net, x = Plain(PRESETS["paper"].primitives).to(device), drawn(rows, INPUTS, device=device)
    y = x.prod(dim=1, keepdim=True)
    optimiser = torch.optim.RMSprop(net.parameters(), lr=RATE, alpha=0.9, eps=1e-10)

    def steps(count: int) -> None:
        for _ in range(count):
            optimiser.zero_grad()
            loss = nn.functional.mse_loss(net(x), y) + PENALTY * net.penalty()
            loss.backward()
            optimiser.step()

    return steps


def our_steps(members: int | None, rows: int, device: str) -> Steps:
    preset, x = PRESETS["paper"], drawn(rows, INPUTS, device=device)
    more = {"members": None, "seed": 0} if members is None else {}
    net = preset.build(INPUTS, 1, range(members or 1), **more).to(device)
    phase = Phase(name="sparsify", steps=ALWAYS, lr=RATE, penalty=PENALTY)
    run = train(
        net, MeanSquaredError(x, x.prod(dim=1, keepdim=True)), (phase,),
        penalty=preset.penalty, optimiser=preset.optimiser, record_every=1,
    )  # fmt: skip

    def steps(count: int) -> None:
        run.record_every = run.step + count  # a record at the end only
        next(run)

    return steps


def there_and_back(module: nn.Module, value: Callable[[], Tensor]) -> Steps:
    """The value and the gradients of its mean, so many times."""

    def steps(count: int) -> None:
        for _ in range(count):
            module.zero_grad()
            value().mean().backward()

    return steps


def plain_rollout(device: str) -> Steps:
    nets = nn.ModuleList(Plain(PAPER_OSCILLATOR, (0.1, 0.1, 0.1)) for _ in range(2)).to(device)
    y, z = drawn(BATCH, 2, device=device), drawn(BATCH, 1, device=device)

    def states() -> Tensor:
        now, found = y, []
        for _ in range(HORIZON):
            x = torch.cat([now, z], dim=1)
            now = torch.cat([net(x) for net in nets], dim=1)
            found.append(now)
        return torch.stack(found)

    return there_and_back(nets, states)


def our_rollout(members: int | None, device: str) -> Steps:
    shape = CellShape(primitives=PAPER_OSCILLATOR, init="released-systems")
    cell, lead = EQLCell(2, 1, shape=shape, members=members, seed=0).to(device), (members,) if members else ()
    y, z = (drawn(*lead, n, BATCH, device=device) for n in (2, 1))
    return there_and_back(cell, lambda: rollout(cell, y, z, HORIZON))


def encoder_steps(members: int | None, device: str, plain: bool = False) -> Steps:
    x, shape = drawn(BATCH, TIMES, 2, device=device), EncoderShape(padding="same")
    encoder = PlainEncoder() if plain else SeriesEncoder(2, TIMES, shape=shape, members=members)
    encoder.to(device)
    return there_and_back(encoder, lambda: encoder(x))


def groups(rows: int, device: str) -> dict[str, dict[int, Steps]]:
    """The cases of each part by how many there are together; 0 is plain."""
    counts = {"network": (1, 20, 200), "rollout of 25 steps": (1, 20), "encoder of series": (1, 5)}
    made: dict[str, Callable[[int | None], Steps]] = {
        "network": lambda n: our_steps(n, rows, device),
        "rollout of 25 steps": lambda n: our_rollout(n, device),
        "encoder of series": lambda n: encoder_steps(n, device),
    }
    plain = {
        "network": plain_steps(rows, device),
        "rollout of 25 steps": plain_rollout(device),
        "encoder of series": encoder_steps(None, device, plain=True),
    }
    return {
        part: {0: plain[part], **{n: make(None if n == 1 else n) for n in counts[part]}}
        for part, make in made.items()
    }


def best_times(cases: dict[int, Steps], rounds: int, clock: Callable[[], float]) -> dict[int, float]:
    """Seconds per step: the best of so many rounds, each of some twenty milliseconds per case."""

    def timed(case: Steps, count: int) -> float:
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
    on_cpu = options.threads == 1 and options.device == "cpu"
    clock = time.process_time if on_cpu else _synchronised(options.device)
    seconds: dict[str, dict[str, float]] = {}
    rates: dict[str, dict[str, float]] = {}
    for part, cases in groups(options.rows, options.device).items():
        times = best_times(cases, options.rounds, clock)
        named = {n: f"{n} together" if n > 1 else "alone" if n else PLAIN for n in times}
        seconds[part] = {named[n]: s for n, s in times.items()}
        rates[part] = {named[n]: times[0] * max(n, 1) / s for n, s in times.items()}
        print(f"{part:28s} {'ms per step':>12s} {'rate per trial':>15s}")
        for name, took in seconds[part].items():
            print(f"  {name:26s} {1e3 * took:12.3f} {rates[part][name]:14.1f}x")
    if options.out:
        given = " ".join(
            f"--{name} {getattr(options, name)}" for name in ("rows", "rounds", "threads", "device")
        )
        words = f"python benchmarks/step.py {given}"
        record = {"command": words, "seconds": seconds, "rates": rates, "environment": environment()}
        options.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def _synchronised(device: str) -> Callable[[], float]:
    def clock() -> float:
        if device == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter()

    return clock


if __name__ == "__main__":
    main()
