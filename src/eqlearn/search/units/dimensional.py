"""Searches with units: a law of physical quantities is one of dimensionless groups (Buckingham 1914).

If no constant has a unit, y = P·F(π₁, π₂, ...): P is a product of powers of columns with the unit of y, and
every π is one without a unit. There are fewer of them than columns, and whatever F is found, the law is
dimensionally right. Which columns are repeated in all groups is free; those that give the smallest powers are
tried first.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np
import sympy as sp

from eqlearn.errors import EqlearnError, InvalidArgument, listed
from eqlearn.nn.primitives import parse_kinds
from eqlearn.numerics.budget import Deadline
from eqlearn.search.candidate import Candidate, choose, find_rule, pareto_front
from eqlearn.search.features import Features
from eqlearn.search.finish import Finisher
from eqlearn.search.measured import first_weights, weighed
from eqlearn.search.units.buckingham import Groups, buckingham
from eqlearn.search.units.right_terms import right_laws
from eqlearn.search.units.unit_settings import Dimensional
from eqlearn.symbolic.dimensions import formula_dimension
from eqlearn.symbolic.equation import Equation
from eqlearn.symbolic.expressions import real_symbol
from eqlearn.symbolic.parametric import Formula
from eqlearn.validation.table import Table, column_names, read_outside, read_table, some_rows
from eqlearn.validation.uncertainty import read_uncertainty
from eqlearn.validation.units import Dimension, read_units


def dimensionally(search: Callable[..., Any], given: Mapping[str, Any]) -> Any:
    """What `search` finds with the arguments `given`, in which `units` holds those of columns and target."""
    options = {**given, "units": None, "free_constants": False}
    units, free = given["units"], given["free_constants"]
    X, y = options.pop("X"), options.pop("y")
    table, names = read_table(X, y, options["sample_weight"], options["variables"])
    if table.y.shape[1] != 1:
        raise InvalidArgument("`units` are for one target at a time; search each by itself")
    target = _target_of(units, names, column_names(y))
    dimensions = read_units(units, names, [target])
    options["variables"] = names
    errors = read_uncertainty(options["y_error"], options["x_error"], table, names)
    table = replace(table, errors=errors)
    task = _Task(search, table, names, options, {n: dimensions[n] for n in names}, dimensions[target], free)
    return task.solved()


def constant_units(found: Any, units: Mapping[str, str], free: bool) -> list[str]:
    """The unit of each fitted constant of the chosen equation in the SI, "1" without one."""
    target = _target_of(units, found.variables, ())
    known = read_units(units, found.variables, [target])
    _, numbers = formula_dimension(found.best.equation, known, free_constants=free, target=known[target])
    return [str(numbers.get(abs(c.value), Dimension())) for c in found.best.constants[0]]


def _target_of(units: Any, columns: Sequence[str], own: Sequence[str]) -> str:
    """The name by which units tell the target's: its own, or else the only one that is no column's."""
    others = [str(name) for name in units if name not in columns] if isinstance(units, Mapping) else []
    if own and own[0] in others:
        return own[0]
    return others[0] if len(others) == 1 else (own[0] if own else "y")


@dataclass(frozen=True)
class _Task:
    """A search with units: the data, the options of the search, and the dimensions of columns and target."""

    search: Callable[..., Any]
    table: Table
    names: tuple[str, ...]
    options: dict[str, Any]
    dimensions: dict[str, Dimension]
    target: Dimension
    free: bool

    @property
    def rules(self) -> Dimensional:
        return self.options["settings"].dimensional  # type: ignore[no-any-return]

    def solved(self) -> Any:
        began, seconds = time.time(), self.options["seconds"]
        choices = [] if self.free else list(islice(self._usable(), self.rules.searched))
        founds: list[Any] = []
        candidates = [] if self.free else self._put_together(began)
        for groups in choices:
            found, right = self._among(groups, any(c.exact for c in candidates))
            founds.append(found)
            candidates += right
            if found.ended == "interrupted" or any(c.exact for c in candidates):
                break
        else:
            budget = self._budget(1 - len(choices) * self.rules.share)
            if seconds is not None:
                budget["seconds"] = max(seconds - (time.time() - began), 0.1)
            founds.append(self.search(self.table.X, self.table.y, **{**self.options, **budget}))
            candidates += [c for c in founds[-1].front if self._consistent(c)]
        if not candidates:
            raise InvalidArgument(
                "no formula with these `units` was found: check them, or let constants have units with "
                "`free_constants`"
            )
        # What a network saw were other inputs in each of the searches.
        front = pareto_front([replace(c, network=None) for c in candidates])
        rule = find_rule(self.options["select"], outside=self.options["extrapolation"] is not None)
        return replace(
            founds[-1], best=choose(rule, front), front=front, seconds=time.time() - began,
            restarts=sum(f.restarts for f in founds), rounds=sum(f.rounds for f in founds),
            failures=dict(sum((Counter(f.failures) for f in founds), Counter())), variables=self.names,
            inputs=self.names,
        )  # fmt: skip

    def _usable(self) -> Iterator[Groups]:
        """Choices of groups that are finite on all rows, with different scales."""
        choices = buckingham(list(self.dimensions.values()), self.target, self.rules.max_choices)
        if not choices:
            told = listed([f"{n} in {d}" for n, d in self.dimensions.items()])
            raise InvalidArgument(
                f"no product of powers of the columns ({told}) has the target's unit, {self.target}: a "
                "column is missing, a unit is wrong, or a constant has a unit (`free_constants`)"
            )
        seen = set()
        for groups in choices:
            scale, values = groups.values(self.table.X)
            if np.isfinite(scale).all() and (scale != 0).all() and np.isfinite(values).all():
                if groups.scale not in seen:
                    yield groups
                seen.add(groups.scale)

    @cached_property
    def finisher(self) -> Finisher:
        features = Features.of(self.table.X, self.table.y, logarithms=False, degree=1)
        outside = read_outside(self.options["extrapolation"], self.table.X, 1, self.names)
        return Finisher(features, self.names, self.table, None, outside)

    def _budget(self, share: float) -> dict[str, Any]:
        """A part of the budget."""
        seconds, restarts = self.options["seconds"], self.options["restarts"]
        return {
            "seconds": None if seconds is None else share * seconds,
            "restarts": None if restarts is None else max(1, round(share * restarts)),
        }

    def _put_together(self, began: float) -> list[Candidate]:
        """Laws that are put together by size, with constants fitted."""
        how, seconds, table = self.rules.enumeration, self.options["seconds"], self.table
        stop = Deadline(math.inf if seconds is None else began + how.share * seconds)
        weight = table.weight if table.errors is None else first_weights(table)
        rows = some_rows(table.rows, how.rows)
        laws = right_laws(
            table.X[rows], table.y[rows, 0], None if weight is None else weight[rows], self.names,
            list(self.dimensions.values()), self.target, parse_kinds(self.options["primitives"]), how, stop,
        )  # fmt: skip
        unique = {str(equation): equation for equation in (Equation(law, self.names) for law in laws)}
        found: list[Candidate | None] = []
        for equation in unique.values():
            tidied = self.finisher.tidied(equation, 0, table.errors is None)
            found += [] if tidied is None or stop() else [self._measured(tidied[0])]
        return [c for c in found if c is not None]

    def _among(self, groups: Groups, brief: bool = False) -> tuple[Any, list[Candidate]]:
        """What is found among the groups, as candidates in the columns; the search may be `brief`."""
        scale, values = groups.values(self.table.X)
        back, symbols = groups.symbolic(self.names)
        target = self.table.y[:, 0] / scale
        if not groups.groups:  # then the law is a number times P
            values, symbols, target = scale[:, None], [back], self.table.y[:, 0]
            back, scale = sp.S.One, np.ones(1)
        # Errors of y are errors of y/P times P.
        own = np.ones(self.table.rows) if self.table.weight is None else self.table.weight
        own = own if self.table.errors is None else first_weights(self.table)
        weight = own * scale**2
        inner = {**self.options, **self._budget(self.rules.share), "sample_weight": weight / weight.mean()}
        inner |= {"restarts": 1} if brief else {}
        inner |= {"variables": [f"pi{k + 1}" for k in range(len(symbols))], "extrapolation": None}
        inner |= dict.fromkeys(("y_error", "x_error", "journal", "progress")) | {"select": "description"}
        found = self.search(values, target, **inner)
        places = {real_symbol(f"pi{k + 1}"): group for k, group in enumerate(symbols)}
        candidates = []
        for c in found.front:
            equation = Equation(sp.expand_power_base(back * c.equation.expr.xreplace(places)), self.names)
            candidates.append(self._measured(equation.simplified()))
        return found, [c for c in candidates if c is not None]

    def _measured(self, equation: Equation) -> Candidate | None:
        """The candidate of an equation in the columns, its constants fitted to the target itself."""
        finisher, formula = self.finisher, Formula.of(equation)
        fit = formula.fit(self.table.X, self.table.y[:, 0], self.table.weight)
        if not math.isfinite(fit.error):
            return None
        candidate = finisher.measure(
            [formula.with_constants(list(fit.values))], [fit.constants], None, "units"
        )
        candidate = finisher.in_brief(candidate) if candidate.exact else candidate
        if self.table.errors is not None:
            candidate = weighed(candidate, self.table, finisher.spreads)
        return candidate if self._consistent(candidate) else None

    def _consistent(self, candidate: Candidate) -> bool:
        try:
            formula_dimension(
                candidate.equation, self.dimensions, free_constants=self.free, target=self.target
            )
        except EqlearnError:
            return False
        return True
