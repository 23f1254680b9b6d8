"""What is linear in a bank of inputs, for the target and its transforms; also with one number profiled."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import torch
from torch import Tensor

from eqlearn.numerics.budget import never
from eqlearn.numerics.criteria import EXACT_SHARE, NO_COEFFICIENT, SUM_ROUNDING, WORTHLESS_PROFILE, credible
from eqlearn.numerics.least_squares import linear_fit
from eqlearn.search.ansatz.layout import Ansatz, Sum, Unit
from eqlearn.search.ansatz.target_transform import TargetTransform, transformed, transforms
from eqlearn.search.problem import Problem

BANKS = ("plain", "log", "quadratic", "products", "powers")
# Of these pairs one undoes the other, or the second makes a factor of what the first did.
UNDONE = {"exp log", "log exp", "sqrt square", "square sqrt", "inv inv", "inv exp", "sqrt exp", "square exp"}


def linear_ansatzes(problem: Problem, stop: Callable[[], bool] = never) -> Iterator[Ansatz]:
    """Every exact sum of inputs, for the target, its transforms and transforms of those; and, exact or not,
    the best sum of plain columns."""
    if problem.samples.y.shape[0] != 1:
        return
    columns = len(problem.features.scales)
    found = False
    for transform in problem.targets:
        y, _ = problem.seen(transform)
        for bank in allowed_banks(problem, int(transform is not None)):
            if stop():
                return
            exact, readout = solved(problem, bank, y)
            if readout is not None and (exact or (transform is None and len(bank) == columns)):
                found = found or exact
                yield Ansatz(transform, readout)
    if not found:
        yield from _twice_transformed(problem, stop)


def _twice_transformed(problem: Problem, stop: Callable[[], bool]) -> Iterator[Ansatz]:
    """Exact sums inside two functions, such as 1/√g or exp(√g), or to the third power."""
    banks = allowed_banks(problem, 2)
    square, times = problem.vocabulary.named("square"), problem.vocabulary.named("mul")
    if square is not None and times is not None:
        y = problem.samples.y[0]
        for g in _exact_sums(problem, banks, y.sign() * y.abs() ** (1 / 3), stop):
            yield Ansatz(None, Sum.of(Unit(times, (g, Sum.of(Unit(square, (g,)))))))
    for first in problem.transforms:
        for second in transforms(problem.vocabulary.unary, first.target):
            if f"{first.unit.name} {second.unit.name}" not in UNDONE:
                for g in _exact_sums(problem, banks, second.target[0], stop):
                    inner = Sum(units=((Unit(second.unit, (g,)), second.amplitude / first.scale),))
                    yield Ansatz(first, inner)


def _exact_sums(
    problem: Problem, banks: list[list[int]], y: Tensor, stop: Callable[[], bool]
) -> Iterator[Sum]:
    for bank in banks:
        if stop():
            return
        exact, g = solved(problem, bank, y)
        if exact and g is not None:
            yield g


def allowed_banks(problem: Problem, above: int) -> list[list[int]]:
    """The banks that the depth allows below the layers `above`, each once."""
    features, depth = problem.features, problem.hidden_layers - above
    banks = [features.bank(name) for name in BANKS if features.layers(name) <= depth]
    banks += [features.polynomials(2**depth)] if depth >= 0 else []
    return [list(bank) for bank in sorted(set(map(tuple, banks)))]


def solved(
    problem: Problem, bank: list[int], y: Tensor, relevance: Tensor | None = None
) -> tuple[bool, Sum | None]:
    """Whether a bank explains a target to rounding, and how; nothing if the rows are too few to tell. Rows
    count by their weight, and by their `relevance`."""
    x, weight = problem.samples.x, problem.samples.weight
    if relevance is not None:
        weight = relevance if weight is None else weight * relevance
    if not credible(len(bank) + 1, len(y)) or not bool(torch.isfinite(y).all()):
        return False, None
    columns = torch.cat([x[bank], torch.ones(1, len(y), dtype=x.dtype)])
    mean = y.mean() if weight is None else (weight @ y) / weight.sum()
    spread = float((y - mean).square().sum() if weight is None else weight @ (y - mean).square())
    if weight is not None:
        columns, y = columns * weight.sqrt(), y * weight.sqrt()
    sizes = columns.norm(dim=1).clamp(min=1e-300)
    solution = linear_fit(columns / sizes[:, None], y)
    left = float((y - solution @ (columns / sizes[:, None])).square().sum())
    # About a large mean, the rounding of the values themselves is more than that.
    exact = left < max(EXACT_SHARE * spread, SUM_ROUNDING * float(y.square().sum()))
    if exact:  # rounding is no coefficient
        size = solution.abs()
        # However large the constant is.
        small = torch.maximum(NO_COEFFICIENT * size[: len(bank)].sum(), NO_COEFFICIENT**2 * size.max())
        solution = torch.where(size > torch.minimum(small, NO_COEFFICIENT * size.max()), solution, 0.0)
    *linear, constant = (solution / sizes).tolist()
    return exact, Sum(tuple((i, c) for i, c in zip(bank, linear, strict=True) if c != 0), (), constant)


# A transform, how much each row counts, and what is added to the unit.
Option: TypeAlias = tuple[TargetTransform, Tensor, float]


def profiled_ansatzes(problem: Problem, stop: Callable[[], bool] = never) -> Iterator[Ansatz]:
    """For each bank, the best multiple of a logarithm and the best exponential with an offset."""
    if problem.samples.y.shape[0] != 1:
        return
    profile = problem.settings.profile
    some = problem.thinned(profile.rows)
    for bank in allowed_banks(problem, 1):
        if len(bank) <= profile.max_inputs:
            for options in (_logarithms(some), _exponentials(some)):
                ansatz = _nearest(some, bank, options, stop)
                if ansatz is not None:
                    yield ansatz


def _logarithms(problem: Problem) -> Iterator[Option]:
    """a·log(g), for many a."""
    unit, y = problem.vocabulary.named("log"), problem.samples.y
    if unit is None:
        return
    for factor in problem.settings.profile.factors:
        transform = transformed(unit, y, factor)
        if transform is not None:
            # A logarithm sees errors relative to its argument.
            yield transform, transform.target[0] ** -2, 0.0


def _exponentials(problem: Problem) -> Iterator[Option]:
    """c + exp(g) and c - exp(g), for many c."""
    unit, y = problem.vocabulary.named("exp"), problem.samples.y
    if unit is None:
        return
    low, high, gaps = float(y.min()), float(y.max()), problem.settings.profile.gaps
    ends = [(low - gap * (high - low), 1.0) for gap in gaps]
    ends += [(high + gap * (high - low), -1.0) for gap in gaps]
    for offset, sign in ends:
        transform = transformed(unit, y - offset, sign)
        if transform is not None:
            # An error of g moves its exponential in proportion to it.
            yield transform, (y - offset)[0].square(), offset


def _nearest(
    problem: Problem, bank: list[int], options: Iterator[Option], stop: Callable[[], bool]
) -> Ansatz | None:
    y = problem.samples.y[0]
    best, least = None, WORTHLESS_PROFILE * float(y.var())
    for transform, relevance, offset in options:
        if stop():
            return None
        _, g = solved(problem, bank, transform.target[0], relevance)
        if g is None:
            continue
        readout = Sum(units=((Unit(transform.unit, (g,)), transform.amplitude),), constant=offset)
        error = float((readout.value(problem.samples.x) - y).square().mean())
        if error < least:  # never, if the error is not a number: a logarithm may be of a negative sum
            best, least = readout, error
    return None if best is None else Ansatz(None, best)
