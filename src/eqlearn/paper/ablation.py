"""What each strategy of the search contributes and costs: the search with each of them off, one at a time."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sympy.core.cache import clear_cache

from eqlearn import Progress, Settings, discover, judge
from eqlearn.paper.rates import RIGHT
from eqlearn.paper.suites import Problem, suites

STRATEGIES = Settings().strategies
ALL, NETWORKS = "all", "networks"
# The whole search first: what the others have to be compared with.
VARIANTS = (ALL, *STRATEGIES, NETWORKS)


@dataclass(frozen=True)
class Trial:
    """One formula, looked for once.

    `noise` is a fraction of the target's spread; `networks` is how many of them are started after the last
    strategy, a budget that is counted and not timed, so that a busy machine changes no result. `judging` is
    how many seconds the judge may take: enough on any machine. Errors are measured on `fresh_rows`.
    """

    problem: Problem
    noise: float = 0.0
    networks: int = 48
    seed: int = 0
    fresh_rows: int = 1000
    judging: float = 60.0

    @property
    def source(self) -> str:
        kind = self.problem.suite if self.problem.suite == "random" else "suites"
        return f"{kind}, noise {self.noise:g}" if self.noise else kind

    @property
    def name(self) -> str:
        return f"{self.problem.name}, noise {self.noise:g}" if self.noise else self.problem.name

    def key(self, variant: str) -> str:
        """Under which a ledger has a variant of the trial."""
        return f"{self.source}: {self.name}, {variant}"

    def data(self) -> tuple[np.ndarray, np.ndarray]:
        X, y = self.problem.data(self.seed)
        rng = np.random.default_rng([20160, self.seed])
        return X, y + self.noise * y.std() * rng.normal(size=len(y))


def spaced(most: int) -> list[Problem]:
    """At most that many formulas of the literature, evenly out of all suites."""
    problems = [p for suite in suites().values() for p in suite]
    count = min(most, len(problems))
    return [problems[i * len(problems) // count] for i in range(count)]


class Counted:
    """Ends a search when all strategies have been tried and that many networks were started after them."""

    def __init__(self, strategies: int, networks: int) -> None:
        self.strategies, self.networks = strategies, networks
        self.before, self.over = 0, False

    def __call__(self, progress: Progress) -> None:
        if progress.round <= self.strategies:
            self.before = progress.restarts
        if progress.round >= self.strategies and progress.restarts - self.before >= self.networks:
            self.over = True
            raise KeyboardInterrupt  # how a search is ended with what it has


def trials(
    trial: Trial, known: Mapping[str, Mapping[str, Any]], variants: Sequence[str] = VARIANTS
) -> Iterator[tuple[str, dict[str, Any]]]:
    """A record for every one of the variants that is not `known` yet, by its name.

    A strategy that the whole search did not come to, because an earlier one had found the law, can't change
    it: its variant is the same search, and the record is that of the whole search, marked `same`.
    """
    whole = known.get(ALL)
    for variant in variants:
        if variant in known:
            continue
        if whole is not None and whole["rounds"] <= _place(variant):
            yield variant, {**whole, "variant": variant, "same": True}
            continue
        record = run(trial, variant)
        whole = record if variant == ALL else whole
        yield variant, record


def _place(variant: str) -> int:
    """How many rounds come before the variant's strategy."""
    return (*STRATEGIES, NETWORKS).index(variant)


def run(trial: Trial, variant: str) -> dict[str, Any]:
    """One search with a strategy off, judged by identity; what it costs is measured in CPU seconds."""
    strategies = tuple(s for s in STRATEGIES if s != variant)
    settings = replace(Settings(), strategies=strategies, networks=variant != NETWORKS)
    budget = Counted(len(strategies), trial.networks)
    X, y = trial.data()
    variables = tuple(trial.problem.ranges)
    clear_cache()  # or the first variant would pay for what SymPy remembers for the others
    began = time.process_time()
    found = discover(X, y, variables=variables, seed=trial.seed, settings=settings, progress=budget)
    used = time.process_time() - began
    if found.ended == "interrupted" and not budget.over:
        raise KeyboardInterrupt  # half a search is no trial; the same command does it whole
    best = found.best
    errors = [c.standard_error for c in best.constants[0]] if trial.noise else None
    truth = trial.problem.truth
    verdict = judge(best.equation, truth, trial.problem.ranges, standard_errors=errors, seconds=trial.judging)
    return {
        "source": trial.source,
        "problem": trial.name,
        "formula": trial.problem.formula,
        "seed": trial.seed,
        "variant": variant,
        "tier": verdict.tier,
        "reason": verdict.reason,
        "equation": str(best.equation),
        "method": best.method,
        "fresh_error": _fresh_error(trial, best.equation),
        "cpu_seconds": used,
        "restarts": found.restarts,
        "rounds": found.rounds,
        "ended": "out of restarts" if budget.over else found.ended,
        "same": False,
    }


def _fresh_error(trial: Trial, equation: Any) -> float:
    """The error on fresh rows of the same box, without noise, relative to the truth's spread."""
    X, y = replace(trial.problem, rows=trial.fresh_rows).data(trial.seed + 1)
    return float(np.sqrt(np.mean((equation(X) - y) ** 2)) / y.std())


@dataclass(frozen=True)
class Comparison:
    """The whole search beside the one without a strategy, over the trials that were made with both.

    One is closer on a trial where both are wrong if its error on fresh rows is smaller by more than `margin`.
    """

    strategy: str
    pairs: tuple[tuple[Mapping[str, Any], Mapping[str, Any]], ...]
    margin: float = 0.1

    @property
    def found(self) -> tuple[int, int]:
        return sum(map(_right, (w for w, _ in self.pairs))), sum(map(_right, (w for _, w in self.pairs)))

    @property
    def lost(self) -> list[str]:
        """What the whole search finds, and not the one without the strategy."""
        return [w["problem"] for w, without in self.pairs if _right(w) and not _right(without)]

    @property
    def gained(self) -> list[str]:
        """What is found without the strategy alone."""
        return [w["problem"] for w, without in self.pairs if _right(without) and not _right(w)]

    @property
    def delivered(self) -> int:
        """How many of the laws that the whole search found came from the strategy itself."""
        return sum(_right(w) and w["method"] == self.strategy for w, _ in self.pairs)

    @property
    def closer(self) -> tuple[int, int]:
        """On how many trials that are wrong both times the fit is closer with the strategy, and without."""
        wrong = [(_error(w), _error(o)) for w, o in self.pairs if not _right(w) and not _right(o)]
        return (
            sum(a < b * (1 - self.margin) for a, b in wrong),
            sum(b < a * (1 - self.margin) for a, b in wrong),
        )

    @property
    def cpu_seconds(self) -> tuple[float, float]:
        """For a trial, with the strategy and without it."""
        means = (sum(p[i]["cpu_seconds"] for p in self.pairs) / len(self.pairs) for i in (0, 1))
        first, second = means
        return first, second


def _right(record: Mapping[str, Any]) -> bool:
    return record["tier"] in RIGHT


def _error(record: Mapping[str, Any]) -> float:
    return float("inf") if record["fresh_error"] is None else float(record["fresh_error"])


def compared(records: Sequence[Mapping[str, Any]]) -> list[Comparison]:
    """Each strategy, and the networks, beside the whole search."""
    by_key = {(r["variant"], r["source"], r["problem"]): r for r in records}
    wholes = [r for r in records if r["variant"] == ALL]
    pairs = {
        variant: tuple(
            (w, by_key[variant, w["source"], w["problem"]])
            for w in wholes
            if (variant, w["source"], w["problem"]) in by_key
        )
        for variant in VARIANTS[1:]
    }
    return [Comparison(variant, each) for variant, each in pairs.items() if each]


def ablation_table(ledger: Mapping[str, Any]) -> str:
    """All trials together, then each source of formulas, then what was lost and gained, by name."""
    records = list(ledger["trials"].values())
    parts = [_table(records, "All trials")]
    sources = dict.fromkeys(r["source"] for r in records)
    if len(sources) > 1:
        parts += [_table([r for r in records if r["source"] == s], s.capitalize()) for s in sources]
    parts.append(_names(compared(records)))
    return "\n\n".join(parts)


def _table(records: Sequence[Mapping[str, Any]], title: str) -> str:
    wholes = [r for r in records if r["variant"] == ALL]
    run_again = sum(not r["same"] for r in records)
    lines = [
        f"**{title}**: {len(wholes)} formulas, {sum(map(_right, wholes))} found by the whole search; "
        f"{len(records)} of {len(wholes) * len(VARIANTS)} trials made, of which {run_again} had to be run.",
        "",
        "| off | found with all | without it | lost | gained | delivered by it | closer with, without"
        " | CPU s with all | without it |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for c in compared(records):
        (with_all, without), (near, far), (cost, rest) = c.found, c.closer, c.cpu_seconds
        lines.append(
            f"| {c.strategy} | {with_all}/{len(c.pairs)} | {without}/{len(c.pairs)} | {len(c.lost)} "
            f"| {len(c.gained)} | {c.delivered} | {near}, {far} | {cost:.2f} | {rest:.2f} |"
        )
    return "\n".join(lines)


def _names(comparisons: Sequence[Comparison]) -> str:
    lines = [
        f"* without {c.strategy}, {word}: {'; '.join(names)}"
        for c in comparisons
        for word, names in (("lost", c.lost), ("gained", c.gained))
        if names
    ]
    return "\n".join(lines) or "No trial was lost or gained."
