"""Formulas as a user writes them, with unknowns in them: constants by name, and parts, `f(a, b)`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from eqlearn.errors import InvalidArgument, InvalidExpression
from eqlearn.functions import FUNCTIONS
from eqlearn.symbolic.expressions import real_symbol
from eqlearn.symbolic.parse import parse
from eqlearn.symbolic.printing import CONSTANTS
from eqlearn.validation.options import did_you_mean

_NAME = r"[^\W\d]\w*"
_LEFT = re.compile(rf"^\s*(?:{_NAME}|`[^`]+`)\s*=(?!=)")
_CALL = re.compile(rf"(?<![\w`])({_NAME})\s*\(\s*((?:{_NAME}|`[^`]+`)(?:\s*,\s*(?:{_NAME}|`[^`]+`))*)\s*\)")
_WORD = re.compile(rf"`([^`]+)`|(?<![\w.])({_NAME})(?!\s*\(|\w)")


@dataclass(frozen=True)
class Part:
    """An unknown of a formula: its symbol, and the columns it is a function of; a constant has none."""

    symbol: Any
    columns: tuple[str, ...] = ()


@dataclass(frozen=True)
class Written:
    """A formula in columns and unknown parts, of which constants are those of no columns."""

    expr: Any
    parts: tuple[Part, ...]

    @property
    def constants(self) -> tuple[Part, ...]:
        return tuple(part for part in self.parts if not part.columns)

    @property
    def functions(self) -> tuple[Part, ...]:
        return tuple(part for part in self.parts if part.columns)


def read_formula(argument: str, text: str, columns: Sequence[str], *, functions: bool) -> Written:
    """The formula that a text says, with or without a left-hand side; names that are not columns are unknown
    constants, and calls of what is no known function unknown `functions`, if there may be any."""
    body = _LEFT.sub("", text, count=1)
    parts: dict[str, Part] = {}

    def unknown(match: re.Match[str]) -> str:
        name, inside = match[1], match[2]
        if name in FUNCTIONS or not functions:
            return match[0]
        names = tuple(word.strip().strip("`") for word in inside.split(","))
        for each in names:
            if each not in columns:
                raise InvalidArgument(
                    f"`{argument}` has a part {name!r} of {each!r}, which is no column; "
                    f"{did_you_mean(each, columns)}"
                )
        if name in parts or len(set(names)) < len(names):
            raise InvalidArgument(
                f"`{argument}` names the part {name!r} twice, or a column of it: an unknown part stands "
                "once, as a function of different columns"
            )
        key = f"{name}({', '.join(names)})"
        parts[name] = Part(real_symbol(key), names)
        return f"`{key}`"

    marked = _CALL.sub(unknown, body)
    known = {*columns, *CONSTANTS, *(part.symbol.name for part in parts.values())}
    for match in _WORD.finditer(marked):
        word = match[1] or match[2]
        if word not in known and word not in FUNCTIONS:
            parts.setdefault(word, Part(real_symbol(word)))
    try:
        expr = parse(marked, [*columns, *(part.symbol.name for part in parts.values())])
    except InvalidExpression as error:
        raise InvalidArgument(f"`{argument}` {text!r} can't be read: {error}") from error
    if functions and not any(part.columns for part in parts.values()):
        raise InvalidArgument(
            f"`{argument}` {text!r} has no unknown part, such as f({columns[0]}); a formula with unknown "
            "constants only is a `start`"
        )
    lost = [part.symbol.name for part in parts.values() if not expr.has(part.symbol)]
    if lost:
        raise InvalidArgument(f"in `{argument}` {text!r} the part {lost[0]!r} cancels")
    return Written(expr, tuple(parts.values()))
