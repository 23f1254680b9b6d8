"""Tables and figures of the dynamical systems, the paper's values beside ours."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from eqlearn.paper.dynamics.data import System
from eqlearn.paper.style import OTHER, OURS, PLAIN, TRUE, counted, table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Published:
    """What the paper says of a system: its correlation, line, and tables of equations."""

    correlation: str
    line: str
    expected: Mapping[str, str]
    found: Mapping[str, str]
    right: str
    extrapolation: str


PUBLISHED: Mapping[str, Published] = MappingProxyType(
    {
        "kinematics": Published(
            "close to -1",
            "a = -0.884 z - 0.091",
            {"u": "u + v - 0.442*z - 0.045", "v": "v - 0.884*z - 0.091"},
            {"u": "1.002*u + 1.002*v - 0.475*z", "v": "1.002*v - 0.918*z - 0.102"},
            "one shown, coefficients off by up to 7 %, a constant missing",
            "smaller than ReLU's for several more steps",
        ),
        "oscillator": Published(
            "-0.995",
            "w2 = -0.927 z + 0.464",
            {"u": "u + 0.1*v", "v": "0.998*v - 0.0464*u + 0.0927*u*z + 0.0046*v*z"},
            {
                "u": "0.994*u + 0.0992*v - 0.0031",
                "v": "0.995*v - 0.0492*u + 0.084*u*z + 0.0037*v*z + 0.0133*z**2",
            },
            "one shown, with a spurious term",
            "smaller than Euler's",
        ),
    }
)


def by_kind(ledger: Mapping[str, Any], kind: str) -> dict[int, dict[str, Any]]:
    """The trials of one kind (eql, relu, euler), by seed."""
    trials = {t["seed"]: t for key, t in ledger["trials"].items() if key.split()[0] == kind}
    return dict(sorted(trials.items()))


def dynamics_table(ledger: Mapping[str, Any], system: System) -> str:
    """Everything measured, in Markdown."""
    eql, relu, euler = (by_kind(ledger, kind) for kind in ("eql", "relu", "euler"))
    worked = [t for t in eql.values() if not t["failure"]]
    parts = [_seeds(eql, relu, euler, system)]
    if worked:
        parts.append(_equations(worked[0], system))
    published = PUBLISHED[system.name]
    parts.append(
        f"The paper: correlation {published.correlation}, {published.line}, extrapolation error "
        f"{published.extrapolation}."
    )
    if not worked:
        return "\n\n".join(parts)
    size = _median([abs(t["correlation"]) for t in worked], ".6f")
    right = sum(t["right"] for t in worked)
    parts.append(
        f"Ours, median of {counted(len(worked), 'seed')}: |correlation| {size}, error after "
        f"{system.far} steps {times_smaller(worked, relu)} times smaller than the ReLU twin's and "
        f"{times_smaller(worked, euler)} times smaller than Euler's. Equations right in {right} of "
        f"{counted(len(eql), 'seed')}: every coefficient within {100 * system.tolerance:g} % of the truth, "
        "nothing missing, nothing spurious. Terms of less than a thousandth of a state's largest change are "
        "not counted; all digits are in the JSON file."
    )
    if relu:
        parts.append(
            "The ReLU twin has the same encoder and series, is recurrent with shared weights and trains by "
            "gradient for a schedule of its own. It gets no second-order finish and no distillation: these "
            "need equations, so part of the difference is what equations make possible afterwards."
        )
    return "\n\n".join(parts)


def _seeds(eql: Mapping[int, Any], relu: Mapping[int, Any], euler: Mapping[int, Any], system: System) -> str:
    heads = ["seed", "right", "correlation", "worst coefficient", "spurious"]
    heads += [f"error, {system.far} steps", "ReLU", "Euler", "seconds", "ReLU's seconds"]
    restarts = any(t.get("restarts") is not None for t in eql.values())  # a search has none
    heads += ["began again"] * restarts
    rows: list[list[object]] = []
    for seed, t in eql.items():
        twin, plain = relu.get(seed, {}), euler.get(seed, {})
        if t["failure"]:
            rows.append([seed, f"no: {t['failure']}", *[""] * (len(heads) - 2)])
            rows[-1][len(heads) - restarts :] = [str(t.get("restarts", ""))] * restarts
            continue
        rows.append([seed, "yes" if t["right"] else "no", f"{t['correlation']:.6f}"])
        rows[-1] += [_percent(t["coefficient_error"]), ", ".join(t["spurious"][:4]) or "none"]
        rows[-1] += [_number(trial.get("far_error")) for trial in (t, twin, plain)]
        rows[-1] += [f"{t['seconds']:.0f}", _number(twin.get("seconds"))]
        rows[-1] += [str(t.get("restarts"))] * restarts
    return table(heads, rows)


def _equations(trial: Mapping[str, Any], system: System) -> str:
    published = PUBLISHED[system.name]
    order = " (second order)" if system.higher else ""
    rows: list[tuple[str, Mapping[str, str]]] = [
        (f"true{order}", system.truth),
        ("paper: expected from its encoder", published.expected),
        ("paper: found", published.found),
        ("ours: found, in z", trial["equations"]),
        (f"ours: in {system.parameter}, by the fitted line", trial["in_parameter"]),
        ("ours: the same, readable", trial["readable"]),
        ("ours: canonical gauge, no truth used", trial["canonical"]),
    ]
    cells = [[name, *(f"`{row[s]}`" if row.get(s) else "" for s in system.states)] for name, row in rows]
    said = table(["equation", *(f"{s}'" for s in system.states)], cells)
    name = system.parameter
    sign = "-" if trial["shift"] < 0 else "+"
    line = f"Seed {trial['seed']}: {name} = {trial['scale']:.4f} z {sign} {abs(trial['shift']):.4f}"
    line += ", fitted on fresh series"
    return f"{said}\n\n{line}; its standard error where {name} = 0 is {trial['line_error']:.1g}."


def times_smaller(worked: Sequence[Mapping[str, Any]], others: Mapping[int, Mapping[str, Any]]) -> str:
    """How many times smaller our far error is, median over seeds and the least; an explosion counts as an
    infinite error, whose ever it is."""
    ratios = []
    for t in worked:
        other = others.get(t["seed"])
        if other is not None and not other.get("failure"):
            ours, theirs = (math.inf if e is None else e for e in (t["far_error"], other["far_error"]))
            ratios.append(0.0 if math.isinf(ours) else theirs / ours if ours > 0 else math.inf)
    return f"{_median(ratios, '.3g')} (at least {min(ratios):.3g})" if ratios else "-"


def _median(values: Sequence[float], form: str) -> str:
    return format(median(values), form) if values else "-"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.3f} %"


def draw_dynamics(ledger: Mapping[str, Any], system: System, truth: Mapping[str, Any]) -> Figure:
    """Latent against parameter, errors against time, and one series (position and velocity) inside and far
    outside the horizon of training."""
    from matplotlib.figure import Figure

    eql, relu, euler = (by_kind(ledger, kind) for kind in ("eql", "relu", "euler"))
    worked = {seed: t for seed, t in eql.items() if not t["failure"]}
    figure = Figure(figsize=(10.0, 6.6), layout="constrained")
    panels = figure.subplots(2, 2)
    if worked:
        seed = next(iter(worked))
        _draw_latent(panels[0, 0], worked[seed], system)
        for state, axes in enumerate(panels[1]):
            _draw_series(axes, state, truth, worked[seed], relu.get(seed), euler.get(seed), system)
    _draw_errors(panels[0, 1], worked, relu, euler, system)
    for axes in panels.flat:
        axes.spines[["top", "right"]].set_visible(False)
    return figure


def _draw_latent(axes: Axes, trial: Mapping[str, Any], system: System) -> None:
    axes.scatter(trial["parameter"], trial["z"], s=8, color=OURS, alpha=0.6, linewidths=0)
    axes.set_xlabel(f"true {_pretty(system.parameter)}")
    axes.set_ylabel("latent z of the encoder")
    axes.set_title(f"fresh series: correlation {trial['correlation']:.6f}", fontsize=10)


def _draw_series(
    axes: Axes,
    state: int,
    truth: Mapping[str, Any],
    eql: Mapping[str, Any],
    relu: Mapping[str, Any] | None,
    euler: Mapping[str, Any] | None,
    system: System,
) -> None:
    times, exact = truth["times"], truth["series"][state]
    axes.plot(times, exact, color=TRUE, linewidth=3.0, alpha=0.35, label="true")
    if euler is not None:
        values = _floats(euler["series"][state])
        axes.plot(times, values, color=PLAIN, linewidth=1.2, linestyle="--", label="Euler")
    if relu is not None and not relu["failure"]:
        axes.plot(times, _floats(relu["series"][state]), color=OTHER, linewidth=1.2, label="ReLU twin")
    axes.plot(times, _floats(eql["series"][state]), color=OURS, linewidth=1.4, label="EQL")
    axes.axvline(system.dt * system.horizon, color=PLAIN, linestyle=":", linewidth=1.0)
    low, high = min(exact), max(exact)
    axes.set_ylim(low - 0.3 * (high - low), high + 0.3 * (high - low))
    axes.set_xlabel("time (dotted: end of training)")
    axes.set_ylabel(("position u", "velocity v")[state])
    axes.legend(fontsize=8, frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncol=4)


def _draw_errors(
    axes: Axes, eql: Mapping[int, Any], relu: Mapping[int, Any], euler: Mapping[int, Any], system: System
) -> None:
    for trials, colour, label in ((euler, PLAIN, "Euler"), (relu, OTHER, "ReLU twin"), (eql, OURS, "EQL")):
        for i, t in enumerate(t for t in trials.values() if not t.get("failure")):
            times = [system.dt * s for s in t["steps"]]
            errors = [max(e, 1e-12) if e == e else e for e in _floats(t["errors"])]
            axes.plot(
                times[1:], errors[1:], color=colour, linewidth=1.2, alpha=0.8, label=label if i == 0 else None
            )
    axes.axvline(system.dt * system.horizon, color=PLAIN, linestyle=":", linewidth=1.0)
    axes.set_yscale("log")
    axes.set_xlabel("time (a line per seed)")
    axes.set_ylabel("root mean square error")
    axes.legend(fontsize=8, frameon=False, loc="best")


def _floats(values: Sequence[float | None]) -> list[float]:
    return [float("nan") if v is None else v for v in values]


def _pretty(parameter: str) -> str:
    return {"w2": "ω²"}.get(parameter, parameter)
