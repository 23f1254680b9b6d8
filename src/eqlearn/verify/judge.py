"""The judge: whether an equation is identical to the truth, not merely close to it; and SRBench's judge."""

from __future__ import annotations

import ctypes
import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import sympy as sp
from sympy.functions.elementary.hyperbolic import HyperbolicFunction, InverseHyperbolicFunction
from sympy.functions.elementary.trigonometric import InverseTrigonometricFunction, TrigonometricFunction

from eqlearn.errors import InvalidArgument, WrongType
from eqlearn.numerics.budget import Deadline
from eqlearn.symbolic.expressions import NOT_REAL, complexity, real_symbol
from eqlearn.symbolic.parametric import Formula, has_conditions
from eqlearn.validation.options import checked_range
from eqlearn.verify.equivalence import Box, Comparison, EvaluationSets, compare, deviation

Tier: TypeAlias = Literal["wrong", "paper", "symbolic", "exact"]

EXACT_DEVIATION = 1e-9
CLEAN_ALLOWANCE, STANDARD_ERRORS, PAPER_ALLOWANCE = 1e-3, 3.0, 0.05
SMALL_TERM = 0.02
LEAST_EXPLAINED = 0.5  # of the variance of test rows, before SRBench's judge looks at a formula
# Larger formulas are neither compiled nor expanded, which keeps the time bounded.
MOST_NODES, MOST_TERMS = 1000, 300

# What a candidate may use whatever the truth is: SymPy's families of elementary functions, also of those that
# users add to the table. Others (abs, erf) are allowed only where the truth has them.
ELEMENTARY = (
    *(sp.Symbol, sp.Number, sp.NumberSymbol, sp.Add, sp.Mul, sp.Pow, sp.exp, sp.log),
    *(TrigonometricFunction, InverseTrigonometricFunction, HyperbolicFunction, InverseHyperbolicFunction),
)

# What SymPy, NumPy, SciPy and mpmath raise on a formula that can't be computed.
FAILURES = (ArithmeticError, TypeError, ValueError, RecursionError, MemoryError)


@dataclass(frozen=True)
class Verdict:
    """What the judge found, and why.

    `deviation` is the largest from the truth, relative to its spread, with the constants that come closest;
    `moved` is the largest relative change of a constant that this takes.
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
    candidate: Any,
    truth: Any,
    box: Mapping[str, tuple[float, float]],
    *,
    standard_errors: Sequence[float | None] | None = None,
    paper: tuple[float, float] = (PAPER_ALLOWANCE, SMALL_TERM),
    seconds: float = 5.0,
) -> Verdict:
    """Decides whether `candidate` is `truth`; `box` is the range of every variable in the training data.

    Both are equations, or anything else with an `expr`. The candidate must become identical to the truth, on
    fresh points of a box four times as wide, when its own float constants move: not at all (tier `exact`),
    by at most 0.1 % or three standard errors each (`symbolic`), or by 5 % after terms below 2 % of the
    output's range are dropped (`paper`). `standard_errors` are in the order of `Equation.constants`; one that
    is None or NaN is unknown (the constant may move by 0.1 %), an infinite one belongs to a constant that
    others can compensate (it may move by its own size). `paper` are other figures for the tier of that name:
    how far constants may move, and which terms are small. What can't be computed, or not in time, is `wrong`.
    """
    for name, equation in (("candidate", candidate), ("truth", truth)):
        if not isinstance(getattr(equation, "expr", None), sp.Expr):
            raise WrongType(f"`{name}` must be an Equation, got {type(equation).__name__}")
    expr, true = _real(candidate.expr), _real(truth.expr)
    box = _checked_box(box, true)
    if standard_errors is not None:
        _check_errors(standard_errors, len(Formula(expr, tuple(box)).constants))
    evaluations = EvaluationSets.of(Formula(true, tuple(box)), box)
    try:
        if flaw := _refusal(expr, true, box):
            return Verdict("wrong", flaw)
        most_nodes = 2 * max(_size(true), _size(_multiplied_out(true))) + 8
        return _decide(expr, standard_errors, paper, evaluations, most_nodes, Deadline(time.time() + seconds))
    except TimeoutError:
        return Verdict("wrong", f"undecided within `seconds`={seconds}")
    except FAILURES as failure:
        return Verdict("wrong", f"can't be computed: {type(failure).__name__}: {failure}")


def _checked_box(box: Mapping[str, tuple[float, float]], truth: sp.Expr) -> Box:
    ranges = {name: checked_range(edges, name) for name, edges in box.items()}
    missing = sorted({s.name for s in truth.free_symbols} - ranges.keys())
    if missing or not ranges:
        raise InvalidArgument(f"`box` needs the range of {', '.join(missing) or 'at least one variable'}")
    if truth.has(*NOT_REAL):
        raise InvalidArgument(f"`truth` must be real and finite, got {truth}")
    return ranges


def _check_errors(standard_errors: Sequence[float | None], constants: int) -> None:
    if len(standard_errors) != constants:
        raise InvalidArgument(
            f"`standard_errors` has {len(standard_errors)} entries for the {constants} float constants of "
            "`candidate`; give one for each, None where it is not known"
        )
    if negative := [e for e in standard_errors if e is not None and e < 0]:
        raise InvalidArgument(f"`standard_errors` must not be negative, got {negative[0]}")


def _real(expr: sp.Expr) -> sp.Expr:
    """The expression in real symbols of the same names."""
    return expr.xreplace({s: real_symbol(s.name) for s in expr.free_symbols})


def _refusal(expr: sp.Expr, truth: sp.Expr, box: Box) -> str:
    """Why a candidate is refused without a comparison; empty if it is not."""
    words = (*ELEMENTARY, *{node.func for node in sp.preorder_traversal(truth)})
    for count, node in enumerate(sp.preorder_traversal(expr)):
        if count == MOST_NODES:
            return f"more than {MOST_NODES} nodes"
        if not isinstance(node, words):
            return f"uses {node.func.__name__}, which the truth does not"
        if isinstance(node, sp.Number) and not math.isfinite(float(node)):
            return f"holds the number {sp.N(node, 3)}"
        if isinstance(node, sp.Symbol) and node.name not in box:
            return f"uses the variable {node.name}, which is not in `box`"
    return ""


def _decide(
    expr: sp.Expr,
    standard_errors: Sequence[float | None] | None,
    paper: tuple[float, float],
    evaluations: EvaluationSets,
    most_nodes: int,
    clock: Deadline,
) -> Verdict:
    expanded = _multiplied_out(expr)
    size = min(_size(expr), _size(expanded))
    strict = Comparison(f"{size} nodes, where twice the truth's and 8 are {most_nodes}")
    if size <= most_nodes:
        formula = Formula(expr, evaluations.variables)
        delivered = deviation(formula, formula.constants, evaluations.wide, EXACT_DEVIATION, clock)
        strict = compare(formula, _allowance(formula.constants, standard_errors), evaluations, clock)
        if not strict.flaw and delivered < EXACT_DEVIATION:
            return Verdict("exact", "identical as delivered", delivered)
        if not strict.flaw:
            reason = f"identical once its constants move by at most {strict.moved:.2g} of their size"
            return Verdict("symbolic", reason, strict.deviation, strict.moved)
    # The truth may have small terms too, so the whole is tried as well.
    rest = _without_small_terms(expanded, paper[1], evaluations, clock)
    for form, nodes in {rest: _size(rest), expr: size}.items():
        if nodes > most_nodes:
            continue
        formula = Formula(form, evaluations.variables)
        rough = compare(formula, paper[0] * np.abs(formula.constants), evaluations, clock)
        if not rough.flaw:
            reason = (
                f"{strict.flaw}; identical once its small terms are dropped and its constants move by "
                f"at most {rough.moved:.2g} of their size"
            )
            return Verdict("paper", reason, rough.deviation, rough.moved)
    return Verdict("wrong", strict.flaw, strict.deviation, strict.moved)


def _allowance(constants: np.ndarray, standard_errors: Sequence[float | None] | None) -> np.ndarray:
    size = np.abs(constants)
    if standard_errors is None:
        return np.asarray(CLEAN_ALLOWANCE * size)
    noisy = STANDARD_ERRORS * np.array(standard_errors, dtype=float)  # None is NaN
    noisy = np.where(np.isinf(noisy), size, noisy)
    # At least 1e-9: deviations of that size count as none.
    known = np.maximum(noisy, EXACT_DEVIATION * size)
    return np.asarray(np.where(np.isnan(noisy), CLEAN_ALLOWANCE * size, known))


def _without_small_terms(
    expr: sp.Expr, share: float, evaluations: EvaluationSets, clock: Deadline
) -> sp.Expr:
    """The sum without terms below that share of the range of the output on the training box."""
    small = share * np.ptp(evaluations.near.values)
    kept = []
    for term in sp.Add.make_args(expr):
        clock.check()
        if not np.abs(Formula(term, evaluations.variables)(evaluations.near.points)).max() <= small:
            kept.append(term)
    return sp.Add(*kept)


def _size(expr: sp.Expr) -> int:
    return sum(1 for _ in sp.preorder_traversal(expr)) if has_conditions(expr) else complexity(expr)


def _multiplied_out(expr: sp.Expr) -> sp.Expr:
    """The expression as one sum, without expanding inside functions; unchanged if it had too many terms."""
    return _expand(expr) if _terms(expr) <= MOST_TERMS else expr


def _expand(expr: sp.Expr) -> sp.Expr:
    if expr.is_Add:
        return sp.Add(*map(_expand, expr.args))
    if expr.is_Mul:
        return sp.expand_mul(sp.Mul(*map(_expand, expr.args)), deep=False)
    if expr.is_Pow and expr.exp.is_Integer and expr.exp > 0:
        return sp.expand_multinomial(_expand(expr.base) ** expr.exp, deep=False)
    return expr


def _terms(expr: sp.Expr) -> int:
    if expr.is_Add:
        return sum(map(_terms, expr.args))
    if expr.is_Mul:
        return math.prod(map(_terms, expr.args))
    if expr.is_Pow and expr.exp.is_Integer and expr.exp > 0:
        several, power = _terms(expr.base) - 1, int(expr.exp)
        return math.comb(several + min(power, MOST_TERMS), several) if several else 1
    return 1


@dataclass(frozen=True)
class SymbolicSolution:
    """Whether SRBench would count an equation as solved, and why."""

    solved: bool
    reason: str


def symbolic_solution(
    candidate: Any, truth: Any, X: Any, y: Any, *, seconds: float = 10.0
) -> SymbolicSolution:
    """The second judge, SRBench's (La Cava et al. 2021): is the truth's distance from `candidate` a constant?

    The candidate must explain more than half of the variance of the test rows `X`, `y`. Then floats are
    rounded to three places, pi too, and those below 0.0001 become zero; the candidate must not be a constant,
    and SymPy must find that the difference from the truth, or the ratio to it, is one. Variables are plain
    symbols, not known to be real. So an offset or a factor is forgiven, unlike in `judge`, and a form that
    SymPy can't bring together is not. What can't be computed, or not in time, is not solved.
    """
    for name, equation in (("candidate", candidate), ("truth", truth)):
        if not (isinstance(getattr(equation, "expr", None), sp.Expr) and callable(equation)):
            raise WrongType(f"`{name}` must be an Equation, got {type(equation).__name__}")
    fit = _explained(candidate, X, y)
    if not fit > LEAST_EXPLAINED:
        return SymbolicSolution(False, f"R² is {fit:.3g} on the test rows, where more than 0.5 is needed")
    for name, expr in (("candidate", candidate.expr), ("truth", truth.expr)):
        if any(count >= MOST_NODES for count, _ in enumerate(sp.preorder_traversal(expr))):
            return SymbolicSolution(False, f"the {name} has more than {MOST_NODES} nodes")
    said = _in_time(lambda: _agreement(candidate.expr, truth.expr), seconds)
    return said or SymbolicSolution(False, f"undecided within `seconds`={seconds}")


def _explained(candidate: Any, X: Any, y: Any) -> float:
    """The share of the variance of `y` that the candidate explains; NaN where it is not defined."""
    y = np.asarray(y, dtype=float).ravel()
    with np.errstate(all="ignore"):
        spread = np.sum((y - np.sum(y) / len(y)) ** 2) if len(y) else np.float64(0.0)
        return float(1 - np.sum((y - candidate(X)) ** 2) / spread)


def _agreement(candidate: sp.Expr, truth: sp.Expr) -> SymbolicSolution:
    found, true = (_rounded(_plain(expr)) for expr in (candidate, truth))
    found = sp.simplify(found, ratio=1)
    if not found.free_symbols or found.has(sp.nan):
        return SymbolicSolution(False, f"it is the constant {found}")
    difference, ratio = _rounded(true - found), _rounded(found / true)
    if not difference.is_constant():
        difference = sp.simplify(difference, ratio=1)
    if difference.is_constant():
        return SymbolicSolution(True, f"the difference from the truth is the constant {sp.N(difference, 4)}")
    if ratio.is_constant():
        return SymbolicSolution(True, "the ratio to the truth is a constant")
    return SymbolicSolution(False, f"the difference from the truth is {difference}"[:200])


def _plain(expr: sp.Expr) -> sp.Expr:
    """In symbols of which nothing is known, with pi as a float."""
    symbols = {s: sp.Symbol(s.name) for s in expr.free_symbols}
    return expr.xreplace({**symbols, sp.pi: sp.Float(math.pi)})


def _rounded(expr: sp.Expr) -> sp.Expr:
    rounded = {f: sp.S.Zero if abs(f) < 1e-4 else sp.Float(round(f, 3), 3) for f in expr.atoms(sp.Float)}
    return expr.xreplace(rounded)


class _OutOfTime(BaseException):
    """Raised inside SymPy's work when its time is over; no handler of SymPy's catches it."""


def _in_time(work: Callable[[], SymbolicSolution], seconds: float) -> SymbolicSolution | None:
    """What `work` says, or None after `seconds`; it runs in a thread of its own, and ends with its time.

    SymPy can't be given a limit, and signals reach the main thread only.
    """
    answers: list[SymbolicSolution] = []

    def run() -> None:
        try:
            answers.append(work())
        except _OutOfTime:
            pass
        except Exception as failure:  # SymPy raises all kinds of exceptions, also AttributeError and its own
            answers.append(SymbolicSolution(False, f"can't be computed: {type(failure).__name__}: {failure}"))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        thread.join(seconds)
    finally:
        if thread.is_alive():
            ctypes.pythonapi.PyThreadState_SetAsyncExc(
                ctypes.c_ulong(thread.ident or 0), ctypes.py_object(_OutOfTime)
            )
            thread.join(1.0)
    return answers[0] if answers else None
