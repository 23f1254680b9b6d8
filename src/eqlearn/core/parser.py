"""The safe reader of formulas: numbers, given variables, + - * / **, and known functions, nothing else."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import sympy as sp

from eqlearn.core.expressions import FUNCTIONS, MAX_EXPONENT, did_you_mean, fitted, real_symbol
from eqlearn.core.program import NUMPY
from eqlearn.core.text import CONSTANTS
from eqlearn.errors import InvalidExpression

MAX_LENGTH = 2**21
MAX_DEPTH = 60
MAX_DIGITS = 100
MAX_POWER = 1000
_MAX_BITS = 2**15

_TOKEN = re.compile(
    r"""\s*(?:
    (?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
    | (?P<name>[^\W\d]\w*)
    | `(?P<quoted>(?:[^`]|``)+)`
    | (?P<mark>\*\*|[-+*/()])
    )""",
    re.VERBOSE,
)


class Token(NamedTuple):
    kind: str
    text: str
    place: int


class Value(NamedTuple):
    """An expression and, if it holds no variable, its float64 value.

    SymPy computes with numbers of any size, and `exp(exp(exp(9)))` would keep it busy for ever; what
    overflows in float64 is refused before SymPy sees it.
    """

    expr: Any
    number: float | None = None


def parse(text: str, variables: Sequence[str]) -> Any:
    """The SymPy expression that `text` says, in the symbols of `variables`.

    Numbers with a point or an exponent are fitted constants; whole numbers are exact. Awkward names stand
    in backticks. A bare name is a variable if there is one of that name, else `pi` or `E`.

    **Raises:** `InvalidExpression` naming the piece that is not understood. Nothing is ever evaluated as
    code, and every text takes a time in proportion to its length.
    """
    return _Parser(text, variables).whole()


def _sigmoid(g: Any) -> Any:
    return 1 / (1 + sp.exp(-g))


_CALLS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    **{name: (function, NUMPY[name]) for name, function in FUNCTIONS.items()},
    "sqrt": (sp.sqrt, np.sqrt),
    "sigmoid": (_sigmoid, lambda g: 1 / (1 + np.exp(-g))),
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
            hint = "; a power is written **" if rest.startswith("^") else ""
            raise InvalidExpression(f"{rest[:20]!r} at place {place} is not part of a formula{hint}")
        kind = str(match.lastgroup)
        tokens.append(Token(kind, match[kind], match.start(kind)))
        place = match.end()
    return [*tokens, Token("end", "", end)]


class _Parser:
    """One pass over the tokens, by the rules sum > product > sign > power > atom."""

    def __init__(self, text: str, variables: Sequence[str]) -> None:
        self.tokens = _tokens(text)
        self.at = 0
        self.depth = 0
        self.symbols = {name: real_symbol(name) for name in variables}

    def whole(self) -> Any:
        value = self.sum()
        self.expect("end", "", "an operator is missing before it")
        return value.expr

    @property
    def next(self) -> Token:
        return self.tokens[self.at]

    def take(self, *marks: str) -> str | None:
        """The next token if it is one of the marks."""
        token = self.next
        if token.kind != "mark" or token.text not in marks:
            return None
        self.at += 1
        return token.text

    def expect(self, kind: str, text: str, hint: str) -> None:
        if (self.next.kind, self.next.text) != (kind, text):
            raise self.error(f"was not expected; {hint}")
        self.at += 1

    def error(self, problem: str) -> InvalidExpression:
        token = self.next
        what = (
            "the end of the formula" if token.kind == "end" else f"{token.text[:40]!r} at place {token.place}"
        )
        return InvalidExpression(f"{what} {problem}")

    def nested(self, rule: Callable[[], Value]) -> Value:
        if self.depth >= MAX_DEPTH:
            raise InvalidExpression(f"the formula is nested more than {MAX_DEPTH} deep")
        self.depth += 1
        value = rule()
        self.depth -= 1
        return value

    def sum(self) -> Value:
        terms = [self.product()]
        while sign := self.take("+", "-"):
            term = self.product()
            terms.append(term if sign == "+" else _negative(term))
        return terms[0] if len(terms) == 1 else _join(sp.Add, terms, math.fsum)

    def product(self) -> Value:
        factors = [self.sign()]
        while mark := self.take("*", "/"):
            factor = self.sign()
            factors.append(factor if mark == "*" else _power(factor, Value(sp.S.NegativeOne, -1.0)))
        return factors[0] if len(factors) == 1 else _join(sp.Mul, factors, math.prod)

    def sign(self) -> Value:
        mark = self.take("+", "-")
        if mark is None:
            return self.power()
        value = self.nested(self.sign)
        return _negative(value) if mark == "-" else value

    def power(self) -> Value:
        base = self.atom()
        return _power(base, self.nested(self.sign)) if self.take("**") else base

    def atom(self) -> Value:
        if self.take("("):
            value = self.nested(self.sum)
            self.expect("mark", ")", "a ')' is missing before it")
            return value
        token = self.next
        if token.kind not in ("number", "name", "quoted"):
            raise self.error("was not expected; a number, a variable or a '(' is missing before it")
        self.at += 1
        if token.kind == "number":
            return _number(token.text)
        if token.kind == "name" and self.take("("):
            return self.call(token)
        name = token.text.replace("``", "`") if token.kind == "quoted" else token.text
        if name in self.symbols:
            return Value(self.symbols[name])
        if token.kind == "name" and name in CONSTANTS:
            return Value(CONSTANTS[name], float(CONSTANTS[name]))
        hint = did_you_mean(name, [*self.symbols, *CONSTANTS])
        raise InvalidExpression(f"{name!r} at place {token.place} is not a variable; {hint}")

    def call(self, token: Token) -> Value:
        if token.text not in _CALLS:
            hint = did_you_mean(token.text, _CALLS)
            raise InvalidExpression(f"{token.text!r} at place {token.place} is not a function; {hint}")
        value = self.nested(self.sum)
        self.expect("mark", ")", "a ')' is missing before it")
        on_symbols, on_numbers = _CALLS[token.text]
        if value.number is None:
            return Value(on_symbols(value.expr))
        with np.errstate(all="ignore"):
            number = _finite(float(on_numbers(np.float64(value.number))), f"{token.text}({_short(value)})")
        return Value(on_symbols(value.expr), number)


def _number(text: str) -> Value:
    if len(text) > MAX_DIGITS:
        raise InvalidExpression(f"the number {text[:20]}... has more than {MAX_DIGITS} digits")
    if text.isdigit():
        return Value(sp.Integer(int(text)), float(text))
    value = float(text)
    mantissa, _, exponent = text.lower().partition("e")
    if math.isfinite(value) and (value or not re.search("[1-9]", mantissa)):
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
