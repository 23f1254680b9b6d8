"""The paper's recipe, the released code's and ours side by side, beside what the paper prints."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from statistics import fmean, median
from typing import Any

from eqlearn.paper.benchmark import EYE
from eqlearn.paper.dynamics.presets import find_preset
from eqlearn.paper.dynamics.trials import seen
from eqlearn.paper.pages.dynamics import PUBLISHED, by_kind, times_smaller
from eqlearn.paper.pages.mnist import PAPER_FIGURES, PAPER_GENERALISATION, finished
from eqlearn.paper.style import counted, table

Ledgers = Mapping[str, Mapping[str, Any]]
Trials = Sequence[Mapping[str, Any]]

# The recipe in a ledger's name, and the column's head; half is L0.5, of which the paper shows its systems.
RECIPES = {
    "paper-half": "the paper's recipe, run here",
    "released-half": "the released code's, run here",
    "modern": "ours",
}
NOT_RUN = "not run"


def dynamics_beside(system: str, ledgers: Ledgers) -> str:
    """What the paper says of a system, beside each recipe: medians over seeds, every seed counted."""
    columns = [_dynamics_column(system, recipe, ledgers.get(f"{system}/{recipe}")) for recipe in RECIPES]
    published = PUBLISHED[system]
    rows = (
        ("size of the correlation of latent and parameter", published.correlation),
        ("right equations", published.right),
        (f"the same, terms below {100 * EYE[1]:g} % dropped, coefficients within {100 * EYE[0]:g} %", ""),
        ("the ReLU network's error far out over the equations'", "above 1 for several more steps"),
        ("Euler's over the equations'", "above 1"),
        ("trials that began again, their loss being NaN", "not told"),
        ("CPU seconds of a trial", "not told"),
    )
    cells = [[label, paper, *(c[i] for c in columns)] for i, (label, paper) in enumerate(rows)]
    return table(["", "paper", *RECIPES.values()], cells)


def _dynamics_column(system: str, recipe: str, ledger: Mapping[str, Any] | None) -> list[str]:
    if ledger is None:
        return [NOT_RUN] * 7
    eql, relu, euler = (by_kind(ledger, kind) for kind in ("eql", "relu", "euler"))
    worked = [t for t in eql.values() if not t["failure"]]
    began = [0] * (recipe == "modern")  # a search has none
    began += [t["restarts"] for t in eql.values() if t.get("restarts") is not None]
    seconds = [t["cpu_seconds"] for t in eql.values() if t.get("cpu_seconds") is not None]
    return [
        f"{median(abs(t['correlation']) for t in worked):.6f}" if worked else "-",
        f"{sum(t['right'] for t in worked)} of {len(eql)}",
        f"{sum(_seen(system, recipe, t['seed'], *t['in_parameter'].items()) for t in worked)} of {len(eql)}",
        times_smaller(worked, relu),
        times_smaller(worked, euler),
        f"{counted(sum(began), 'time')} in {counted(len(eql), 'seed')}" if began else "not recorded",
        f"{median(seconds):.0f}" if seconds else "",
    ]


@cache
def _seen(system: str, recipe: str, seed: int, *equations: tuple[str, str]) -> bool:
    trial = {"seed": seed, "in_parameter": dict(equations)}
    return seen(trial, find_preset(system, recipe).system, EYE[1], EYE[0])


def mnist_beside(ledgers: Ledgers) -> str:
    """What the paper prints of MNIST, beside each recipe: means over seeds."""
    rows: list[list[str]] = []

    def add(label: str, paper: str, name: str, told: Callable[[Trials], str]) -> None:
        found = [ledgers.get(f"mnist/{recipe}{name}") for recipe in RECIPES]
        groups = [None if ledger is None else finished(ledger["trials"].values()) for ledger in found]
        cells = (NOT_RUN if g is None else told(g) if g else "none ended" for g in groups)
        rows.append([label, paper, *cells])

    for split in ("train", "test"):
        paper = PAPER_FIGURES[split, "accuracy"]
        add(f"rounded sums right, {split} digits", paper, "", _share(split, "accuracy"))
        paper = PAPER_FIGURES[split, "mean_absolute_error"]
        add(f"mean absolute error, {split} digits", paper, "", _mean(split, "mean_absolute_error", ".3f"))
        paper = PAPER_FIGURES[split, "correlation"]
        add(f"correlation, its size, {split} digits", paper, "", _mean(split, "correlation", ".4f"))
    add("right equations", "2 of the 3 trials shown", "", _right)
    add("trials that began again, their loss being NaN", "not told", "", _restarts)
    for network, label in {"eql": "EQL", "relu": "ReLU network"}.items():
        paper, name = PAPER_GENERALISATION[network, "test"][1], "-below-15" + "-relu" * (network == "relu")
        add(f"sums from 15 on, trained below 15, {label}", paper, name, _share("test", "accuracy_from_bound"))
    return table(["", "paper", *RECIPES.values()], rows)


def _mean(split: str, key: str, form: str) -> Callable[[Trials], str]:
    return lambda trials: (
        f"{fmean(abs(t[split][key]) for t in trials):{form}} ({counted(len(trials), 'seed')})"
    )


def _share(split: str, key: str) -> Callable[[Trials], str]:
    def told(trials: Trials) -> str:
        return f"{100 * fmean(t[split][key] for t in trials):.1f} % ({counted(len(trials), 'seed')})"

    return told


def _right(trials: Trials) -> str:
    return f"{sum(bool(t['right_form']) for t in trials)} of {len(trials)}"


def _restarts(trials: Trials) -> str:
    return counted(sum(t.get("restarts") or 0 for t in trials), "time")
