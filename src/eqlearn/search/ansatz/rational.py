"""Quotients of polynomials: p/q = y is linear in the coefficients of p and q once it reads p - y·q = 0."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from eqlearn.numerics.budget import never
from eqlearn.numerics.criteria import (
    EXACT_QUOTIENT,
    NO_COEFFICIENT,
    NULL_GAP,
    NULL_SINGULAR,
    WORTHLESS_QUOTIENT,
    credible,
    information_criterion,
)
from eqlearn.search.ansatz.layout import Ansatz, Sum, Unit
from eqlearn.search.problem import Problem


@dataclass(frozen=True)
class Quotient:
    """A numerator and a denominator, and the squared error that is left relative to the target's."""

    numerator: Sum
    denominator: Sum
    error: float


def rational_ansatzes(problem: Problem, stop: Callable[[], bool] = never) -> Iterator[Ansatz]:
    """The simplest exact quotient, or the best one, for the target and each of its transforms."""
    division = problem.vocabulary.named("div")
    if division is None or problem.samples.y.shape[0] != 1:
        return
    weight = problem.samples.weight
    row_scale = None if weight is None else weight.sqrt()
    highest = min(problem.features.degree, problem.settings.max_degree)
    banks = [problem.features.polynomials(d) for d in range(1, highest + 1)]
    # Quotients of squares alone need few rows.
    banks += [problem.features.squares] if problem.features.squares else []
    for transform in problem.targets:
        if transform is not None and transform.unit.name == "inv":
            continue  # the inverse of a quotient is a quotient
        if stop():
            return
        y, _ = problem.seen(transform)
        best = best_quotient(problem.samples.x, y, banks, row_scale, stop)
        if best is not None:
            yield Ansatz(transform, Sum.of(Unit(division, (best.numerator, best.denominator))))


def best_quotient(
    x: Tensor,
    y: Tensor,
    banks: Sequence[Sequence[int]],
    row_scale: Tensor | None = None,
    stop: Callable[[], bool] = never,
) -> Quotient | None:
    """Of polynomials in one bank over polynomials in another, smallest first: the first that is exact, else
    the one of the smallest information criterion, of those tried before `stop()` holds."""
    rows = len(y)
    pairs = sorted(((p, q) for p in banks for q in banks), key=lambda pair: len(pair[0]) + len(pair[1]))
    best, lowest = None, float("inf")
    for top, bottom in pairs:
        count = len(top) + len(bottom) + 2
        if not credible(count, rows):
            continue
        if stop():
            break
        found, exact = _quotient(x, y, top, bottom, row_scale)
        if found is None:
            continue
        if exact:
            return found
        score = information_criterion(rows, found.error, count, placed=False)
        if score < lowest and found.error < WORTHLESS_QUOTIENT:
            best, lowest = found, score
    return best


def _quotient(
    x: Tensor, y: Tensor, top: Sequence[int], bottom: Sequence[int], row_scale: Tensor | None
) -> tuple[Quotient | None, bool]:
    ones = torch.ones(1, x.shape[1], dtype=x.dtype)
    p_terms = torch.cat([x[list(top)], ones])
    q_terms = torch.cat([x[list(bottom)], ones])
    columns = torch.cat([p_terms, -y * q_terms]).mT
    if row_scale is not None:
        columns = columns * row_scale[:, None]
    sizes = columns.norm(dim=0).clamp(min=1e-300)
    _, singular, right = torch.linalg.svd(columns / sizes, full_matrices=False)
    vector = right[-1] / sizes
    # Singular values of a smooth function fall gradually; a relation that holds ends them with a gap.
    exact = bool(singular[-1] < NULL_SINGULAR * singular[0]) and bool(singular[-1] < NULL_GAP * singular[-2])
    if exact:  # rounding is no coefficient
        parts = (vector * sizes).abs()
        vector = torch.where(parts > NO_COEFFICIENT * parts.max(), vector, 0.0)
    p, q = vector[: len(p_terms)], vector[len(p_terms) :]
    denominator = q @ q_terms
    poles = bool((denominator > 0).any()) and bool((denominator < 0).any())
    if (poles and not exact) or not bool(q[:-1].any()) or not bool(p.any()):
        return None, False
    size = denominator.abs().mean() * (-1.0 if float(denominator[0]) < 0 else 1.0)
    p, q = p / size, q / size
    left = y - (p @ p_terms) / (q @ q_terms)
    error = float(left.square().mean() / y.square().mean())
    return Quotient(_sum(top, p), _sum(bottom, q), max(error, 1e-32)), exact and error < EXACT_QUOTIENT


def _sum(places: Sequence[int], coefficients: Tensor) -> Sum:
    pairs = zip(places, coefficients[:-1].tolist(), strict=True)
    return Sum(tuple((i, c) for i, c in pairs if c != 0), (), float(coefficients[-1]))
