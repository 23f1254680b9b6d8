"""Searches begun from the page: tables that were dropped on it, and a process for each search.

A process ends with the one that began it: its standard input closes, and it keeps the best found so far.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from eqlearn.errors import EqlearnError, InvalidArgument, counted
from eqlearn.io.doctor import examine_file
from eqlearn.io.formats import stem_of
from eqlearn.io.tables import Measurements, read_measurements
from eqlearn.live.settings import LIMITS, Limits
from eqlearn.runs.folder import STOP, RunFolder
from eqlearn.runs.session import Plan, search


@dataclass(frozen=True)
class Wish:
    """A search that somebody wishes for, as plain data: a table and its columns, and the time it may take."""

    table: str
    name: str
    target: tuple[str, ...]
    inputs: tuple[str, ...]
    seconds: float | None = None
    seed: int = 0
    drop_missing: bool = False

    @staticmethod
    def of(plain: Mapping[str, Any], table: Path, name: str, limits: Limits = LIMITS) -> Wish:
        """The wish that a page sends, checked."""
        names = {key: plain.get(key) for key in ("target", "inputs")}
        for key, each in names.items():
            if not isinstance(each, list) or not each or not all(isinstance(n, str) for n in each):
                raise InvalidArgument(f"choose at least one column as `{key}`")
        seconds, seed = plain.get("seconds"), plain.get("seed", 0)
        if seconds is not None and not (_is_number(seconds) and 0.1 <= seconds <= limits.longest_search):
            raise InvalidArgument(
                f"`seconds` must be between 0.1 and {limits.longest_search:,.0f}, got {seconds!r}"
            )
        if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**31:
            raise InvalidArgument(f"`seed` must be a whole number that is not negative, got {seed!r}")
        columns = {key: tuple(each or ()) for key, each in names.items()}
        drop = bool(plain.get("drop_missing", False))
        return Wish(str(table), name, **columns, seconds=seconds, seed=seed, drop_missing=drop)

    def read(self) -> Measurements:
        """The table, checked as `eqlearn fit` checks it."""
        data = read_measurements(
            self.table, self.target, inputs=self.inputs, drop_missing=self.drop_missing, seed=self.seed
        )
        return replace(data, name=repr(self.name), reread=None)  # the copy may be gone before the search ends


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


class Searches:
    """Tables in a folder of their own, under numbers and not under names that somebody chose, and the
    processes that search them; runs are written below `parent`."""

    def __init__(self, parent: Path, limits: Limits = LIMITS) -> None:
        self.parent, self.limits = parent, limits
        self.tables: dict[int, tuple[Path, str]] = {}
        self.processes: dict[Path, subprocess.Popen[bytes]] = {}
        self._folder = tempfile.TemporaryDirectory(prefix="eqlearn-live-")
        self._number = 0

    def take(self, name: str, content: bytes) -> dict[str, Any]:
        """Keeps a table, and says what is in it."""
        path = Path(self._folder.name) / f"{self._number}.table"
        path.write_bytes(content)
        try:
            seen = examine_file(path)
        except EqlearnError as error:
            path.unlink()
            raise InvalidArgument(_named(str(error), path, name)) from error
        self.tables[self._number] = path, name
        self._number += 1
        while len(self.tables) > self.limits.most_tables:
            self.tables.pop(min(self.tables))[0].unlink()
        plain = seen.to_json()
        return {
            "table": self._number - 1, "name": name, "rows": plain["rows"], "columns": plain["columns"],
            "numbers": plain["numbers"], "notes": [_named(n, path, name) for n in plain["notes"]],
            "findings": [f["what"] for f in plain["findings"]],
        }  # fmt: skip

    def start(self, plain: Mapping[str, Any]) -> RunFolder:
        """Begins a search with one of the tables; gives the folder of its run."""
        path, name = self._table(plain.get("table"))
        wish = Wish.of(plain, path, name, self.limits)
        try:
            wish.read()  # so that a table is refused here, in a sentence
        except EqlearnError as error:
            raise InvalidArgument(_named(str(error), path, name)) from error
        busy = sum(process.poll() is None for process in self.processes.values())
        if busy >= self.limits.most_searches:
            raise InvalidArgument(f"{counted(busy, 'search')} of this page are under way; stop one first")
        folder = RunFolder.numbered(self.parent, _folder_name(name))
        command = [sys.executable, "-m", "eqlearn.live.searches", str(folder.path)]
        with self._said(folder).open("wb") as said:
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=said, start_new_session=True
            )
        if process.stdin is not None:  # which stays open as long as this process lives
            process.stdin.write(json.dumps(asdict(wish)).encode() + b"\n")
            process.stdin.flush()
        self.processes[folder.path] = process
        return folder

    def failure(self, folder: RunFolder) -> str:
        """Why a search that was begun here has failed; nothing if it has not."""
        process = self.processes.get(folder.path)
        if process is None or not process.poll():
            return ""
        said = self._said(folder).read_text(encoding="utf-8", errors="replace")
        return said.strip().rpartition("\n")[2] or f"its process ended with code {process.returncode}"

    def close(self) -> None:
        """Ends all searches, which keep their best, and removes the tables."""
        for process in self.processes.values():
            if process.stdin is not None:
                process.stdin.close()
        end = time.monotonic() + self.limits.patience
        for process in self.processes.values():
            with suppress(subprocess.TimeoutExpired):  # it goes on writing its result without us
                process.wait(max(0.0, end - time.monotonic()))
        self._folder.cleanup()

    def _said(self, folder: RunFolder) -> Path:
        """Where the process of a run writes its errors."""
        return Path(self._folder.name) / f"{folder.path.name}.errors"

    def _table(self, number: Any) -> tuple[Path, str]:
        if not isinstance(number, int) or number not in self.tables:
            raise InvalidArgument("this table is no longer kept; drop it again")
        return self.tables[number]


def _named(message: str, path: Path, name: str) -> str:
    """A message about the copy of a table, with the name under which the user knows it."""
    return message.replace(repr(str(path)), repr(name)).replace("`--", "`")


def _folder_name(name: str) -> str:
    """A name for the run's folder: letters, digits and dashes of the table's name, so that it is no path."""
    return "-".join(re.findall(r"[A-Za-z0-9]+", stem_of(name)))[:40] or "table"


def main() -> int:
    """Searches as the first line of standard input says, in the folder that is named on the command line."""
    folder, wish = RunFolder(sys.argv[1]), Wish(**json.loads(sys.stdin.readline()))
    threading.Thread(target=_end_with_parent, args=(folder,), daemon=True).start()
    try:
        search(folder, wish.read(), Plan(seconds=wish.seconds, seed=wish.seed))
    except EqlearnError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    finally:
        (folder.path / STOP).unlink(missing_ok=True)
    return 0


def _end_with_parent(folder: RunFolder) -> None:
    """Asks the search to stop when whoever began it is gone, again until it does: it may not have begun."""
    sys.stdin.buffer.read()
    while True:
        if folder.holds_run:
            folder.write_text(STOP, "")
        time.sleep(1)


if __name__ == "__main__":
    sys.exit(main())
