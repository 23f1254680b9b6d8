"""The figures by which the paper is remembered, each beside ours, from the ledgers of a folder."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import fmean, median
from typing import Any

from eqlearn.paper.benchmark import TARGETS
from eqlearn.paper.pages.dynamics import PUBLISHED, by_kind, times_smaller
from eqlearn.paper.pages.mnist import PAPER_FIGURES, PAPER_GENERALISATION, finished
from eqlearn.paper.rates import by_field, rate
from eqlearn.paper.style import table
from eqlearn.paper.timing import PAPER_SECONDS

Ledgers = Mapping[str, Mapping[str, Any]]
Trials = Sequence[Mapping[str, Any]]
Row = tuple[str, str, str]

PENALTIES = {"half": "L0.5", "l0": "L0"}
CUBE = "(x+y*z)**3"


def headlines(ledgers: Ledgers) -> str:
    """A Markdown table: what it is, the paper's value, ours. What has not been run has no row."""
    rows = [*_benchmark(ledgers), *_mnist(ledgers), *_dynamics(ledgers)]
    return table(
        ("figure", "paper", "ours"), [(figure, paper, f"**{ours}**") for figure, paper, ours in rows]
    )


def _benchmark(ledgers: Ledgers) -> Iterator[Row]:
    ten = {target.name: target.paper for target in TARGETS if target.paper is not None}
    for column, (penalty, label) in enumerate(PENALTIES.items()):
        if (ledger := ledgers.get(f"benchmark/modern-{penalty}")) is None:
            continue
        if not (trials := _of(ledger, ten)):
            continue
        mean = fmean(rates[column] for rates in ten.values())
        yield f"right equation, ten functions, {label}", f"{mean:.3g} of all starts", rate(trials)
        seconds = f"{median(t['seconds'] for t in trials):.2g}"
        yield f"seconds to it, median, {label}", f"{PAPER_SECONDS[2]:g} a start, on a GPU", seconds
        if cubes := _of(ledger, [CUBE]):
            yield f"`{CUBE}`, three hidden layers, {label}", "found", rate(cubes)
    if (noisy := ledgers.get("benchmark/modern-half-noise0.1")) is not None:
        yield "right structure in 10 % noise, ten functions", "still found", rate(_of(noisy, ten))


def _of(ledger: Mapping[str, Any], functions: Iterable[str]) -> Trials:
    groups = by_field(ledger, "function")
    return [trial for function in functions for trial in groups.get(function, [])]


def _mnist(ledgers: Ledgers) -> Iterator[Row]:
    ledger = ledgers.get("mnist/modern")
    if ledger is not None and (trials := finished(ledger["trials"].values())):
        yield "MNIST: rounded sums right, test digits", *_mean(trials, "accuracy", 100.0, ".1f", " %")
        yield "MNIST: mean absolute error, test digits", *_mean(trials, "mean_absolute_error", 1.0, ".3f", "")
        yield "MNIST: correlation of latent and digit", *_mean(trials, "correlation", 1.0, ".4f", "")
        right = sum(bool(t["right_form"]) for t in trials)
        started = len(ledger["trials"])
        yield "MNIST: seeds whose equation is the sum", "2 of the 3 trials shown", f"{right} of {started}"
    for formula, name in {"a*b": "axb", "a-b": "a-b"}.items():
        if (other := ledgers.get(f"mnist/modern-{name}")) is not None and other["trials"]:
            group = finished(other["trials"].values())
            share = f", {100 * fmean(t['test']['accuracy'] for t in group):.1f} % right" if group else ""
            right = sum(bool(t["right_form"]) for t in group)
            told = f"{right} of {len(other['trials'])}{share}"
            yield f"MNIST: seeds whose equation is {formula}, rounded results", "not tried", told
    for network, label in {"eql": "EQL", "relu": "ReLU network"}.items():
        name = "mnist/modern-below-15" + ("" if network == "eql" else f"-{network}")
        if name in ledgers:
            shares = [t["test"]["accuracy_from_bound"] for t in finished(ledgers[name]["trials"].values())]
            paper = PAPER_GENERALISATION[network, "test"][1]
            if not shares or None in shares:
                continue
            yield f"MNIST: sums from 15 on, trained below 15, {label}", paper, f"{100 * fmean(shares):.1f} %"


def _mean(trials: Trials, key: str, factor: float, form: str, unit: str) -> tuple[str, str]:
    mean = fmean(abs(t["test"][key]) for t in trials)
    return PAPER_FIGURES["test", key], f"{factor * mean:{form}}{unit}"


def _dynamics(ledgers: Ledgers) -> Iterator[Row]:
    for name, published in PUBLISHED.items():
        if (ledger := ledgers.get(f"{name}/modern")) is None:
            continue
        eql = by_kind(ledger, "eql")
        worked = [t for t in eql.values() if not t["failure"]]
        size = f"{median(abs(t['correlation']) for t in worked):.6f}" if worked else "-"
        right = f"{sum(t['right'] for t in worked)} of {len(eql)}"
        yield f"{name}: correlation of latent and parameter", published.correlation, size
        yield f"{name}: seeds with the right equations", published.right, right
        for other, label in (("relu", "the ReLU network"), ("euler", "Euler's method")):
            times = times_smaller(worked, by_kind(ledger, other))
            yield f"{name}: error far out, {label} over ours", "above 1", times
