"""Formulas as MathML: selectable, accessible, and typeset by the browser."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

import sympy as sp
from sympy.printing.conventions import split_super_sub
from sympy.printing.pretty.pretty_symbology import greek_unicode

from eqlearn.functions import FUNCTIONS
from eqlearn.symbolic.equation import Equation
from eqlearn.symbolic.expressions import real_symbol
from eqlearn.symbolic.tape import Instruction, lower

# Longer formulas are given as text only.
LONGEST = 400
DIGITS = 4
_SUM, _PRODUCT, _ATOM = range(3)


class _Piece(NamedTuple):
    """The markup of one step, its precedence, and whether it begins with a digit."""

    markup: str
    binding: int = _ATOM
    digit: bool = False

    def inside(self, binding: int) -> str:
        return self.markup if self.binding >= binding else _fenced(self.markup)


def mathml(equation: Equation, target: str, digits: int = DIGITS) -> str:
    """`target` = the formula, as a `<math>` element in which every fitted constant has its number."""
    tape = lower(equation.expr, [real_symbol(v) for v in equation.variables], exact=True)
    if equation.complexity > LONGEST:
        right = f"<mtext>a formula of {equation.complexity} nodes</mtext>"
    else:
        names = [name_markup(v) for v in equation.variables]
        constants = [_constant(float(c), k, digits) for k, c in enumerate(tape.constants)]
        pieces: list[_Piece] = []
        for step in tape.steps:
            pieces.append(_piece(step, [pieces[a] for a in step.args], names, constants))
        right = pieces[-1].markup
    left = f"{name_markup(target)}<mo>=</mo>"
    return f'<math display="block"><mrow>{left}<mrow>{right}</mrow></mrow></math>'


def name_markup(name: str) -> str:
    """The name of a variable: Greek letters as such, trailing digits as an index, `dx/dt` as a derivative and
    `x'` as the next value of x."""
    if (rate := re.fullmatch(r"d(\w+)/dt", name)) is not None:
        above = f"<mrow><mi>d</mi>{name_markup(rate[1])}</mrow>"
        return f"<mfrac>{above}<mrow><mi>d</mi><mi>t</mi></mrow></mfrac>"
    if (after := re.fullmatch(r"(\w+)'", name)) is not None:
        return f"<msup>{name_markup(after[1])}<mo>′</mo></msup>"
    bare = re.fullmatch(r"\$?\\?([A-Za-z]+[0-9]*|[A-Za-z]+(?:_[A-Za-z0-9]+)+)\$?", name)
    if bare is None:
        tag = "mi" if re.fullmatch(r"\w+", name) else "mtext"
        return f"<{tag}>{escape(name)}</{tag}>"
    base, above, below = split_super_sub(bare[1])
    head = _identifier(base)
    if above:  # `split_super_sub` knows `__` as a superscript
        return f"<mi>{escape(name)}</mi>"
    if not below:
        return head
    index = "<mo>,</mo>".join(_identifier(b) if b[0].isalpha() else f"<mn>{b}</mn>" for b in below)
    return f"<msub>{head}<mrow>{index}</mrow></msub>"


def _identifier(word: str) -> str:
    return f"<mi>{escape(greek_unicode.get(word, word))}</mi>"


def number_markup(value: float, digits: int = DIGITS) -> str:
    """The absolute value of a number, rounded to significant digits."""
    mantissa, _, exponent = f"{abs(value):.{digits}g}".partition("e")
    if not exponent:
        return f"<mn>{mantissa}</mn>"
    power = f"<mn>{abs(int(exponent))}</mn>"
    power = f"<mrow><mo>−</mo>{power}</mrow>" if int(exponent) < 0 else power
    ten = f"<msup><mn>10</mn>{power}</msup>"
    return ten if mantissa == "1" else f"<mrow><mn>{mantissa}</mn><mo>×</mo>{ten}</mrow>"


def _constant(value: float, index: int, digits: int) -> _Piece:
    number = f'<mrow class="constant" data-constant="{index}">{number_markup(value, digits)}</mrow>'
    if math.copysign(1, value) < 0:
        return _Piece(f"<mo>−</mo>{number}", _PRODUCT)
    return _Piece(number, digit=True)


def _fenced(markup: str) -> str:
    # An inner row, or a leading sign would be spaced like a subtraction.
    return f"<mrow><mo>(</mo><mrow>{markup}</mrow><mo>)</mo></mrow>"


def _piece(
    step: Instruction, args: Sequence[_Piece], names: Sequence[str], constants: Sequence[_Piece]
) -> _Piece:
    if step.op == "variable":
        return _Piece(names[int(step.value)])
    if step.op == "constant":
        return constants[int(step.value)]
    if step.op == "number":
        return _exact(step.exact)
    if step.op == "add":
        return _Piece(_signed([a.inside(_PRODUCT) for a in args]), _SUM)
    if step.op == "mul":
        return _product(args)
    if step.op == "div":
        return _fraction(*args)
    if step.op == "neg":
        inner = args[0].inside(_PRODUCT)
        return _Piece(f"<mo>−</mo>{_fenced(inner) if inner.startswith('<mo>−') else inner}", _PRODUCT)
    if step.op == "pow":
        return _Piece(f"<msup>{_base(args[0])}<mrow>{_inline(args[1].markup)}</mrow></msup>")
    inner, around = args[0].markup, FUNCTIONS[step.op].mathml
    if around:
        return _Piece(around.format(_inline(inner) if around.startswith("<msup>") else inner))
    return _Piece(f"<mrow><mi>{step.op}</mi><mo>&#x2061;</mo>{_fenced(inner)}</mrow>")


def _fraction(above: _Piece, below: _Piece) -> _Piece:
    sign = "<mo>−</mo>" if above.binding > _SUM and above.markup.startswith("<mo>−</mo>") else ""
    numerator = above.markup.removeprefix(sign)
    return _Piece(f"{sign}<mfrac><mrow>{numerator}</mrow><mrow>{below.markup}</mrow></mfrac>", _PRODUCT)


def _exact(number: sp.Expr) -> _Piece:
    if number == sp.pi:
        return _Piece("<mi>π</mi>")
    if number == sp.E:
        return _Piece("<mi>e</mi>")
    p, q = int(number.p), int(number.q)
    text = f"<mn>{abs(p)}</mn>" if q == 1 else f"<mfrac><mn>{abs(p)}</mn><mn>{q}</mn></mfrac>"
    return _Piece(f"<mo>−</mo>{text}", _PRODUCT) if p < 0 else _Piece(text, digit=True)


def _inline(markup: str) -> str:
    """A bare fraction in an exponent as 3/2, which is easier to read there than a stacked one."""
    fraction = r"^((?:<mo>−</mo>)?)<mfrac>(<mn>\d+</mn>)(<mn>\d+</mn>)</mfrac>$"
    return re.sub(fraction, r"\1\2<mo>/</mo>\3", markup)


def _base(piece: _Piece) -> str:
    plain = piece.binding == _ATOM and not piece.markup.startswith(("<msup", "<mfrac"))
    return f"<mrow>{piece.markup}</mrow>" if plain else _fenced(piece.markup)


def _signed(terms: Sequence[str]) -> str:
    return terms[0] + "".join(t if t.startswith("<mo>−") else f"<mo>+</mo>{t}" for t in terms[1:])


def _product(args: Sequence[_Piece]) -> _Piece:
    out = args[0].inside(_PRODUCT)
    for piece in args[1:]:
        factor = _fenced(piece.markup) if piece.markup.startswith("<mo>−") else piece.inside(_PRODUCT)
        out += f"<mo>{'⋅' if piece.digit else '&#x2062;'}</mo><mspace width='0.12em'/>{factor}"
    return _Piece(out, _PRODUCT, digit=args[0].digit)
