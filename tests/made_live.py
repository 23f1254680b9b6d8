"""Runs under way that are made by hand, and a server that shows them."""

import os
import threading
import time
from contextlib import contextmanager

from eqlearn.live.server import LiveServer
from eqlearn.report.record import FORMAT, VERSION
from eqlearn.runs.folder import RunFolder
from eqlearn.runs.under_way import History
from eqlearn.search.search import Progress
from made_runs import make_record, make_sample


class MadeRun:
    """A search that goes on as far as a test says: `found` is how many equations of the record it has."""

    def __init__(self, path, record=None, seconds=100.0):
        self.record = make_record() if record is None else record
        self.folder = RunFolder(path)
        path.mkdir(parents=True)
        settings = {"seconds": seconds, "restarts": None}
        state = {"format": FORMAT, "version": VERSION, "status": "running", "settings": settings}
        data = {"name": "'data.csv'"}
        self.folder.write_json("run.json", {**state, "data": data, "environment": {}})
        self.folder.write_sample(make_sample(self.record))
        # Alive for as long as any test takes, also on a busy machine.
        (path / ".lock").touch()
        os.utime(path / ".lock", (time.time() + 3600,) * 2)
        self.history = History(self.folder, None, self.record.targets, settings, data)

    def goes_on(self, found, rounds=3):
        front = self.record.front[:found]
        self.history(Progress(rounds, 20 * rounds, 1.0 * rounds, front[-1], front))

    def died(self):
        os.utime(self.folder.path / ".lock", (0, 0))

    def ended(self):
        with self.folder.locked():
            self.folder.write_results(self.record, make_sample(self.record))


@contextmanager
def served(runs, parent, **options):
    server = LiveServer([getattr(r, "path", r) for r in runs], parent=parent, **options)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.close()
