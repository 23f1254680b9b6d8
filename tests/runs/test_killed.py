import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from contextlib import suppress

import numpy as np
import pytest

from eqlearn.runs.folder import RunFolder

# One process imports the library and then forks a child for each run, so that a run can be killed twenty
# times without paying for the imports twenty times. It computes nothing itself, so forking is safe.
DRIVER = textwrap.dedent(
    """
    import os, sys
    from eqlearn.io.tables import (read_measurements)
    from eqlearn.search.settings import (Settings)
    from eqlearn.runs.folder import (RunFolder)
    from eqlearn.runs.session import (Plan, search)

    data = read_measurements(sys.argv[1], ["y"])
    few = Settings(members=2, finalists=2)
    plan = Plan(primitives="id square sin1 mul", hidden_layers=2, restarts=int(sys.argv[2]))
    print("ready", flush=True)
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            search(RunFolder(line.strip()), data, plan, resume=True, settings=few)
            os._exit(0)
        print(pid, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
    """
)


class Driver:
    def __init__(self, data, restarts):
        self.process = subprocess.Popen(
            [sys.executable, "-c", DRIVER, str(data), str(restarts)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        assert self.process.stdout.readline() == "ready\n"

    def run(self, folder, kill_after=None):
        """Starts a run, kills it after so many seconds unless it has ended; gives its exit code."""
        self.process.stdin.write(f"{folder}\n")
        self.process.stdin.flush()
        pid = int(self.process.stdout.readline())
        if kill_after is not None:
            time.sleep(kill_after)
            with suppress(ProcessLookupError):  # it may have ended before
                os.kill(pid, signal.SIGKILL)
        return int(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


@pytest.fixture
def noisy_table(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.uniform(0.5, 3, 30)
    y = 1.3 * np.sin(2 * x) + 0.4 * x + 0.05 * rng.normal(size=30)
    path = tmp_path / "data.csv"
    np.savetxt(path, np.stack([x, y], axis=1), delimiter=",", header="x,y", comments="")
    return path


def what_was_found(folder):
    record = RunFolder(folder).read().to_json()
    return {
        k: record[k]
        for k in ("front", "pick", "noise", "restarts", "rounds", "exact_restarts", "failures", "ended")
    }


def killed_and_resumed(tmp_path, table, restarts, kills):
    driver = Driver(table, restarts)
    try:
        began = time.monotonic()
        assert driver.run(tmp_path / "whole") == 0
        duration = time.monotonic() - began
        moments = random.Random(0)
        killed = 0
        for attempt in range(20 * kills):
            code = driver.run(tmp_path / f"cut-{attempt % 2}", kill_after=moments.uniform(0, duration))
            killed += code == -signal.SIGKILL
            if killed == kills:
                break
        assert killed == kills
        for half in (0, 1):
            assert driver.run(tmp_path / f"cut-{half}") == 0
    finally:
        driver.close()


def test_a_killed_run_ends_with_the_same_candidates_when_it_is_resumed(tmp_path, noisy_table):
    killed_and_resumed(tmp_path, noisy_table, restarts=8, kills=2)

    assert what_was_found(tmp_path / "cut-0") == what_was_found(tmp_path / "whole")
    assert what_was_found(tmp_path / "cut-1") == what_was_found(tmp_path / "whole")


@pytest.mark.slow
def test_a_run_killed_at_any_of_twenty_four_moments_ends_with_the_same_candidates(tmp_path, noisy_table):
    killed_and_resumed(tmp_path, noisy_table, restarts=16, kills=24)

    assert what_was_found(tmp_path / "cut-0") == what_was_found(tmp_path / "whole")
    assert what_was_found(tmp_path / "cut-1") == what_was_found(tmp_path / "whole")
    remnants = [p for folder in ("cut-0", "cut-1") for p in (tmp_path / folder).rglob("*.tmp")]
    assert remnants == []
