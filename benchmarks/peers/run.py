"""eqlearn beside gplearn, pyoperon and pykan: same data, same machine, same run, equal CPU seconds.

`make peers` installs the peers into an environment of their own and runs this file. Every trial is a process
of its own on one thread; a run that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from page import draw, write_page
from problems import problems
from trial import GRACE, System, Trial, measured

from eqlearn import atomic_write
from eqlearn.paper.ledger import Ledger

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
PEERS_PYTHON = ROOT / ".venv-peers" / "bin" / "python"
DISTRIBUTIONS = {"gplearn": "gplearn", "operon": "pyoperon", "kan": "pykan"}


def versions(python: Path) -> dict[str, str]:
    """What is installed in the peers' environment."""
    code = "import json, sys; from importlib.metadata import version as v; "
    code += "print(json.dumps({n: v(n) for n in sys.argv[1:]}))"
    names = [*DISTRIBUTIONS.values(), "torch", "numpy", "scikit-learn"]
    done = subprocess.run([str(python), "-c", code, *names], check=True, capture_output=True)
    found: dict[str, str] = json.loads(done.stdout)
    return found


def compare(trials: Sequence[Trial], ledger: Ledger, workers: int) -> None:
    """Runs what the ledger does not hold yet, so many trials side by side."""
    missing = [t for t in trials if t.key not in ledger.trials]
    pool = ThreadPoolExecutor(workers)
    try:
        futures = {pool.submit(measured, trial): trial for trial in missing}
        for count, future in enumerate(as_completed(futures), 1):
            record = future.result()
            ledger.add(futures[future].key, record)
            print(
                f"{count}/{len(missing)} {record['tier']:8} {record['cpu'] or math.nan:6.1f} s "
                f"{futures[future].key}: {record['failure'] or record['equation'][:90]}",
                flush=True,
            )
    finally:
        pool.shutdown(cancel_futures=True)


def arranged(ledger: Mapping[str, Any]) -> dict[str, Any]:
    """The ledger in the order of the problems and systems, not in that of who was ready first."""
    places = {name: k for k, name in enumerate([*(p.name for p in problems()), "eqlearn", *DISTRIBUTIONS])}
    trials = sorted(
        ledger["trials"].items(),
        key=lambda item: (places[item[1]["problem"]], places[item[1]["system"]], item[1]["seed"]),
    )
    return {**ledger, "trials": dict(trials)}


def wanted(only: str | None, known: Sequence[str]) -> list[str]:
    asked = list(known) if only is None else [name.strip() for name in only.split(";")]
    strangers = [name for name in asked if name not in known]
    if strangers:
        raise SystemExit(f"there is no {strangers[0]!r} here; the known ones are {'; '.join(known)}")
    return asked


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seconds", type=float, default=20.0, help="CPU seconds a trial (default 20)")
    parser.add_argument(
        "--seeds", type=int, default=5, help="trials of each system on each problem (default 5)"
    )
    parser.add_argument(
        "--workers", type=int, default=1, help="trials side by side; at most one per idle core"
    )
    parser.add_argument("--only", help="problems or whole suites, with ; between: 'paper;Coulomb'")
    parser.add_argument(
        "--systems", default="eqlearn;gplearn;operon;kan", help="which to run, with ; between"
    )
    parser.add_argument("--peers-python", type=Path, default=PEERS_PYTHON, help="their interpreter")
    parser.add_argument(
        "--out", type=Path, default=ROOT / "results" / "peers", help="the folder for the results"
    )
    args = parser.parse_args(arguments)

    chosen = problems()
    names = wanted(args.only, [*dict.fromkeys(p.suite for p in chosen), *(p.name for p in chosen)])
    chosen = tuple(p for p in chosen if p.name in names or p.suite in names)
    systems = [
        System(
            name, Path(sys.executable) if name == "eqlearn" else args.peers_python, HERE / f"{name}_worker.py"
        )
        for name in wanted(args.systems, ["eqlearn", *DISTRIBUTIONS])
    ]
    settings = {"seconds": args.seconds, "grace": GRACE, "peers": versions(args.peers_python)}
    ledger = Ledger(args.out / "peers.json", settings)
    if not ledger.trials:
        ledger.plain["command"] = " ".join(["python benchmarks/peers/run.py", *(arguments or sys.argv[1:])])
    trials = [Trial(s, p, seed, args.seconds) for seed in range(args.seeds) for p in chosen for s in systems]
    compare(trials, ledger, args.workers)
    entries = arranged(ledger.plain)
    atomic_write(args.out / "peers.md", write_page(entries).encode())
    draw(entries).savefig(args.out / "peers.png", dpi=150)
    print(f"\n{args.out / 'peers.md'}")


if __name__ == "__main__":
    main()
