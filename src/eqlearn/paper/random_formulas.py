"""Formulas drawn at random, one for each seed: for measuring a search on what nobody has looked at.

Development and report seeds are different ranges: whoever changes the search looks at `DEVELOPMENT` alone,
and what is reported about the result is measured on `REPORT`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from eqlearn import Equation, InvalidArgument
from eqlearn.paper.suites import Problem

DEVELOPMENT = range(1_000)
REPORT = range(1_000_000, 1_001_000)

BINARY: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "({} + {})": np.add,
    "({} - {})": np.subtract,
    "({} * {})": np.multiply,
    "({} / {})": np.divide,
}
UNARY: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "sqrt({})": np.sqrt,
    "({})**2": np.square,
    "({})**3": lambda v: v**3,
    "exp({})": np.exp,
    "log({})": np.log,
    "sin({})": np.sin,
    "cos({})": np.cos,
    "tanh({})": np.tanh,
}


@dataclass(frozen=True)
class Drawing:
    """How formulas are drawn, and which are kept.

    `variables` and `operations` are the least and the most; `constants` is the share of the leaves that are
    numbers, `binary` that of the operations that take two arguments. Variables are drawn from one of `ranges`
    each, most of them positive, since roots and logarithms would be refused otherwise.

    A formula is kept if it is finite on all rows, deviates from its mean by more than `constant` of its size,
    owes at most `one_row` of its variance to any one row, and changes by at least `influence` of its spread
    when the values of any one variable are shuffled.
    """

    variables: tuple[int, int] = (1, 5)
    operations: tuple[int, int] = (2, 16)
    constants: float = 0.25
    binary: float = 0.6
    ranges: tuple[tuple[float, float], ...] = ((-1.0, 1.0), (0.0, 1.0), (0.5, 2.0), (1.0, 5.0), (-3.0, 3.0))
    rows: int = 200
    constant: float = 1e-6
    one_row: float = 0.2
    influence: float = 1e-3
    attempts: int = 10_000

    def __post_init__(self) -> None:
        for name, least in (("variables", 1), ("operations", 1)):
            low, high = getattr(self, name)
            if not least <= low <= high:
                raise InvalidArgument(
                    f"`{name}` must be two numbers from {least} up, in order; got {low, high}"
                )
        if self.variables[0] > self.operations[0] + 1:
            raise InvalidArgument(
                f"{self.operations[0]} operations have room for {self.operations[0] + 1} variables, not for "
                f"`variables`={self.variables[0]}"
            )


class Subtree(NamedTuple):
    """A part of a formula, with its values on the sampled rows and the variables in it."""

    text: str
    values: np.ndarray
    names: frozenset[str]


def random_formula(seed: int, drawing: Drawing | None = None) -> Problem:
    """The formula of a seed, with the ranges of its variables; always the same one.

    The number of operations (evenly in its logarithm: most formulas that people write are short) and of
    variables is drawn first and kept, however many formulas of that size are refused.
    """
    drawing = drawing or Drawing()
    rng = np.random.default_rng([2016, seed])
    least, most = np.log(drawing.operations[0]), np.log(drawing.operations[1] + 1)
    operations = int(np.exp(rng.uniform(least, most)))
    room = min(drawing.variables[1], operations + 1)
    names = [f"x{i + 1}" for i in range(rng.integers(drawing.variables[0], room + 1))]
    for _ in range(drawing.attempts):
        ranges = {name: drawing.ranges[rng.integers(len(drawing.ranges))] for name in names}
        X = {name: rng.uniform(*ranges[name], size=drawing.rows) for name in names}
        with np.errstate(all="ignore"):
            tree = _grow(operations, X, drawing, rng)
            if tree.names == frozenset(names) and _worthy(tree, X, drawing, rng):
                return Problem("random", f"random-{seed}", tree.text, ranges, drawing.rows)
    raise InvalidArgument(f"no formula of {operations} operations was kept in {drawing.attempts} attempts")


def _grow(operations: int, X: dict[str, np.ndarray], drawing: Drawing, rng: np.random.Generator) -> Subtree:
    """A tree of exactly that many operations, each with a variable below it."""
    if operations == 0:
        return _leaf(X, rng, drawing.constants)
    if rng.random() >= drawing.binary:
        sign = tuple(UNARY)[rng.integers(len(UNARY))]
        inner = _variable(X, rng) if operations == 1 else _grow(operations - 1, X, drawing, rng)
        return Subtree(sign.format(inner.text), UNARY[sign](inner.values), inner.names)
    left = int(rng.integers(operations))
    a, b = _grow(left, X, drawing, rng), _grow(operations - 1 - left, X, drawing, rng)
    if not a.names | b.names:
        a = _variable(X, rng)
    # What is taken from itself, or divided by itself, is no operation.
    signs = [s for s in BINARY if a.text != b.text or BINARY[s] not in (np.subtract, np.divide)]
    sign = signs[rng.integers(len(signs))]
    return Subtree(sign.format(a.text, b.text), BINARY[sign](a.values, b.values), a.names | b.names)


def _leaf(X: dict[str, np.ndarray], rng: np.random.Generator, constants: float) -> Subtree:
    if rng.random() >= constants:
        return _variable(X, rng)
    fraction = Fraction(int(rng.integers(1, 10)), int(rng.integers(1, 6)))
    decimal = round(float(10 ** rng.uniform(-1, 1)), 2)
    rational = rng.random() < 0.5
    text = f"{decimal:g}" if not rational else f"({fraction})" if fraction.denominator > 1 else str(fraction)
    value = float(fraction) if rational else decimal
    return Subtree(text, np.full(len(next(iter(X.values()))), value), frozenset())


def _variable(X: dict[str, np.ndarray], rng: np.random.Generator) -> Subtree:
    name = tuple(X)[rng.integers(len(X))]
    return Subtree(name, X[name], frozenset([name]))


def _worthy(tree: Subtree, X: dict[str, np.ndarray], drawing: Drawing, rng: np.random.Generator) -> bool:
    """Whether the formula is one that data can tell about (see `Drawing`)."""
    y = tree.values
    if not np.isfinite(y).all():
        return False
    squares = (y - y.mean()) ** 2
    spread = float(np.sqrt(squares.mean()))
    varies = spread > drawing.constant * float(np.abs(y).max())
    if not varies or squares.max() > drawing.one_row * squares.sum():
        return False
    equation = Equation.parse(tree.text, tuple(X))
    for name in X:
        moved = equation(np.stack([rng.permutation(v) if n == name else v for n, v in X.items()], axis=1)) - y
        change = moved[np.isfinite(moved)]
        if not len(change) or float(np.sqrt(np.mean(change**2))) < drawing.influence * spread:
            return False
    return True
