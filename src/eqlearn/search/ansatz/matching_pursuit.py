"""Matching pursuit: which few atoms of a library explain a target; singles and pairs all tried, more by beam.

Orthogonal matching pursuit (Pati et al. 1993), with a beam of supports in place of one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from eqlearn.numerics.budget import never
from eqlearn.numerics.criteria import DISTINCT, MATCH_ROUNDING, NEGLIGIBLE, PARALLEL, match_score
from eqlearn.search.settings import Library


@dataclass(frozen=True)
class Match:
    """Atoms, by number, and the fraction of the target's square that they and the base leave."""

    support: tuple[int, ...]
    error: float


def match(
    target: Tensor,
    base: Tensor,
    atoms: Tensor,
    keys: Sequence[object],
    library: Library,
    *,
    terms: int,
    most: int,
    stop: Callable[[], bool] = never,
) -> list[Match]:
    """Supports of up to `terms` atoms `(n, rows)` that come nearest to `target` `(rows,)` together with all
    of `base` `(k, rows)`; of those alike in `keys` only the best, and `most` of each size. Atoms are given
    the simplest first. Once `stop()` holds, no more atoms are added."""
    rows, beam = len(target), library.beam
    q = torch.linalg.qr(base.mT)[0]
    left = target - q @ (q.mT @ target)
    size = left.norm()
    if rows <= q.shape[1] + 2 or not size > NEGLIGIBLE * target.norm():
        return []
    left = left / size
    flat, alive = _orthogonal(atoms, q)
    room = rows - q.shape[1]
    scores = (flat @ left).square()
    numbers = {key: i for i, key in enumerate(dict.fromkeys(keys))}
    names = [numbers[key] for key in keys]
    found: dict[tuple[int, ...], Match] = {}

    def keep(supports: Iterable[tuple[tuple[int, ...], float]]) -> None:
        for support, error in supports:
            key = tuple(sorted(names[i] for i in support))
            candidate = Match(support, max(error, 0.0))
            if key not in found or candidate.error < found[key].error:
                found[key] = candidate

    order = scores.argsort(descending=True)[: 8 * beam].tolist()
    keep(((i,), 1 - float(scores[i])) for i in order if bool(alive[i]))
    for count in range(2, terms + 1):
        # More atoms beside an exact match would only fit its rounding.
        if room <= 2 * count or any(m.error < MATCH_ROUNDING for m in found.values()):
            break
        smaller = (m for m in found.values() if len(m.support) == count - 1)
        parents = sorted(smaller, key=lambda m: m.error)[:beam]
        if count == 2 and not stop():
            keep(_pairs(flat, left, alive, library))
        for parent in parents[: beam if count < 4 else beam // 4]:
            if stop():
                break
            keep(_extended(parent, flat, left, beam))
    ranked = sorted(found.values(), key=lambda m: match_score(m.error, rows, len(m.support)))
    # Many atoms come close to anything smooth; few with a constant yet to be fitted are the better start.
    return [m for n in range(1, terms + 1) for m in [r for r in ranked if len(r.support) == n][:most]]


def _orthogonal(atoms: Tensor, q: Tensor) -> tuple[Tensor, Tensor]:
    """The atoms free of what is spanned by the columns of `q`, of length 1; and which of them are left."""
    flat = atoms - (atoms @ q) @ q.mT
    length, before = flat.norm(dim=1), atoms.norm(dim=1)
    alive = torch.isfinite(length) & (length > DISTINCT * before) & (before > 0)
    flat = torch.where(alive[:, None], flat / torch.where(alive, length, 1.0)[:, None], 0.0)
    return flat, alive


def _pairs(
    flat: Tensor, left: Tensor, alive: Tensor, library: Library
) -> list[tuple[tuple[int, ...], float]]:
    """The best pairs of all pairs."""
    chosen = alive.nonzero()[: library.max_paired, 0]
    some = flat[chosen]
    a = some @ left
    rho = some @ some.mT
    free = 1 - rho.square()
    explained = (a.square()[:, None] + a.square() - 2 * a[:, None] * a * rho) / free.clamp(min=1e-12)
    explained = torch.where((free > PARALLEL).triu(diagonal=1), explained, -1.0)
    best = explained.flatten().topk(min(explained.numel(), 40 * library.beam))
    found = ((v, divmod(place, len(chosen))) for v, place in zip(*(b.tolist() for b in best), strict=True))
    return [((int(chosen[i]), int(chosen[j])), 1 - value) for value, (i, j) in found if value > 0]


def _extended(parent: Match, flat: Tensor, left: Tensor, beam: int) -> list[tuple[tuple[int, ...], float]]:
    """The best supports of one atom more."""
    q = torch.linalg.qr(flat[list(parent.support)].mT)[0]
    rest = left - q @ (q.mT @ left)
    # ⟨rest, atom⟩ needs no projection of the atom, for rest is free of q; only its length does.
    length = (1 - (flat @ q).square().sum(dim=1)).clamp(min=0.0)
    gain = torch.where(length > PARALLEL, (flat @ rest).square() / length.clamp(min=1e-12), 0.0)
    best = gain.topk(min(len(gain), beam))
    before = float(rest.square().sum())
    pairs = zip(*(b.tolist() for b in best), strict=True)
    return [((*parent.support, i), before - value) for value, i in pairs if i not in parent.support]
