"""The safe reader of formulas: numbers, given variables, + - * / **, and known functions, nothing else."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import sympy as sp

from eqlearn.errors import InvalidExpression
from eqlearn.functions import FUNCTIONS, NUMPY, SYMPY
from eqlearn.symbolic.expressions import MAX_EXPONENT, fitted, real_symbol
from eqlearn.symbolic.printing import CONSTANTS
from eqlearn.validation.options import did_you_mean

MAX_LENGTH = 2**20
MAX_DEPTH = 60
MAX_DIGITS = 100
MAX_POWER = 1000
_MAX_BITS = 2**15

_TOKEN = re.compile(
    r"""\s*(?:
    (?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
    | (?P<call>[^\W\d]\w*)\s*\(
    | (?P<name>[^\W\d]\w*(?:\[[^\W\d]\w*\])?)
    | `(?P<quoted>(?:[^`]|``)+)`
    | (?P<mark>\*\*|[-+*/()])
    )""",
    re.VERBOSE,
)


class Token(NamedTuple):
    """A piece of the text; the `kind` of an operator or parenthesis is the mark itself."""

    kind: str
    text: str
    place: int


class Value(NamedTuple):
    """An expression and, if it holds no variable, its float64 value.

    SymPy computes with numbers of any size, and `exp(exp(exp(9)))` would never end; what
    overflows in float64 is refused before SymPy sees it.
    """

    expr: Any
    number: float | None = None


_MINUS_ONE = Value(sp.S.NegativeOne, -1.0)


def parse(text: str, variables: Sequence[str]) -> Any:
    """The SymPy expression that `text` says, in the symbols of `variables`.

    Numbers with a point or an exponent are fitted constants; whole numbers are exact. Awkward names stand
    in backticks. A bare name is a variable if there is one of that name, else `pi` or `E`.

    **Raises:** `InvalidExpression` naming the piece that is not understood. Nothing is ever evaluated as
    code, and every text takes a time in proportion to its length.
    """
    return _Parser(text, variables).whole()


_HINTS = {
    "^": "a power is written **",
    "=": "give the right-hand side only",
    ",": "functions take one argument",
}


def _tokens(text: str) -> list[Token]:
    if len(text) > MAX_LENGTH:
        raise InvalidExpression(f"the formula has {len(text)} characters, more than {MAX_LENGTH}")
    tokens, place = [], 0
    end = len(text.rstrip())
    while place < end:
        match = _TOKEN.match(text, place)
        if match is None:
            rest = text[place:].lstrip()
            hint = next((f"; {h}" for mark, h in _HINTS.items() if rest.startswith(mark)), "")
            raise InvalidExpression(f"{rest[:20]!r} at place {place} is not part of a formula{hint}")
        kind = str(match.lastgroup)
        text_of = match[kind]
        tokens.append(Token(text_of if kind == "mark" else kind, text_of, match.start(kind)))
        place = match.end()
    return [*tokens, Token("end", "", end)]


@dataclass
class _Group:
    """What stands between two parentheses, as far as it has been read.

    `links` is the tower of powers at the end, each link a sign and a value: -a**-b is (-1, a), (-1, b).
    """

    call: str | None = None
    terms: list[Value] = field(default_factory=list)
    factors: list[Value] = field(default_factory=list)
    links: list[tuple[int, Value]] = field(default_factory=list)
    sign: int = 1
    divides: bool = False
    negative: bool = False

    def close_factor(self) -> None:
        sign, value = self.links.pop()
        while self.links:
            value = _negative(value) if sign < 0 else value
            sign, base = self.links.pop()
            value = _power(base, value)
        value = _negative(value) if sign < 0 else value
        self.factors.append(_power(value, _MINUS_ONE) if self.divides else value)
        self.divides = False

    def close_term(self) -> None:
        self.close_factor()
        term = self.factors[0] if len(self.factors) == 1 else _join(sp.Mul, self.factors, math.prod)
        self.terms.append(_negative(term) if self.negative else term)
        self.factors, self.negative = [], False

    def close(self) -> Value:
        self.close_term()
        value = self.terms[0] if len(self.terms) == 1 else _join(sp.Add, self.terms, math.fsum)
        return value if self.call is None else _called(self.call, value)


class _Parser:
    """One pass over the tokens, without recursion: the open groups are a list."""

    def __init__(self, text: str, variables: Sequence[str]) -> None:
        self.tokens = _tokens(text)
        self.symbols = {name: real_symbol(name) for name in variables}
        self.groups = [_Group()]

    def whole(self) -> Any:
        wants_value = True
        for token in self.tokens:
            wants_value = self.read_value(token) if wants_value else self.read_operator(token)
        return self.groups[0].close().expr

    def read_value(self, token: Token) -> bool:
        """Reads a token where a value is wanted; returns whether one is still wanted."""
        if token.kind in ("+", "-"):
            self.groups[-1].sign *= -1 if token.kind == "-" else 1
            return True
        if token.kind in ("(", "call"):
            self.open(token)
            return True
        if token.kind not in ("number", "name", "quoted"):
            raise _unexpected(token, "a number, a variable or a '(' is missing before it")
        self.attach(self.leaf(token))
        return False

    def read_operator(self, token: Token) -> bool:
        """Reads a token after a value; returns whether a value is wanted next."""
        group = self.groups[-1]
        if token.kind in ("*", "/"):
            group.close_factor()
            group.divides = token.kind == "/"
        elif token.kind in ("+", "-"):
            group.close_term()
            group.negative = token.kind == "-"
        elif token.kind == ")" and len(self.groups) > 1:
            self.attach(self.groups.pop().close())
        elif token.kind == "end" and len(self.groups) > 1:
            raise _unexpected(token, "a ')' is missing before it")
        elif token.kind not in ("**", "end"):
            raise _unexpected(token, "an operator is missing before it")
        return token.kind not in (")", "end")

    def open(self, token: Token) -> None:
        if token.kind == "call" and token.text not in FUNCTIONS:
            # What other systems call them.
            also = {word: f.name for f in FUNCTIONS.values() for word in (*f.aliases, f.numpy, f.c)}
            known = {**also, "power": "**"}.get(token.text)
            hint = f"did you mean {known!r}?" if known else did_you_mean(token.text, FUNCTIONS)
            raise InvalidExpression(f"{token.text!r} at place {token.place} is not a function; {hint}")
        self.groups.append(_Group(token.text if token.kind == "call" else None))
        self.check_depth(len(self.groups))

    def attach(self, value: Value) -> None:
        group = self.groups[-1]
        group.links.append((group.sign, value))
        group.sign = 1
        self.check_depth(len(group.links))

    def check_depth(self, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise InvalidExpression(f"the formula is nested more than {MAX_DEPTH} deep")

    def leaf(self, token: Token) -> Value:
        if token.kind == "number":
            return _number(token.text)
        name = token.text.replace("``", "`") if token.kind == "quoted" else token.text
        if name in self.symbols:
            return Value(self.symbols[name])
        if token.kind == "name" and name in CONSTANTS:
            return Value(CONSTANTS[name], float(CONSTANTS[name]))
        hint = f"a function's argument stands in parentheses, `{name}(x)`" if name in FUNCTIONS else ""
        hint = hint or did_you_mean(name, [*self.symbols, *CONSTANTS])
        raise InvalidExpression(f"{name!r} at place {token.place} is not a variable; {hint}")


def _unexpected(token: Token, hint: str) -> InvalidExpression:
    what = f"{token.text[:40]!r} at place {token.place}" if token.text else "the end of the formula"
    return InvalidExpression(f"{what} was not expected; {hint}")


def _called(name: str, value: Value) -> Value:
    if value.number is None:
        return Value(SYMPY[name](value.expr))
    with np.errstate(all="ignore"):
        number = _finite(float(NUMPY[name](np.float64(value.number))), f"{name}({_short(value)})")
    return Value(SYMPY[name](value.expr), number)


def _number(text: str) -> Value:
    if len(text) > MAX_DIGITS:
        raise InvalidExpression(f"the number {text[:20]}... has more than {MAX_DIGITS} digits")
    if text.isdigit():
        return Value(sp.Integer(int(text)), float(text))
    value = float(text)
    mantissa, _, exponent = text.lower().partition("e")
    # Near the limits of float64 and beyond, all digits are kept: the number may stand beside an exponential.
    if 2.0**-1000 <= value <= 2.0**1000 or not re.search("[1-9]", mantissa):
        return Value(fitted(value), value)
    if abs(int(exponent)) > MAX_EXPONENT:
        raise InvalidExpression(f"the number {text} has an exponent beyond {MAX_EXPONENT}")
    return Value(sp.Float(text, 17), value)


def _finite(number: float, what: str) -> float:
    if not math.isfinite(number):
        raise InvalidExpression(f"`{what}` is not a finite real number")
    return number


def _short(value: Value) -> str:
    text = str(value.expr) if value.expr.is_Atom or value.number is not None else "(...)"
    return text if len(text) <= 25 else text[:25] + "..."


def _negative(value: Value) -> Value:
    return Value(-value.expr, None if value.number is None else -value.number)


def _bits(value: Value) -> int:
    """The size of the exact number in front; sums and products of long ones grow longer still."""
    coefficient = value.expr.as_coeff_Mul()[0]
    return int(coefficient.p.bit_length() + coefficient.q.bit_length()) if coefficient.is_Rational else 0


def _join(operation: Any, values: Sequence[Value], on_numbers: Callable[[list[float]], float]) -> Value:
    numbers = [v.number for v in values if v.number is not None]
    number = None
    if len(numbers) == len(values):
        number = _finite(on_numbers(numbers), ", ".join(map(_short, values[:3])))
    if sum(map(_bits, values)) > _MAX_BITS:
        raise InvalidExpression("the formula computes with whole numbers that are too long")
    return Value(operation(*(v.expr for v in values)), number)


def _power(base: Value, exponent: Value) -> Value:
    what = f"{_short(base)}**{_short(exponent)}"
    if exponent.number is not None:
        if not abs(exponent.number) <= MAX_POWER or _bits(base) * abs(exponent.number) > _MAX_BITS:
            raise InvalidExpression(f"`{what}` is too large a power; exponents end at {MAX_POWER}")
        if base.number is not None:
            with np.errstate(all="ignore"):
                number = _finite(float(np.float64(base.number) ** np.float64(exponent.number)), what)
            return Value(base.expr**exponent.expr, number)
    return Value(base.expr**exponent.expr)
