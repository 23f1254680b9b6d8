"""The short list: laws that joint training has to decide between, and those that no data can tell apart."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import permutations, product
from typing import Any

import numpy as np
import torch

from eqlearn.latent.comparison.compare import Choice
from eqlearn.latent.comparison.served import serve, served_again
from eqlearn.latent.comparison.structures import SCALE, SHIFT, compiled, parts, replaced
from eqlearn.latent.settings import LATENT, LatentSettings
from eqlearn.numerics.budget import never
from eqlearn.symbolic.expressions import real_symbol


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
    # A law far better than the head makes the head's error no yardstick.
    limit = settings.tolerance * max(best, min(head_error, 100 * best)) + 1e-9
    near = [c for c in honest if c.error <= limit]
    near.sort(key=lambda c: (c.size, _turns(c), round(c.error / best, 1)))
    listed: list[Choice] = []
    equivalent: list[Choice] = []
    for choice in near:
        if stop():
            break
        better = all(choice.error <= 0.95 * c.error for c in listed if c.size < choice.size)
        if not better or len(listed) >= settings.shortlist:
            if len(equivalent) < settings.shortlist and _is_same(choice, listed[0]):
                equivalent.append(choice)
            continue
        alike = [c for c in listed if _is_same(choice, c)]
        if not alike:
            listed.append(_plainer(choice, settings))
        elif alike[0] is listed[0]:
            equivalent.append(choice)
    return listed, [c for c in equivalent if not _is_rewritten(c, listed[0])]


def _is_same(one: Choice, other: Choice) -> bool:
    return not tells_apart(one, other) and not tells_apart(other, one)


def is_disguised(choice: Choice) -> bool:
    """Whether some function of a law acts as a straight line on all rows: exp(z/1000) in the place of z."""
    fit, data = choice.fit, choice.data
    latents = [(data.designs[s.input] @ fit.bends[s.group][s.place]).numpy() for s in data.slots]
    columns, at = data.columns.numpy(), 0
    for output, tree in enumerate(fit.trees):
        program, first = compiled(tree), output * len(columns)
        scaled = [fit.factors[first + j] * x for j, x in enumerate(columns)]
        own = fit.constants[at : at + program.constants]
        at += program.constants
        with np.errstate(all="ignore"):
            values = program.values([*latents, *scaled], own)
            for (name, args), value in zip(program.steps, values, strict=True):
                if name is not None and len(args) == 1 and name not in (SHIFT, SCALE):
                    inner = values[args[0]]
                    if inner.std() > 0 and np.corrcoef(inner, value)[0, 1] ** 2 > 1 - LATENT.straight:
                        return True
    return False


def _is_rewritten(one: Choice, other: Choice) -> bool:
    """Whether two laws are the same formula but for signs and the order of latents."""
    if len(one.data.slots) != len(other.data.slots):
        return False
    mine, theirs = one.skeletons(), other.skeletons()
    symbols = [real_symbol(name) for name in one.names]
    for order in permutations(range(len(symbols))):
        for signs in product((1, -1), repeat=len(symbols)):
            swapped = {z: s * symbols[k] for z, k, s in zip(symbols, order, signs, strict=True)}
            said = [e.expr.subs(swapped, simultaneous=True) for e in mine]
            if all(a in (b.expr, -b.expr) for a, b in zip(said, theirs, strict=True)):
                return True
    return False


def _plainer(choice: Choice, settings: LatentSettings) -> Choice:
    """The law with sums in the place of differences and products in that of quotients, where its latents can
    be turned so as to give the same."""
    for output, tree in enumerate(choice.fit.trees):
        for path, part in parts(tree):
            if isinstance(part, tuple) and part[0] in ("sub", "div"):
                name = "add" if part[0] == "sub" else "mul"
                trial = list(choice.fit.trees)
                trial[output] = replaced(trial[output], path, (name, *part[1:]))
                few = choice.data.some(settings.screened)
                (fit,) = serve(few, [tuple(trial)], starts=2 * settings.serving_starts, steps=20)
                (fit,) = served_again(choice.data, [fit])
                if fit.error <= 1.02 * choice.error:
                    choice = replace(choice, fit=fit)
    return choice


def _turns(choice: Choice) -> int:
    """How many differences and quotients there are: of equals, sums and products are easier to read."""

    def count(tree: Any) -> int:
        return 0 if isinstance(tree, int) else (tree[0] in ("sub", "div")) + sum(map(count, tree[1:]))

    return sum(count(tree) for tree in choice.fit.trees)
