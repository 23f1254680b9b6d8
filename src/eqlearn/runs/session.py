"""A search in a run folder: started or resumed, saved after every round."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from eqlearn.errors import EqlearnError, InvalidArgument
from eqlearn.io.checksummed import atomic_write
from eqlearn.io.tables import Measurements
from eqlearn.nn.primitives import parse_set
from eqlearn.report.page import page
from eqlearn.report.payload import Sample
from eqlearn.report.record import FORMAT, VERSION, RunRecord, environment
from eqlearn.runs.blocks import refined
from eqlearn.runs.folder import REPORT, ROUNDS, RUN, RunFolder
from eqlearn.runs.journal import FileJournal
from eqlearn.runs.under_way import History, stoppable
from eqlearn.search.knowledge.knowledge import Knowledge
from eqlearn.search.search import Progress, discover
from eqlearn.search.settings import DEFAULTS, SCIENCE, Settings
from eqlearn.symbolic.parametric import noise_of
from eqlearn.validation.table import Table, split_rows

# A run may be continued with another budget; everything else determines what the rounds find.
BUDGET = ("seconds", "restarts", "jobs", "select")


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How a run searches, as plain data: the options of any search, for tables and for dynamics."""

    primitives: str = SCIENCE
    penalty: str = "half"
    hidden_layers: int = 3
    seed: int = 0
    seconds: float | None = None
    restarts: int | None = None
    jobs: int | None = None

    def __post_init__(self) -> None:
        parse_set(self.primitives)  # refuses an unknown primitive before anything begins
        if self.seconds is not None and not 0 < self.seconds < math.inf:
            raise InvalidArgument(
                f"`seconds` must be positive and finite, got {self.seconds}; leave it out for no limit"
            )

    def options(self) -> dict[str, Any]:
        """The plan as arguments of `discover` and its like."""
        return {"n_jobs" if name == "jobs" else name: value for name, value in asdict(self).items()}


def search(
    folder: RunFolder,
    data: Measurements,
    plan: Plan,
    *,
    select: str = "description",
    extrapolation: tuple[np.ndarray, np.ndarray] | None = None,
    resume: bool = False,
    progress: Callable[[Progress], None] | None = None,
    settings: Settings = DEFAULTS,
    varies: str | None = None,
    loss: str = "squares",
    units: Mapping[str, str] | None = None,
    free_constants: bool = False,
    knows: Knowledge | None = None,
) -> RunRecord:
    """Searches, and saves the run in its folder; `resume` continues the run in it, if any.

    `select`, `extrapolation` and `varies` are as for `discover`. Ctrl-C ends the search and saves what was
    found.
    """
    chosen = {**asdict(plan), "select": select, "strategies": list(settings.strategies)}
    group = None if data.groups is None else data.groups.name
    chosen |= {name: value for name, value in (("group", group), ("varies", varies)) if value is not None}
    chosen |= {"loss": loss} if loss != "squares" else {}
    chosen |= {"units": dict(units), "free_constants": free_constants} if units else {}
    chosen |= {"knows": knows.to_json()} if knows else {}
    with folder.locked(), nothing_left_behind(folder):
        told = {"name": data.name, "fingerprint": data.fingerprint}
        begin(folder, told, f"{len(data.X)} rows", chosen, resume)
        varying = group is not None or varies is not None
        held_out = _held_out(data, settings, plan.seed) & (not varying)
        codes = None if data.groups is None else data.groups.codes
        sample = Sample.of(data.X, data.y, held_out, extrapolation, codes)
        folder.write_sample(sample)
        history, found = History(folder, progress, data.targets, chosen, _described(data)), None
        try:
            with stoppable(folder):
                found = discover(
                    data.X, data.y, variables=data.inputs, extrapolation=extrapolation, select=select,
                    progress=history, journal=FileJournal(folder.path / ROUNDS), settings=settings,
                    y_error=None if data.errors is None else data.errors.y,
                    x_error=None if data.errors is None else data.errors.x, loss=loss, units=units,
                    free_constants=free_constants, knows=knows, groups=data.groups, varies=varies,
                    **plan.options(),
                )  # fmt: skip
        except KeyboardInterrupt:
            found = found or history.so_far(data.inputs)
        plain = data.errors is None and loss == "squares" and not units and not knows and not varying
        if found.ended != "interrupted" and plain:
            best = refined(found.best, data)
            front = tuple(best if c is found.best else c for c in found.front)
            found = replace(found, best=best, front=front)
        kept = np.setdiff1d(np.arange(len(data.X)), found.outliers)
        labels = None if data.groups is None else data.groups.of_rows()
        inputs = found.best.inputs(data.X, labels)[kept]
        noise = tuple(noise_of(e, inputs, data.y[kept, k]) for k, e in enumerate(found.best.equations))
        described = {**_described(data), **({"outliers": list(found.outliers)} if found.outliers else {})}
        record = RunRecord.of(found, data.targets, noise, history.steps, described, chosen)
        folder.write_results(record, sample)
        folder.write_text(REPORT, page(record, sample, record.best.network))
        folder.log(f"ended: {found.ended}; chosen: {found.best}")
    return record


@contextmanager
def nothing_left_behind(folder: RunFolder) -> Iterator[None]:
    """If the run is refused, restores `run.json`; a folder without an earlier run or a finished round is
    cleared."""
    before = (folder.path / RUN).read_bytes() if folder.holds_run else None
    try:
        yield
    except EqlearnError:
        if before is not None:
            atomic_write(folder.path / RUN, before)
        elif not (folder.path / ROUNDS).exists():
            folder.clear()
        raise


def rebuild_page(folder: RunFolder) -> None:
    """Writes the page anew from the other files of the folder, none of which is run."""
    record = folder.read()
    sample, network = folder.read_sample(record), folder.read_network(record)
    folder.write_text(REPORT, page(record, sample, network, folder.read_motion(record)))


def begin(
    folder: RunFolder,
    data: Mapping[str, Any],
    size: str,
    settings: Mapping[str, Any],
    resume: bool,
    kind: str = FORMAT,
) -> None:
    """Records that a run with these settings is in progress; refuses to mix it with another. `data` are what
    tells them from others, with a `name` and a `fingerprint`."""
    if folder.holds_run and not resume:
        raise InvalidArgument(
            f"{folder} holds a run already; continue it with `--resume`, or choose another folder"
        )
    resumed = folder.holds_run
    if resumed:
        _check_same(folder, data, settings)
    state = {"format": kind, "version": VERSION, "status": "running", "settings": dict(settings)}
    folder.write_json(RUN, {**state, "data": dict(data), "environment": environment()})
    folder.log(f"{'continued' if resumed else 'started'}: {size} of {data['name']}, {dict(settings)}")


def _check_same(folder: RunFolder, data: Mapping[str, Any], settings: Mapping[str, Any]) -> None:
    before = folder.read_status()
    then, made_of = before.get("settings"), before.get("data")
    if not isinstance(then, Mapping) or not isinstance(made_of, Mapping):
        raise InvalidArgument(f"{folder} can't be continued: its {RUN} does not say how it was made")
    if any(made_of.get(name) != value for name, value in data.items() if name != "name"):
        raise InvalidArgument(
            f"the run in {folder} was made from other data or columns, so it can't be continued"
        )
    made, here = before.get("environment"), environment()["eqlearn"]
    began = made.get("eqlearn") if isinstance(made, Mapping) else None
    if began != here:
        raise InvalidArgument(
            f"the run in {folder} was begun by eqlearn {began}, and this is {here}: continue it with that "
            "version, or begin anew in another folder"
        )
    for name, value in settings.items():
        # The search depends on whether there are hidden parameters, not on how many may be found.
        same = bool(then.get(name)) == bool(value) if name == "latents" else then.get(name) == value
        if name not in BUDGET and not same:
            raise InvalidArgument(
                f"the run in {folder} was made with `{name}`={then.get(name)!r}, not {value!r}; to continue "
                "it, give the same"
            )


def _described(data: Measurements) -> dict[str, Any]:
    return {
        "name": data.name, "rows": len(data.X), "rows_read": data.rows_read,
        "rows_dropped": data.rows_dropped, "fingerprint": data.fingerprint,
    }  # fmt: skip


def _held_out(data: Measurements, settings: Settings, seed: int) -> np.ndarray:
    """Which rows `discover` holds out."""
    rows = Table(np.arange(len(data.X))[:, None], data.y)
    kept = split_rows(rows, settings.validation, settings.enough_rows, seed)[0]
    held_out = np.ones(len(data.X), dtype=bool)
    held_out[kept.X[:, 0]] = False
    return held_out
