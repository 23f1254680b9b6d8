"""Every small structure behind the encoders of a warm start, fitted with the latents free to bend."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import sympy as sp
import torch
from torch import Tensor

from eqlearn.errors import EqlearnError
from eqlearn.latent.comparison.bend import Basis
from eqlearn.latent.comparison.grammar import Grammar, from_sympy
from eqlearn.latent.comparison.served import Comparison, Served, serve, served_again
from eqlearn.latent.comparison.structures import Program, Tree, by_output, operation, size, symbolic
from eqlearn.latent.joint import compare_on, encode_all
from eqlearn.latent.settings import LATENT, LatentSettings
from eqlearn.latent.warm_start import Encoders, Start
from eqlearn.nn.primitives import Primitive
from eqlearn.numerics.budget import never
from eqlearn.search.search import discover
from eqlearn.symbolic.equation import Equation
from eqlearn.symbolic.expressions import real_symbol
from eqlearn.validation.latents import LatentData


@dataclass(frozen=True, eq=False)
class Choice:
    """A structure with what it was fitted on: its comparison, and the bases of its bends."""

    fit: Served
    data: Comparison
    bases: tuple[Basis, ...]
    columns: tuple[str, ...]

    @property
    def error(self) -> float:
        return self.fit.error

    @property
    def size(self) -> int:
        return self.fit.size

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(slot.name for slot in self.data.slots)

    def skeletons(self) -> tuple[Equation, ...]:
        """The structures as formulas, their constants by their fitted values, latents as they are bent."""
        symbols = [real_symbol(name) for name in (*self.names, *self.columns)]
        found = []
        for tree, (_, _, own, _) in zip(
            self.fit.trees, by_output(self.fit.trees, self.fit.numbers), strict=True
        ):
            numbers = iter([sp.Float(float(c), 6) for c in own])
            found.append(Equation(symbolic(tree, symbols, numbers), (*self.names, *self.columns)))
        return tuple(found)

    def steps(self) -> Iterator[tuple[Program, list[np.ndarray]]]:
        """Each output's program with the value of every step of it, on the rows compared."""
        fit, data = self.fit, self.data
        latents = [(data.designs[s.input] @ fit.bends[s.group][s.place]).numpy() for s in data.slots]
        for program, factors, own, _ in by_output(fit.trees, fit.numbers):
            scaled = [c * x for c, x in zip(factors, data.columns.numpy(), strict=True)]
            with np.errstate(all="ignore"):
                yield program, program.values([*latents, *scaled], own)

    def values(self) -> Tensor:
        """What the law gives `(outputs, rows)`, in the user's units."""
        factors, offsets = self.fit.readout[::2], self.fit.readout[1::2]
        last = np.stack([values[-1] for _, values in self.steps()])
        return torch.from_numpy(factors[:, None] * last + offsets[:, None])


def compare(
    start: Start,
    data: LatentData,
    primitives: Sequence[Primitive],
    *,
    latents: int | None = None,
    seed: int = 0,
    settings: LatentSettings = LATENT,
    stop: Callable[[], bool] = never,
    on_best: Callable[[Choice], object] | None = None,
) -> list[Choice]:
    """Every small structure behind the encoders of a warm start, the smallest error first.

    Structures in which every variable stands once are enumerated by size, also without the columns that the
    head hardly uses and with fewer latents than an encoder gives. If none is far better than the head,
    functions that are not known yet are put on parts of them and then found; if none comes near the head's
    error, the best are grown, beside what `discover` finds on the latents as they are. `on_best` is told the
    best structure now and then.
    """
    encoders, sample = start.model.encoders, data.sample(settings.compared)
    families = []
    for slots in _slot_counts(encoders, latents):
        comparison, bases = compare_on(encoders, sample, slots, settings)
        grammar = Grammar.of(primitives, [s.group for s in comparison.slots], len(comparison.columns))
        searches = []
        for output in range(len(comparison.spreads)):
            one = comparison.of_output(output)
            choice = partial(Choice, data=one, bases=tuple(bases), columns=data.columns)
            told = None if on_best is None else lambda fit, choice=choice: on_best(choice(fit))
            searches.append(_Search(one, grammar, start, output, seed, settings, stop, told))
        families.append((comparison, bases, searches))
        if stop():
            break
    for output in range(len(families[0][2])):
        each = [searches[output] for *_, searches in families]
        for functions in (1, 2) if settings.growth else ():
            if not any(search.is_better_than_the_head for search in each):
                for search in each:
                    search.fill(functions)
        rounds = [search.grow() for search in each if settings.growth]
        while rounds and not stop() and not any(search.reached for search in each):
            rounds = [growing for growing in rounds if next(growing, None) is not None]
    found: list[Choice] = []
    for comparison, bases, searches in families:
        if all(search.fits for search in searches):
            fits = (
                searches[0].fits
                if len(searches) == 1
                else _together(comparison, [search.fits for search in searches], start.error, settings, stop)
            )
            found += [Choice(fit, comparison, tuple(bases), data.columns) for fit in fits]
    return sorted(found, key=lambda c: c.error)


def _slot_counts(encoders: Encoders, latents: int | None) -> Iterator[tuple[int, ...]]:
    """How many latents of each encoder an equation may use: one, two, ... up to what it gives."""
    most = max(encoders.sizes)
    for count in [latents] if latents is not None else range(1, min(most, 3) + 1):
        yield tuple(min(count, size) for size in encoders.sizes)


class _Search:
    """The best structures for one output, smallest error first: enumerated at once, grown when asked to."""

    def __init__(
        self,
        data: Comparison,
        grammar: Grammar,
        start: Start,
        output: int,
        seed: int,
        settings: LatentSettings,
        stop: Callable[[], bool],
        on_best: Callable[[Served], object] | None,
    ) -> None:
        self.data, self.grammar, self.settings, self.seed, self.stop = data, grammar, settings, seed, stop
        self.on_best = on_best
        self.fits: list[Served] = []
        self.enough = settings.confirmed * start.error
        self.seen: set[bytes] = set()
        self.needed: list[list[int]] = []
        latents, trees = list(range(len(data.slots))), list[Tree]()
        for number, columns in enumerate(_nested(start.importance[output], start.held_error, len(latents))):
            # One of several outputs may do without the latents, as the rate of a position does.
            alone = [columns] if columns and len(start.importance) > 1 else []
            for needed in ([*latents, *columns], *alone):
                if len(needed) <= settings.needed:
                    most = settings.structures if number == 0 else settings.structures // 4
                    trees += grammar.enumerate(needed, most)
                    self.needed.append(needed)
        self._look_at(trees)

    @property
    def error(self) -> float:
        return self.fits[0].error if self.fits else math.inf

    @property
    def reached(self) -> bool:
        """Whether some structure is as good as the head."""
        return self.error <= self.enough

    @property
    def is_better_than_the_head(self) -> bool:
        """Whether some structure is far better than the head, as no mere imitation of a law is."""
        return self.error <= self.settings.superior * self.enough

    def _new(self, trees: Iterable[Tree]) -> list[Tree]:
        """Those that were not seen before and that no bend makes superfluous."""
        fresh = []
        for tree in trees:
            key = self.grammar.signature(tree)
            if key is not None and key not in self.seen and not self.grammar.is_redundant(tree):
                self.seen.add(key)
                fresh.append(tree)
        return fresh

    def grow(self) -> Iterator[float]:
        """What `discover` finds on the latents as they are, and then neighbours of the best and of the
        smallest structures, as long as they gain. Gives the error after each round."""
        settings = self.settings
        yield self._look_at(_from_discover(self.data, self.grammar, self.seed, settings))
        before = math.inf
        for _ in range(settings.growth):
            if self.error > 0.8 * before:
                return
            before = self.error
            small = sorted(self.fits, key=lambda f: (f.size, f.error))
            parents = [f.trees[0] for f in (*self.fits[: settings.grown_from], *small[: settings.grown_from])]
            yield self._look_at(n for tree in dict.fromkeys(parents) for n in self.grammar.neighbours(tree))

    def _look_at(self, trees: Iterable[Tree]) -> float:
        fresh = sorted(self._new(trees), key=size)[: 2 * self.settings.structures]
        more = _screened(self.data, fresh, self.seed, self.settings, self.stop) if fresh else []
        self.fits = sorted([*self.fits, *more], key=lambda f: f.error)
        if self.on_best is not None and self.fits:
            self.on_best(self.fits[0])
        return self.error

    def fill(self, functions: int) -> None:
        """Looks at structures with that many unknown functions, filled in."""
        if not self.stop():
            self._look_at(self._filled(functions))

    def _filled(self, functions: int) -> Iterator[Tree]:
        """The best structures with that many unknown functions, with known ones in their place."""
        settings, grammar = self.settings, self.grammar
        free = [f for needed in self.needed for f in grammar.freed(needed, functions)]
        if free and len(free) <= 2 * settings.structures:
            fits = _screened(self.data, free, self.seed, settings, self.stop, long=True)
            half = settings.grown_from // 2
            for place, fit in enumerate(fits[: settings.grown_from if functions == 1 else half]):
                yield from grammar.filled(fit.trees[0], deep=functions == 1 and place < half)


def _nested(importance: Sequence[float], error: float, latents: int) -> Iterator[list[int]]:
    """All columns, and again without the least important ones, until one is clearly needed."""
    order = sorted(range(len(importance)), key=lambda j: -importance[j])
    for count in range(len(order), -1, -1):
        yield [latents + j for j in sorted(order[:count])]
        if count and importance[order[count - 1]] > 0.01 + 5 * error:
            return


def _screened(
    data: Comparison,
    trees: Sequence[Tree],
    seed: int,
    settings: LatentSettings,
    stop: Callable[[], bool],
    *,
    long: bool = False,
) -> list[Served]:
    """The structures worth a second look: fitted on few rows, and the best of them on more; `long` at once,
    also where there are many."""
    few, fits, piece = data.some(settings.screened), [], 50
    first = 15 if long or 2 * len(trees) <= settings.structures else 5
    ordered = sorted(trees, key=size)  # when time is short, the smallest have been fitted
    for begin in range(0, len(ordered), piece):
        some = [(tree,) for tree in ordered[begin : begin + piece]]
        fits += serve(few, some, starts=settings.serving_starts, steps=first, seed=seed)
        if stop():
            break
    # Half-fitted, the worse half goes, but for the smallest.
    fits = sorted((f for f in fits if np.isfinite(f.error)), key=lambda f: f.error)
    small = sorted(fits, key=lambda f: (f.size, f.error))[: settings.kept]
    fits = list({id(f): f for f in (*fits[: max(settings.kept, len(fits) // 3)], *small)}.values())
    fits = sorted(served_again(few, fits, steps=10, stop=stop), key=lambda f: f.error) if fits else []
    kept = _promising(fits, settings.kept)
    return sorted(served_again(data, kept, stop=stop), key=lambda f: f.error) if kept else []


def _promising(fits: Sequence[Served], most: int) -> list[Served]:
    """The best fits, the shortest that come near them, which are what is looked for, and the shortest of all,
    which may only need a longer fit."""
    best = sorted((f for f in fits if np.isfinite(f.error)), key=lambda f: f.error)
    small = sorted(best, key=lambda f: (f.size, f.error))
    near = [f for f in small if f.error <= 10 * best[0].error]
    third = most // 3
    return list({id(f): f for f in (*best[:third], *near[:third], *small[:third])}.values())


def _from_discover(data: Comparison, grammar: Grammar, seed: int, settings: LatentSettings) -> list[Tree]:
    """The structures of the equations that `discover` finds on the latents as they are."""
    latents = [(data.designs[s.input] @ data.identities[s.group][s.place]).numpy() for s in data.slots]
    table = np.stack([*latents, *data.columns.numpy()], axis=1)
    names = [f"v{i}" for i in range(table.shape[1])]
    try:
        found = discover(
            table,
            data.y[0].numpy(),
            primitives=[operation(name) for name in ("id", *grammar.unary, *grammar.binary[2:])],
            seconds=settings.front_seconds,
            seed=seed,
            variables=names,
        )
    except EqlearnError:  # nothing to find on these latents is no failure of the comparison
        return []
    trees = (from_sympy(c.equation.expr, names, grammar) for c in found.front)
    return [tree for tree in trees if tree is not None]


def credible_error(best: float, head_error: float, settings: LatentSettings) -> float:
    """What a law may leave to be worth a closer look: a few times the best, or the head's; but a law far
    better than the head makes the head's error no yardstick."""
    return settings.tolerance * max(best, min(head_error, 100 * best)) + 1e-9


def _together(
    data: Comparison,
    best: Sequence[Sequence[Served]],
    head_error: float,
    settings: LatentSettings,
    stop: Callable[[], bool],
) -> list[Served]:
    """Several outputs share their latents: the best structures of each, in all combinations, fitted with the
    same bends."""
    per = max(2, round(200 ** (1 / len(best))))
    lists = []
    for fits in best:
        near = [f for f in fits if f.error <= credible_error(fits[0].error, head_error, settings)]
        lists.append([f.trees[0] for f in sorted(near, key=lambda f: (f.size, f.error))[:per]])
    trees = list(product(*lists))
    fits = serve(data.some(settings.screened), trees, starts=settings.serving_starts, steps=15, stop=stop)
    kept = _promising(fits, settings.kept)
    return sorted(served_again(data, kept, stop=stop), key=lambda f: f.error) if kept else []


def carried(choice: Choice, model: Any, data: LatentData, settings: LatentSettings) -> Choice:
    """The law on encoders that were trained on with it: bends and constants as the joint model has them now,
    on a fresh basis."""
    encoders, sample = model.encoders, data.sample(settings.compared)
    slots = [len(b) for b in choice.fit.bends]
    comparison, bases = compare_on(encoders, sample, slots, settings)
    z, bends = encode_all(encoders, sample), []
    with torch.no_grad():
        for group, basis in enumerate(bases):
            mine = torch.cat([z[i] for i, g in enumerate(encoders.groups) if g == group])
            bent = model.bends[group](mine)
            bends.append(torch.stack([basis.coefficients(mine, column) for column in bent.mT]))
        numbers = model.numbers().numpy()
    a, b = len(choice.fit.factors), len(choice.fit.factors) + len(choice.fit.constants)
    fit = replace(
        choice.fit, bends=tuple(bends), factors=numbers[:a], constants=numbers[a:b], readout=numbers[b:]
    )
    return Choice(fit, comparison, tuple(bases), choice.columns)
