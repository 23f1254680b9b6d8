"""The search for one equation of many groups: structures from parts of the rows, judged on all of them."""

from __future__ import annotations

import itertools
import math
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import sympy as sp
import torch

from eqlearn.errors import InvalidArgument
from eqlearn.numerics.budget import Deadline
from eqlearn.search.candidate import Candidate, Rule, choose, pareto_front, shortest_description, united
from eqlearn.search.groups.draft import Draft, drafts_of
from eqlearn.search.groups.group_settings import GroupSettings
from eqlearn.search.groups.last import measured
from eqlearn.search.groups.laws import with_laws, with_relations
from eqlearn.search.groups.propose import proposals
from eqlearn.search.groups.rank import Ranking
from eqlearn.search.groups.rows import GroupedRows
from eqlearn.search.step import Journal, StepResult
from eqlearn.symbolic.equation import Equation
from eqlearn.validation.groups import Groups, find_column, read_groups, read_levels
from eqlearn.validation.table import Table, read_table


def by_groups(
    search: Callable[..., Any],
    X: Any,
    y: Any,
    groups: Any,
    varies: str | int | None,
    *,
    laws: Any,
    variables: Sequence[str] | None,
    sample_weight: Any,
    extrapolation: Any,
    seconds: float | None,
    rule: Rule,
    settings: GroupSettings,
    progress: Callable[[Any], None] | None,
    journal: Journal | None,
) -> Any:
    """What `search` finds for a table whose rows are of several groups, or in which a column `varies` the
    constants: one equation for all of them.

    `search` is the one for a single table, and called for parts of this one, with the settings `laws` for the
    laws of constants.
    """
    began = time.time()
    if extrapolation is not None:
        raise InvalidArgument("`extrapolation` can't be used with `groups`; measure with `predict` instead")
    table, names = read_table(X, y, sample_weight, variables)
    if table.y.shape[1] != 1:
        raise InvalidArgument(f"`groups` are for one target at a time, and `y` has {table.y.shape[1]}")
    parameter = None if varies is None else find_column(varies, names)
    if parameter is None or groups is not None:
        known = read_groups(groups, table.rows)
    else:
        known = read_levels(
            table.X[:, parameter], names[parameter], settings.min_level_rows, settings.max_groups
        )
    if table.weight is not None:
        kept = np.flatnonzero(table.weight)
        table, known = table.take(kept), replace(known, codes=known.codes[kept])
    last: list[Any] = []

    def one(part: Table, columns: Sequence[str], share: float | None, number: int) -> Any:
        before = sum(found.rounds for found in last), sum(found.restarts for found in last)
        told = None if progress is None else counted_on(progress, *before, began)
        notes = None if journal is None else Shifted(journal, number * MOST_ROUNDS)
        own = {} if number < settings.max_searches else {"settings": laws}
        last.append(
            search(
                part.X, part.y, variables=columns, sample_weight=part.weight, seconds=share, progress=told,
                journal=notes, **own,
            )
        )  # fmt: skip
        return last[-1]

    whole = GroupSearch(table, known, names, settings, one, parameter, seconds)
    front, ended = whole.run()
    return replace(
        last[0], best=choose(rule, front), front=front, restarts=sum(found.restarts for found in last),
        rounds=sum(found.rounds for found in last), failures=dict(whole.failures),
        seconds=time.time() - began, ended=ended, variables=names, inputs=names,
    )  # fmt: skip


def counted_on(
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


@dataclass
class GroupSearch:
    """One search: its input, and the failures of the searches of parts of it.

    `search(table, columns, seconds, number)` gives what is found in one table. `parameter` is the column that
    constants may be functions of.
    """

    table: Table
    groups: Groups
    names: tuple[str, ...]
    settings: GroupSettings
    search: Callable[[Table, Sequence[str], float | None, int], Any]
    parameter: int | None = None
    seconds: float | None = None
    failures: Counter[str] = field(default_factory=Counter)

    def run(self) -> tuple[tuple[Candidate, ...], str]:
        """The front of equations, simplest first, and why the search ended."""
        began = time.time()
        end = Deadline(math.inf if self.seconds is None else began + 0.9 * self.seconds)
        rows = GroupedRows.of(self.table, self.groups)
        ranking = Ranking(compared(rows, self.settings), self.settings, end)
        ranking.add([Equation(sp.Float(float(self.table.y.mean()), 17), self.names)])
        ended = self._gather(ranking, began, end)
        each = [
            drafts_of(structure, fit, self.groups.name, self.settings, end)
            for structure, fit in ranking.finalists()
        ]
        each = sorted(filter(None, each), key=lambda drafts: drafts[0].length)
        if not each:
            raise InvalidArgument("no equation could be fitted to every group; give groups of more rows")
        drafts = _distinct([found[0] for found in each])
        if ended != "interrupted":
            # A constant may have a law where it stands in one form of the equation, and none in another.
            forms = _distinct(each[0])[: self.settings.max_forms]
            lawful = [self._with_laws(form, ranking, end) for form in forms]
            drafts = _distinct([min(lawful, key=lambda d: d.length), *drafts])
        column = None if self.parameter is None else self.names[self.parameter]
        found = measured(drafts, rows, self.groups, self.settings, column)
        return united(pareto_front(found), [shortest_description(found)]), ended

    def _with_laws(self, d: Draft, ranking: Ranking, end: Deadline) -> Draft:
        """The draft with laws for those of its constants that have one in the parameter, or else in another
        constant."""
        if self.parameter is None:
            return with_relations(d, self.groups.name, self.settings, end)
        parameter, rows = self.parameter, ranking.rows
        at = (rows.summed(rows.columns[parameter]) / rows.sizes).numpy()
        name, searches = self.names[parameter], itertools.count(self.settings.max_searches)

        def search(table: Table) -> tuple[Candidate, ...]:
            seconds = None if self.seconds is None else max(0.1, end.at - time.time()) / (2 * len(d.names))
            front: tuple[Candidate, ...] = self.search(table, [name], seconds, next(searches)).front
            return front

        return with_laws(d, name, at, self.groups.name, search, self.settings, end)

    def _gather(self, ranking: Ranking, began: float, end: Deadline) -> str:
        """Searches parts of the rows, until nothing better comes up."""
        idle, settings = 0, self.settings
        table, names = self.table, list(self.names)
        if self.parameter is not None:
            table = Table(np.delete(table.X, self.parameter, axis=1), table.y, table.weight)
            del names[self.parameter]
        for number, part in enumerate(proposals(table, self.groups, settings)):
            if end():
                return "out of time"
            before = ranking.best
            found = self.search(part, names, self._share(began, number), number)
            self.failures.update(found.failures)
            ranking.add(Equation(c.equation.expr, self.names) for c in found.front)
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
    """The rows that structures are compared on: the largest groups, none of them much smaller than most,
    thinned where there are many rows."""
    sizes = rows.sizes
    chosen = torch.argsort(sizes, descending=True, stable=True)[: settings.max_groups]
    chosen = chosen[2 * sizes[chosen] >= sizes[chosen].median()]
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
