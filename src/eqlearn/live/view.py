"""What the server of a live view answers: runs, what is asked of them, tables and new searches."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from threading import Lock
from typing import Any

from eqlearn.errors import InvalidArgument
from eqlearn.live.page import Page, live_page
from eqlearn.live.searches import Searches
from eqlearn.live.settings import LIMITS, Limits
from eqlearn.live.state import WatchedRun
from eqlearn.runs.folder import RunFolder

# The report page has a policy of its own inside; it is kept apart from this server, too.
APART = "sandbox allow-scripts"


class View:
    """The runs of a page, by number; one request at a time is answered."""

    def __init__(self, runs: Iterable[Path], parent: Path, limits: Limits = LIMITS) -> None:
        self.runs = [WatchedRun(RunFolder(path)) for path in runs]
        self.searches = Searches(parent, limits)
        self.page = live_page(limits)
        self.lock = Lock()

    def state(self) -> dict[str, Any]:
        """What the page asks for every second."""
        with self.lock:
            return {"runs": [{"id": i, **self._brief(run)} for i, run in enumerate(self.runs)]}

    def _brief(self, run: WatchedRun) -> dict[str, Any]:
        brief, failure = run.brief(), self.searches.failure(run.folder)
        ended = failure and brief["state"] in ("starting", "gone", "left")
        return {**brief, "state": "failed", "message": failure} if ended else brief

    def run(self, number: Any) -> dict[str, Any]:
        """The front of a run, for drawings."""
        with self.lock:
            return self._run(number).whole()

    def report(self, number: Any) -> Page:
        """The report page of a finished run."""
        with self.lock:
            return Page(self._run(number).report(), APART)

    def stop(self, plain: Mapping[str, Any]) -> dict[str, Any]:
        """Asks a search to end."""
        with self.lock:
            self._run(plain.get("run")).stop()
        return {}

    def pin(self, plain: Mapping[str, Any]) -> dict[str, Any]:
        """Pins an equation, or none."""
        key = plain.get("key")
        if not isinstance(key, str | None):
            raise InvalidArgument("`key` must be the text of an equation")
        with self.lock:
            self._run(plain.get("run")).pin(key)
        return {}

    def table(self, name: str, content: bytes) -> dict[str, Any]:
        """Takes a table that was dropped on the page."""
        with self.lock:
            return self.searches.take(name[:200] or "table", content)

    def start(self, plain: Mapping[str, Any]) -> dict[str, Any]:
        """Begins a search."""
        with self.lock:
            self.runs.append(WatchedRun(self.searches.start(plain)))
            return {"run": len(self.runs) - 1}

    def _run(self, number: Any) -> WatchedRun:
        if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < len(self.runs):
            raise InvalidArgument(f"there is no run {number!r:.20}")
        return self.runs[number]


def plain_object(body: bytes) -> dict[str, Any]:
    """The JSON object that a page sent."""
    try:
        plain = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise InvalidArgument("the request holds no JSON") from error
    if not isinstance(plain, dict):
        raise InvalidArgument("the request holds no JSON object")
    return plain
