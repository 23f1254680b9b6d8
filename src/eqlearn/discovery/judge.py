"""The judge: whether an equation is the truth, by identity and not by how well it fits."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias, get_args

import numpy as np
import sympy as sp
from sympy.functions.elementary.hyperbolic import HyperbolicFunction, InverseHyperbolicFunction
from sympy.functions.elementary.trigonometric import InverseTrigonometricFunction, TrigonometricFunction

from eqlearn.discovery.formula import Formula
from eqlearn.discovery.ground import Box, Survey
from eqlearn.discovery.identity import Clock, Match, deviation, match
from eqlearn.errors import InvalidArgument, WrongType

Tier: TypeAlias = Literal["wrong", "paper", "symbolic", "exact"]

EXACT = 1e-9
CLEAN_ALLOWANCE, STANDARD_ERRORS, PAPER_ALLOWANCE = 1e-3, 3.0, 0.05
SMALL_TERM = 0.02
# Larger formulas are neither compiled nor expanded, which keeps the time bounded.
MOST_NODES, MOST_TERMS = 1000, 500

ELEMENTARY = (
    sp.Symbol, sp.Number, sp.NumberSymbol, sp.Add, sp.Mul, sp.Pow, sp.exp, sp.log,
    TrigonometricFunction, InverseTrigonometricFunction, HyperbolicFunction, InverseHyperbolicFunction,
)  # fmt: skip

# What SymPy, NumPy, SciPy and mpmath raise on a formula that can't be computed.
FAILURES = (ArithmeticError, TypeError, ValueError, RecursionError, MemoryError)


class HasExpression(Protocol):
    """An equation, as far as the judge looks at it."""

    @property
    def expr(self) -> sp.Expr: ...
    @property
    def variables(self) -> tuple[str, ...]: ...


@dataclass(frozen=True)
class Verdict:
    """What the judge found, and why.

    `deviation` is the largest from the truth, relative to the truth's spread, with the constants that come
    closest; `moved` is the largest relative change of a constant which that takes.
    """

    tier: Tier
    reason: str
    deviation: float = math.inf
    moved: float = 0.0

    def at_least(self, tier: Tier) -> bool:
        """Whether the verdict is this tier or a stricter one."""
        order = get_args(Tier)
        if tier not in order:
            raise InvalidArgument(f"`tier` must be one of {', '.join(order)}; got {tier!r}")
        return bool(order.index(self.tier) >= order.index(tier))


def judge(
    candidate: HasExpression,
    truth: HasExpression,
    box: Mapping[str, tuple[float, float]],
    *,
    standard_errors: Sequence[float | None] | None = None,
    seconds: float = 5.0,
) -> Verdict:
    """Decides whether `candidate` is `truth`; `box` holds the range of every variable in the training data.

    The candidate must become identical to the truth, on fresh points of a box four times as wide, when its
    own float constants move: not at all (tier `exact`), by at most 0.1 % or three standard errors each
    (`symbolic`), or by 5 % after terms below 2 % of the output's range are dropped (`paper`).
    `standard_errors` belong to the float constants in their order in the expression; a constant for which
    it is None or not finite may move by 0.1 %. What can't be computed, or not in time, is `wrong`.
    """
    for name, equation in (("candidate", candidate), ("truth", truth)):
        if not isinstance(getattr(equation, "expr", None), sp.Expr):
            raise WrongType(f"`{name}` must be an Equation, got {type(equation).__name__}")
    box = _checked(box, truth.expr)
    floats = sum(isinstance(node, sp.Float) for node in sp.preorder_traversal(candidate.expr))
    if standard_errors is not None and len(standard_errors) != floats:
        raise InvalidArgument(
            f"`standard_errors` has {len(standard_errors)} entries for {floats} float constants in "
            f"`candidate`; give one for each, None where it is not known"
        )
    survey = Survey.of(Formula.of(truth.expr, list(box)), box)
    try:
        flaw = _refusal(candidate.expr, truth.expr, box)
        if flaw:
            return Verdict("wrong", flaw)
        most = 2 * max(_nodes(truth.expr), _nodes(_expanded(truth.expr))) + 8
        return _decide(candidate.expr, standard_errors, survey, list(box), most, Clock.of(seconds))
    except TimeoutError:
        return Verdict("wrong", f"undecided within `seconds`={seconds}")
    except FAILURES as failure:
        return Verdict("wrong", f"can't be computed: {type(failure).__name__}: {failure}")


def _checked(box: Mapping[str, tuple[float, float]], truth: sp.Expr) -> Box:
    ranges = {name: (float(low), float(high)) for name, (low, high) in box.items()}
    for name, (low, high) in ranges.items():
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            raise InvalidArgument(f"`box`[{name!r}] must be two finite numbers, low < high; got {(low, high)}")
    missing = sorted({s.name for s in truth.free_symbols} - ranges.keys())
    if missing:
        raise InvalidArgument(f"`box` has no range for {', '.join(missing)}, of which the truth is made")
    return ranges


def _refusal(candidate: sp.Expr, truth: sp.Expr, box: Box) -> str:
    """Why a candidate is not looked at any further; empty if it is."""
    words = (*ELEMENTARY, *{node.func for node in sp.preorder_traversal(truth)})
    for count, node in enumerate(sp.preorder_traversal(candidate)):
        if count >= MOST_NODES:
            return f"more than {MOST_NODES} nodes"
        if not isinstance(node, words):
            return f"uses {node.func.__name__}, which the truth does not"
        if isinstance(node, sp.Number) and not node.is_finite:
            return f"holds the constant {node}"
        if isinstance(node, sp.Symbol) and node.name not in box:
            return f"uses the variable {node.name}, which is not in `box`"
    return ""


def _decide(
    expr: sp.Expr,
    standard_errors: Sequence[float | None] | None,
    survey: Survey,
    variables: Sequence[str],
    most_nodes: int,
    clock: Clock,
) -> Verdict:
    strict = Match(_excess(expr, most_nodes))
    if not strict.flaw:
        formula = Formula.of(expr, variables)
        delivered = deviation(formula, formula.constants, survey.wide, EXACT, clock)
        strict = match(formula, _allowance(formula.constants, standard_errors), survey, clock)
        if not strict.flaw and delivered < EXACT:
            return Verdict("exact", "identical as delivered", delivered)
        if not strict.flaw:
            reason = f"identical once its constants move by at most {strict.moved:.2g} of their size"
            return Verdict("symbolic", reason, strict.deviation, strict.moved)
    for rest in dict.fromkeys([_without_small_terms(expr, survey, variables), expr]):
        if _excess(rest, most_nodes):
            continue
        formula = Formula.of(rest, variables)
        rough = match(formula, PAPER_ALLOWANCE * np.abs(formula.constants), survey, clock)
        if not rough.flaw:
            reason = (
                f"{strict.flaw}; identical once its small terms are dropped and its constants move by "
                f"at most {rough.moved:.2g} of their size"
            )
            return Verdict("paper", reason, rough.deviation, rough.moved)
    return Verdict("wrong", strict.flaw, strict.deviation, strict.moved)


def _allowance(constants: np.ndarray, standard_errors: Sequence[float | None] | None) -> np.ndarray:
    clean = CLEAN_ALLOWANCE * np.abs(constants)
    if standard_errors is None:
        return clean
    noisy = STANDARD_ERRORS * np.array([math.nan if e is None else e for e in standard_errors], float)
    return np.where(np.isfinite(noisy), noisy, clean)


def _without_small_terms(expr: sp.Expr, survey: Survey, variables: Sequence[str]) -> sp.Expr:
    """The expanded form without the terms that are below 2 % of the output's range on the training box."""
    small = SMALL_TERM * np.ptp(survey.near.values)
    terms = sp.Add.make_args(_expanded(expr))
    sizes = [np.abs(Formula.of(t, variables)(survey.near.points)).max() for t in terms]
    return sp.Add(*(t for t, size in zip(terms, sizes, strict=True) if not size <= small))


def _excess(expr: sp.Expr, most_nodes: int) -> str:
    nodes = _nodes(expr)
    if nodes > most_nodes:
        nodes = min(nodes, _nodes(_expanded(expr)))
    return f"{nodes} nodes, where twice the truth's and 8 are {most_nodes}" if nodes > most_nodes else ""


def _nodes(expr: sp.Expr) -> int:
    return sum(1 for _ in sp.preorder_traversal(expr))


def _expanded(expr: sp.Expr) -> sp.Expr:
    """The expression multiplied out, or as it is where that would make too many terms."""
    worst = max(_terms(node) for node in sp.preorder_traversal(expr))
    return sp.expand(expr) if worst <= MOST_TERMS else expr


def _terms(expr: sp.Expr) -> int:
    """How many terms an expression has when multiplied out; what stands inside functions counts as one."""
    if expr.is_Add:
        return sum(_terms(a) for a in expr.args)
    if expr.is_Mul:
        return math.prod(_terms(a) for a in expr.args)
    if expr.is_Pow and expr.exp.is_Integer and expr.exp > 0:
        base = _terms(expr.base)
        return math.comb(base + int(expr.exp) - 1, base - 1) if base > 1 else 1
    return 1
