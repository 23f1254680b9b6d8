"""The short list: laws that joint training has to decide between, and those that no data can tell apart."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import permutations, product
from typing import Any

import numpy as np
import sympy as sp
import torch

from eqlearn.functions import FUNCTIONS
from eqlearn.latent.comparison.canonical import reduce
from eqlearn.latent.comparison.compare import Choice, credible_error
from eqlearn.latent.comparison.served import serve, served_again
from eqlearn.latent.comparison.structures import SCALE, SHIFT, parts, replaced
from eqlearn.latent.joint import compare_on
from eqlearn.latent.settings import LATENT, LatentSettings
from eqlearn.latent.warm_start import Start
from eqlearn.numerics.budget import never
from eqlearn.symbolic.expressions import real_symbol
from eqlearn.validation.latents import LatentData


def tells_apart(one: Choice, other: Choice, settings: LatentSettings = LATENT) -> bool:
    """Whether some values of the one law can't be had from the other, whatever its constants and bends."""
    if len(one.data.slots) != len(other.data.slots):
        return True
    target = replace(other.data, y=one.values())
    if not bool(torch.isfinite(target.y).all()):
        return True
    target = target.some(settings.screened)
    (fit,) = serve(target, [other.fit.trees], starts=settings.serving_starts, steps=30)
    again = served_again(target, [replace(other.fit, error=0.0)], steps=30)[0]
    return not min(fit.error, again.error) <= settings.alike * one.error + 1e-7


def shortlist(
    choices: Sequence[Choice],
    head_error: float,
    settings: LatentSettings = LATENT,
    stop: Callable[[], bool] = never,
) -> tuple[list[Choice], list[Choice]]:
    """The laws that joint training has to decide between, the shortest first, and those that can't be told
    apart from the first of them: the same law behind other bends.

    On the list are laws that leave little more than the best, or than the head, each better than all shorter
    ones. A function that acts as a straight line is a disguise of a shorter law, and is left out.
    """
    honest = [c for c in choices if not is_disguised(c)] or list(choices)
    best = min(c.error for c in honest)
    limit = credible_error(best, head_error, settings)
    near = sorted((c for c in honest if c.error <= limit), key=lambda c: (c.size, c.error))
    # Only so far as a law can be on the list: it is better than all shorter ones.
    first = [c for c in near if all(c.error <= 0.95 * o.error for o in near if o.size < c.size)]
    rest = [c for c in near if c not in first]
    lengths = {id(c): length(c, settings, stop) for c in first[: 3 * settings.shortlist]}
    first = sorted(
        (c for c in first if id(c) in lengths),
        key=lambda c: (lengths[id(c)], _turns(c), sum(e.complexity for e in c.skeletons()), c.error),
    )
    listed: list[Choice] = []
    equivalent: list[Choice] = []
    for choice in first:
        if stop() and listed:
            break
        alike = next((c for c in listed if _is_same(choice, c)), None)
        if alike is None and len(listed) < settings.shortlist:
            # Better than each shorter law, and not far worse than one as long.
            bound = [
                (0.95 if lengths[id(c)] < lengths[id(choice)] else settings.rival) * c.error for c in listed
            ]
            if choice.error <= min(bound, default=math.inf):
                listed.append(choice)
        elif alike is not None and alike is listed[0]:
            equivalent.append(choice)
    for choice in rest:
        if len(equivalent) >= settings.shortlist or stop():
            break
        equivalent += [choice] if _is_same(choice, listed[0]) else []
    # A law with a constant of its own, which is nothing here, holds this one as a case.
    told = [c for c in equivalent if not len(c.fit.constants) and not _is_rewritten(c, listed[0])]
    plain = {c.fit.trees: c for c in reversed([_plainer(c, settings) for c in listed])}
    return list(reversed(plain.values())), told


def agreement(
    law: Choice,
    choices: Sequence[Choice],
    others: Sequence[Start],
    data: LatentData,
    *,
    settings: LatentSettings = LATENT,
    stop: Callable[[], bool] = never,
) -> tuple[int, int]:
    """How many starts list this law: its own, and those of `others` in which it is on the short list of the
    structures that came far in the first comparison, fitted anew; of how many."""
    short = [c for c in choices if c.size <= law.size]
    far = list(dict.fromkeys((*choices[: settings.kept], *short[: settings.kept], law)))
    agreed = counted = 1
    for start in others:
        found = [] if stop() else _compared_again(far, start, data, settings, stop)
        if not found or stop():
            break
        listed, _ = shortlist(found, start.error, settings, stop)
        counted += 1
        agreed += any(c.fit.trees == law.fit.trees or _is_same(c, law) for c in listed)
    return agreed, counted


def _compared_again(
    choices: Sequence[Choice],
    start: Start,
    data: LatentData,
    settings: LatentSettings,
    stop: Callable[[], bool],
) -> list[Choice]:
    """The same structures behind the encoders of another start, the smallest error first."""
    encoders, sample, found = start.model.encoders, data.sample(settings.compared), list[Choice]()
    for counts in dict.fromkeys(c.data.counts for c in choices):
        comparison, bases = compare_on(encoders, sample, counts, settings)
        trees = list(dict.fromkeys(c.fit.trees for c in choices if c.data.counts == counts))
        few, starts = comparison.some(settings.screened), settings.serving_starts
        fits = [f for f in serve(few, trees, starts=starts, steps=15, stop=stop) if np.isfinite(f.error)]
        again = served_again(comparison, fits, stop=stop) if fits else []
        found += [Choice(fit, comparison, tuple(bases), data.columns) for fit in again]
    return sorted(found, key=lambda c: c.error)


def length(choice: Choice, settings: LatentSettings = LATENT, stop: Callable[[], bool] = never) -> int:
    """The size of a law with the constants that it needs: a wrong law may need more than its structure shows,
    as the product of two latents with a large offset does in the place of a sum."""
    data = choice.data.some(settings.screened)
    reduced = reduce(data, choice.fit, settings=settings, stop=stop)
    own = len(choice.fit.constants)
    first = len(choice.fit.factors)
    idle = sum(i in reduced.exact and reduced.exact[i] in (0, 1, -1) for i in range(first, first + own))
    others = [i for i in range(len(choice.fit.numbers)) if not first <= i < first + own]
    needed = sum(i not in reduced.exact or reduced.exact[i] not in (0, 1, -1) for i in others)
    return choice.size - 2 * idle + 2 * needed


def _is_same(one: Choice, other: Choice) -> bool:
    return not tells_apart(one, other) and not tells_apart(other, one)


def is_disguised(choice: Choice) -> bool:
    """Whether some function of a law acts as a straight line on all rows: exp(z/1000) in the place of z."""
    for program, values in choice.steps():
        for (name, args), value in zip(program.steps, values, strict=True):
            if name is not None and len(args) == 1 and name not in (SHIFT, SCALE):
                inner = values[args[0]]
                if inner.std() > 0 and np.corrcoef(inner, value)[0, 1] ** 2 > 1 - LATENT.straight:
                    return True
    return False


def _is_rewritten(one: Choice, other: Choice) -> bool:
    """Whether two laws are the same formula but for factors, signs and the order of latents."""
    if len(one.data.slots) != len(other.data.slots):
        return False
    mine, theirs = ([_without_factors(e.expr) for e in c.skeletons()] for c in (one, other))
    symbols = [real_symbol(name) for name in one.names]
    for order in permutations(range(len(symbols))):
        for signs in product((1, -1), repeat=len(symbols)):
            swapped = {z: s * symbols[k] for z, k, s in zip(symbols, order, signs, strict=True)}
            said = [e.subs(swapped, simultaneous=True) for e in mine]
            if all(_without_factors(a) == b for a, b in zip(said, theirs, strict=True)):
                return True
    return False


def _without_factors(expr: sp.Expr) -> sp.Expr:
    """The formula with every number by which something is multiplied left out."""
    return expr.replace(
        lambda e: isinstance(e, sp.Mul), lambda e: sp.Mul(*(a for a in e.args if a.free_symbols))
    )


def _plainer(choice: Choice, settings: LatentSettings) -> Choice:
    """The law with sums in the place of differences and products in that of quotients, where its latents can
    be turned so as to give the same."""
    for output, tree in enumerate(choice.fit.trees):
        for path, part in parts(tree):
            if isinstance(part, tuple) and part[0] in ("sub", "div"):
                name = "add" if part[0] == "sub" else "mul"
                trial = list(choice.fit.trees)
                trial[output] = replaced(trial[output], path, (name, *part[1:]))
                turned = [
                    replace(
                        choice.fit,
                        trees=tuple(trial),
                        bends=tuple(s * b for s, b in zip(signs, choice.fit.bends, strict=True)),
                    )
                    for signs in product((1, -1), repeat=len(choice.fit.bends))
                ]
                few = choice.data.some(settings.screened)
                turned += serve(few, [tuple(trial)], starts=settings.serving_starts, steps=20)
                fit = min(served_again(choice.data, turned), key=lambda f: f.error)
                if fit.error <= 1.02 * choice.error:
                    choice = replace(choice, fit=fit)
    return choice


def _turns(choice: Choice) -> int:
    """How many differences and quotients there are, and functions that are not defined everywhere: of laws
    that are equal but for a bend, a**2 + b is safer than a + sqrt(b), and a + b easier to read than a - b."""

    def count(tree: Any) -> int:
        if isinstance(tree, int):
            return 0
        function = FUNCTIONS.get(tree[0])
        partial = function is not None and function.domain != (-math.inf, math.inf)
        return (partial or tree[0] in ("sub", "div", "inv")) + sum(map(count, tree[1:]))

    return sum(count(tree) for tree in choice.fit.trees)
