"""Semantic backpropagation: what a node of a formula would have to be for the formula to meet its target, and
which subexpression of a bank comes nearest to that (Pawlak, Wieloch & Krawiec 2015).

What is wanted is found by undoing, from the root down to the node, every operation with the values its other
argument has. Rows count by the square of the formula's slope at the node, so that a small miss there is a
small miss of the target.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from eqlearn.nn.primitives import Plain, Primitive
from eqlearn.search.ansatz.target_transform import undone
from eqlearn.search.evolution.trees import Trees


@np.errstate(all="ignore")
def wanted(trees: Trees, values: np.ndarray, places: np.ndarray, target: np.ndarray) -> np.ndarray:
    """What the nodes at `places` would have to be, `(members, rows)`; NaN where nothing would do."""
    at = np.zeros(len(trees), dtype=int)
    aim = np.broadcast_to(target, (len(trees), len(target))).copy()
    while (active := np.flatnonzero(at < places)).size:
        aim[active] -= trees.shift[active, at[active], None]
        aim[active] /= trees.factor[active, at[active], None]
        codes = trees.code[active, at[active]]
        for code in np.unique(codes).tolist():
            rows = active[codes == code]
            one = values[at[rows] + 1, rows]
            if trees.operations.arity[code] == 1:
                aim[rows] = undone_near(trees.operations.function(code), aim[rows], one)
                at[rows] += 1
                continue
            second = at[rows] + 1 + trees.below[rows, at[rows] + 1]
            two = values[second, rows]
            first = (places[rows] < second)[:, None]
            sign = trees.operations.sign(code)
            if sign == "+":
                aim[rows] -= np.where(first, two, one)
            elif sign == "-":
                aim[rows] = np.where(first, aim[rows] + two, one - aim[rows])
            elif sign == "*":
                aim[rows] /= np.where(first, two, one)
            else:
                aim[rows] = np.where(first, aim[rows] * two, one / aim[rows])
            at[rows] = np.where(first[:, 0], at[rows] + 1, second)
    return aim


def undone_near(function: Primitive, aim: np.ndarray, now: np.ndarray) -> np.ndarray:
    """The arguments at which a function has these values, NaN where there are none; of several, on the side
    of zero, or the branch, where the argument is now."""
    if function.name == "square":
        return np.asarray(np.where(now < 0, -1.0, 1.0) * np.sqrt(aim))
    if isinstance(function.formula, Plain) and function.formula.function.wave:
        return _branch(function.formula.function.name, aim, now)
    return undone(function, aim)


def _branch(name: str, aim: np.ndarray, now: np.ndarray) -> np.ndarray:
    """The argument of a sine or cosine on the branch where it is now."""
    if name == "sin":
        turns = np.round(now / math.pi)
        return np.asarray(turns * math.pi + np.where(turns % 2 == 0, 1.0, -1.0) * np.arcsin(aim))
    if name == "cos":
        turns = np.floor(now / math.pi)
        return np.asarray(
            np.where(turns % 2 == 0, turns * math.pi + np.arccos(aim), (turns + 1) * math.pi - np.arccos(aim))
        )
    return np.full_like(aim, np.nan)


_FINALISTS = 6  # entries that are compared to all digits


@dataclass(frozen=True)
class Match:
    """Which entries come nearest, with what factor and shift."""

    entry: np.ndarray
    factor: np.ndarray
    shift: np.ndarray


@np.errstate(all="ignore")
def nearest(
    aim: np.ndarray,
    slope: np.ndarray,
    bank: np.ndarray,
    lengths: np.ndarray,
    prices: np.ndarray,
    spread: float,
) -> Match:
    """For each aim `(members, rows)` the entry g of a bank `(entries, rows)` for which a·g + b scores best.

    A score is the logarithm of the part of the target's square, `spread`, that would be left, and each
    member's price of the entry's length. A factor or shift is kept if it is worth its price.
    """
    weight = np.where(np.isfinite(aim), slope**2, 0.0)
    weight = np.where(np.isfinite(weight), weight, 0.0)
    aim = np.where(weight > 0, aim, 0.0)
    total = weight.sum(axis=1)
    weighted = weight * aim
    aims, aims_squared = weighted.sum(axis=1), (weighted * aim).sum(axis=1)
    # To choose, six digits do, of entries about their mean.
    about = bank - bank.mean(axis=1, keepdims=True)
    about /= np.linalg.norm(about, axis=1, keepdims=True)
    light, heavy = about.astype(np.float32), (weight / total[:, None]).astype(np.float32)
    size = np.sqrt(aims_squared / total)[:, None]
    mean, square = heavy @ light.T, heavy @ (light**2).T
    centred = ((aim / size) * (weight / total[:, None])).astype(np.float32)
    both = centred @ light.T - centred.sum(axis=1)[:, None] * mean
    variance = square - mean**2
    own = 1 - (aims / total / size[:, 0]) ** 2
    left = own[:, None] - both**2 / np.where(variance > 1e-6 * square, variance, np.inf)
    length = prices[:, None] * lengths
    score = np.log(np.maximum(left, 1e-6) * (aims_squared / spread)[:, None]) + length
    score = np.where(np.isfinite(score), score, np.inf)
    few = np.argpartition(score, min(_FINALISTS, score.shape[1] - 1), axis=1)[:, :_FINALISTS]
    value = bank[few]
    entries = np.einsum("mr,mkr->mk", weight, value)
    entries_squared = np.einsum("mr,mkr->mk", weight, value**2)
    product = np.einsum("mr,mkr->mk", weighted, value)
    factor = (product - aims[:, None] * entries / total[:, None]) / (
        entries_squared - entries**2 / total[:, None]
    )
    shift = (aims[:, None] - factor * entries) / total[:, None]
    through = product / entries_squared

    def rest(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        missed = aim[:, None] - a[..., None] * value - b[..., None]
        return np.asarray(np.einsum("mr,mkr->mk", weight, missed**2))

    none, one = np.zeros_like(factor), np.ones_like(factor)
    floor, price = 1e-24 * aims_squared[:, None], prices[:, None]
    ways = (
        (factor, shift, rest(factor, shift), 2 * price),
        (through, none, rest(through, none), price),
        (one, none, rest(one, none), 0 * price),
    )
    scores = np.stack([np.log(np.maximum(miss, floor) / spread) + cost for _, _, miss, cost in ways])
    scores = np.where(np.isfinite(scores), scores + np.take_along_axis(length, few, 1), np.inf)
    best = scores.transpose(1, 0, 2).reshape(len(aim), -1).argmin(axis=1)
    way, place = np.divmod(best, few.shape[1])
    every = np.arange(len(aim))
    factors, shifts = np.stack([a for a, *_ in ways]), np.stack([b for _, b, *_ in ways])
    return Match(few[every, place], factors[way, every, place], shifts[way, every, place])
