"""The judge: whether an equation is the truth, by identity and not by how well it fits."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias, get_args

import numpy as np
import sympy as sp
from sympy.functions.elementary.hyperbolic import HyperbolicFunction, InverseHyperbolicFunction
from sympy.functions.elementary.trigonometric import InverseTrigonometricFunction, TrigonometricFunction

from eqlearn.discovery.identity import Clock, Formula, Ground, deviation, survey, survey_afar
from eqlearn.errors import InvalidArgument, WrongType

Tier: TypeAlias = Literal["wrong", "paper", "symbolic", "exact"]

EXACT, IDENTICAL, IDENTICAL_AFAR = 1e-9, 1e-8, 1e-6
CLEAN_ALLOWANCE, STANDARD_ERRORS, PAPER_ALLOWANCE = 1e-3, 3.0, 0.05
SMALL_TERM = 0.02
# Beyond these sizes nothing is compiled or expanded, which keeps the time bounded.
MOST_NODES, MOST_TERMS = 1000, 500

ELEMENTARY = (
    sp.Symbol, sp.Number, sp.NumberSymbol, sp.Add, sp.Mul, sp.Pow, sp.exp, sp.log,
    TrigonometricFunction, InverseTrigonometricFunction, HyperbolicFunction, InverseHyperbolicFunction,
)  # fmt: skip

# What SymPy, NumPy, SciPy and mpmath raise on formulas that can't be computed; each becomes a verdict.
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

    `deviation` is the largest one from the truth, relative to the truth's spread, with the constants that
    bring it closest; `moved` is the largest relative change of a constant which that takes.
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
    """Decides whether `candidate` is `truth`; `box` is the range of every variable in the training data.

    The candidate must become identical to the truth, on fresh points of a box four times as wide, when its
    own float constants move: not at all (tier `exact`), by at most 0.1 % or three standard errors
    (`symbolic`), or by 5 % after terms below 2 % of the output's range are dropped (`paper`).
    `standard_errors` belong to the float constants in their order in the expression; a constant whose own
    is None or not finite may move by 0.1 %. What can't be computed, or not in time, is `wrong`.
    """
    for name, equation in (("candidate", candidate), ("truth", truth)):
        if not isinstance(getattr(equation, "expr", None), sp.Expr):
            raise WrongType(f"`{name}` must be an Equation, got {type(equation).__name__}")
    box = _checked_box(box, truth.expr)
    ground = survey(Formula.of(truth.expr, list(box)), box)
    clock = Clock.of(seconds)
    try:
        refusal = _refusal(candidate.expr, truth.expr, box)
        if refusal:
            return Verdict("wrong", refusal)
        case = _Case(tuple(box), ground, survey_afar(ground, box), 2 * _largest(truth.expr) + 8, clock)
        return _decide(case, candidate.expr, standard_errors)
    except TimeoutError:
        return Verdict("wrong", f"undecided within `seconds`={seconds}")
    except FAILURES as failure:
        return Verdict("wrong", f"can't be computed: {type(failure).__name__}: {failure}")


@dataclass(frozen=True, eq=False)
class _Case:
    """What every candidate for one truth is held against."""

    variables: tuple[str, ...]
    ground: Ground
    afar: Ground | None
    most_nodes: int
    clock: Clock


@dataclass(frozen=True)
class _Match:
    """How close a formula comes to the truth; without a `flaw` it is the truth."""

    flaw: str = ""
    deviation: float = math.inf
    moved: float = 0.0


def _decide(case: _Case, expr: sp.Expr, standard_errors: Sequence[float | None] | None) -> Verdict:
    strict = _Match(_excess(case, expr))
    if not strict.flaw:
        formula = Formula.of(expr, case.variables)
        delivered = deviation(formula, formula.constants, case.ground, tolerance=EXACT, clock=case.clock)
        strict = _match(case, formula, _allowance(formula, standard_errors))
        if not strict.flaw and delivered < EXACT:
            return Verdict("exact", "identical as delivered", delivered)
        if not strict.flaw:
            reason = f"identical once its constants move by at most {strict.moved:.2g} of their size"
            return Verdict("symbolic", reason, strict.deviation, strict.moved)

    terms = sp.Add.make_args(_expanded(expr))
    kept = [t for t, size in zip(terms, _sizes_of(case, terms), strict=True) if not size <= SMALL_TERM]
    rest = sp.Add(*kept)
    if not _excess(case, rest):
        formula = Formula.of(rest, case.variables)
        rough = _match(case, formula, PAPER_ALLOWANCE * np.abs(formula.constants))
        if not rough.flaw:
            reason = (
                f"{strict.flaw}; identical once {len(terms) - len(kept)} small terms are dropped and its "
                f"constants move by at most {rough.moved:.2g} of their size"
            )
            return Verdict("paper", reason, rough.deviation, rough.moved)
    return Verdict("wrong", strict.flaw, strict.deviation, strict.moved)


def _match(case: _Case, formula: Formula, allowance: np.ndarray) -> _Match:
    best, constants = math.inf, formula.constants
    for witness in _witnesses(case, formula, allowance):
        found = deviation(formula, witness, case.ground, tolerance=IDENTICAL, clock=case.clock)
        if found < best:
            best, constants = found, witness
        if best < 1e-3 * EXACT:
            break
    change = np.abs(constants - formula.constants)
    with np.errstate(divide="ignore"):
        moved = float(np.max(change[change > 0] / np.abs(formula.constants[change > 0]), initial=0.0))
    if not best < IDENTICAL:
        return _Match(f"deviates by {best:.2g}, its constants moved as far as allowed", best, moved)
    if not _holds_afar(case, formula, constants):
        return _Match("a limit that is close on the box, but not the same function", best, moved)
    return _Match("", best, moved)


def _witnesses(case: _Case, formula: Formula, allowance: np.ndarray) -> Iterator[np.ndarray]:
    """Constants within the allowance that may make the formula the truth; one set that does is proof."""
    if not (allowance > 0).any():
        yield formula.constants
        return
    # On the training box first: there a wrong frequency is still less than a period out of step.
    near = _moved(formula, formula.constants, allowance, case.ground.in_training_box, case.clock)
    for constants in (near, _moved(formula, near, allowance, case.ground, case.clock)):
        yield constants
        # An exponent of 2.0000000001 has no value at negative x; 2 has.
        rounded = np.array([float(f"{c:.9g}") for c in constants])
        yield np.clip(rounded, formula.constants - allowance, formula.constants + allowance)
    yield formula.constants


def _moved(
    formula: Formula, start: np.ndarray, allowance: np.ndarray, ground: Ground, clock: Clock
) -> np.ndarray:
    """Least squares over the constants, none farther than its allowance from where it was delivered."""
    from scipy.optimize import least_squares

    free = allowance > 0
    step = 1e-3

    def constants(u: np.ndarray) -> np.ndarray:
        shape = (-1,) + (1,) * (u.ndim - 1)
        moved = np.repeat(formula.constants.reshape(shape), u[0].size, axis=-1).reshape(-1, *u.shape[1:])
        moved[free] += allowance[free].reshape(shape) * u
        return moved

    with np.errstate(all="ignore"):
        seen = ground.some(np.isfinite(formula(ground.points, start) / ground.scale))
    if len(seen) == 0:
        return start

    def residual(u: np.ndarray) -> np.ndarray:
        clock.check()
        with np.errstate(all="ignore"):
            difference = (formula(seen.points, constants(u)) - seen.values) / seen.scale
        return np.nan_to_num(difference, nan=1e6, posinf=1e6, neginf=-1e6)

    def slope(u: np.ndarray) -> np.ndarray:
        clock.check()
        nudges = step * np.concatenate([np.eye(len(u)), -np.eye(len(u))], axis=1)
        with np.errstate(all="ignore"):
            values = formula(seen.points[:, None, :], constants(u[:, None] + nudges)[:, :, None])
            central = (values[: len(u)] - values[len(u) :]) / (2 * step * seen.scale)
        return np.nan_to_num(central, nan=0.0, posinf=0.0, neginf=0.0).T

    u = np.clip((start[free] - formula.constants[free]) / allowance[free], -1.0, 1.0)
    found = least_squares(
        residual, u, slope, bounds=(-1.0, 1.0), ftol=1e-9, xtol=1e-15, gtol=None, max_nfev=100
    )
    return constants(found.x)


def _holds_afar(case: _Case, formula: Formula, constants: np.ndarray) -> bool:
    if case.afar is None:
        return True
    if _deviation_afar(case, formula, constants) < IDENTICAL_AFAR:
        return True
    # Terms that are nothing on the box may be the dust of a fit and still grow without bound outside it.
    names = [a.name for a in formula.arguments]
    terms = sp.Add.make_args(formula.with_constants(constants))
    clean = Formula.of(
        sp.Add(*(t for t in terms if not _is_dust(Formula.of(t, names), case.ground))), names
    )
    return _deviation_afar(case, clean, clean.constants) < IDENTICAL_AFAR


def _deviation_afar(case: _Case, formula: Formula, constants: np.ndarray) -> float:
    assert case.afar is not None
    return deviation(formula, constants, case.afar, tolerance=IDENTICAL_AFAR, clock=case.clock)
