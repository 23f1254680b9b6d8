"""An island: trees that vary, meet and are selected, with their constants fitted (memetic evolution).

Genetic programming with linear scaling (Keijzer 2003), constants by Levenberg-Marquardt (Kommenda et al.
2020) and semantic backpropagation: most children get the subexpression of a bank that comes nearest to what
one of their nodes would have to be.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from eqlearn.nn.primitives import Primitive
from eqlearn.numerics.criteria import EXACT_LOSS
from eqlearn.numerics.least_squares import Normal, Rule, levenberg_marquardt
from eqlearn.search.evolution.backpropagation import nearest, wanted
from eqlearn.search.evolution.trees import EMPTY, Operations, Trees
from eqlearn.search.settings import IslandSettings
from eqlearn.search.subexpressions.bank import Bank


@dataclass(frozen=True, eq=False)
class Rated:
    """Trees with the part of the target's variance that each leaves, and the key of its values: equal for
    trees that differ by a factor and an offset."""

    trees: Trees
    error: np.ndarray
    key: np.ndarray

    def take(self, rows: np.ndarray) -> Rated:
        return Rated(self.trees.take(rows), self.error[rows], self.key[rows])

    @staticmethod
    def joined(one: Rated, two: Rated) -> Rated:
        return Rated(
            Trees.joined([one.trees, two.trees]),
            np.concatenate([one.error, two.error]),
            np.concatenate([one.key, two.key]),
        )


def bank_trees(bank: Bank, operations: Operations, length: int) -> tuple[Trees, np.ndarray]:
    """The entries of a bank as trees, and which of them fit into the length."""
    made: dict[int, list[tuple[int, float, float]]] = {}

    def nodes(place: int) -> list[tuple[int, float, float]]:
        if place not in made:
            how, args, factor, shift = bank.made[place]
            if how == "column":
                made[place] = [(args[0], 1.0, 0.0)]
            else:
                (code, own, offset), *rest = nodes(args[0])
                first = [(code, own * factor, offset * factor + shift), *rest]
                made[place] = [(operations.code(_name(how)), 1.0, 0.0), *first]
                for argument in args[1:]:
                    made[place] = made[place] + nodes(argument)
        return made[place]

    trees = Trees.empty(operations, len(bank), length)
    fits = np.zeros(len(bank), dtype=bool)
    for i, place in enumerate(bank.places):
        row = nodes(place)
        if len(row) <= length:
            fits[i] = True
            code, factor, shift = (np.array(v) for v in zip(*row, strict=True))
            trees.code[i, : len(row)], trees.factor[i, : len(row)], trees.shift[i, : len(row)] = (
                code, factor, shift
            )  # fmt: skip
    return trees, fits


def _name(how: Primitive | str) -> Primitive | str:
    """The sign of a product or quotient; sums have it already, and functions have none."""
    return {"mul": "*", "div": "/"}.get(how.name, how) if isinstance(how, Primitive) else how


class Island:
    """A population of trees for one target `(rows,)` of columns `(columns, rows)`."""

    def __init__(
        self,
        X: np.ndarray,
        y: np.ndarray,
        bank: Bank,
        operations: Operations,
        settings: IslandSettings,
        rng: np.random.Generator,
    ) -> None:
        self.X, self.y, self.settings, self.rng, self.operations = X, y, settings, rng, operations
        self.about = y - y.mean()
        self.spread = float(self.about @ self.about)
        self.directions = rng.normal(size=(len(y), 2))
        trees, fits = bank_trees(bank, operations, settings.max_nodes)
        kept = np.flatnonzero(fits)
        self.stock, self.values = trees.take(kept), bank.values[kept]
        self.prices = np.geomspace(*settings.parsimony, 4)
        first = self.rated(self.stock)
        self.population = self.selected(first)

    @np.errstate(all="ignore")
    def rated(self, trees: Trees) -> Rated:
        """The trees scaled to the target, those that are not finite left out."""
        value, _ = trees.evaluate(self.X)
        # The root's own factor and shift are fitted anew.
        plain = value[0]
        about = plain - plain.mean(axis=1, keepdims=True)
        square = (about * about).sum(axis=1)
        slope = about @ self.about / square
        error = 1 - slope * (about @ self.about) / self.spread
        largest = np.abs(plain).max(axis=1)
        fine = np.isfinite(slope) & np.isfinite(error) & (square > 1e-20 * largest**2 * len(self.y))
        # Differences of squares lose half of the digits.
        close = np.flatnonzero(fine & (error < 1e-8))
        if close.size:
            left = self.about - slope[close, None] * about[close]
            error[close] = (left * left).sum(axis=1) / self.spread
        error = np.maximum(error, 0.0)
        factor, shift = trees.factor.copy(), trees.shift.copy()
        factor[:, 0] *= slope
        shift[:, 0] = slope * shift[:, 0] + self.y.mean() - slope * plain.mean(axis=1)
        key = (about / np.sqrt(square)[:, None]) @ self.directions
        key = np.round(1e7 * key * np.sign(key[:, :1]))
        kept = np.flatnonzero(fine)
        scaled = Trees(trees.operations, trees.code, factor, shift)
        return Rated(scaled.take(kept), error[kept], np.nan_to_num(key[kept]))

    def scores(self, rated: Rated) -> np.ndarray:
        """The logarithm of the error and the price of the length, for each of the prices: `(prices,
        members)`."""
        error = np.log(np.maximum(rated.error, EXACT_LOSS))
        return np.asarray(error + self.prices[:, None] * rated.trees.length)

    def selected(self, rated: Rated) -> Rated:
        """The survivors: of trees with the same values the shortest, then half of them the best at each
        price, the other half winners of tournaments."""
        order = np.lexsort((rated.error, rated.trees.length))
        _, first = np.unique(rated.key[order], axis=0, return_index=True)
        rated = rated.take(order[np.sort(first)])
        scores, count = self.scores(rated), self.settings.members
        if scores.shape[1] <= count:
            return rated
        each = count // (2 * len(scores))
        best = np.unique(np.argpartition(scores, each, axis=1)[:, :each])
        return rated.take(np.union1d(best, self._winners(scores, count - len(best))))

    def _winners(self, scores: np.ndarray, count: int) -> np.ndarray:
        """The winners of tournaments, each at a price of its own."""
        drawn = self.rng.integers(scores.shape[1], size=(count, self.settings.tournament))
        price = self.rng.integers(len(scores), size=count)
        return np.asarray(drawn[np.arange(count), np.argmin(scores[price[:, None], drawn], axis=1)])

    def evolve(self) -> Trees:
        """One generation; what is new in it."""
        children = self.fitted(self.rated(self.children()))
        known = {key.tobytes() for key in self.population.key}
        self.population = self.selected(Rated.joined(self.population, children))
        new = [i for i, key in enumerate(self.population.key) if key.tobytes() not in known]
        return self.population.trees.take(np.array(new, dtype=int))

    def children(self) -> Trees:
        """Varied copies of parents that won a tournament."""
        rng, settings, parents = self.rng, self.settings, self.population.trees
        count = settings.members
        trees = parents.take(self._winners(self.scores(self.population), count))
        kinds = rng.choice(5, size=count, p=settings.kinds)
        parts, places = [], []
        for kind, vary in enumerate(
            (self._inserted, self._replaced, self._crossed, self._hoisted, self._swapped)
        ):
            rows = np.flatnonzero(kinds == kind)
            if rows.size:
                made, place = vary(trees.take(rows))
                parts.append(made)
                places.append(place)
        made, place = Trees.joined(parts), np.concatenate(places)
        chosen = place >= 0
        better = self._backpropagated(made.take(np.flatnonzero(chosen)), place[chosen])
        return Trees.joined([better, made.take(np.flatnonzero(~chosen))])

    def _node(self, trees: Trees, least: int = 0) -> np.ndarray:
        """A node of each tree at random, not before `least` where there is one."""
        low = np.minimum(least, trees.size - 1)
        return np.asarray(low + np.floor(self.rng.random(len(trees)) * (trees.size - low)).astype(int))

    def _replaced(self, trees: Trees) -> tuple[Trees, np.ndarray]:
        """A node to be replaced by what is wanted there."""
        return trees, self._node(trees, 1)

    def _crossed(self, trees: Trees) -> tuple[Trees, np.ndarray]:
        """A subtree of another member in the place of a node."""
        others = self.population.trees
        donors = others.take(self.rng.integers(len(others), size=len(trees)))
        made, fits = trees.spliced(self._node(trees), donors, self._node(donors))
        return made.take(np.flatnonzero(fits)), np.full(int(fits.sum()), -1)

    def _hoisted(self, trees: Trees) -> tuple[Trees, np.ndarray]:
        """A node's argument in the place of the node."""
        place = self._node(trees)
        every = np.arange(len(trees))
        arity = trees.arity[every, place]
        inner = np.where(arity > 0, place + 1, place)
        second = np.minimum(
            inner + trees.below[every, np.minimum(inner, trees.code.shape[1] - 1)], trees.code.shape[1] - 1
        )
        inner = np.where((arity > 1) & (self.rng.random(len(trees)) < 0.5), second, inner)
        made, fits = trees.spliced(place, trees, inner)
        return made.take(np.flatnonzero(fits)), np.full(int(fits.sum()), -1)

    def _swapped(self, trees: Trees) -> tuple[Trees, np.ndarray]:
        """Another operation with as many arguments, and something below it as it is wanted then."""
        place, every = self._node(trees), np.arange(len(trees))
        arity = trees.arity[every, place]
        code = trees.code.copy()
        for count in (0, 1, 2):
            rows = np.flatnonzero(arity == count)
            same = np.flatnonzero(self.operations.arity[:-1] == count)
            if rows.size and same.size:
                code[rows, place[rows]] = self.rng.choice(same, size=rows.size)
        made = Trees(trees.operations, code, trees.factor, trees.shift)
        inner = (
            place + 1 + np.floor(self.rng.random(len(trees)) * (trees.below[every, place] - 1)).astype(int)
        )
        return made, np.where(trees.below[every, place] > 1, inner, -1)

    def _inserted(self, trees: Trees) -> tuple[Trees, np.ndarray]:
        """A new operation above a node, and beside it what is wanted there."""
        rng, operations, every = self.rng, self.operations, np.arange(len(trees))
        place = self._node(trees)
        codes = np.flatnonzero(operations.arity[:-1] > 0)
        chance = np.where(operations.arity[codes] > 1, 3.0, 1.0)
        new = rng.choice(codes, size=len(trees), p=chance / chance.sum())
        width = trees.code.shape[1]
        one = operations.arity[new] == 1
        first = rng.random(len(trees)) < 0.5
        size = trees.below[every, place]
        # The patch: the operation, and the node's subtree with a leaf before or behind it.
        patch = Trees.empty(operations, len(trees), width + 2)
        columns = np.arange(width + 2)[None]
        begins = np.where(one | first, 1, 2)[:, None]
        source = np.clip(columns - begins + place[:, None], 0, width - 1)
        inside = (columns >= begins) & (columns < begins + size[:, None])
        leaf = np.where(one, -1, np.where(first, 1 + size, 1))
        for name in ("code", "factor", "shift"):
            mine = np.take_along_axis(getattr(trees, name), source, 1)
            patched = getattr(patch, name)
            patched[inside] = mine[inside]
        rows = np.flatnonzero(~one)
        patch.code[rows, leaf[rows]] = rng.integers(operations.columns, size=rows.size)
        patch.code[:, 0] = new
        made, fits = trees.spliced(place, patch, np.zeros(len(trees), dtype=int))
        # Of a function, what is wanted below it.
        inner = np.floor(rng.random(len(trees)) * size).astype(int)
        asked = place + np.where(one, 1 + inner, leaf)
        kept = np.flatnonzero(fits)
        return made.take(kept), asked[kept]

    def _backpropagated(self, trees: Trees, places: np.ndarray) -> Trees:
        """The trees with the node at each place replaced by the entry of the bank that comes nearest to what
        is wanted there."""
        settings, rng = self.settings, self.rng
        if not len(trees):
            return trees
        plain = rng.random(len(trees)) < settings.plain
        factor, shift = trees.factor.copy(), trees.shift.copy()
        factor[plain, 0], shift[plain, 0] = 1.0, 0.0
        trees = trees.with_numbers(factor, shift)
        values, _ = trees.evaluate(self.X)
        every = np.arange(len(trees))
        with np.errstate(all="ignore"):
            slope = trees.slopes(values)[places, every]
        aim = wanted(trees, values, places, self.y)
        # Not all of the bank: another part of it for each generation keeps the population varied.
        part = rng.choice(len(self.values), size=min(settings.offered, len(self.values)), replace=False)
        prices = rng.choice(self.prices, size=len(trees))
        match = nearest(aim, slope, self.values[part], self.stock.length[part], prices, self.spread)
        patch = self.stock.take(part[match.entry])
        factor, shift = patch.factor.copy(), patch.shift.copy()
        with np.errstate(invalid="ignore"):
            shift[:, 0] = shift[:, 0] * match.factor + match.shift
        factor[:, 0] = factor[:, 0] * match.factor
        patch = Trees(patch.operations, patch.code, factor, shift)
        usable = np.isfinite(match.factor) & np.isfinite(match.shift)
        made, fits = trees.spliced(places, patch, np.zeros(len(trees), dtype=int))
        return made.take(np.flatnonzero(fits & usable))

    def fitted(self, rated: Rated) -> Rated:
        """The most promising with their constants fitted."""
        settings = self.settings
        count = min(settings.fitted, len(rated.error))
        trees = rated.trees
        free = self._free(trees)
        worth = (free.sum(axis=1) > 2) & (rated.error > EXACT_LOSS)
        ranks = np.argsort(np.argsort(self.scores(rated), axis=1, kind="stable"), axis=1).min(axis=0)
        best = np.argsort(np.where(worth, ranks, len(ranks)), kind="stable")[:count]
        best = best[worth[best]]
        if not best.size:
            return rated
        rest = np.setdiff1d(np.arange(len(rated.error)), best)
        return Rated.joined(rated.take(rest), self.rated(self.polished(trees.take(best), settings.steps)))

    @staticmethod
    def _free(trees: Trees) -> np.ndarray:
        """Which factors and shifts are constants to be fitted, `(members, 2 · length)`; the root's are."""
        used = trees.code != EMPTY
        factor, shift = used & (np.abs(trees.factor) != 1.0), used & (trees.shift != 0)
        factor[:, 0] = shift[:, 0] = True
        return np.concatenate([factor, shift], axis=1)

    def polished(self, trees: Trees, steps: int) -> Trees:
        """The trees with their constants fitted by least squares."""
        free = self._free(trees)
        most = min(int(free.sum(axis=1).max()), self.settings.max_constants)
        order = np.argsort(~free, axis=1, kind="stable")[:, :most]
        usable = np.take_along_axis(free, order, 1)
        numbers = np.concatenate([trees.factor, trees.shift], axis=1)
        length, rows = trees.code.shape[1], len(self.y)

        def with_numbers(point: np.ndarray) -> Trees:
            whole = numbers.copy()
            np.put_along_axis(whole, order, point, 1)
            return trees.with_numbers(whole[:, :length], whole[:, length:])

        @np.errstate(all="ignore")
        def linearise(point: torch.Tensor) -> Normal:
            at = with_numbers(point.numpy())
            values, plain = at.evaluate(self.X)
            slopes = at.slopes(values)
            every = np.arange(len(at))[:, None]
            place = order % length
            by = slopes[place, every] * np.where((order < length)[..., None], plain[place, every], 1.0)
            by = np.where(usable[..., None], by, 0.0)
            residual = values[0] - self.y
            return Normal.summed([(torch.from_numpy(residual), torch.from_numpy(by), None)], rows)

        start = torch.from_numpy(np.take_along_axis(numbers, order, 1))
        point, _ = levenberg_marquardt(
            linearise, start, Rule(steps, damping=1e-3, enough=EXACT_LOSS * 1e-6 * self.spread / rows),
            fixed=torch.from_numpy(~usable),
        )  # fmt: skip
        return with_numbers(point.numpy())
