"""How many function calls a small search takes: `discover` of y = 2*x1 + 3*x2 - 1, profiled.

    python benchmarks/calls.py [--against PATH_TO_OTHER_SRC]

A first search, for another law, imports what is needed and is not counted. Calls are counted, not timed, so
that a busy machine changes nothing. With `--against` the same runs in a process of its own on another source
tree, and the ratio of this one to it is printed.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import os
import pstats
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

ROWS, SEED = 200, 0
MEASURES = {
    "own": "calls in the package's own files",
    "named": "of these, of functions with a name (no comprehensions, generators or lambdas)",
    "modules": "modules touched",
    "total": "calls in all",
}


def measure() -> dict[str, Any]:
    """Calls of functions of the package, its modules that they are in, and calls of any function."""
    import eqlearn

    home = Path(eqlearn.__file__).resolve().parent
    X = np.random.default_rng(SEED).uniform(-1, 1, (ROWS, 2))
    y = 2 * X[:, 0] + 3 * X[:, 1] - 1
    eqlearn.discover(X, X[:, 0] * X[:, 1] + 0.3, seed=SEED)
    profile = cProfile.Profile()
    profile.enable()
    found = eqlearn.discover(X, y, seed=SEED)
    profile.disable()
    stats = pstats.Stats(profile).stats  # type: ignore[attr-defined]  # documented, not in the stubs
    own = {key: calls for key, (_, calls, *_) in stats.items() if home in Path(key[0]).parents}
    return {
        "source": str(home.parent),
        "equation": str(found.best.equation),
        "own": sum(own.values()),
        "named": sum(calls for key, calls in own.items() if not key[2].startswith("<")),
        "modules": len({name for name, _, _ in own}),
        "total": sum(calls for _, calls, *_ in stats.values()),
    }


def measured_in(source: Path) -> dict[str, Any]:
    """The same on another source tree, which must hold the package."""
    if not (source / "eqlearn" / "__init__.py").is_file():
        raise SystemExit(f"{source} holds no package `eqlearn`; give the folder `src` of a clone")
    done = subprocess.run(
        [sys.executable, __file__, "--json"],
        env={**os.environ, "PYTHONPATH": str(source)},
        check=True,
        capture_output=True,
        text=True,
    )
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--against", type=Path, metavar="SRC", help="another source tree")
    parser.add_argument("--json", action="store_true", help="one JSON object, for programs")
    options = parser.parse_args()
    here = measure()
    if options.json:
        print(json.dumps(here))
        return
    print(f"{here['equation']}, {ROWS} rows, found with eqlearn in {here['source']}")
    other = measured_in(options.against) if options.against else None
    if other:
        print(f"against {other['equation']}, found with eqlearn in {other['source']}")
    for name, words in MEASURES.items():
        ratio = f" against {other[name]}: {here[name] / other[name]:.2f}" if other else ""
        print(f"{words}: {here[name]}{ratio}")


if __name__ == "__main__":
    main()
