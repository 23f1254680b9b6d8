"""A search for dynamics in a run folder: started or resumed, saved after every round."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from eqlearn.dynamics.discover import discover_dynamics
from eqlearn.dynamics.forms import find_form
from eqlearn.dynamics.found import FoundMotion
from eqlearn.dynamics.hidden import discover_hidden
from eqlearn.dynamics.segments import Segments
from eqlearn.dynamics.settings import MOTION, SEARCHES
from eqlearn.dynamics.shooting import VectorField, shoot
from eqlearn.io.trajectories import SeriesTable
from eqlearn.report.motion import SERIES, TIMES, Motion
from eqlearn.report.page import page
from eqlearn.report.payload import Sample
from eqlearn.report.record import RunRecord
from eqlearn.report.summary import value_text
from eqlearn.runs.folder import REPORT, ROUNDS, RunFolder
from eqlearn.runs.journal import FileJournal
from eqlearn.runs.session import Plan, begin, nothing_left_behind
from eqlearn.runs.under_way import History, stoppable
from eqlearn.search.search import Progress
from eqlearn.symbolic.equation import Equation
from eqlearn.symbolic.expressions import fitted, real_symbol
from eqlearn.symbolic.printing import printable
from eqlearn.validation.trajectories import Trajectories

PARAMETERS = "parameters.csv"


def search_dynamics(
    folder: RunFolder,
    data: SeriesTable,
    plan: Plan,
    *,
    form: str = "ode",
    latents: int = 0,
    order: int = 1,
    resume: bool = False,
    progress: Callable[[Progress], None] | None = None,
) -> RunRecord:
    """Searches, and saves the run in its folder; `resume` continues the run in it, if any.

    `form`, `latents` and `order` are as for `discover_dynamics` and `discover_hidden`. Ctrl-C ends the search
    and saves what was found.
    """
    strategies = {name: list(each.strategies) for name, each in SEARCHES.items()}
    chosen = {"form": form, "latents": latents, **asdict(plan), "strategies": strategies}
    chosen |= {"order": order} if order > 1 else {}
    with folder.locked(), nothing_left_behind(folder):
        told = {"name": data.name, "fingerprint": data.fingerprint}
        begin(folder, told, f"{len(data.trajectories.series)} series", chosen, resume)
        names = data.trajectories.names
        targets = (*map(find_form(form).label, names), *(f"d²{n}/dt²" for n in names * (order - 1)))
        history = History(folder, progress, targets, chosen, {"name": data.name, "form": form})
        options: dict[str, Any] = {**plan.options(), "progress": history}
        options["journal"] = lambda name: FileJournal(folder.path / ROUNDS / name)
        with stoppable(folder):
            if latents:
                found = discover_hidden(data.trajectories, form, latents=latents, **options)
            else:
                found = discover_dynamics(data.trajectories, form, order=order, **options)
        described = _described(found, data, latents)
        record = RunRecord.of(found.found, found.targets, found.noise, history.steps, described, chosen)
        sample = Sample.of(*found.rows, np.zeros(len(found.rows[0]), dtype=bool))
        motion = None if found.inputs else _motion(found, found.even or data.trajectories)
        folder.write_results(record, sample, motion)
        if latents:
            folder.write_text(PARAMETERS, parameters_csv(record))
        folder.write_text(REPORT, page(record, sample, None, motion))
        folder.log(f"ended: {found.found.ended}; chosen: {found.found.best}")
    return record


def _described(found: FoundMotion, data: SeriesTable, latents: int) -> dict[str, Any]:
    return {
        "name": data.name, "rows": len(found.rows[0]), "rows_read": data.rows, "rows_dropped": 0,
        "fingerprint": data.fingerprint, "form": found.form, "dt": found.dt,
        "series": len(data.trajectories.series), "horizon": found.horizon,
        **({"parameters": _parameters(found, data)} if latents else {}),
    }  # fmt: skip


def _parameters(found: FoundMotion, data: SeriesTable) -> list[dict[str, str | float | None]]:
    """The hidden parameters of each series and their standard errors, by name; None where the motion does not
    determine them."""
    names = found.found.variables[len(data.trajectories.names) :]
    rows: list[dict[str, str | float | None]] = []
    for key, values, errors in zip(data.ids, found.latents, found.latent_errors, strict=True):
        rows.append({"id": key})
        for name, value, error in zip(names, values, errors, strict=True):
            known = bool(np.isfinite(error))
            rows[-1][name] = float(value) if known else None
            rows[-1][f"{name}_error"] = float(error) if known else None
    return rows


def parameters_csv(record: RunRecord) -> str:
    """The hidden parameters of each series as a table, to all digits."""
    import pandas as pd

    return str(pd.DataFrame(record.data["parameters"]).to_csv(index=False, lineterminator="\n"))


def parameters_text(record: RunRecord, most: int = 10) -> str:
    """The hidden parameters of the first series, for a terminal."""
    rows = record.data["parameters"]
    names = record.inputs[len(record.targets) :]
    lines = [f"{', '.join(names)} in each series:"]
    for row in rows[:most]:
        known = [_with_error(name, row[name], row[f"{name}_error"]) for name in names]
        lines.append("   ".join([f"{printable(row['id'])[:40]:>8}", *known]))
    if len(rows) > most:
        lines.append(f"     ... {len(rows) - most} more in {PARAMETERS}")
    return "\n".join(lines)


def _with_error(name: str, value: float | None, error: float | None) -> str:
    if value is None or error is None:
        return f"{name} not determined by its motion"
    return f"{name} = {value_text(value, error)} ± {error:.2g}"


def _motion(found: FoundMotion, trajectories: Trajectories) -> Motion:
    """The first series, cut to what a page can show, each with a start fitted to its first times."""
    hidden = found.latents if len(found.latents) else np.empty((len(trajectories.series), 0))
    shown = trajectories.part(range(len(trajectories.series))[:SERIES], TIMES)
    starts = []
    for i, latents in enumerate(hidden[:SERIES]):
        equations = [_at(equation, trajectories.names, latents) for equation in found.equations]
        vector_field, spread = VectorField(equations), trajectories.spread
        first = Segments.of(trajectories.part([i]), found.form, MOTION.long_steps, 1, spread)
        fit = shoot(vector_field, first, fixed=np.ones(len(vector_field.start), dtype=bool), substeps=4)
        starts.append(fit.starts[0] * spread if fit.finite else shown.series[i][0])
    return Motion(shown, np.stack(starts), hidden[:SERIES], found.form)


def _at(equation: Equation, states: Sequence[str], latents: np.ndarray) -> Equation:
    """The equation of one series, with its hidden parameters filled in."""
    names = equation.variables[len(states) :]
    values = {real_symbol(n): fitted(float(v)) for n, v in zip(names, latents, strict=True)}
    return Equation(equation.expr.xreplace(values), states)
