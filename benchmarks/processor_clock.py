"""Runs another benchmark with budgets that count processor seconds, for machines with other work to do.

    python benchmarks/processor_clock.py benchmarks/random_formulas.py --seconds 10

What the benchmark does in processes of its own keeps the clock on the wall.
"""

from __future__ import annotations

import runpy
import sys
import time
from pathlib import Path


def main() -> None:
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    began = time.time()
    time.time = lambda: began + time.process_time()
    time.monotonic = time.perf_counter = time.process_time
    del sys.argv[0]
    sys.path.insert(0, str(Path(sys.argv[0]).resolve().parent))
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
