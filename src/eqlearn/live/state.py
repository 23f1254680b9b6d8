"""A run as a live view shows it: finished, under way or left behind; read anew when its files change."""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import replace
from typing import Any

import numpy as np

from eqlearn.errors import EqlearnError, InvalidArgument, InvalidFile, counted
from eqlearn.io.checksummed import read_checksummed
from eqlearn.report.page import ENDINGS, page, typeset
from eqlearn.report.payload import Sample, payload
from eqlearn.report.record import RunRecord
from eqlearn.report.summary import grade, percent, verdict
from eqlearn.runs.folder import FAVOURITE, PROGRESS, RUN, SAMPLE, RunFolder
from eqlearn.runs.under_way import ask_to_stop, is_alive
from eqlearn.search.candidate import Candidate
from eqlearn.symbolic.printing import write

FORMAT, VERSION = "eqlearn-favourite", 1


class WatchedRun:
    """A run folder that is looked at again and again."""

    def __init__(self, folder: RunFolder) -> None:
        self.folder = folder
        self.asked = False
        self._files: tuple[Any, ...] = ()
        self._plain: dict[str, Any] = {}
        self._whole: dict[str, Any] = {}
        self._record: tuple[str, RunRecord] | None = None

    def brief(self) -> dict[str, Any]:
        """What changes from second to second, and the `version` of what `whole` gives."""
        told = {"name": self.folder.path.resolve().name, "folder": str(self.folder.path)}
        try:
            state = self._look()
            return {**told, "state": state, **self._counts(state), **self._best()}
        except EqlearnError as error:
            return {**told, "state": "damaged", "message": str(error), "version": "damaged"}

    def whole(self) -> dict[str, Any]:
        """The front, with everything that drawings of it need."""
        state = self._look()
        record = self._read()
        if record is None:
            raise InvalidArgument(f"nothing is found yet in {self.folder}")
        version = self._version()
        if self._whole.get("version") != version:
            self._whole = {**self._drawn(record, state), "version": version}
        return self._whole

    def report(self) -> str:
        """The report page, made anew from the other files, none of which is run."""
        record = self.folder.read()
        sample, network = self.folder.read_sample(record), self.folder.read_network(record)
        return page(record, sample, network, self.folder.read_motion(record))

    def stop(self) -> None:
        """Asks the search to end, and to keep its best."""
        ask_to_stop(self.folder)
        self.asked = True

    def pin(self, key: str | None) -> None:
        """Keeps an equation of the front as the reader's favourite, or none, in the folder of the run."""
        if key is None:
            (self.folder.path / FAVOURITE).unlink(missing_ok=True)
            return
        self._look()
        record = self._read()
        keys = [] if record is None else [_key(c) for c in record.front]
        if record is None or key not in keys:
            raise InvalidArgument("this equation is no longer there to be pinned")
        plain = record.to_json()["front"][keys.index(key)]
        self.folder.write_json(FAVOURITE, {"format": FORMAT, "version": VERSION, "candidate": plain})

    def _look(self) -> str:
        """Reads what has changed, and says what state the run is in."""
        if not self.folder.holds_run:
            return "gone" if self._plain else "starting"
        files = tuple(_stamp(self.folder, name) for name in (RUN, PROGRESS, FAVOURITE))
        if files != self._files:
            self._plain = self.folder.read_status()
            if self._plain.get("status") == "running" and (self.folder.path / PROGRESS).exists():
                self._plain |= read_checksummed(self.folder.path / PROGRESS)[0]
            self._plain["favourite"] = self._favourite()
            self._files = files
        if self._plain.get("status") != "running":
            return "finished"
        return "running" if is_alive(self.folder) else "left"

    def _favourite(self) -> Any:
        path = self.folder.path / FAVOURITE
        if not path.exists():
            return None
        plain = read_checksummed(path)[0]
        if plain.get("format") != FORMAT or plain.get("version") != VERSION:
            raise InvalidFile(f"{path} holds no favourite that this version of eqlearn reads")
        return plain.get("candidate")

    def _version(self) -> str:
        """A digest of everything that `whole` shows."""
        shown = [self._plain.get(k) for k in ("status", "front", "pick", "favourite", "ended")]
        return hashlib.sha256(json.dumps(shown, sort_keys=True).encode()).hexdigest()[:16]

    def _read(self) -> RunRecord | None:
        """The record of what was found, with the favourite among its front; None if nothing was."""
        if "front" not in self._plain:
            return None
        version = self._version()
        if self._record is None or self._record[0] != version:
            where, plain = str(self.folder.path / RUN), {**self._plain, "status": ""}
            record, pinned = RunRecord.from_json(plain, where), self._plain["favourite"]
            if pinned is not None:
                (candidate,) = RunRecord.from_json({**plain, "front": [pinned], "pick": 0}, where).front
                if _key(candidate) not in map(_key, record.front):
                    record = _with(record, candidate)
            self._record = version, record
        return self._record[1]

    def _counts(self, state: str) -> dict[str, Any]:
        plain, settings = self._plain, self._plain.get("settings", {})
        began, budget = plain.get("began"), settings.get("seconds")
        elapsed = time.time() - began if state == "running" and began else plain.get("seconds", 0.0)
        name = str(plain.get("data", {}).get("name", "")).strip("'\"").replace("\\", "/").rpartition("/")[2]
        return {
            "source": name, "rounds": plain.get("rounds", 0), "restarts": plain.get("restarts", 0),
            "elapsed": elapsed, "budget": budget, "most": settings.get("restarts"),
            "left": None if budget is None or state != "running" else max(0.0, budget - elapsed),
            "stopping": self.asked and state == "running", "ended": ENDINGS.get(plain.get("ended", ""), ""),
        }  # fmt: skip

    def _best(self) -> dict[str, Any]:
        record = self._read()
        if record is None:
            return {"version": ""}
        return {
            "version": self._version(), "formula": _markup(record.best, record),
            "error": "exact" if record.best.exact else f"error {percent(record.best.training_error)}",
            "nodes": counted(record.best.complexity, "node"),
        }  # fmt: skip

    def _drawn(self, record: RunRecord, state: str) -> dict[str, Any]:
        data = payload(record, self._sample(record, state))
        pinned = self._plain["favourite"]
        found = {_plain_key(c) for c in self._plain["front"]}
        for candidate, equation in zip(record.front, data["equations"], strict=True):
            key = _key(candidate)
            equation |= {"key": key, "markup": _markup(candidate, record), "aside": key not in found}
            equation["pinned"] = pinned is not None and key == _plain_key(pinned)
        done = state == "finished"
        data |= {"verdict": verdict(record) if done else "", "grade": grade(record) if done else ""}
        return data

    def _sample(self, record: RunRecord, state: str) -> Sample:
        """The rows to draw; none as long as they are not those that the equations so far are of."""
        rows = (self.folder.path / SAMPLE).exists()
        parts = {"group", "varies"} & set(record.settings) or "form" in record.data
        if not rows or (state != "finished" and parts):
            count, outputs = len(record.inputs), len(record.targets)
            none = np.empty(0, dtype=np.uint8)
            return Sample(np.empty((0, count)), np.empty((0, outputs)), none, np.zeros((count, 3)))
        return self.folder.read_sample(record)


def _stamp(folder: RunFolder, name: str) -> tuple[int, int, int] | None:
    """What tells one content of a file from another."""
    try:
        seen = (folder.path / name).stat()
    except FileNotFoundError:
        return None
    return seen.st_mtime_ns, seen.st_size, seen.st_ino


def _key(candidate: Candidate) -> str:
    """What tells one equation of a run from the others: all its digits."""
    return "; ".join(write(e.expr, e.variables) for e in candidate.equations)


def _plain_key(plain: Any) -> str:
    return "; ".join(str(output["expression"]) for output in plain["outputs"])


def _markup(candidate: Candidate, record: RunRecord) -> list[str]:
    return [typeset(e, t) for e, t in zip(candidate.equations, record.targets, strict=True)]


def _with(record: RunRecord, candidate: Candidate) -> RunRecord:
    """The record with one more equation, where its size puts it."""
    place = sum(c.complexity <= candidate.complexity for c in record.front)
    front = (*record.front[:place], candidate, *record.front[place:])
    return replace(record, front=front, pick=record.pick + (place <= record.pick))
