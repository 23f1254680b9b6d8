"""Many formulas as trees in a few arrays: evaluated, differentiated and varied all at once.

A tree is a row of codes in prefix order. Every node has a factor and a shift of its own, so that constants
need no nodes: its value is factor · operation(children) + shift.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch

from eqlearn.nn.primitives import Primitive
from eqlearn.search.ansatz.layout import Sum, Unit
from eqlearn.search.ansatz.target_transform import slope_of
from eqlearn.search.networks.structures import Vocabulary
from eqlearn.search.subexpressions.bank import OPERATIONS

EMPTY = -1
_SIGNS = ("+", "-", "*", "/")


@dataclass(frozen=True)
class Operations:
    """What the codes of a tree mean: first the columns, then functions, then the signs that are allowed."""

    columns: int
    unary: tuple[Primitive, ...]
    signs: tuple[str, ...]
    primitives: tuple[Primitive | None, ...]  # of the signs; a sum has none

    @classmethod
    def of(cls, vocabulary: Vocabulary, columns: int) -> Operations:
        """Those of a search's vocabulary; sums and differences always."""
        unary = tuple(p for p in dict.fromkeys(vocabulary.unary) if p.name != "id")
        named = {"+": None, "-": None, "*": vocabulary.named("mul"), "/": vocabulary.named("div")}
        signs = tuple(s for s in _SIGNS if s in "+-" or named[s] is not None)
        return cls(columns, unary, signs, tuple(named[s] for s in signs))

    def __len__(self) -> int:
        return self.columns + len(self.unary) + len(self.signs)

    @cached_property
    def arity(self) -> np.ndarray:
        """How many arguments each code takes; nothing takes none."""
        return np.array([0] * self.columns + [1] * len(self.unary) + [2] * len(self.signs) + [0])

    def code(self, name: Primitive | str) -> int:
        """The code of a function or a sign."""
        if isinstance(name, str):
            return self.columns + len(self.unary) + self.signs.index(name)
        return self.columns + self.unary.index(name)

    def function(self, code: int) -> Primitive:
        """The function of a code of one argument."""
        return self.unary[code - self.columns]

    def sign(self, code: int) -> str:
        """The sign of a code of two arguments."""
        return self.signs[code - self.columns - len(self.unary)]


@dataclass(frozen=True, eq=False)
class Trees:
    """Trees `(members, length)`: codes, factors, shifts."""

    operations: Operations
    code: np.ndarray
    factor: np.ndarray
    shift: np.ndarray

    def __len__(self) -> int:
        return len(self.code)

    @classmethod
    def empty(cls, operations: Operations, members: int, length: int) -> Trees:
        """Trees without nodes."""
        shape = (members, length)
        return cls(operations, np.full(shape, EMPTY), np.ones(shape), np.zeros(shape))

    @cached_property
    def arity(self) -> np.ndarray:
        return np.asarray(self.operations.arity[self.code])

    @cached_property
    def size(self) -> np.ndarray:
        """How many nodes each tree has."""
        return np.asarray((self.code != EMPTY).sum(axis=1))

    @cached_property
    def below(self) -> np.ndarray:
        """How many nodes the subtree of each node has, itself among them."""
        members, length = self.code.shape
        sizes = np.zeros((members, length + 2), dtype=int)
        every = np.arange(members)
        for i in range(length - 1, -1, -1):
            one = sizes[:, i + 1]
            two = sizes[every, np.minimum(i + 1 + one, length + 1)]
            arity = self.arity[:, i]
            total = 1 + np.where(arity > 0, one, 0) + np.where(arity > 1, two, 0)
            sizes[:, i] = np.where(self.code[:, i] != EMPTY, total, 0)
        return sizes[:, :length]

    @cached_property
    def length(self) -> np.ndarray:
        """Nodes, and one more for each factor that is not ±1 and each shift."""
        used = self.code != EMPTY
        numbers = (np.abs(self.factor) != 1.0).astype(int) + (self.shift != 0)
        return np.asarray(self.size + (numbers * used)[:, 1:].sum(axis=1))

    def take(self, rows: np.ndarray | Sequence[int]) -> Trees:
        """Some of the trees, by their places."""
        return Trees(self.operations, self.code[rows], self.factor[rows], self.shift[rows])

    def with_numbers(self, factor: np.ndarray, shift: np.ndarray) -> Trees:
        """The same trees with other factors and shifts."""
        made = Trees(self.operations, self.code, factor, shift)
        # What follows from the codes alone is not worked out again.
        made.__dict__.update({name: getattr(self, name) for name in ("arity", "size", "below", "batches")})
        return made

    @staticmethod
    def joined(parts: Sequence[Trees]) -> Trees:
        """All trees of several sets."""
        code, factor, shift = (
            np.concatenate([getattr(p, name) for p in parts]) for name in ("code", "factor", "shift")
        )
        return Trees(parts[0].operations, code, factor, shift)

    @cached_property
    def batches(self) -> list[tuple[int, np.ndarray, np.ndarray, np.ndarray]]:
        """Nodes with the same operation whose arguments are known by then, leaves first: the code, the nodes
        and their arguments. A node's number is its place times the number of trees, and its tree."""
        members, length = self.code.shape
        height = np.zeros((members, length + 2), dtype=int)
        second = np.zeros((members, length), dtype=int)
        every = np.arange(members)
        for i in range(int(self.size.max(initial=0)) - 1, -1, -1):
            after = self.below[:, i + 1] if i + 1 < length else 0
            second[:, i] = np.minimum(i + 1 + after, length)
            one, two = height[:, i + 1], height[every, second[:, i]]
            arity = self.arity[:, i]
            height[:, i] = np.where(arity > 1, 1 + np.maximum(one, two), np.where(arity > 0, 1 + one, 0))
        tree, place = np.nonzero(self.code != EMPTY)
        kinds = height[tree, place] * len(self.operations) + self.code[tree, place]
        order = np.argsort(kinds, kind="stable")
        edges = np.flatnonzero(np.diff(kinds[order])) + 1
        found = []
        for nodes in np.split(order, edges) if order.size else []:
            t, p = tree[nodes], place[nodes]
            code = int(self.code[t[0], p[0]])
            found.append((code, p * members + t, (p + 1) * members + t, second[t, p] * members + t))
        return found

    def _by_node(self, numbers: np.ndarray) -> np.ndarray:
        """Numbers `(members, length)` as a column, one of each node."""
        return np.ascontiguousarray(numbers.T).reshape(-1, 1)

    @np.errstate(all="ignore")
    def evaluate(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Values of all nodes on columns `(columns, rows)`, `(length, members, rows)`, and what they are
        before factor and shift."""
        members, length = self.code.shape
        operations, shape = self.operations, (length, members, X.shape[1])
        values, plain = np.zeros((length * members, X.shape[1])), np.zeros((length * members, X.shape[1]))
        factor, shift = self._by_node(self.factor), self._by_node(self.shift)
        for code, nodes, one, two in self.batches:
            if code < operations.columns:
                result = X[code]
            elif operations.arity[code] == 1:
                result = applied(operations.function(code), values[one])
            else:
                result = OPERATIONS[operations.sign(code)](values[one], values[two])
            plain[nodes] = result
            values[nodes] = factor[nodes] * result + shift[nodes]
        return values.reshape(shape), plain.reshape(shape)

    @np.errstate(all="ignore")
    def slopes(self, values: np.ndarray) -> np.ndarray:
        """How a tree's value changes with the value of each of its nodes, `(length, members, rows)`."""
        operations, members = self.operations, len(self)
        at = values.reshape(-1, values.shape[2])
        slopes, factor = np.zeros_like(at), self._by_node(self.factor)
        slopes[:members] = 1.0
        inner = self._inner_slopes(at)
        for place, (code, nodes, one, two) in reversed(list(enumerate(self.batches))):
            arity = operations.arity[code]
            if arity == 0:
                continue
            outer = slopes[nodes] * factor[nodes]
            if arity == 1:
                slopes[one] = outer * inner[place]
            elif (sign := operations.sign(code)) in "+-":
                slopes[one] = outer
                slopes[two] = outer if sign == "+" else -outer
            elif sign == "*":
                slopes[one], slopes[two] = outer * at[two], outer * at[one]
            else:
                slopes[one], slopes[two] = outer / at[two], -outer * at[one] / at[two] ** 2
        return slopes.reshape(values.shape)

    def _inner_slopes(self, at: np.ndarray) -> dict[int, np.ndarray]:
        """The derivatives of functions at the values of their arguments, for each batch of them: all nodes of
        a function at once."""
        found: dict[int, np.ndarray] = {}
        by_code: dict[int, list[int]] = {}
        for place, (code, *_) in enumerate(self.batches):
            if self.operations.arity[code] == 1:
                by_code.setdefault(code, []).append(place)
        for code, places in by_code.items():
            arguments = [self.batches[place][2] for place in places]
            slope = slope_of(self.operations.function(code), at[np.concatenate(arguments)])
            parts = np.split(slope, np.cumsum([len(a) for a in arguments])[:-1])
            found |= dict(zip(places, parts, strict=True))
        return found

    def spliced(
        self, places: np.ndarray, other: Trees, places_of_other: np.ndarray
    ) -> tuple[Trees, np.ndarray]:
        """Each tree with the subtree at its place replaced by that of another tree, and which of them fit
        into the length."""
        members, length = self.code.shape
        every, columns = np.arange(members), np.arange(length)[None]
        gone, come = self.below[every, places], other.below[every, places_of_other]
        size = self.size - gone + come
        at, end = places[:, None], (places + come)[:, None]
        own = np.where(columns < at, columns, columns - come[:, None] + gone[:, None])
        foreign = columns - at + places_of_other[:, None]
        inside = (columns >= at) & (columns < end)
        own = np.clip(own, 0, length - 1)
        foreign = np.clip(foreign, 0, other.code.shape[1] - 1)
        parts = []
        for name in ("code", "factor", "shift"):
            mine, theirs = getattr(self, name), getattr(other, name)
            parts.append(
                np.where(inside, np.take_along_axis(theirs, foreign, 1), np.take_along_axis(mine, own, 1))
            )
        past = columns >= size[:, None]
        made = Trees(
            self.operations, np.where(past, EMPTY, parts[0]), np.where(past, 1.0, parts[1]),
            np.where(past, 0.0, parts[2]),
        )  # fmt: skip
        return made, size <= length

    def term(self, member: int, scales: Sequence[float], replaced: int = -1, by: Sum | None = None) -> Sum:
        """A tree as a formula of the inputs of a search, which are the columns over their scales; with the
        node at a place replaced by another formula."""
        return self._term(member, 0, scales, replaced, by)[0]

    def _term(
        self, member: int, place: int, scales: Sequence[float], replaced: int, by: Sum | None
    ) -> tuple[Sum, int]:
        if place == replaced and by is not None:
            return by, place + int(self.below[member, place])
        code, operations = int(self.code[member, place]), self.operations
        arity, after = int(operations.arity[code]), place + 1
        arguments = []
        for _ in range(arity):
            argument, after = self._term(member, after, scales, replaced, by)
            arguments.append(argument)
        if arity == 0:
            term = Sum(((code, scales[code]),))
        elif arity == 1:
            term = Sum.of(Unit(operations.function(code), tuple(arguments)))
        elif (sign := operations.sign(code)) in "+-":
            term = arguments[0] + arguments[1] * (1.0 if sign == "+" else -1.0)
        else:
            primitive = operations.primitives[operations.signs.index(sign)]
            assert primitive is not None
            term = Sum.of(Unit(primitive, tuple(arguments)))
        factor, shift = float(self.factor[member, place]), float(self.shift[member, place])
        return term * factor + Sum(constant=shift), after


def applied(function: Primitive, values: np.ndarray) -> np.ndarray:
    """A function of an array."""
    found: torch.Tensor = function(torch.from_numpy(np.ascontiguousarray(values)))
    return found.numpy()
