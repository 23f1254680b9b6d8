"""A bank of subexpressions, grown from the columns by size, each once: what laws are put together from.

Subexpressions that differ by a factor and an offset only are one, since whatever is put together from them
has both free. Constants inside of functions come from a grid; fits move them afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import numpy as np
import torch

from eqlearn.nn.primitives import Primitive
from eqlearn.numerics.budget import never
from eqlearn.search.ansatz.layout import Sum, Unit
from eqlearn.search.ansatz.library import homogeneous, parity
from eqlearn.search.ansatz.terms import Terms
from eqlearn.search.networks.starts import angular_frequency
from eqlearn.search.problem import Problem, remembered, thinned_rows
from eqlearn.search.settings import MAX_DEGREE
from eqlearn.search.subexpressions.bank_settings import BankSettings

# How an entry is made: of a column, a sum, a difference, or a primitive of a factor times entries, plus a
# shift.
Made = tuple["Primitive | str", tuple[int, ...], float, float]


OPERATIONS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "*": np.multiply,
    "/": np.divide,
    "+": np.add,
    "-": np.subtract,
}


@dataclass(frozen=True, eq=False)
class Bank:
    """Values `(entries, rows)` in the user's units, the simplest first, what they cost, and their `places` in
    the list of how everything is `made`."""

    values: np.ndarray
    costs: np.ndarray
    places: list[int]
    made: list[Made]
    scales: Sequence[float]  # of the columns, which a search sees divided by them
    led: int = 0  # how many products of columns come first

    def __len__(self) -> int:
        return len(self.places)

    @cached_property
    def normed(self) -> np.ndarray:
        """The values about their mean, of length one."""
        about = self.values - self.values.mean(axis=1, keepdims=True)
        return np.asarray(about / np.linalg.norm(about, axis=1, keepdims=True))

    def first(self, count: int) -> Bank:
        """The simplest so many."""
        return replace(self, values=self.values[:count], costs=self.costs[:count], places=self.places[:count])

    def thinned(self, rows: int) -> Bank:
        """The same on this number of rows, those that a problem keeps."""
        chosen = thinned_rows(self.values.shape[1], rows)
        return replace(self, values=self.values[:, chosen]) if len(chosen) < self.values.shape[1] else self

    def blocks(self) -> list[np.ndarray]:
        """The values of all entries, as one block."""
        return [self.values]

    def cost(self, entry: int) -> float:
        return float(self.costs[entry])

    def term(self, entry: int) -> Sum:
        """The formula of an entry."""
        return self._term(self.places[entry])

    def terms(self, *entries: int) -> Terms:
        """Some entries as terms of a sum."""
        return Terms(self.values[list(entries)], tuple(partial(self.term, entry) for entry in entries))

    def _term(self, place: int) -> Sum:
        how, args, factor, shift = self.made[place]
        if how == "column":
            return Sum(((args[0], self.scales[args[0]]),))
        terms = [self._term(a) for a in args]
        if how in ("+", "-"):
            return terms[0] + terms[1] * (1.0 if how == "+" else -1.0)
        assert isinstance(how, Primitive)
        terms[0] = terms[0] * factor + Sum(constant=shift)
        return Sum.of(Unit(how, tuple(terms)))


@np.errstate(all="ignore")
def grown(
    problem: Problem,
    most: int,
    stop: Callable[[], bool] = never,
    monomials: int = 0,
    quotients: bool = False,
    exact: bool = False,
) -> Bank:
    """The simplest `most` subexpressions of the columns, after the products of columns of all degrees of
    which there are at most `monomials`, and their inverses and `quotients` of two; fewer if `stop()` holds
    before. Where an entry must be `exact`, since nothing will be fitted, inner numbers are only such as stand
    in formulas."""
    scales = problem.features.scales
    columns = problem.samples.x[: len(scales)].numpy() * np.array(scales)[:, None]
    growth = _Growth(problem, columns, most, stop, monomials, quotients, exact)
    costs = np.array(growth.costs)
    order = np.lexsort((costs, np.arange(len(costs)) >= growth.led))[:most]
    values = np.array([growth.values[i] for i in order]).reshape(len(order), columns.shape[1])
    return Bank(values, costs[order], order.tolist(), growth.made, scales, growth.led)


@remembered(2)  # of the search that is under way, and of one in fewer variables
def exact_ground(problem: Problem, stop: Callable[[], bool]) -> tuple[Problem, Bank]:
    """The rows on which exact laws are looked for, and the bank that all who look for them share."""
    settings = problem.settings.bank
    some = problem.thinned(settings.exact_rows)
    return some, grown(some, settings.entries, stop, exact=True)


@dataclass
class _Growth:
    problem: Problem
    columns: np.ndarray
    most: int
    stop: Callable[[], bool]
    monomials: int = 0
    quotients: bool = False
    exact: bool = False
    led: int = 0
    values: list[np.ndarray] = field(default_factory=list)
    costs: list[float] = field(default_factory=list)
    made: list[Made] = field(default_factory=list)
    levels: dict[int, list[int]] = field(default_factory=dict)
    seen: set[bytes] = field(default_factory=set)
    chains: list[list[tuple[int, int]]] = field(default_factory=list)  # by last column, and place

    def __post_init__(self) -> None:
        self.settings: BankSettings = self.problem.settings.bank
        rows = self.columns.shape[1]
        self.directions = np.random.default_rng(0).normal(size=(rows, 3))
        self.add(1, self.columns, [("column", (i,), 1.0, 0.0) for i in range(len(self.columns))], 1.0)
        if self.monomials:
            self.multiply()
            if self.quotients:
                self.divide()
            self.led = len(self.made)
        for level in range(2, self.settings.max_level + 1):
            for values, made, cost in self.level(level):
                if self.full():
                    break
                self.add(level, values, made, cost)
            if self.full() or len(self.made) >= self.most:
                break

    def multiply(self) -> None:
        """Takes up the products of columns, each column times what begins with it or a later one."""
        times = self.problem.vocabulary.named("mul")
        latest, degree = [(place, place) for place in range(len(self.made))], 1
        while times is not None and latest and degree < MAX_DEGREE:
            degree += 1
            pairs = [(i, place) for first, place in latest for i in range(first + 1)]
            if len(self.made) + len(pairs) > self.monomials:
                break
            latest = []
            for i, place in pairs:
                before = len(self.made)
                values = self.values[i] * self.values[place]
                self.add(2 * degree - 1, values[None], [(times, (i, place), 1.0, 0.0)], 2.0 * degree - 1)
                latest += [(i, before)] if len(self.made) > before else []

    def divide(self) -> None:
        """Takes up the inverses of columns, and quotients of two."""
        inverse, over = (self.problem.vocabulary.named(name) for name in ("inv", "div"))
        for i, column in enumerate(self.columns):
            if inverse is not None:
                self.add(2, 1 / column[None], [(inverse, (i,), 1.0, 0.0)], 2.0)
            others = [j for j in range(len(self.columns)) if j != i and over is not None]
            if over is not None and others:
                made: list[Made] = [(over, (i, j), 1.0, 0.0) for j in others]
                self.add(3, column / self.columns[others], made, 3.0)

    def full(self) -> bool:
        """Whether there is enough to choose the simplest from, or no time for more."""
        return len(self.made) >= self.settings.surplus * self.most or self.stop()

    def add(self, level: int, values: np.ndarray, made: list[Made], cost: float | Sequence[float]) -> None:
        """Takes up what is finite, varies in more than one row, and is new."""
        about = values - values.mean(axis=1, keepdims=True)
        squares = about * about
        total, largest = squares.sum(axis=1), np.abs(values).max(axis=1)
        fine = np.isfinite(values).all(axis=1) & (total > 1e-16 * largest**2 * values.shape[1])
        fine &= squares.max(axis=1) < self.settings.max_one_row * total
        keys = about @ self.directions / np.sqrt(total)[:, None]
        keys = np.round(1e8 * keys * np.sign(keys[:, :1]))
        costs = [cost] * len(made) if isinstance(cost, float) else cost
        for i in np.flatnonzero(fine).tolist():
            key = keys[i].astype(np.int64).tobytes()
            if key not in self.seen:
                self.seen.add(key)
                self.levels.setdefault(level, []).append(len(self.made))
                self.values.append(values[i])
                self.made.append(made[i])
                self.costs.append(costs[i])

    def level(self, level: int) -> Iterator[tuple[np.ndarray, list[Made], Sequence[float]]]:
        """Everything of this size, in blocks: sums, products and quotients, then functions."""
        yield from self._chained(level)
        for one in range(1, level - 1):
            other = level - 1 - one
            if one <= other:
                for i in list(self.levels.get(one, ())):
                    yield from self._joined(
                        i, [j for j in self.levels.get(other, ()) if other > one or j > i]
                    )
        arguments = list(self.levels.get(level - 1, ()))
        for primitive in self.problem.vocabulary.unary:
            if arguments and primitive.name != "id":
                yield from self._applied(primitive, arguments)
        for primitive in self.problem.vocabulary.unary:
            for i in list(self.levels.get(level - 2, ())):
                yield from self._on_a_grid(primitive, i, level)

    def _chained(self, level: int) -> Iterator[tuple[np.ndarray, list[Made], list[float]]]:
        """Inverses; then products of powers ±1 of columns, and sums of columns with signs, of any number of
        them: laws of nature are full of them, so a longer one costs little more."""
        columns = [(self.made[place][1][0], place) for place in self.levels.get(1, ())]
        times, over, inverse = (self.problem.vocabulary.named(name) for name in ("mul", "div", "inv"))
        if level == 2:
            self.chains = [list(columns), list(columns)]
            for column, place in columns:
                if inverse is not None:
                    yield from self._link(0, column, float(level), inverse, (place,), 1 / self.values[place])
        for count in range(2, len(columns) + 1) if level == 3 else ():
            cost = level + self.settings.longer * (count - 2)
            for k, signs in enumerate((((times, "*"), (over, "/")), (("+", "+"), ("-", "-")))):
                latest, self.chains[k] = self.chains[k], []
                for last, chain in latest:
                    for column, place in columns:
                        for how, sign in signs if column > last else ():
                            if how is not None:
                                value = OPERATIONS[sign](self.values[chain], self.values[place])
                                yield from self._link(k, column, cost, how, (chain, place), value)

    def _link(
        self, k: int, column: int, cost: float, how: Primitive | str, args: tuple[int, ...], value: np.ndarray
    ) -> Iterator[tuple[np.ndarray, list[Made], list[float]]]:
        """An entry that ends in a column, from which others go on if it is new."""
        before = len(self.made)
        yield value[None], [(how, args, 1.0, 0.0)], [cost]
        self.chains[k] += [(column, before)] if len(self.made) > before else []

    def _joined(self, i: int, others: list[int]) -> Iterator[tuple[np.ndarray, list[Made], list[float]]]:
        if not others:
            return
        one, many = self.values[i], np.array([self.values[j] for j in others])
        costs = [self.costs[i] + self.costs[j] + 1 for j in others]
        times, over = (self.problem.vocabulary.named(name) for name in ("mul", "div"))
        if times is not None:
            yield one * many, [(times, (i, j), 1.0, 0.0) for j in others], costs
        if over is not None:
            yield one / many, [(over, (i, j), 1.0, 0.0) for j in others], costs
            yield many / one, [(over, (j, i), 1.0, 0.0) for j in others], costs
        yield one + many, [("+", (i, j), 1.0, 0.0) for j in others], costs
        yield one - many, [("-", (i, j), 1.0, 0.0) for j in others], costs

    def _applied(
        self, primitive: Primitive, arguments: list[int]
    ) -> Iterator[tuple[np.ndarray, list[Made], list[float]]]:
        """A function of each argument, with both signs where they differ."""
        values = np.array([self.values[i] for i in arguments])
        nested = [_is_steep(self.made[i][0]) for i in arguments]
        extra = self.settings.nested * _is_steep(primitive)
        costs = [self.costs[i] + 1 + extra * deep for i, deep in zip(arguments, nested, strict=True)]
        for sign in (1.0,) if parity(primitive) else (1.0, -1.0):
            yield _values(primitive, sign * values), [(primitive, (i,), sign, 0.0) for i in arguments], costs

    def _on_a_grid(
        self, primitive: Primitive, i: int, level: int
    ) -> Iterator[tuple[np.ndarray, list[Made], list[float]]]:
        """A function of multiples of an argument, or of a column with something added where multiples come
        out of it; relative to the argument's size, so that no unit of measurement is favoured."""
        settings, value, column = self.settings, self.values[i], self.made[i][0] == "column"
        if primitive.name == "id" or level > settings.max_grid_level or self._has_number(i):
            return
        low, high, size = float(value.min()), float(value.max()), float(np.abs(value).max())
        if homogeneous(primitive):
            if not column:
                return
            span = high - low
            gaps = () if self.exact else settings.gaps
            above = [*settings.shifts, *(g * span - low for g in gaps)]
            below = [*settings.shifts, *(-g * span - high for g in gaps)]
            numbers = [(1.0, s) for s in above if low + s > 0] + [(-1.0, -s) for s in below if high + s < 0]
        else:
            wave = angular_frequency(primitive)
            if self.exact:
                factors = [f / (wave or 1.0) for f in settings.factors]
            elif wave:
                turns = settings.turns if column else settings.few_turns
                factors = [t / (high - low) / wave for t in turns] + [f / wave for f in settings.factors]
            else:
                factors = [f / size for f in settings.relative] + list(settings.factors)
            numbers = [(f, 0.0) for f in factors]
            if not parity(primitive):
                numbers += [(-f, 0.0) for f in factors]
        if not numbers:
            return
        arguments = np.array([f * value + s for f, s in numbers])
        cost = self.costs[i] + 1 + settings.number
        yield (
            _values(primitive, arguments),
            [(primitive, (i,), f, s) for f, s in numbers],
            [cost] * len(numbers),
        )

    def _has_number(self, i: int) -> bool:
        how, args, factor, shift = self.made[i]
        if how == "column":
            return False
        return abs(factor) != 1.0 or shift != 0.0 or any(self._has_number(a) for a in args)


def _is_steep(how: Primitive | str) -> bool:
    """Whether it is a function of one argument whose factor matters, such as a sine or an exponential."""
    return isinstance(how, Primitive) and how.arity == 1 and not homogeneous(how)


def _values(primitive: Primitive, arguments: np.ndarray) -> np.ndarray:
    value: torch.Tensor = primitive(torch.from_numpy(arguments))
    return value.numpy()


def is_for_banks(problem: Problem) -> bool:
    """Whether there is one target, and rows enough to tell combinations apart."""
    return problem.samples.y.shape[0] == 1 and problem.samples.rows >= problem.settings.bank.min_rows
