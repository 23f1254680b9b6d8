"""Success rates from trials: counts by tier, 95 % intervals, tables in Markdown, one picture."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING, Any

from eqlearn.paper.style import OTHER, OURS, TRUE, table

if TYPE_CHECKING:
    from matplotlib.figure import Figure


RIGHT = ("exact", "symbolic")
# What ledgers of 0.1.0 call some strategies.
FORMER_NAMES = {
    "scanned": "profiled", "reduced": "symmetry", "modulated": "product-library", "banks": "elimination",
    "ladder": "stepwise",
}  # fmt: skip


def interval(successes: int, trials: int) -> tuple[float, float]:
    """The exact (Clopper-Pearson) 95 % interval of a success rate."""
    from scipy.stats import binomtest

    if trials == 0:
        return 0.0, 1.0
    low, high = binomtest(successes, trials).proportion_ci(0.95)
    return float(low), float(high)


def summary(trials: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What the trials of one function or problem come to."""
    right = sum(t["tier"] in RIGHT for t in trials)
    errors = sorted(e for t in trials if (e := t.get("extrapolation_error")) is not None)
    restarts = sum(t["restarts"] for t in trials)
    return {
        "trials": len(trials),
        "exact": sum(t["tier"] == "exact" for t in trials),
        "symbolic": right,
        "paper": right + sum(t["tier"] == "paper" for t in trials),
        "eye": sum(bool(t.get("eye")) for t in trials) if any("eye" in t for t in trials) else None,
        "interval": interval(right, len(trials)),
        "seconds": median(t["seconds"] for t in trials),
        "restarts": restarts / len(trials),
        "per_restart": sum(t.get("exact_restarts", 0) for t in trials) / max(1, restarts),
        "methods": Counter(method for t in trials if t["tier"] in RIGHT and (method := _method(t))),
        "extrapolation_error": median(errors) if errors else None,
    }


def benchmark_table(ledger: Mapping[str, Any], paper: Mapping[str, float]) -> str:
    """One condition of the benchmark as a Markdown table, the paper's rate beside ours."""
    heads = [
        "function",
        "paper",
        "exact",
        "symbolic",
        "95 % interval",
        "paper's count",
        "as an eye",
        "starts",
    ]
    heads += ["exact per restart", "found by", "seconds", "error on [-2, 2]"]
    rows = []
    for name, group in by_field(ledger, "function").items():
        s = summary(group)
        tiers = ("exact", "symbolic", "paper", "eye")
        exact, symbolic, counted, eye = (f"{s[tier]}/{s['trials']}" for tier in tiers)
        row = [f"`{name}`", _shown(paper.get(name), "g"), exact, f"**{symbolic}**"]
        row += [
            "{:.2f} to {:.2f}".format(*s["interval"]),
            counted,
            "" if s["eye"] is None else eye,
            f"{s['restarts']:.2f}",
        ]
        row += [f"{s['per_restart']:.2f}", _named(s["methods"]), f"{s['seconds']:.2f}"]
        rows.append([*row, _shown(s["extrapolation_error"], ".1e")])
    return table(heads, rows)


def rate(trials: Sequence[Mapping[str, Any]], tier: str = "symbolic") -> str:
    """Successes of all trials started, with their 95 % interval; `tier` "paper" lets small terms pass, "eye"
    counts as an eye might."""
    if tier == "eye":
        right = sum(bool(t.get("eye")) for t in trials)
    else:
        right = sum(t["tier"] in RIGHT or t["tier"] == tier for t in trials)
    low, high = interval(right, len(trials))
    return f"{right}/{len(trials)} ({low:.2f} to {high:.2f})"


def rates_table(
    columns: Mapping[str, Mapping[str, Any]],
    paper: Mapping[str, float | None] | None = None,
    as_the_authors: Sequence[str] = (),
    eye: bool = True,
) -> str:
    """Success rates function by function, a column for each ledger, the paper's rates before them.

    Columns named in `as_the_authors` let small terms pass; beside each, with `eye`, is one that
    counts as an eye might.
    """
    eyed = {
        f"{title}, as an eye": ledger
        for title, ledger in columns.items()
        if eye and title in as_the_authors and any("eye" in t for t in ledger["trials"].values())
    }
    columns = {**columns, **eyed}
    groups = {name: by_field(ledger, "function") for name, ledger in columns.items()}
    functions = list(dict.fromkeys(function for group in groups.values() for function in group))
    rows = []
    for function in functions:
        known = [] if paper is None else [_shown(paper.get(function), "g")]
        tiers = {t: "eye" if t in eyed else "paper" if t in as_the_authors else "symbolic" for t in groups}
        ours = [rate(g[function], tiers[title]) if function in g else "" for title, g in groups.items()]
        rows.append([f"`{function}`", *known, *ours])
    return table(["function", *([] if paper is None else ["paper"]), *columns], rows)


def _shown(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)


def _method(trial: Mapping[str, Any]) -> str:
    """How the law was found; ledgers of 0.1.0 call it `way`, and some strategies by former names."""
    method = str(trial.get("method", trial.get("way", "")))
    return FORMER_NAMES.get(method, method)


def _named(methods: Counter[str]) -> str:
    return ", ".join(
        name if len(methods) == 1 else f"{name} {count}" for name, count in methods.most_common()
    )


def draw_rates(ledger: Mapping[str, Any], paper: Mapping[str, float]) -> Figure:
    """Our success rates with their intervals, function by function, the paper's beside them where known."""
    from matplotlib.figure import Figure

    groups = {name: summary(group) for name, group in by_field(ledger, "function").items()}
    figure = Figure(figsize=(7.0, 0.36 * len(groups) + 1.2), layout="constrained")
    axes = figure.add_subplot()
    for row, (name, s) in enumerate(groups.items()):
        share = s["symbolic"] / s["trials"]
        low, high = s["interval"]
        axes.barh(row, share, height=0.55, color=OURS)
        axes.plot([low, high], [row, row], color=TRUE, linewidth=1.2)
        if (known := paper.get(name)) is not None:
            axes.plot(known, row, marker="D", color=OTHER, markersize=6, linestyle="none")
    axes.set_yticks(range(len(groups)), list(groups))
    axes.invert_yaxis()
    axes.set_xlim(0, 1.02)
    diamonds = ", diamond: the paper's rate" if paper else ""
    axes.set_xlabel(f"right equations of all seeds started\n(line: 95 % interval{diamonds})")
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def suite_table(ledger: Mapping[str, Any]) -> str:
    """A suite's recovery as a Markdown table, a row for each problem, the whole first."""
    groups = by_field(ledger, "problem")
    everything = summary([t for group in groups.values() for t in group])
    low, high = everything["interval"]
    rows = []
    for name, group in groups.items():
        s = summary(group)
        shown = next((t for t in group if t["tier"] in RIGHT), group[0])["equation"].replace("|", "\\|")
        rows.append((name, f"{s['symbolic']}/{s['trials']}", f"{s['seconds']:.1f}", f"`{shown[:90]}`"))
    once = sum(any(t["tier"] in RIGHT for t in group) for group in groups.values())
    said = (
        f"Recovered: {everything['symbolic']} of {everything['trials']} trials ({low:.2f} to {high:.2f}), "
        f"{once} of {len(groups)} problems at least once; median {everything['seconds']:.1f} s."
    )
    second = [t["srbench"] for group in groups.values() for t in group if "srbench" in t]
    if second:  # ledgers of 0.1.0 have one judge only
        said += f" Solved by SRBench's rule: {sum(second)} of {len(second)}."
    return f"{said}\n\n{table(('problem', 'symbolic', 'seconds', 'an equation'), rows)}"


def by_field(ledger: Mapping[str, Any], field: str) -> dict[str, list[Mapping[str, Any]]]:
    """A ledger's trials in groups, by what each says under `field`."""
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for trial in ledger["trials"].values():
        groups.setdefault(trial[field], []).append(trial)
    return groups
