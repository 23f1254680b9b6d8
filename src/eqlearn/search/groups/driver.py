"""The search for one equation of many groups: structures from parts of the rows, judged on all of them."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
import sympy as sp
import torch

from eqlearn.errors import InvalidArgument
from eqlearn.numerics.budget import Deadline
from eqlearn.search.candidate import Candidate, Rule, choose, pareto_front, shortest_description, united
from eqlearn.search.groups.draft import Draft, draft
from eqlearn.search.groups.last import measured
from eqlearn.search.groups.propose import proposals
from eqlearn.search.groups.rank import Ranking
from eqlearn.search.groups.rows import GroupedRows
from eqlearn.search.groups.settings import GroupSettings
from eqlearn.search.step import Journal, StepResult
from eqlearn.symbolic.equation import Equation
from eqlearn.validation.groups import Groups, read_groups
from eqlearn.validation.table import Table, read_table


def by_groups(
    search: Callable[..., Any],
    X: Any,
    y: Any,
    groups: Any,
    *,
    variables: Sequence[str] | None,
    sample_weight: Any,
    extrapolation: Any,
    seconds: float | None,
    rule: Rule,
    settings: GroupSettings,
    progress: Callable[[Any], None] | None,
    journal: Journal | None,
) -> Any:
    """What `search` finds for a table whose rows are of several groups: one equation for all of them.

    `search` is the one for a single table, and called for parts of this one.
    """
    began = time.time()
    if extrapolation is not None:
        raise InvalidArgument("`extrapolation` can't be used with `groups`; measure with `predict` instead")
    table, names = read_table(X, y, sample_weight, variables)
    if table.y.shape[1] != 1:
        raise InvalidArgument(f"`groups` are for one target at a time, and `y` has {table.y.shape[1]}")
    known = read_groups(groups, table.rows)
    if table.weight is not None:
        kept = np.flatnonzero(table.weight)
        table, known = table.take(kept), replace(known, codes=known.codes[kept])
    last: list[Any] = []

    def one(part: Table, share: float | None, number: int) -> Any:
        before = sum(found.rounds for found in last), sum(found.restarts for found in last)
        told = None if progress is None else _counted_on(progress, *before, began)
        notes = None if journal is None else Shifted(journal, number * MOST_ROUNDS)
        last.append(
            search(
                part.X, part.y, variables=names, sample_weight=part.weight, seconds=share, progress=told,
                journal=notes,
            )
        )  # fmt: skip
        return last[-1]

    whole = GroupSearch(table, known, names, settings, one, seconds)
    front, ended = whole.run()
    return replace(
        last[-1], best=choose(rule, front), front=front, restarts=whole.restarts, rounds=whole.rounds,
        failures=dict(whole.failures), seconds=time.time() - began, ended=ended,
    )  # fmt: skip


def _counted_on(
    progress: Callable[[Any], None], rounds: int, restarts: int, began: float
) -> Callable[[Any], None]:
    """Reports the progress of one search of several."""
    return lambda state: progress(
        replace(
            state, round=state.round + rounds, restarts=state.restarts + restarts,
            seconds=time.time() - began,
        )
    )  # fmt: skip


# More rounds than any search has.
MOST_ROUNDS = 1_000


@dataclass(frozen=True)
class Shifted:
    """A journal that keeps the rounds of one search of several apart from the others'."""

    journal: Journal
    first: int

    def recall(self, number: int) -> StepResult | None:
        """What is remembered of a round of this search."""
        known = self.journal.recall(self.first + number)
        return None if known is None else replace(known, number=number)

    def record(self, result: StepResult) -> None:
        """Remembers a round of this search."""
        self.journal.record(replace(result, number=self.first + result.number))


class Searched(Protocol):
    """What a search of one table leads to."""

    @property
    def front(self) -> tuple[Candidate, ...]: ...
    @property
    def restarts(self) -> int: ...
    @property
    def rounds(self) -> int: ...
    @property
    def failures(self) -> dict[str, int]: ...
    @property
    def ended(self) -> str: ...


@dataclass
class GroupSearch:
    """One search: its input, and the counts of all searches of parts of it.

    `search(table, seconds, number)` looks for equations in one table.
    """

    table: Table
    groups: Groups
    names: tuple[str, ...]
    settings: GroupSettings
    search: Callable[[Table, float | None, int], Searched]
    seconds: float | None = None
    restarts: int = 0
    rounds: int = 0
    failures: Counter[str] = field(default_factory=Counter)

    def run(self) -> tuple[tuple[Candidate, ...], str]:
        """The front of equations, simplest first, and why the search ended."""
        began = time.time()
        end = Deadline(math.inf if self.seconds is None else began + 0.9 * self.seconds)
        rows = GroupedRows.of(self.table, self.groups)
        ranking = Ranking(compared(rows, self.settings), self.settings, end)
        ranking.add([Equation(sp.Float(float(self.table.y.mean()), 17), self.names)])
        ended = self._gather(ranking, began, end)
        finalists = ranking.finalists()
        drafts = [
            d for structure, fit in finalists
            if (d := draft(structure, fit, self.groups.name, self.settings, end)) is not None
        ]  # fmt: skip
        drafts = sorted(_distinct(drafts), key=lambda d: d.length)
        if not drafts:
            raise InvalidArgument("no equation could be fitted to every group; give groups of more rows")
        found = measured(drafts, rows, self.groups, self.settings)
        return united(pareto_front(found), [shortest_description(found)]), ended

    def _gather(self, ranking: Ranking, began: float, end: Deadline) -> str:
        """Searches parts of the rows, until nothing better comes up."""
        idle, settings = 0, self.settings
        for number, proposal in enumerate(proposals(self.table, self.groups, settings)):
            if end():
                return "out of time"
            before = ranking.best
            found = self.search(proposal.table, self._share(began, number), number)
            self.restarts, self.rounds = self.restarts + found.restarts, self.rounds + found.rounds
            self.failures.update(found.failures)
            ranking.add(c.equation for c in found.front)
            if found.ended == "interrupted":
                return "interrupted"
            if ranking.exact:
                return "exact"
            idle = 0 if ranking.best < before - 1e-6 else idle + 1
            if idle >= settings.patience:
                return "no further gain"
        return "no further gain"

    def _share(self, began: float, number: int) -> float | None:
        """The seconds for the next search: its part of what is left for all that may follow."""
        if self.seconds is None:
            return None
        left = 0.8 * self.seconds - (time.time() - began)
        return max(0.1, left / max(1, min(self.settings.patience + 1, self.settings.max_searches - number)))


def compared(rows: GroupedRows, settings: GroupSettings) -> GroupedRows:
    """The rows that structures are compared on: the largest groups, thinned where there are many rows."""
    sizes = rows.sizes
    chosen = torch.argsort(sizes, descending=True, stable=True)[: settings.max_groups]
    chosen = chosen[sizes[chosen] >= min(settings.max_parameters, int(sizes.max()))]
    part = rows.of_groups(chosen.sort().values)
    most = max(settings.max_rows // part.count, 2 * settings.max_parameters)
    if int(part.sizes.max()) <= most:
        return part
    order = np.random.default_rng(0).permutation(part.rows)
    codes = part.codes.numpy()[order]
    # The place of each row among those of its group, in the order drawn.
    by_group = np.argsort(codes, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(codes, minlength=part.count))[:-1]])
    place = np.empty(part.rows, dtype=int)
    place[by_group] = np.arange(part.rows) - starts[codes[by_group]]
    kept = torch.from_numpy(np.sort(order[place < most]))
    return replace(
        part, columns=part.columns[:, kept], y=part.y[kept], codes=part.codes[kept], root=part.root[kept]
    )


def _distinct(drafts: Sequence[Draft]) -> list[Draft]:
    once: dict[Any, Draft] = {}
    for d in drafts:
        known = once.setdefault(str(d.equation), d)
        if d.length < known.length:
            once[str(d.equation)] = d
    return list(once.values())
