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

from eqlearn.core.expressions import complexity, constant_holders, parts, real_symbol
from eqlearn.discovery.formula import Formula
from eqlearn.discovery.ground import Box, Survey
from eqlearn.discovery.identity import Clock, Match, deviation, match
from eqlearn.errors import InvalidArgument, WrongType

Tier: TypeAlias = Literal["wrong", "paper", "symbolic", "exact"]

EXACT = 1e-9
CLEAN_ALLOWANCE, STANDARD_ERRORS, PAPER_ALLOWANCE = 1e-3, 3.0, 0.05
SMALL_TERM = 0.02
# Larger formulas are neither compiled nor expanded, which keeps the time bounded.
MOST_NODES, MOST_TERMS = 1000, 2000

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
    known = {s.name for s in truth.expr.free_symbols}
    box = _checked(box, known)
    expr, true = _real(candidate.expr), _real(truth.expr)
    constants = len(constant_holders(expr))
    if standard_errors is not None and len(standard_errors) != constants:
        raise InvalidArgument(
            f"`standard_errors` has {len(standard_errors)} entries for the {constants} float constants of "
            "`candidate`; give one for each, None where it is not known"
        )
    survey = Survey.of(Formula(true, tuple(box)), box)
    try:
        flaw = _refusal(expr, true, box)
        if flaw:
            return Verdict("wrong", flaw)
        most_nodes = 2 * max(complexity(true), complexity(_expanded(true))) + 8
        return _decide(expr, standard_errors, survey, most_nodes, Clock.of(seconds))
    except TimeoutError:
        return Verdict("wrong", f"undecided within `seconds`={seconds}")
    except FAILURES as failure:
        return Verdict("wrong", f"can't be computed: {type(failure).__name__}: {failure}")


def _checked(box: Mapping[str, tuple[float, float]], known: set[str]) -> Box:
    ranges = {name: (float(low), float(high)) for name, (low, high) in box.items()}
    for name, (low, high) in ranges.items():
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            raise InvalidArgument(f"`box`[{name!r}] must be two finite numbers, low < high; got {(low, high)}")
    missing = sorted(known - ranges.keys())
    if missing:
        raise InvalidArgument(f"`box` has no range for {', '.join(missing)}, of which `truth` is made")
    return ranges


def _real(expr: sp.Expr) -> sp.Expr:
    """The expression in real symbols, the variables being known by name."""
    return expr.xreplace({s: real_symbol(s.name) for s in expr.free_symbols})


def _refusal(expr: sp.Expr, truth: sp.Expr, box: Box) -> str:
    """Why a candidate is not looked at any further; empty if it is."""
    words = (*ELEMENTARY, *{node.func for node in parts(truth)})
    for node in parts(expr):
        if not isinstance(node, words):
            return f"uses {node.func.__name__}, which the truth does not"
        if isinstance(node, sp.Number) and not (node.is_finite and math.isfinite(float(node))):
            return f"holds the constant {node}"
        if isinstance(node, sp.Symbol) and node.name not in box:
            return f"uses the variable {node.name}, which is not in `box`"
    size = complexity(expr)
    return f"{size} nodes, more than {MOST_NODES}" if size > MOST_NODES else ""


def _decide(
    expr: sp.Expr,
    standard_errors: Sequence[float | None] | None,
    survey: Survey,
    most_nodes: int,
    clock: Clock,
) -> Verdict:
    strict = Match(_excess(expr, most_nodes))
    if not strict.flaw:
        formula = Formula(expr, survey.variables)
        delivered = deviation(formula, formula.constants, survey.wide, EXACT, clock)
        strict = match(formula, _allowance(formula.constants, standard_errors), survey, clock)
        if not strict.flaw and delivered < EXACT:
            return Verdict("exact", "identical as delivered", delivered)
        if not strict.flaw:
            reason = f"identical once its constants move by at most {strict.moved:.2g} of their size"
            return Verdict("symbolic", reason, strict.deviation, strict.moved)
    for rest in dict.fromkeys([_without_small_terms(expr, survey), expr]):
        if _excess(rest, most_nodes):
            continue
        formula = Formula(rest, survey.variables)
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


def _without_small_terms(expr: sp.Expr, survey: Survey) -> sp.Expr:
    """The expanded form without the terms that are below 2 % of the output's range on the training box."""
    small = SMALL_TERM * np.ptp(survey.near.values)
    terms = sp.Add.make_args(_expanded(expr))
    sizes = [np.abs(Formula(t, survey.variables)(survey.near.points)).max() for t in terms]
    return sp.Add(*(t for t, size in zip(terms, sizes, strict=True) if not size <= small))


def _excess(expr: sp.Expr, most_nodes: int) -> str:
    size = complexity(expr)
    if size > most_nodes:
        size = min(size, complexity(_expanded(expr)))
    return f"{size} nodes, where twice the truth's and 8 are {most_nodes}" if size > most_nodes else ""


def _expanded(expr: sp.Expr) -> sp.Expr:
    """The expression multiplied out, or as it is where that would make too many terms."""
    terms: dict[sp.Expr, int] = {}
    for node in parts(expr):
        inner = [terms[a] for a in node.args]
        if node.is_Add:
            terms[node] = sum(inner)
        elif node.is_Mul:
            terms[node] = math.prod(inner)
        elif node.is_Pow and node.exp.is_Integer and node.exp > 0 and inner[0] > 1:
            power = min(int(node.exp), MOST_TERMS)
            terms[node] = math.comb(inner[0] + power - 1, power)
        else:
            terms[node] = 1
    return sp.expand(expr) if sum(terms.values()) <= MOST_TERMS else expr
