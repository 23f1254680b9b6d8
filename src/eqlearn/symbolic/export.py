"""Formulas for use elsewhere: Python and C source, a trainable torch module, a JAX function."""

from __future__ import annotations

import json
import keyword
import re
import textwrap
import unicodedata
from collections.abc import Callable, Sequence
from typing import Any

import sympy as sp
import torch
from jaxtyping import Float
from torch import Tensor, nn

from eqlearn.errors import InvalidArgument, MissingExtra, NotFinite, WrongType
from eqlearn.functions import FUNCTIONS, TORCH, Algebra
from eqlearn.symbolic.expressions import constant_holders, fitted, magnitude, real_symbol, replace_constants
from eqlearn.symbolic.printing import Dialect, Piece, double_star, render
from eqlearn.symbolic.tape import Tape, lower

# Words that C, C++ or <math.h> give a meaning, beside Python's keywords and the names of the functions.
_TAKEN = re.compile(
    r"\d.*|t\d+|M_.*|FP_.*|MATH_.*|auto|bool|break|case|char|class|const|continue|default|delete|do|double|"
    r"else|enum|equation|extern|false|float|for|goto|if|inline|int|linux|long|namespace|new|np|operator|"
    r"register|restrict|return|short|signed|sizeof|static|struct|switch|template|this|true|typedef|typeof|"
    r"union|unix|unsigned|void|volatile|while|abs|asm|gamma|lgamma|main|pow|signgam|[jy][01n]|DOMAIN|HUGE|"
    r"HUGE_VAL|INFINITY|MAXFLOAT|NAN|NULL|OVERFLOW|PLOSS|SING|TLOSS|UNDERFLOW"
)
_PYTHON = Dialect(
    number=lambda step: repr(
        int(step.value) if step.exact is not None and step.exact.is_Integer else step.value
    ),
    function=lambda name: re.sub(r"^numpy\.", "np.", FUNCTIONS[name].path("numpy")),
    power=double_star,
    shared=True,
)
_C = Dialect(
    number=lambda step: repr(float(step.value)),
    function=lambda name: FUNCTIONS[name].path("c"),
    power=lambda base, exponent: Piece(f"pow({base.text}, {exponent.text})", 3),
    shared=True,
)


def identifiers(names: Sequence[str]) -> list[str]:
    """Distinct ASCII identifiers, valid in Python and in C, that resemble the variables' names."""
    taken: set[str] = set()
    functions = {f.path("c") for f in FUNCTIONS.values() if f.c is not None}
    libraries = {str(f.numpy).partition(".")[0] for f in FUNCTIONS.values() if "." in str(f.numpy)}
    result = []
    for name in names:
        spelled_out = "".join(_ascii(c) for c in name)
        word = re.sub(r"\W+", "_", spelled_out, flags=re.ASCII).strip("_") or "v_"
        if keyword.iskeyword(word) or _TAKEN.fullmatch(word) or word in functions | libraries:
            word = f"v_{word}"
        unique, count = word, 1
        while unique in taken:
            count += 1
            unique = f"{word}_{count}"
        taken.add(unique)
        result.append(unique)
    return result


def _ascii(character: str) -> str:
    if character.isascii():
        return character
    name = unicodedata.name(character, "")
    if name.startswith("GREEK") and " LETTER " in name:
        word = name.split(" LETTER ")[1].split()[0].lower()
        return word.capitalize() if "CAPITAL" in name else word
    return unicodedata.normalize("NFKD", character).encode("ascii", "ignore").decode() or "_"


def python_source(tape: Tape, variables: Sequence[str], title: str, name: str) -> str:
    """The source of a numpy function of one argument per variable."""
    names = identifiers(variables)
    definitions, value = render(tape, _PYTHON, names, [repr(float(c)) for c in tape.constants])
    if not any(step.op == "variable" for step in tape.steps):
        value = f"np.full(np.broadcast_shapes({', '.join(f'np.shape({n})' for n in names)}), {value})"
    body = [
        _comment(variables, names, title),
        *(f"{n} = np.asarray({n}, dtype=np.float64)" for n in names),
        'with np.errstate(all="ignore"):',
        *(f"    {part} = {text}" for part, text in definitions),
        f"    return {value}",
    ]
    used = [FUNCTIONS[step.op].path("numpy") for step in tape.steps if step.op in FUNCTIONS]
    others = sorted({path.rpartition(".")[0] for path in used} - {"numpy"})
    imports = "\n".join(["import numpy as np", *(f"import {module}" for module in others)])
    head = f"{imports}\n\n\ndef {name}({', '.join(names)}):\n"
    return head + textwrap.indent("\n".join(body), "    ") + "\n"


def c_source(tape: Tape, variables: Sequence[str], title: str, name: str) -> str:
    """The source of a C function of one double per variable."""
    names = identifiers(variables)
    definitions, value = render(tape, _C, names, [repr(float(c)) for c in tape.constants])
    comment = _comment(variables, names, title).replace("*/", "* /").replace("/*", "/ *")
    body = [*(f"const double {part} = {text};" for part, text in definitions), f"return {value};"]
    arguments = ", ".join(f"double {n}" for n in names) or "void"
    head = f"#include <math.h>\n\n/* {comment} */\ndouble {name}({arguments}) {{\n"
    return head + textwrap.indent("\n".join(body), "    ") + "\n}\n"


def _comment(variables: Sequence[str], names: Sequence[str], title: str) -> str:
    """What the function computes, as a quoted string: a variable's name can't break out of it."""
    renamed = [f"{n} is {v}" for v, n in zip(variables, names, strict=True) if v != n]
    return literal("; ".join([title, *renamed]))


def literal(value: str | list[str]) -> str:
    """A text, or a list of texts, as source code; what can't be seen or turns the reading direction is
    escaped."""
    text = json.dumps(value, ensure_ascii=False)
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in text)


class TrainableEquation(nn.Module):
    """A formula as a module, `(*batch, variables)` to `(*batch, 1)`, whose fitted constants are trainable.

    `constants` is one vector, in the order of `Equation.constants`, float64 at the start. `Equation.read`
    takes the formula with its present constants out again.
    """

    def __init__(self, expr: sp.Expr, variables: Sequence[str]) -> None:
        super().__init__()
        self.expr = expr
        self.variables = tuple(variables)
        self.tape = lower(expr, [real_symbol(v) for v in variables])
        values = [float(c) for c in self.tape.constants]
        if any(abs(magnitude(c)) > 1000 for c in self.tape.constants):
            raise NotFinite(
                "a constant is too large or too small to be trained in float64; scale the variables"
            )
        self.constants = nn.Parameter(torch.tensor(values, dtype=torch.float64))
        self.in_features = len(self.variables)
        self.out_features = 1

    def forward(self, x: Float[Tensor, "*batch in"]) -> Float[Tensor, "*batch 1"]:
        if x.shape[-1] != self.in_features:
            raise InvalidArgument(
                f"the last axis of `x` must have {self.in_features} features, got shape {tuple(x.shape)}"
            )
        if not x.is_floating_point():
            raise WrongType(f"`x` is {x.dtype}; convert it with `.to(torch.float64)`")
        value = self.tape.run(TORCH, x.unbind(-1), self.constants.unbind())
        return torch.as_tensor(value, dtype=x.dtype, device=x.device).expand(x.shape[:-1]).unsqueeze(-1)

    def symbolic(self, x: Sequence[sp.Expr] | sp.Matrix) -> sp.Matrix:
        """The formula on SymPy expressions, with the present constants: a column of one."""
        values = self.constants.detach().double()
        if not bool(torch.isfinite(values).all()):
            raise NotFinite("a constant is NaN or infinite, so there is no equation; train it again")
        if len(x) != self.in_features:
            raise InvalidArgument(f"{len(x)} variables for an equation of {self.in_features}")
        numbers = dict(zip(constant_holders(self.expr), map(fitted, values.tolist()), strict=True))
        symbols = dict(zip(map(real_symbol, self.variables), x, strict=True))
        return sp.Matrix([replace_constants(self.expr, numbers, symbols)])

    def extra_repr(self) -> str:
        return f"variables={self.variables}, constants={len(self.constants)}"


def jax_function(tape: Tape, variables: Sequence[str]) -> Callable[..., Any]:
    """A function `equation(X, constants=...)` of a JAX array `(*batch, variables)`, for `jit` and `grad`."""
    try:
        import jax.numpy as jnp
    except ImportError as error:
        raise MissingExtra("JAX is not installed; install it with `pip install 'eqlearn[jax]'`") from error
    functions = Algebra("jax")
    fitted_values = [float(c) for c in tape.constants]

    def equation(X: Any, constants: Any = None) -> Any:
        X = jnp.asarray(X)
        X = X if jnp.issubdtype(X.dtype, jnp.floating) else X.astype(float)
        constants = jnp.asarray(fitted_values, dtype=X.dtype) if constants is None else constants
        columns = [X[..., i] for i in range(len(variables))]
        return jnp.broadcast_to(tape.run(functions, columns, list(constants)), X.shape[:-1])

    return equation
