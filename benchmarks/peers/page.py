"""The comparison's page and picture, made from its ledger and nothing else."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import Any

from matplotlib.figure import Figure

from eqlearn.paper.rates import RIGHT, interval

Trials = Sequence[Mapping[str, Any]]
COLOURS = {"eqlearn": "#2b6cb0", "gplearn": "#718096", "operon": "#c05621", "kan": "#2f855a"}
SHOWN = {"operon": "pyoperon", "kan": "pykan"}


def write_page(ledger: Mapping[str, Any]) -> str:
    """The whole page in Markdown."""
    trials = list(ledger["trials"].values())
    made, settings = ledger["environment"], ledger["settings"]
    systems = list(dict.fromkeys(t["system"] for t in trials))
    peers = ", ".join(f"{name} {number}" for name, number in settings["peers"].items())
    parts = [
        "# eqlearn beside its peers",
        f"Same data, same machine, same run, {settings['seconds']:g} CPU seconds a trial on one thread; "
        "every trial started is counted. A trial is recovered if its last answer in time is *the* equation, "
        "by identity and not by fit, with constants within 0.1 %. What each system was asked to do: "
        "`benchmarks/peers/README.md`.",
        "![recovery against CPU seconds](peers.png)",
        "## All problems",
        overall(trials, systems),
        "## By set of problems: recovered trials",
        by_suite(trials, systems),
        "## By problem: recovered trials",
        by_problem(trials, systems),
        "## Where a peer recovers more than eqlearn",
        where_peers_win(trials, systems),
        "## Failures",
        failures(trials, systems),
        f"`{ledger['command']}`, eqlearn {made['eqlearn']}, Python {made['python']}, {made['processors']} "
        f"processor(s), {made['platform']}, {made['started']}. Peers: {peers}.",
    ]
    return "\n\n".join(parts) + "\n"


def overall(trials: Trials, systems: Sequence[str]) -> str:
    """One row a system, over all problems."""
    head = (
        "system", "recovered", "95 % interval", "problems recovered at least once",
        "median extrapolation error", "median CPU s to the right equation", "median CPU s spent",
        "median complexity", "peak memory, MB", "failures",
    )  # fmt: skip
    return _table(head, [_row(name, _of(trials, system=name)) for name in systems])


def _row(name: str, own: Trials) -> list[str]:
    right = [t for t in own if t["tier"] in RIGHT]
    low, high = interval(len(right), len(own))
    found = {t["problem"] for t in right}
    return [
        SHOWN.get(name, name),
        f"**{len(right)}/{len(own)}**",
        f"{low:.2f} to {high:.2f}",
        f"{len(found)} of {len({t['problem'] for t in own})}",
        _number(median(_error(t) for t in own), "{:.1e}"),
        _middle([t["cpu_to_right"] for t in right], "{:.1f}"),
        _middle([t["cpu"] for t in own], "{:.1f}"),
        _middle([t["complexity"] for t in own], "{:.0f}"),
        _middle([t["memory"] / 1e6 for t in own if t["memory"] is not None], "{:.0f}", max),
        str(sum(t["failure"] is not None for t in own)),
    ]


def by_suite(trials: Trials, systems: Sequence[str]) -> str:
    return _counts(trials, systems, "suite")


def by_problem(trials: Trials, systems: Sequence[str]) -> str:
    return _counts(trials, systems, "problem")


def _counts(trials: Trials, systems: Sequence[str], field: str) -> str:
    groups = dict.fromkeys(t[field] for t in trials)
    rows = [[f"`{g}`", *(_rate(_of(trials, system=s, **{field: g})) for s in systems)] for g in groups]
    return _table([field, *(SHOWN.get(s, s) for s in systems)], rows)


def _rate(own: Trials) -> str:
    return f"{sum(t['tier'] in RIGHT for t in own)}/{len(own)}" if own else "not run"


def where_peers_win(trials: Trials, systems: Sequence[str]) -> str:
    """The problems on which some peer has a higher rate, one line each."""
    lines = []
    for problem in dict.fromkeys(t["problem"] for t in trials):
        rates = {
            s: sum(t["tier"] in RIGHT for t in own) / len(own)
            for s in systems
            if (own := _of(trials, system=s, problem=problem))
        }
        better = [SHOWN.get(s, s) for s, rate in rates.items() if rate > rates.get("eqlearn", math.inf)]
        if better:
            lines.append(f"* `{problem}`: {', '.join(better)}")
    return "\n".join(lines) or "On none of these problems."


def failures(trials: Trials, systems: Sequence[str]) -> str:
    """What went wrong, by system and reason; a trial that failed after a right answer keeps the answer."""
    lines = []
    for name in systems:
        reasons = Counter(t["failure"] for t in _of(trials, system=name) if t["failure"])
        lines += [f"* {SHOWN.get(name, name)}, {n} times: {reason}" for reason, n in reasons.most_common()]
    return "\n".join(lines) or "None."


def draw(ledger: Mapping[str, Any]) -> Figure:
    """The fraction of trials whose equation is right, against the CPU seconds it took."""
    trials = list(ledger["trials"].values())
    budget = float(ledger["settings"]["seconds"])
    figure = Figure(figsize=(7.0, 4.2), layout="constrained")
    axes = figure.add_subplot()
    for name in dict.fromkeys(t["system"] for t in trials):
        own = _of(trials, system=name)
        times = sorted(t["cpu_to_right"] for t in own if t["cpu_to_right"] is not None)
        steps = [k / len(own) for k in range(len(times) + 1)]
        axes.step(
            [0.0, *times, max(budget, *times, 0.0)], [*steps, steps[-1]], where="post",
            label=f"{SHOWN.get(name, name)}, {len(times)} of {len(own)}",
            color=COLOURS.get(name), linewidth=1.8,
        )  # fmt: skip
    axes.set_xlabel("CPU seconds")
    axes.set_ylabel("recovered, of all trials started")
    axes.set_ylim(0, 1.02)
    axes.set_xlim(0, None)
    axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def _of(trials: Trials, **fields: str) -> list[Mapping[str, Any]]:
    return [t for t in trials if all(t[k] == v for k, v in fields.items())]


def _error(trial: Mapping[str, Any]) -> float:
    error = trial["extrapolation_error"]
    return math.inf if error is None else float(error)


def _middle(values: Sequence[float | None], form: str, how: Callable[[list[float]], float] = median) -> str:
    known = [v for v in values if v is not None]
    return form.format(how(known)) if known else ""


def _number(value: float, form: str) -> str:
    return form.format(value) if math.isfinite(value) else "none"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)
