"""Searches that make use of what is known, and deliver nothing that disagrees with it.

The search sees columns in which symmetries hold of themselves, points as further rows, and keeps no equation
that can't be made to agree. What is found is written in the columns, its constants are fitted once more, now
with points and limits held, and every constraint is asked again. A template's parts are searched for one by
one; a guess is offered as columns.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from eqlearn.errors import InvalidArgument, listed
from eqlearn.numerics.budget import Deadline
from eqlearn.search.candidate import Candidate, choose, find_rule, pareto_front, shortest_description, united
from eqlearn.search.features import Features
from eqlearn.search.finish import Finisher
from eqlearn.search.groups.driver import MOST_ROUNDS, Shifted, counted_on
from eqlearn.search.knowledge.constraints import Constraint, Passes, Survey, constraints_of
from eqlearn.search.knowledge.contradiction import check_against_data
from eqlearn.search.knowledge.demands import Demands
from eqlearn.search.knowledge.guess import fitted_guess, offered
from eqlearn.search.knowledge.imposed import imposed
from eqlearn.search.knowledge.knowledge import Knowledge, read_knowledge
from eqlearn.search.knowledge.substitution import Substitution
from eqlearn.search.knowledge.template import TEMPLATE, Template
from eqlearn.search.knowledge.unknowns import read_formula
from eqlearn.search.settings import for_parts
from eqlearn.symbolic.equation import Equation
from eqlearn.symbolic.parametric import Constant
from eqlearn.validation.table import Table, read_outside, read_table


@dataclass(frozen=True)
class Shares:
    """What all points together weigh in a search, in parts of the data; which parts of the budget a search
    beside the guess and those for a template's parts have; and that a template which leaves the part
    `nothing` of the spread explains no more than the mean does."""

    points: float = 0.2
    guess: float = 0.5
    template: float = 0.9
    nothing: float = 0.99


SHARES = Shares()


def knowingly(search: Callable[..., Any], given: Mapping[str, Any]) -> Any:
    """What `search` finds with the arguments `given`, in which `knows` holds what is known."""
    options = dict(given)
    X, y = options.pop("X"), options.pop("y")
    table, names = read_table(X, y, options["sample_weight"], options["variables"])
    if table.y.shape[1] != 1:
        raise InvalidArgument("`knows` is for one target at a time; search each by itself")
    if table.weight is not None:
        table = table.take(np.flatnonzero(table.weight))
    knows = read_knowledge(options.pop("knows"), names)
    outside = read_outside(options["extrapolation"], X, 1, names)
    constraints = constraints_of(knows, names)
    check_against_data(constraints, table)
    return _Task(search, table, names, options, knows, constraints, outside).solved()


@dataclass(eq=False)
class _Task:
    """A search with knowledge: the data, the options of the search, and what was found so far."""

    search: Callable[..., Any]
    table: Table
    names: tuple[str, ...]
    options: dict[str, Any]
    knows: Knowledge
    constraints: tuple[Constraint, ...]
    outside: Table | None
    founds: list[Any] = field(default_factory=list)
    began: float = field(default_factory=time.time)

    def solved(self) -> Any:
        candidates = [c for c in self._candidates() if c is not None]
        if not candidates:
            known = [*(c.name for c in self.constraints), *(["`holds`"] if self.knows.holds else [])]
            raise InvalidArgument(
                f"no formula was found that agrees with {listed(known or ['`template`'])}: check what "
                "`knows` says, or search longer"
            )
        front = pareto_front(candidates)
        if self.knows.prefer:
            front = united(front, [shortest_description(candidates)])
        rule = find_rule(self.options["select"], outside=self.outside is not None)
        return replace(
            self.founds[-1], best=choose(rule, front), front=front, seconds=time.time() - self.began,
            restarts=sum(f.restarts for f in self.founds), rounds=sum(f.rounds for f in self.founds),
            failures=dict(sum((Counter(f.failures) for f in self.founds), Counter())), variables=self.names,
            inputs=self.names,
        )  # fmt: skip

    @property
    def stop(self) -> Deadline:
        seconds = self.options["seconds"]
        return Deadline(math.inf if seconds is None else self.began + seconds)

    @cached_property
    def survey(self) -> Survey:
        return Survey.of(self.table)

    @cached_property
    def pins(self) -> tuple[np.ndarray, np.ndarray]:
        """Where constants are held: inputs `(pins, in)` and values."""
        each = [constraint.pins(self.survey) for constraint in self.constraints]
        none = np.empty((0, len(self.names))), np.empty(0)
        return np.vstack([x for x, _ in (none, *each)]), np.concatenate([y for _, y in (none, *each)])

    @cached_property
    def finisher(self) -> Finisher:
        features = Features.of(self.table.X, self.table.y, logarithms=False, degree=1)
        demands = Demands(None, self.knows.prefer)
        return Finisher(features, self.names, self.table, None, self.outside, self.stop, demands)

    def _agrees(self, equation: Equation) -> bool:
        own = self.knows.holds is None or bool(self.knows.holds(equation))
        return own and all(constraint.holds(equation, self.survey) for constraint in self.constraints)

    def _agreeing(self, equation: Equation) -> tuple[Equation, tuple[Constant, ...]] | None:
        """The equation with constants fitted so that it agrees with all that is known, if there are any."""
        fit = imposed(equation, self.table, self.pins, self.survey.spread, self.stop)
        return fit if fit is not None and self._agrees(fit[0]) else None

    def _measured(self, equation: Equation, method: str, tidy: bool = False) -> Candidate | None:
        """The candidate of an equation in the columns, its constants fitted to the data and what is known."""
        tidied = self.finisher.tidied(equation, 0, True) if tidy else None
        equation = equation if tidied is None else tidied[0]
        known = tidied if tidied is not None and self._agrees(equation) else self._agreeing(equation)
        if known is None:
            return None
        candidate = self.finisher.measure([known[0]], [known[1]], None, method)
        short = self.finisher.in_brief(candidate) if candidate.exact else candidate
        candidate = short if self._agrees(short.equation) else candidate
        return candidate if math.isfinite(candidate.training_error) else None

    def _candidates(self) -> list[Candidate | None]:
        if self.knows.template:
            return self._by_template()
        plain = Substitution.of(self.knows, self.names)
        if not self.knows.start:
            return self._among(plain, 1.0)
        guess = fitted_guess(self.knows.start, self.table, self.names, stop=self.stop)
        candidates = [self._measured(guess, "guess", tidy=True)]
        columns = offered(guess, self.table.X)
        if columns:
            candidates += self._among(plain.beside(columns), SHARES.guess, tidy=True)
        exact = any(c is not None and c.exact for c in candidates)
        stopped = bool(self.founds) and self.founds[-1].ended == "interrupted"
        return candidates if columns and (exact or stopped) else candidates + self._among(plain, 1.0)

    def _among(self, seen: Substitution, share: float, tidy: bool = False) -> list[Candidate | None]:
        """What is found in the columns that the search sees, as candidates in those that there are."""
        table = seen.mirrored(self._with_points())
        admits = lambda equation: self._agreeing(seen.back(equation, self.survey)) is not None  # noqa: E731
        asked = admits if self.constraints or self.knows.holds else None
        found = self._one(
            Table(seen.inputs(table.X), table.y, table.weight), seen.names, self._budget(share), asked
        )
        candidates = []
        for c in found.front:
            own = self._measured(seen.back(c.equation, self.survey), c.method, tidy)
            kept = {"validation_error": c.validation_error, "held_out_rows": c.held_out_rows}
            candidates.append(None if own is None else replace(own, **kept))
        return candidates

    def _with_points(self) -> Table:
        """The rows, and those of the points that the law passes through."""
        points = [c.pins(self.survey) for c in self.constraints if isinstance(c, Passes)]
        if not points:
            return self.table
        X, y = np.vstack([x for x, _ in points]), np.concatenate([v for _, v in points])
        weight = np.ones(self.table.rows) if self.table.weight is None else self.table.weight
        each = np.full(len(y), SHARES.points * weight.sum() / len(y))
        return replace(self.table, weight=weight).join(Table(X, y[:, None], each))

    def _by_template(self) -> list[Candidate | None]:
        written = read_formula("template", self.knows.template, self.names, functions=True)
        searches = TEMPLATE.rounds * len(written.functions)
        alone = for_parts(self.options["settings"], max(len(p.columns) for p in written.functions))

        def part(table: Table, columns: Sequence[str]) -> list[Equation]:
            found = self._one(table, columns, self._budget(SHARES.template / searches), None, alone)
            ranked = sorted(found.front, key=lambda c: (c is not found.best, c.description_length))
            return [c.equation for c in ranked]

        template = Template(written, self.table, self.names, part, stop=self.stop)
        unique = {str(equation): equation for equation in template.solved()}
        candidates = [self._measured(equation, "template", tidy=True) for equation in unique.values()]
        errors = [c.training_error for c in candidates if c is not None]
        if errors and min(errors) > SHARES.nothing:
            raise InvalidArgument(
                f"the data contradict the `template` {self.knows.template!r}: no parts were found with which "
                "it explains more than the mean does"
            )
        return candidates

    def _budget(self, share: float) -> dict[str, Any]:
        """A part of the budget; the whole share is what is left of it."""
        seconds, restarts = self.options["seconds"], self.options["restarts"]
        left = None if seconds is None else seconds - (time.time() - self.began)
        whole = left if share == 1.0 else seconds
        return {
            "seconds": None if seconds is None or whole is None else max(share * whole, 0.1),
            "restarts": None if restarts is None else max(1, round(share * restarts)),
        }

    def _one(
        self,
        table: Table,
        columns: Sequence[str],
        budget: Mapping[str, Any],
        admits: Callable[[Equation], bool] | None,
        settings: Any = None,
    ) -> Any:
        """One search of several."""
        before = sum(f.rounds for f in self.founds), sum(f.restarts for f in self.founds)
        progress, journal = self.options["progress"], self.options["journal"]
        own = {
            "variables": columns, "sample_weight": table.weight, "extrapolation": None,
            "select": "description", "knows": Demands(admits, self.knows.prefer),
            "settings": settings or self.options["settings"],
            "progress": None if progress is None else counted_on(progress, *before, self.began),
            "journal": None if journal is None else Shifted(journal, len(self.founds) * MOST_ROUNDS),
        }  # fmt: skip
        found = self.search(table.X, table.y, **{**self.options, **budget, **own})
        self.founds.append(found)
        return found
