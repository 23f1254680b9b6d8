"""Scale-out: what more workers gain, and that they change nothing.

    python benchmarks/scale.py record   # one search on one core, each round timed in CPU seconds
    python benchmarks/scale.py same     # 1 and 2 workers, and Dask's that join and leave: the same front?
    python benchmarks/scale.py page     # how long the recorded search takes with n workers

The times with n workers follow from the recorded run: its rounds are given to whichever worker is free, in
the order and with the waits that the search has (`Curriculum.generation`), and read one after the other.
"""

from __future__ import annotations

import argparse
import heapq
import json
import os
import signal
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import joblib
import numpy as np

from eqlearn import Settings, atomic_write, discover, environment
from eqlearn.paper.ledger import read_ledger
from eqlearn.search.settings import IslandSettings
from eqlearn.search.step import StepResult

OUT = Path(__file__).parents[1] / "results" / "scale" / "workers.json"
WORKERS = (1, 2, 4, 8, 16, 32, 64)
ROUNDS = 45
# Small islands, for the comparison of fronts.
SMALL = Settings(
    strategies=("linear", "rational", "subsets", "evolution"),
    island=IslandSettings(members=60, generations=2, entries=200, closing_entries=400, patience=100),
)


def table() -> tuple[np.ndarray, np.ndarray]:
    """A law in 20 % noise that the search does not end with, so that it goes on."""
    rng = np.random.default_rng(18)
    X = rng.uniform(0.5, 2, (400, 3))
    y = np.sin(X[:, 0] * X[:, 1] ** 2) / (X[:, 2] + np.exp(X[:, 0] - X[:, 1])) + np.tanh(X[:, 1] * X[:, 2])
    return X, y + 0.2 * y.std() * rng.normal(size=len(y))


@dataclass
class Clock:
    """A journal that remembers nothing, but the CPU seconds of each round and of reading it."""

    at: float = field(default_factory=time.process_time)
    rounds: list[dict[str, Any]] = field(default_factory=list)

    def recall(self, number: int) -> StepResult | None:
        return None

    def record(self, result: StepResult) -> None:
        now = time.process_time()
        self.rounds.append({"method": result.method, "seconds": now - self.at})
        self.at = now

    def read(self, _: Any) -> None:
        now = time.process_time()
        self.rounds[-1]["read"] = now - self.at
        self.at = now
        if len(self.rounds) >= ROUNDS:
            raise KeyboardInterrupt


def record() -> dict[str, Any]:
    """The rounds of a search on one core, and what comes after them."""
    X, y = table()
    clock = Clock()
    island = IslandSettings(patience=10_000)
    found = discover(X, y, settings=Settings(island=island), progress=clock.read, journal=clock)
    after = time.process_time() - clock.at
    return {"rounds": clock.rounds, "after": after, "equation": str(found.best.equation)}


def simulated(recorded: dict[str, Any], workers: int, settings: Settings) -> float:
    """Seconds with so many workers: a round goes to the worker that is free first."""
    rounds, now, number = recorded["rounds"], 0.0, 0
    # The strategies' rounds end with an island.
    scheduled = max(i for i, r in enumerate(rounds) if r["method"] != "evolution") + 2
    while number < len(rounds):
        size = len(rounds) - number
        if number < scheduled:
            size = 1 if number < settings.alone else min(settings.abreast, scheduled - number)
        free = [now] * workers
        for r in rounds[number : number + size]:
            done = heapq.heappop(free) + r["seconds"]
            heapq.heappush(free, done)
            now = max(now, done) + r["read"]
        number += size
    return now + recorded["after"]


def page_of(recorded: dict[str, Any], seconds: dict[int, float]) -> str:
    """How long the search takes with n workers, as a table."""
    rounds = recorded["rounds"]
    islands = sum(r["method"] == "evolution" for r in rounds)
    lines = [
        f"{len(rounds)} rounds of one search, of which {islands} islands; {seconds[1]:.0f} s of one core.",
        "With more workers: as the times, the order and the waits of the rounds have it.",
        "",
        "| workers | seconds | times as fast |",
        "|---|---|---|",
        *(f"| {n} | {s:.1f} | {seconds[1] / s:.1f} |" for n, s in seconds.items()),
    ]
    return "\n".join(lines) + "\n"


def front(n_jobs: int | None) -> list[str]:
    X, y = table()
    found = discover(X[:120], y[:120], settings=SMALL, restarts=1200, n_jobs=n_jobs)
    return [f"{c} {c.training_error:.12g}" for c in found.front]


def same() -> dict[str, Any]:
    """Fronts of the same seed and number of restarts, however they are computed."""
    from distributed import Client, LocalCluster

    alone = front(1)
    said: dict[str, Any] = {"front": alone, "two workers": front(2) == alone}
    with (
        LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        events = []

        def change() -> None:
            while not any(client.processing().values()):
                time.sleep(0.05)
            events.append("one worker at first")
            cluster.scale(3)
            client.wait_for_workers(3)
            events.append("two more have joined")
            victim = sorted(client.run(os.getpid).values())[0]
            os.kill(victim, signal.SIGKILL)
            events.append("one was killed")

        changing = threading.Thread(target=change, daemon=True)
        changing.start()
        with joblib.parallel_config("dask"):
            fronts = [front(2)]
            while changing.is_alive():  # the workers come late: once more, while they do
                fronts.append(front(2))
    said["dask"] = {"same": all(f == alone for f in fronts), "runs": len(fronts), "events": events}
    return said


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("task", choices=("record", "same", "page"))
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    plain: dict[str, Any] = {"settings": {"rounds": ROUNDS}, "trials": {}}
    if options.out.exists():
        plain = read_ledger(options.out)
    plain["environment"] = environment()
    plain["command"] = "python benchmarks/scale.py record; ... same; ... page"
    if options.task == "record":
        plain["trials"]["record"] = record()
    if options.task == "same":
        plain["trials"]["same"] = same()
    if "record" in plain["trials"]:
        recorded = plain["trials"]["record"]
        seconds = {n: simulated(recorded, n, Settings()) for n in WORKERS}
        plain["trials"]["simulated"] = {str(n): s for n, s in seconds.items()}
        page = page_of(recorded, seconds)
        print(page)
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.with_suffix(".md").write_text(page, encoding="utf-8")
    options.out.parent.mkdir(parents=True, exist_ok=True)
    atomic_write(options.out, (json.dumps(plain, indent=1) + "\n").encode())


if __name__ == "__main__":
    main()
