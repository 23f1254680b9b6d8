"""The grammar of structures: which there are, by size, up to what encoders may do to their latents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations, product
from typing import Any

import numpy as np
import sympy as sp

from eqlearn.latent.comparison.structures import (
    ADD,
    ANY,
    MUL,
    NEG,
    SCALE,
    SHIFT,
    Tree,
    compiled,
    leaves,
    operation,
    parts,
    replaced,
)
from eqlearn.nn.primitives import Primitive, lookup
from eqlearn.symbolic.expressions import real_symbol

# What has the other sign once all that it acts on has.
_ODD = ("add", "sub", SHIFT, "inv", "sin1", "sin", "tanh")


@dataclass(frozen=True)
class Grammar:
    """What structures are made of: `latents` as the group (encoder) that each slot belongs to, the number of
    `columns`, and the operations.

    A latent may be bent by its encoder at will, so no structure applies the same function to all of a group's
    latents: that function is the encoder's.
    """

    groups: tuple[int, ...]
    columns: int
    unary: tuple[str, ...]
    binary: tuple[str, ...]

    @classmethod
    def of(cls, primitives: Iterable[Primitive], groups: Sequence[int], columns: int) -> Grammar:
        """Sums, differences and shifts always; functions and products as the primitives have them.

        `pow` stands for fixed powers here as in tables, which bends and squares cover, not for z**x."""
        units = dict.fromkeys(p.name for p in primitives)
        kinds = [p for name in units if (p := lookup(name)).name not in ("id", "one", "pow")]
        names = {arity: [p.name for p in kinds if p.arity == arity] for arity in (1, 2)}
        return cls(tuple(groups), columns, tuple(names[1]), ("add", "sub", *names[2]))

    @property
    def variables(self) -> int:
        return len(self.groups) + self.columns

    def enumerate(self, needed: Sequence[int], most: int) -> list[Tree]:
        """Structures in which each `needed` variable stands once, the smallest first, up to about `most` of
        them; sizes are whole: all of a size, or none."""
        found: list[Tree] = []
        seen: set[bytes] = set()
        table = _Table(self, tuple(needed))
        for size in range(2 * len(needed) - 1, 4 * len(needed) + 4):
            level = []
            for tree in table.of(frozenset(needed), size):
                key = self.signature(tree)
                if key is not None and key not in seen and not self.is_redundant(tree):
                    seen.add(key)
                    level.append(tree)
                if len(found) + len(level) > most:
                    break
            if found and len(found) + len(level) > most:
                break
            found += level[:most]
        return found

    def neighbours(self, tree: Tree) -> Iterator[Tree]:
        """Structures one step away: a function put on or taken off, an operation replaced, a variable put
        beside a part."""
        for path, part in parts(tree):
            for name in (*self.unary, SHIFT, SCALE):
                yield replaced(tree, path, (name, part))
            for name in self.binary:
                for variable in range(self.variables):
                    yield replaced(tree, path, (name, part, variable))
                    if operation(name) not in (ADD, MUL):
                        yield replaced(tree, path, (name, variable, part))
            if isinstance(part, tuple):
                others = self.unary if len(part) == 2 else self.binary
                for name in others:
                    if name != part[0]:
                        yield replaced(tree, path, (name, *part[1:]))
                for child in part[1:]:
                    yield replaced(tree, path, child)

    def freed(self, needed: Sequence[int], functions: int) -> list[Tree]:
        """The structures without functions in which each `needed` variable stands once, with that many
        unknown functions put on their parts, but not on latents, which bend. Each once: a*(b*c) is a*b*c,
        but with a function on b*c it is not."""
        found: dict[bytes, Tree] = {}
        for tree in _Table(self, tuple(needed)).of(frozenset(needed), 2 * len(needed) - 1):
            if self.is_redundant(tree):
                continue
            places = [p for p, part in parts(tree) if not (isinstance(part, int) and part < len(self.groups))]
            for chosen in combinations(places, functions):
                wrapped = tree
                for path in sorted(chosen, key=len, reverse=True):  # the innermost first, so that paths hold
                    part = next(part for at, part in parts(wrapped) if at == path)
                    wrapped = replaced(wrapped, path, (ANY, part))
                key = self.signature(wrapped)
                if key is not None:
                    found.setdefault(key, wrapped)
        return list(found.values())

    def filled(self, tree: Tree, *, deep: bool) -> Iterator[Tree]:
        """Structures with a function, of something shifted or not, in the place of each unknown one; if
        `deep`, also with a function of a function."""
        path, part = next(((p, t) for p, t in parts(tree) if isinstance(t, tuple) and t[0] == ANY), ((), 0))
        if part == 0:
            yield tree
            return
        assert isinstance(part, tuple)
        inner: list[Tree] = [part[1], (SHIFT, part[1])]
        if deep:
            inner += [(name, part[1]) for name in self.unary]
            inner += [(own, (name, part[1])) for own in (SHIFT, SCALE, NEG.name) for name in self.unary]
        for name, argument in product(self.unary, inner):
            yield from self.filled(replaced(tree, path, (name, argument)), deep=deep)

    def is_redundant(self, tree: Tree) -> bool:
        """Whether a bend of some encoder's latents gives a smaller structure of the same values, or a
        constant is where one is already, or a quotient says what the inverse of a product does, or a
        difference what a sum does, since the sign of one side is free."""
        if _idle_constant(tree, root=True) or ("div" in self.binary and _inverts_product(tree)):
            return True
        standing = Counter(self._source(leaf) for leaf, _ in leaves(tree))
        differences = [p for _, p in parts(tree) if isinstance(p, tuple) and p[0] == "sub"]
        if any(self._turns(side, standing) for part in differences for side in part[1:]):
            return True
        wraps: dict[int, list[str | None]] = {}
        for leaf, above in leaves(tree):
            if leaf < len(self.groups):
                wraps.setdefault(self.groups[leaf], []).append(above)
        turned = {"sub", "div:2"}
        return any(
            len(set(each)) == 1 and each[0] is not None and (len(each) == 1 or each[0] not in turned)
            for each in wraps.values()
        )

    def _source(self, leaf: int) -> int:
        """What a variable's sign belongs to: its encoder, or the column."""
        return self.groups[leaf] if leaf < len(self.groups) else leaf + max(self.groups, default=0) + 1

    def _turns(self, part: Tree, standing: Counter[int]) -> bool:
        """Whether a part can have the other sign: by its constants, or a variable that stands only once."""
        if isinstance(part, int):
            return standing[self._source(part)] == 1
        name, *inner = part
        if name in (SCALE, ANY, NEG.name, "mul", "div"):
            return name not in ("mul", "div") or any(self._turns(child, standing) for child in inner)
        return name in _ODD and all(self._turns(child, standing) for child in inner)

    def signature(self, tree: Tree) -> bytes | None:
        """Equal for structures that are the same function up to a factor and an offset; None for one that has
        no values."""
        program = compiled(tree)
        points = _points(self.variables)
        with np.errstate(all="ignore"):
            values = program.value(points, np.full((program.constants, 1), 0.37))
        spread = values.std() if np.isfinite(values).all() else 0.0
        if not spread > 1e-9:
            return None
        unit = (values - values.mean()) / spread
        unit = unit * np.sign(unit[np.abs(unit).argmax()])
        key: bytes = np.round(unit, 6).tobytes()
        return key


@cache
def _points(variables: int) -> np.ndarray:
    return np.random.default_rng(0).uniform(0.6, 1.4, size=(variables, 12))


class _Table:
    """Structures by the variables that stand in them, each once, and by size."""

    def __init__(self, grammar: Grammar, needed: tuple[int, ...]) -> None:
        self.grammar, self.needed = grammar, needed
        self.known: dict[tuple[frozenset[int], int], list[Tree]] = {}

    def of(self, inside: frozenset[int], size: int) -> list[Tree]:
        if size < 1:
            return []
        key = (inside, size)
        if key not in self.known:
            self.known[key] = list(self._made(inside, size))
        return self.known[key]

    def _made(self, inside: frozenset[int], size: int) -> Iterator[Tree]:
        if len(inside) == 1 and size == 1:
            yield next(iter(inside))
        for left in _splits(inside):
            right = inside - left
            for first in range(1, size - 1):
                for a, b in product(self.of(left, first), self.of(right, size - 1 - first)):
                    for name in self.grammar.binary:
                        yield (name, a, b)
                        if name not in ("add", "mul"):
                            yield (name, b, a)
        for part in self.of(inside, size - 1):
            # A function of a function is left to growth; one of something shifted, log(1 + z*x), is not.
            if isinstance(part, int) or len(part) == 3 or part[0] == SHIFT:
                yield from ((name, part) for name in self.grammar.unary)
            if part >= len(self.grammar.groups) if isinstance(part, int) else len(part) == 3:
                yield (SHIFT, part)


def _splits(inside: frozenset[int]) -> Iterator[frozenset[int]]:
    """One half of each way to part the variables in two."""
    ordered = sorted(inside)
    for mask in range(1, 2 ** (len(ordered) - 1)):
        yield frozenset(v for i, v in enumerate(ordered) if mask >> i & 1)


def _idle_constant(tree: Tree, root: bool = False) -> bool:
    if isinstance(tree, int):
        return False
    if tree[0] in (SHIFT, SCALE):
        inner = tree[1]
        if root or (isinstance(inner, tuple) and inner[0] in (SHIFT, SCALE, "add", "sub")):
            return True
        if tree[0] == SCALE and (isinstance(inner, int) or inner[0] in ("mul", "div")):
            return True
    return any(_idle_constant(child) for child in tree[1:])


def _inverts_product(tree: Tree) -> bool:
    """Whether 1/(a*b) or 1/(a/b) stands somewhere."""
    inner = [p[1] for _, p in parts(tree) if isinstance(p, tuple) and p[0] == "inv"]
    return any(isinstance(part, tuple) and part[0] in ("mul", "div") for part in inner)


def from_sympy(expr: Any, names: Sequence[str], grammar: Grammar) -> Tree | None:
    """The structure of a formula in these names, without its numbers' values; None where the grammar lacks a
    function of it."""
    places = {real_symbol(name): i for i, name in enumerate(names)}

    def read(node: Any) -> Tree | None:
        if node in places:
            return places[node]
        if isinstance(node, sp.Add):
            return added(node)
        if isinstance(node, sp.Mul):
            return multiplied(node)
        if isinstance(node, sp.Pow):
            return power(node)
        name = (
            next((n for n in grammar.unary if lookup(n).symbolic(node.args[0]) == node), None)
            if node.args
            else None
        )
        inner = read(node.args[0]) if name is not None else None
        return None if name is None or inner is None else (name, inner)

    def added(node: Any) -> Tree | None:
        terms = [a for a in node.args if a.free_symbols]
        less = [a for a in terms if a.as_coeff_Mul()[0] < 0]
        plus = [a for a in terms if a not in less]
        tree = joined("add", [read(a) for a in plus or less])
        if plus:
            tree = joined("sub", [tree, *(read(-a) for a in less)])
        return tree if tree is None or len(terms) == len(node.args) else (SHIFT, tree)

    def multiplied(node: Any) -> Tree | None:
        numbers = [a for a in node.args if not a.free_symbols]
        factors = [a for a in node.args if a.free_symbols]
        under = [a for a in factors if isinstance(a, sp.Pow) and a.exp.is_number and a.exp < 0]
        over = [a for a in factors if a not in under]
        if not over or "div" not in grammar.binary:
            tree = joined("mul", [read(a) for a in factors])
        else:
            product = joined("mul", [read(a) for a in over])
            tree = joined("div", [product, *([joined("mul", [read(1 / a) for a in under])] if under else [])])
        idle = tree is None or isinstance(tree, int) or all(abs(number) == 1 for number in numbers)
        return tree if idle else (SCALE, tree)

    def joined(name: str, each: Sequence[Tree | None]) -> Tree | None:
        """The parts joined one by one; None where one of them could not be read."""
        tree = each[0]
        for part in each[1:]:
            tree = None if tree is None or part is None else (name, tree, part)
        return tree

    def power(node: Any) -> Tree | None:
        base = read(node.base)
        if base is None or not node.exp.is_number:
            return None
        if node.exp == 2 and "square" in grammar.unary:
            return ("square", base)
        if node.exp in (2, 3) and "mul" in grammar.binary:
            tree: Any = base
            for _ in range(int(node.exp) - 1):
                tree = ("mul", tree, base)
            return tree  # type: ignore[no-any-return]
        if node.exp == sp.S.Half and "sqrt" in grammar.unary:
            return ("sqrt", base)
        if node.exp < 0 and "inv" in grammar.unary:
            below = read(1 / node)
            return None if below is None else ("inv", below)
        return None

    return read(expr)
