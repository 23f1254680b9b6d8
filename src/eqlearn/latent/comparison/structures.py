"""Structures of formulas in latents and columns: trees, and the programs that evaluate them in batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, TypeAlias

import numpy as np
import sympy as sp

from eqlearn.functions import NUMPY
from eqlearn.nn.primitives import Primitive, lookup
from eqlearn.symbolic.expressions import real_symbol
from eqlearn.symbolic.tape import lower

# A leaf is the place of a variable (latents first, then columns); else an operation and what it acts on.
Tree: TypeAlias = "int | tuple[Any, ...]"
Apply: TypeAlias = "Callable[[str, Sequence[Any]], Any]"

ADD = Primitive("add", 2, lambda m, a, b: a + b)
SUB = Primitive("sub", 2, lambda m, a, b: a - b)
NEG = Primitive("neg", 1, lambda m, a: -a)
MUL = lookup("mul")
# Constants of the structure's own: one that is added or multiplied; or those of a function that is not known
# yet, a polynomial whose linear coefficient is one.
SHIFT, SCALE, ANY = "shift", "scale", "any"
_NUMBERS = {SHIFT: 1, SCALE: 1, ANY: 4}
_OWN = {p.name: p for p in (ADD, SUB, NEG)}


def operation(name: str) -> Primitive:
    """The operation of that name in a structure: a sum, a difference, the other sign, or a primitive."""
    return _OWN.get(name) or lookup(name)


def on_arrays(name: str, args: Sequence[Any]) -> Any:
    """The operation of that name on NumPy's arrays."""
    return operation(name).formula(NUMPY, *args)


def parts(tree: Tree, path: tuple[int, ...] = ()) -> Iterator[tuple[tuple[int, ...], Tree]]:
    """Every part of a structure with the path that leads there."""
    yield path, tree
    if isinstance(tree, tuple):
        for i, child in enumerate(tree[1:], 1):
            yield from parts(child, (*path, i))


def replaced(tree: Tree, path: tuple[int, ...], part: Tree) -> Tree:
    """The structure with another part at a path."""
    if not path or isinstance(tree, int):
        return part
    children = list(tree)
    children[path[0]] = replaced(tree[path[0]], path[1:], part)
    return tuple(children)


def leaves(tree: Tree, above: str | None = None) -> Iterator[tuple[int, str | None]]:
    """The variables, each with the function of one argument that stands directly on it, if any, or "sub" or
    "div:2" where a sign or an inverse does."""
    if isinstance(tree, int):
        yield tree, above
    elif len(tree) == 2:
        yield from leaves(tree[1], tree[0])
    else:
        for place, child in enumerate(tree[1:], 1):
            sign = "sub" if tree[0] == "sub" else "div:2" if tree[0] == "div" and place == 2 else None
            yield from leaves(child, sign)


def size(tree: Tree) -> int:
    """The number of nodes; a constant that is added or multiplied counts two, itself and its operator."""
    if isinstance(tree, int):
        return 1
    return (2 if tree[0] in (SHIFT, SCALE) else 1) + sum(size(child) for child in tree[1:])


@dataclass(frozen=True)
class Program:
    """A structure as steps that are evaluated for a batch of members, with slopes by back-propagation.

    Steps are `(operation, arguments)`; a leaf is `(None, (variable,))`. The constants are those of shifts,
    scales and unknown functions in the order of their steps.
    """

    steps: tuple[tuple[str | None, tuple[int, ...]], ...]

    @cached_property
    def own(self) -> dict[int, int]:
        """The (first) constant that each step holds."""
        places, at = {}, 0
        for i, (name, _) in enumerate(self.steps):
            if name in _NUMBERS:
                places[i] = at
                at += _NUMBERS[name]
        return places

    @cached_property
    def constants(self) -> int:
        return sum(_NUMBERS.get(name or "", 0) for name, _ in self.steps)

    @cached_property
    def start(self) -> np.ndarray:
        """Where the constants start: nothing added, a factor of one, a straight line."""
        start = np.zeros(self.constants)
        start[[at for i, at in self.own.items() if self.steps[i][0] == SCALE]] = 1.0
        return start

    def value(self, variables: Any, constants: np.ndarray) -> Any:
        """The value at variables, each `(..., rows)`, and constants `(number, ...)`."""
        return self.values(variables, constants)[-1]

    def values(self, variables: Any, constants: Any, apply: Apply = on_arrays) -> list[Any]:
        """The value of every step; `apply` computes an operation of its arguments."""
        values: list[Any] = []
        for i, (name, args) in enumerate(self.steps):
            if name is None:
                values.append(variables[args[0]])
            elif name == SHIFT:
                values.append(values[args[0]] + constants[self.own[i]])
            elif name == SCALE:
                values.append(values[args[0]] * constants[self.own[i]])
            elif name == ANY:
                a, b, c, d = constants[self.own[i] : self.own[i] + 4]
                v = values[args[0]]
                values.append(a + v * (1 + v * (b + v * (c + v * d))))
            else:
                values.append(apply(name, [values[a] for a in args]))
        return values

    def linearise(
        self, variables: Any, constants: np.ndarray
    ) -> tuple[np.ndarray, dict[int, np.ndarray], list[np.ndarray]]:
        """The value, its slope by each variable that stands in it, and by each constant."""
        values = self.values(variables, constants)
        adjoint: list[Any] = [None] * len(values)
        adjoint[-1] = np.ones_like(values[-1])
        slopes: dict[int, np.ndarray] = {}
        by_constant: list[Any] = [None] * self.constants
        for i in range(len(values) - 1, -1, -1):
            name, args = self.steps[i]
            above = adjoint[i]
            if name is None:
                slopes[args[0]] = above if args[0] not in slopes else slopes[args[0]] + above
            elif name == SHIFT:
                by_constant[self.own[i]] = above
                adjoint[args[0]] = above
            elif name == SCALE:
                by_constant[self.own[i]] = above * values[args[0]]
                adjoint[args[0]] = above * constants[self.own[i]]
            elif name == ANY:
                first, v = self.own[i], values[args[0]]
                _, b, c, d = constants[first : first + 4]
                by_constant[first : first + 4] = [above, *(above * v**power for power in (2, 3, 4))]
                adjoint[args[0]] = above * (1 + v * (2 * b + v * (3 * c + v * 4 * d)))
            else:
                for a, slope in zip(args, _slopes(name)(*(values[a] for a in args)), strict=True):
                    adjoint[a] = above * slope
        return values[-1], slopes, by_constant


@cache
def compiled(tree: Tree) -> Program:
    """The steps of a structure, arguments before what uses them."""
    steps: list[tuple[str | None, tuple[int, ...]]] = []

    def write(part: Tree) -> int:
        if isinstance(part, int):
            steps.append((None, (part,)))
        else:
            args = tuple(write(child) for child in part[1:])
            steps.append((part[0], args))
        return len(steps) - 1

    write(tree)
    return Program(tuple(steps))


def by_output(trees: Sequence[Tree], numbers: Any) -> Iterator[tuple[Program, Any, Any, Any]]:
    """For each output its program, and of a law's numbers the factors of its columns, its constants, and its
    factor and offset."""
    programs = [compiled(tree) for tree in trees]
    readout = len(numbers) - 2 * len(trees)
    at = readout - sum(program.constants for program in programs)
    columns = at // len(trees)
    for k, program in enumerate(programs):
        factors, line = slice(k * columns, (k + 1) * columns), slice(readout + 2 * k, readout + 2 * k + 2)
        yield program, numbers[factors], numbers[at : at + program.constants], numbers[line]
        at += program.constants


@cache
def _slopes(name: str) -> Callable[..., tuple[Any, ...]]:
    """The partial derivatives of an operation on arrays."""
    primitive = operation(name)
    symbols = [real_symbol(f"g{i}") for i in range(primitive.arity)]
    value = primitive.symbolic(*symbols)
    tapes = [lower(sp.diff(value, symbol), symbols) for symbol in symbols]
    return lambda *args: tuple(tape.run(NUMPY, args, [], np.float64) for tape in tapes)


def symbolic(tree: Tree, variables: Sequence[Any], constants: Iterator[Any]) -> Any:
    """The structure in SymPy, with these expressions for its variables and its constants in order."""
    if isinstance(tree, int):
        return variables[tree]
    args = [symbolic(child, variables, constants) for child in tree[1:]]
    if tree[0] == SHIFT:
        return args[0] + next(constants)
    if tree[0] == SCALE:
        return args[0] * next(constants)
    return operation(tree[0]).symbolic(*args)
