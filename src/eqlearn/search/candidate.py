"""Candidates and the choice among them: description length, prediction of rows left out (PRESS, Allen 1974),
the Pareto front, selection rules."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import sympy as sp
import torch

from eqlearn.errors import InvalidArgument, WrongType, counted
from eqlearn.nn.eql import EQL
from eqlearn.numerics.criteria import (
    DECISIVE,
    EXACT_ERROR,
    FREE,
    FUNCTION_CHOICES,
    MAX_LEVERAGE_FACTOR,
    SAME_ERROR,
    constant_cost,
)
from eqlearn.search.knowledge.demands import NO_DEMANDS, extra_nodes
from eqlearn.symbolic.equation import Equation
from eqlearn.symbolic.parametric import Constant, Formula
from eqlearn.symbolic.snap import number_cost
from eqlearn.symbolic.varying import Varying
from eqlearn.validation.options import checked_choice, enter


@dataclass(frozen=True)
class Candidate:
    """One equation (or one per output) that a search found, with everything needed to choose it.

    Errors are root-mean-square errors divided by the target's spread; NaN where there were no such data.
    `description_length` is in nats, for the training data and the equation together; `prediction_length` for
    each row of them given all the others, and which equation it is (NaN where it was not measured).
    `reduced_chi_square` is χ² per degree of freedom, where errors of measurement were given.
    `network` is what the formula was read from, before its constants were collapsed, snapped and fitted to
    all rows; it sees scaled inputs, and has |g| where the formula says g because g has one sign on the data.
    `varying` holds the constants that have a value in each group; the last variables of the equation are
    their names.
    """

    equations: tuple[Equation, ...]
    training_error: float
    description_length: float
    exact: bool
    validation_error: float = math.nan
    extrapolation_error: float = math.nan
    constants: tuple[tuple[Constant, ...], ...] = ()
    network: EQL | None = field(default=None, compare=False, repr=False)
    held_out_rows: int = 0
    method: str = "mean"
    prediction_length: float = math.nan
    reduced_chi_square: float = math.nan
    varying: Varying | None = field(default=None, compare=False, repr=False)

    @property
    def equation(self) -> Equation:
        """The equation of the first output."""
        return self.equations[0]

    @property
    def complexity(self) -> int:
        return sum(equation.complexity for equation in self.equations)

    def inputs(self, X: Any, groups: Any = None) -> Any:
        """What the equations are evaluated at: `X`, and the constants of each row's group where some vary."""
        return X if self.varying is None else self.varying.inputs(X, self.equation, groups)

    def __str__(self) -> str:
        return "; ".join(str(equation) for equation in self.equations)


def formula_costs(
    equations: Sequence[Equation],
    constants: Sequence[Sequence[Constant]],
    rows: int,
    prices: Mapping[str, float] = NO_DEMANDS.prices,
) -> tuple[float, float, int]:
    """What formulas cost, for `description_length`: nats for their numbers, exact or fitted to `rows` rows,
    their nodes (operators at their `prices`), and the symbols to write them in."""
    every = [node for e in equations for node in sp.preorder_traversal(e.expr)]
    numbers = sum(constant_cost(c.value, c.standard_error, rows) for each in constants for c in each)
    # Signs and 1 are free.
    exact = (node for node in every if node.is_Rational and node not in (0, 1, -1))
    numbers += sum(number_cost(node) for node in exact) * math.log(2)
    alphabet = {node.func for node in every if node.args}
    nodes = sum(e.complexity + extra_nodes(e.expr, prices) for e in equations)
    return numbers, nodes, len(alphabet) + len(equations[0].variables) + 1


def leave_one_out(
    equation: Equation, X: np.ndarray, y: np.ndarray, weight: np.ndarray | None = None
) -> np.ndarray:
    """The residual of each row when the constants are fitted to all the others, `(rows,)`.

    No fit is repeated: to first order, leaving a row out divides its residual by one minus its leverage,
    which is exact for a formula that is linear in its constants. Residuals are multiplied by the root of the
    row's weight.
    """
    value, slopes = Formula.of(equation).linearise(
        torch.tensor(np.ascontiguousarray(X.T)), np.array(equation.constants, dtype=np.float64)
    )
    root = np.ones(len(y)) if weight is None else np.sqrt(weight / weight.mean())
    residual: np.ndarray
    with np.errstate(all="ignore"):
        residual, slopes = (value - y) * root, slopes * root[:, None]
        scale = np.sqrt((slopes**2).sum(axis=0))
    if not (np.isfinite(value).all() and np.isfinite(scale).all()):
        return np.full(len(y), math.inf)
    return left_out(residual, slopes)


def left_out(residual: np.ndarray, slopes: np.ndarray) -> np.ndarray:
    """Residuals `(rows,)` by what fits with these `slopes` `(rows, constants)` to all other rows leave, to
    first order."""
    if not slopes.shape[1]:
        return residual
    scale = np.sqrt((slopes**2).sum(axis=0))
    vectors, singular, _ = np.linalg.svd(slopes / np.where(scale > 0, scale, 1.0), full_matrices=False)
    leverage = (vectors[:, singular > FREE * singular[0]] ** 2).sum(axis=1)
    predicted: np.ndarray = residual / np.maximum(1 - leverage, 1 / MAX_LEVERAGE_FACTOR)
    return predicted


def structure_cost(expr: sp.Expr, columns: int) -> float:
    """Nats to pick the formula, constants apart, among those of `columns` columns and all functions.

    Each place holds a column or a function; the order of terms and factors is free, so a sum of k of p
    columns costs little more than log(p over k).
    """
    cost = 0.0
    for node in sp.preorder_traversal(expr):
        if node.is_Symbol:
            cost += math.log(2 * columns)
        elif isinstance(node, (sp.Add, sp.Mul)):
            cost -= math.lgamma(1 + sum(not arg.is_number for arg in node.args))
        elif node.is_Rational:
            cost += number_cost(node) * math.log(2) if node not in (0, 1, -1) else 0.0
        elif node.args:
            cost += math.log(2 * FUNCTION_CHOICES)
    return max(cost, 0.0)


def pareto_front(candidates: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """The candidates that no simpler one matches in training error, simplest first."""
    front: list[Candidate] = []
    for candidate in sorted(candidates, key=_size_and_error):
        if not front or candidate.training_error < front[-1].training_error * (1 - SAME_ERROR) - 1e-15:
            front.append(candidate)
    return tuple(front)


def united(front: Sequence[Candidate], others: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """A front with others that read otherwise, simplest first."""
    known = set(map(str, front))
    more = [c for c in others if str(c) not in known]
    return tuple(sorted([*front, *more], key=_size_and_error))


def _size_and_error(candidate: Candidate) -> tuple[int, float]:
    return candidate.complexity, candidate.training_error


Rule: TypeAlias = Callable[[Sequence[Candidate]], Candidate]


def shortest_description(front: Sequence[Candidate]) -> Candidate:
    """The shortest description of data and equation together."""
    return min(front, key=lambda c: (c.description_length, c.complexity))


def best_description(front: Sequence[Candidate]) -> Candidate:
    """The shortest description, unless another equation predicts rows left out decisively better.

    Where the data hold a law, the shortest description is the law, and nothing predicts better but by chance.
    Where they hold none, only an approximation, more terms go on helping long after they stop paying for the
    digits and symbols in which they are written; then the best prediction is chosen.
    """
    shortest = shortest_description(front)
    if shortest.exact or math.isnan(shortest.prediction_length):
        return shortest
    rival = min(best_predictions(front), key=lambda c: (c.prediction_length, c.complexity))
    return rival if rival.prediction_length < shortest.prediction_length - DECISIVE else shortest


def best_predictions(front: Sequence[Candidate]) -> list[Candidate]:
    """Those that predict rows left out not decisively worse than the best, where that was measured."""
    measured = [c for c in front if not math.isnan(c.prediction_length)]
    least = min((c.prediction_length for c in measured), default=math.inf)
    return [c for c in measured if c.prediction_length <= least + DECISIVE]


def most_accurate(front: Sequence[Candidate]) -> Candidate:
    """The smallest validation error, or training error where nothing was held out."""
    return min(front, key=lambda c: (_held_out(c), c.complexity))


def simplest_within_one_error(front: Sequence[Candidate]) -> Candidate:
    """The simplest whose held-out error is within one standard error of the most accurate one's."""
    best = most_accurate(front)
    # A root-mean-square over n residuals is known to a fraction 1/√(2n).
    margin = 1 + 1 / math.sqrt(2 * best.held_out_rows) if best.held_out_rows else 1.05
    return min(
        (c for c in front if _held_out(c) <= margin * _held_out(best) + EXACT_ERROR),
        key=lambda c: (c.complexity, _held_out(c)),
    )


def best_extrapolation(front: Sequence[Candidate]) -> Candidate:
    """The smallest error outside the training range, where such data were given."""
    measured = [c for c in front if not math.isnan(c.extrapolation_error)]
    if not measured:
        return best_description(front)
    return min(measured, key=lambda c: (c.extrapolation_error, c.complexity))


def _held_out(candidate: Candidate) -> float:
    error = candidate.validation_error
    return candidate.training_error if math.isnan(error) else error


RULES: dict[str, Rule] = {
    "description": best_description,
    "accuracy": most_accurate,
    "simplest": simplest_within_one_error,
    "extrapolation": best_extrapolation,
}


def register_rule(name: str, rule: Rule) -> Rule:
    """Makes a selection rule known by its name, for `select=name`: a function from the front to one of it."""
    if not callable(rule):
        raise WrongType(f"`rule` must be a function of the front, got {rule!r}")
    return enter("a selection rule", name, rule, RULES)


def choose(rule: Rule, front: Sequence[Candidate]) -> Candidate:
    """What a rule picks, which must be of the front: a user's function may give anything."""
    best = rule(front)
    if not any(c is best for c in front):
        raise InvalidArgument(f"`select` must give one of the candidates it is called with, got {best!r}")
    return best


def find_rule(rule: str | Rule, *, outside: bool = True) -> Rule:
    """The selection rule of that name, or the rule itself; `outside` says whether there are data outside the
    training range to choose by."""
    if rule == "extrapolation" and not outside:
        raise InvalidArgument("to select by extrapolation, give `extrapolation`: data outside the range")
    if callable(rule):
        return rule
    return RULES[checked_choice("selection rule", rule, RULES)]


def named_rows(fronts: Sequence[Sequence[Candidate]], index: int | Sequence[int]) -> list[Candidate]:
    """The candidates of several fronts, written one below the other, by their rows: one of each front."""
    places = list(index) if isinstance(index, Iterable) else [index]
    if len(places) != len(fronts) or not all(isinstance(p, int | np.integer) for p in places):
        raise InvalidArgument(
            f"`index` must hold {counted(len(fronts), 'row')} of `equations_`, got {index!r}"
        )
    starts = np.cumsum([0, *(len(front) for front in fronts)])
    chosen = []
    for front, start, place in zip(fronts, starts, places, strict=False):
        end = start + len(front)
        if not start <= place < end:
            raise InvalidArgument(f"`index` {place} is not in rows {start} to {end - 1} of `equations_`")
        chosen.append(front[place - start])
    return chosen
