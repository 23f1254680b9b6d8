"""The cost of one training step (forward, backward, update) of the paper's network, alone and in populations.

    python benchmarks/step.py [--rows 256] [--rounds 40] [--threads 1] [--penalty half]

Each round times every case once, one after the other, and the best round counts. With one thread the clock
is the processor time of this process, which is the time on the wall when nothing else runs. So other programs
on the machine slow no case more than another.
"""

import argparse
import time
from collections.abc import Callable

import torch
from torch import Tensor

from eqlearn import EQL, sparsity

Step = Callable[[], object]


def data(rows: int) -> tuple[Tensor, Tensor]:
    x = torch.rand(rows, 2, generator=torch.Generator().manual_seed(0)) * 2 - 1
    return x, x.prod(dim=1, keepdim=True)


def training_step(members: int | None, rows: int, penalty: str | None, seed: int = 0) -> Step:
    net = EQL(2, 1, members=members, seed=seed)
    optimiser = torch.optim.RMSprop(net.parameters(), lr=1e-3, alpha=0.9, foreach=True)
    x, y = data(rows)

    def step() -> None:
        optimiser.zero_grad()
        loss = (net(x) - y).square().mean(dim=(-2, -1))
        if penalty is not None:
            loss = loss + 5e-3 * sparsity(net, penalty)
        loss.sum().backward()
        optimiser.step()

    return step


def one_by_one(count: int, rows: int, penalty: str | None) -> Step:
    steps = [training_step(None, rows, penalty, seed) for seed in range(count)]
    return lambda: [step() for step in steps]


def products(rows: int) -> int:
    """Floating-point operations of one member's matrix products: forward, weight and input gradients."""
    maps = EQL(2, 1, seed=0).linears
    weights = [linear.in_features * linear.out_features for linear in maps]
    return 2 * rows * (2 * sum(weights) + sum(weights[1:]))


def best_times(cases: dict[str, Step], rounds: int, clock: Callable[[], float]) -> dict[str, float]:
    """Seconds per call: the best of so many rounds, each of some ten milliseconds per case."""

    def timed(case: Step, calls: int) -> float:
        start = clock()
        for _ in range(calls):
            case()
        return (clock() - start) / calls

    calls = {name: max(1, round(0.01 / timed(case, 3))) for name, case in cases.items()}
    best = dict.fromkeys(cases, float("inf"))
    for _ in range(rounds):
        for name, case in cases.items():
            best[name] = min(best[name], timed(case, calls[name]))
    return best


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--threads", type=int, default=1, help="one is fastest for tensors as small as these")
    parser.add_argument(
        "--penalty", choices=["half", "plain-half", "l1"], help="add this penalty to the loss"
    )
    options = parser.parse_args()
    torch.set_num_threads(options.threads)

    size = 1024
    a = torch.rand(size, size, generator=torch.Generator().manual_seed(0))
    cases: dict[str, Step] = {
        "matrix product": lambda: a @ a,
        "1 member": training_step(1, options.rows, options.penalty),
        "20 members": training_step(20, options.rows, options.penalty),
        "200 members": training_step(200, options.rows, options.penalty),
        "20 one by one": one_by_one(20, options.rows, options.penalty),
    }
    clock = time.process_time if options.threads == 1 else time.perf_counter
    times = best_times(cases, options.rounds, clock)

    peak = 2 * size**3 / times.pop("matrix product")
    print(f"torch {torch.__version__}, {options.threads} thread(s), {options.rows} rows, float32,", end=" ")
    print(f"penalty {options.penalty}; matrix products of {size} x {size}: {peak / 1e9:.1f} GFLOP/s")
    print(f"{'':14s} {'ms per step':>12s} {'ms per member':>14s} {'of the rate':>12s}")
    for name, seconds in times.items():
        members = int(name.split()[0])
        rate = members * products(options.rows) / seconds / peak
        print(f"{name:14s} {1e3 * seconds:12.3f} {1e3 * seconds / members:14.4f} {rate:12.1%}")
    one, twenty, many, loop = times.values()
    print(f"20 members cost {twenty / one:.2f} times one member (to reach: at most 2)")
    print(f"20 members together are {loop / twenty:.1f} times as fast as one by one (to reach: at least 10)")
    print(f"a member among 200 costs {many / 10 / twenty:.2f} times one among 20 (to reach: at most 1)")


if __name__ == "__main__":
    main()
