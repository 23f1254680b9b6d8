"""Programs written out as text: the formula as it is read and saved, and as source code."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import sympy as sp

from eqlearn.functions import FUNCTIONS
from eqlearn.symbolic.expressions import magnitude, real_symbol
from eqlearn.symbolic.tape import Instruction, Tape, lower

CONSTANTS = {"pi": sp.pi, "E": sp.E}
# Commands that could run something or change how a page is set.
_UNSAFE_LATEX = re.compile(
    r"\\(href|url|class|style|cssId|html|data|unicode|require|def|gdef|let|newcommand)"
)
_LATEX_ESCAPES = {
    **{c: "\\" + c for c in "#$%&_{}"},
    " ": r"\ ",
    "\\": r"\backslash ",
    "^": r"\hat{}",
    "~": r"\sim ",
    "<": r"\lt ",
    ">": r"\gt ",
}
# How tightly a piece of text holds together.
_SUM, _PRODUCT, _POWER, _ATOM = range(4)


class Piece(NamedTuple):
    """The text of one step, and how tightly it holds together."""

    text: str
    binding: int

    def inside(self, binding: int) -> str:
        """The text, in parentheses where it would otherwise fall apart."""
        return self.text if self.binding >= binding else f"({self.text})"


@dataclass(frozen=True)
class Dialect:
    """How a language writes numbers, functions and powers. `shared` gives parts used twice a name."""

    number: Callable[[Instruction], str]
    function: Callable[[str], str]
    power: Callable[[Piece, Piece], Piece]
    shared: bool


def double_star(base: Piece, exponent: Piece) -> Piece:
    return Piece(f"{base.inside(_ATOM)}**{exponent.inside(_ATOM)}", _POWER)


# A name that needs no quotes; a constant that varies over groups is a name with the group's in brackets.
NAME = r"[^\W\d]\w*(?:\[[^\W\d]\w*\])?"


def write(expr: sp.Expr, variables: Sequence[str], digits: int | None = None) -> str:
    """The formula as text that `parse` reads back; all digits of the constants by default.

    Names that are no identifiers, or that mean something else here, stand in backticks (a backtick inside
    is doubled), as in R and in pandas' `query`: `` 2.5*`my var` + sin(x) ``.
    """
    tape = lower(expr, [real_symbol(v) for v in variables], exact=True)
    # `pi` and `E` as bare names are the variables of that name, if there are such variables.
    pi = "acos(-1)" if "pi" in variables else "pi"
    dialect = Dialect(
        number=lambda step: {sp.pi: pi, sp.E: "exp(1)"}.get(step.exact, str(step.exact)),
        function=str,
        power=double_star,
        shared=False,
    )
    constants = [float_text(c, digits) for c in tape.constants]
    return render(tape, dialect, [quote(v) for v in variables], constants)[1]


def quote(name: str) -> str:
    """A variable's name as `write` and `parse` spell it."""
    if re.fullmatch(NAME, name) and name not in FUNCTIONS and name not in CONSTANTS:
        return name
    return "`" + name.replace("`", "``") + "`"


def printable(text: str) -> str:
    """The text on one line, with nothing in it that a terminal would obey."""
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def float_text(number: Any, digits: int | None) -> str:
    """A fitted constant as text, with all its digits or `digits` significant ones."""
    if abs(magnitude(number)) > 1000:
        return str(sp.Float(number, digits or 21))
    text = repr(float(number)) if digits is None else f"{float(number):.{digits}g}"
    return text if re.search(r"[.e]", text) else text + ".0"


def render(
    tape: Tape, dialect: Dialect, names: Sequence[str], constants: Sequence[str]
) -> tuple[list[tuple[str, str]], str]:
    """The definitions of shared parts, each a name and its text, and the text of the value."""
    uses = Counter(a for step in tape.steps for a in step.args)
    definitions: list[tuple[str, str]] = []
    pieces: list[Piece] = []
    for i, step in enumerate(tape.steps):
        piece = _piece(step, [pieces[a] for a in step.args], dialect, names, constants)
        if dialect.shared and step.args and uses[i] > 1:
            definitions.append((f"t{len(definitions)}", piece.text))
            piece = Piece(definitions[-1][0], _ATOM)
        pieces.append(piece)
    return definitions, pieces[-1].text


def _piece(
    step: Instruction, args: Sequence[Piece], dialect: Dialect, names: Sequence[str], constants: Sequence[str]
) -> Piece:
    if step.op == "variable":
        return Piece(names[int(step.value)], _ATOM)
    if step.op in ("constant", "number"):
        text = constants[int(step.value)] if step.op == "constant" else dialect.number(step)
        return Piece(text, _PRODUCT if text.startswith("-") or "/" in text else _ATOM)
    if step.op == "add":
        terms = [a.inside(_PRODUCT) for a in args]
        signed = (f" - {t[1:]}" if t.startswith("-") else f" + {t}" for t in terms[1:])
        return Piece(terms[0] + "".join(signed), _SUM)
    if step.op == "mul":
        return Piece("*".join([args[0].inside(_PRODUCT), *(a.inside(_POWER) for a in args[1:])]), _PRODUCT)
    if step.op == "div":
        return Piece(f"{args[0].inside(_PRODUCT)}/{args[1].inside(_POWER)}", _PRODUCT)
    if step.op == "neg":
        return Piece(f"-{args[0].inside(_POWER if args[0].text.startswith('-') else _PRODUCT)}", _PRODUCT)
    if step.op == "pow":
        return dialect.power(args[0], args[1])
    return Piece(f"{dialect.function(step.op)}({args[0].text})", _ATOM)


def latex_name(name: str) -> str:
    """A variable's name in LaTeX: as it is if it is LaTeX, else with what LaTeX would stumble on escaped."""
    if "\\" in name and not _UNSAFE_LATEX.search(name):
        return name
    if re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name) and not name.endswith("_"):
        # A word in italics would read as a product of its letters; Greek letters begin with a backslash here.
        return re.sub(r"^[A-Za-z]{2,}", lambda word: rf"\mathrm{{{word[0]}}}", str(sp.latex(sp.Symbol(name))))
    if member := re.fullmatch(r"(\w+)\[(.+)\]", name):
        return rf"{latex_name(member[1])}[{latex_name(member[2])}]"
    escaped = "".join(_LATEX_ESCAPES.get(c, c) for c in name)
    return rf"\mathrm{{{escaped}}}"
