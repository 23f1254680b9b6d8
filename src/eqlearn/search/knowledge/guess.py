"""A first guess: its constants fitted, itself and what it is made of offered to the search as columns."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice, product
from typing import Any

import numpy as np
import sympy as sp

from eqlearn.errors import InvalidArgument
from eqlearn.numerics.budget import never
from eqlearn.search.knowledge.unknowns import read_formula
from eqlearn.symbolic.equation import Equation
from eqlearn.symbolic.expressions import fitted
from eqlearn.symbolic.parametric import Formula
from eqlearn.validation.table import Table


@dataclass(frozen=True)
class GuessSettings:
    """Where unknown constants start, none of them a number at which something would cancel; at most
    `max_starts` of all combinations, each fitted in `few_steps`, the best `kept` in `steps`; and how many
    columns a guess offers."""

    starts: tuple[float, ...] = (1.1, 0.11, 11.0, -1.1)
    max_starts: int = 64
    few_steps: int = 12
    kept: int = 4
    steps: int = 200
    max_columns: int = 3


GUESS = GuessSettings()


def fitted_guess(
    text: str, table: Table, columns: Sequence[str], stop: Callable[[], bool] = never
) -> Equation:
    """The guess with its unknown constants, and all numbers with a point, fitted to the data."""
    written = read_formula("start", text, columns, functions=False)
    symbols = [part.symbol for part in written.constants]
    tried: list[tuple[float, Formula]] = []
    for values in islice(product(GUESS.starts, repeat=len(symbols)), GUESS.max_starts):
        places = {symbol: fitted(value) for symbol, value in zip(symbols, values, strict=True)}
        formula = Formula.of(Equation(written.expr.xreplace(places), columns))
        tried.append(_fitted(formula, table, GUESS.few_steps, stop))
    best = sorted(tried, key=lambda pair: pair[0])[: GUESS.kept]
    error, formula = min((_fitted(f, table, GUESS.steps, stop) for _, f in best), key=lambda pair: pair[0])
    if not math.isfinite(error):
        raise InvalidArgument(f"the `start` {text!r} is not finite on the data, whatever its constants")
    return Equation(formula.expr, columns)


def _fitted(formula: Formula, table: Table, steps: int, stop: Callable[[], bool]) -> tuple[float, Formula]:
    fit = formula.fit(table.X, table.y[:, 0], table.weight, steps=steps, stop=stop)
    return fit.error, Formula.of(formula.with_constants(list(fit.values)))


def offered(guess: Equation, X: np.ndarray) -> list[tuple[str, Any]]:
    """The guess and its largest parts, without factors in front, as columns to search in, by name."""
    kept: dict[str, Any] = {}
    nodes = [n for n in sp.preorder_traversal(guess.expr) if n.free_symbols and not n.is_Symbol]
    for node in sorted(nodes, key=lambda n: -n.count_ops()):
        bare = node.as_independent(*node.free_symbols, as_Add=False)[1]
        values = Equation(bare, guess.variables)(X)
        if (
            not bare.is_Symbol
            and np.isfinite(values).all()
            and np.ptp(values) > 0
            and len(kept) < GUESS.max_columns
        ):
            kept[str(bare)] = bare
    return list(kept.items())
