"""The table of elementary functions: how each is spelled in every library, and its properties.

Primitives, tape, parser, exports and search all read this table. A new function is one entry here or, from
outside, one call of `register_function`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal, TypeAlias

import numpy as np
import sympy as sp

from eqlearn.errors import InvalidArgument, WrongType

Spelling: TypeAlias = "str | Callable[[Any], Any] | None"

# Nothing overflows in mpmath, but the exponential of an exponential would never finish.
MOST_EXPONENT = 1e15


@dataclass(frozen=True, eq=False)
class Function:
    """An elementary function of one argument.

    `sympy` is its class, or a function that expresses it by others, as a square root is a power; SymPy prints
    its LaTeX. A spelling is a name in the library or a path elsewhere (`scipy.special.erf`); empty, it is the
    `name` (for JAX, as in NumPy and SciPy); None means that there is none. A callable will do, but can't be
    exported as source code. `aliases` are other names, for hints; `mathml` is markup around the argument.

    Values are real on the `domain`. The `inverse`, a name or a formula `(m, y)` in an algebra `m`, undoes the
    function for values in the `image`; both are closed intervals. `homogeneous`: a factor of the argument
    comes out as a factor or a term. `wave`: a sine, whose argument is an angle. `grows`: it overflows at
    moderate arguments, on both sides if it has a `parity`.
    """

    name: str
    sympy: Callable[[Any], Any]
    numpy: Spelling = ""
    torch: Spelling = ""
    jax: Spelling = ""
    mpmath: Spelling = ""
    c: str | None = ""
    aliases: tuple[str, ...] = ()
    mathml: str = ""
    domain: tuple[float, float] = (-math.inf, math.inf)
    parity: Literal["even", "odd"] | None = None
    inverse: str | Callable[[Any, Any], Any] | None = None
    image: tuple[float, float] = (-math.inf, math.inf)
    homogeneous: bool = False
    wave: bool = False
    grows: bool = False

    def path(self, library: str) -> str:
        """The import path, such as `numpy.arcsin`; in C the bare name."""
        spelling = getattr(self, library)
        if library == "jax" and spelling == "" and isinstance(self.numpy, str):
            spelling = f"jax.{self.numpy}" if self.numpy.startswith("scipy.") else self.numpy
        if not isinstance(spelling, str):
            what = "no function" if spelling is None else "no importable function"
            raise InvalidArgument(f"there is {what} {self.name!r} in {'C' if library == 'c' else library}")
        home = {"c": "", "jax": "jax.numpy."}.get(library, f"{library}.")
        return spelling if "." in spelling else home + (spelling or self.name)

    def on(self, library: str) -> Callable[[Any], Any]:
        """The function in a library: sympy, numpy, torch, jax or mpmath."""
        spelling = getattr(self, library)
        if not callable(spelling):
            module, _, name = self.path(library).rpartition(".")
            spelling = getattr(import_module(module), name)
        return _bounded(spelling) if library == "mpmath" and self.grows else spelling

    def undo(self, algebra: Algebra, y: Any) -> Any:
        """The argument at which the function is `y`, for a `y` in the image."""
        if self.inverse is None:
            raise InvalidArgument(f"function {self.name!r} has no inverse")
        return self.inverse(algebra, y) if callable(self.inverse) else algebra[self.inverse](y)

    def points(self, count: int = 7) -> list[float]:
        """Arguments inside the domain, not round numbers, as singular points often are."""
        low = max(self.domain[0], min(-2.3, self.domain[1] - 4.6))
        high = min(self.domain[1], low + 4.6)
        return [low + (high - low) * (k + 0.37) / count for k in range(count)]


def _bounded(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def bounded(g: Any) -> Any:
        if abs(g) > MOST_EXPONENT:
            raise OverflowError
        return function(g)

    return bounded


_UNIT, _POSITIVE, _HALF_TURN = (-1.0, 1.0), (0.0, math.inf), (-math.pi / 2, math.pi / 2)
# Images end where rounding a value would move its argument too far: 1e-9 from a limit that is never reached,
# at 30 for a logarithm, at 1.57 for an arctangent.
_INSIDE, _MODERATE = (-1 + 1e-9, 1 - 1e-9), (-30.0, 30.0)
_EXPONENTIAL, _BARS = "<msup><mi>e</mi><mrow>{}</mrow></msup>", "<mrow><mo>|</mo>{}<mo>|</mo></mrow>"

FUNCTIONS: dict[str, Function] = {
    f.name: f
    for f in (
        Function("sin", sp.sin, parity="odd", wave=True),
        Function("cos", sp.cos, parity="even", wave=True),
        Function("tan", sp.tan, parity="odd"),
        Function("asin", sp.asin, "arcsin", domain=_UNIT, parity="odd", inverse="sin", image=_HALF_TURN),
        Function("acos", sp.acos, "arccos", domain=_UNIT, inverse="cos", image=(0.0, math.pi)),
        Function("atan", sp.atan, "arctan", parity="odd", inverse="tan", image=(-1.57, 1.57)),
        Function("sinh", sp.sinh, parity="odd", inverse="asinh", grows=True),
        Function("cosh", sp.cosh, parity="even", grows=True),
        Function("tanh", sp.tanh, parity="odd", inverse="atanh", image=_INSIDE),
        Function("exp", sp.exp, mathml=_EXPONENTIAL, inverse="log", image=_POSITIVE, grows=True),
        Function(
            "log", sp.log, aliases=("ln",), domain=_POSITIVE, inverse="exp", image=_MODERATE, homogeneous=True
        ),
        Function("abs", sp.Abs, mpmath="fabs", c="fabs", mathml=_BARS, parity="even", homogeneous=True),
        Function(
            "sqrt",
            sp.sqrt,
            mathml="<msqrt>{}</msqrt>",
            domain=_POSITIVE,
            inverse=lambda m, y: y**2,
            image=_POSITIVE,
            homogeneous=True,
        ),
        Function("asinh", sp.asinh, "arcsinh", parity="odd", inverse="sinh", image=_MODERATE),
        Function("acosh", sp.acosh, "arccosh", domain=(1.0, math.inf), inverse="cosh", image=(0.0, 30.0)),
        Function("atanh", sp.atanh, "arctanh", domain=_UNIT, parity="odd", inverse="tanh"),
        Function("erf", sp.erf, "scipy.special.erf", parity="odd", inverse="erfinv", image=_INSIDE),
        Function(
            "erfinv", sp.erfinv, "scipy.special.erfinv", c=None, domain=_UNIT, parity="odd", inverse="erf"
        ),
        Function(
            "sigmoid",
            lambda g: 1 / (1 + sp.exp(-g)),
            "scipy.special.expit",
            mpmath=None,
            c=None,
            aliases=("logistic",),
            inverse=lambda m, y: m.log(y) - m.log(1 - y),
            image=(1e-9, 1 - 1e-9),
        ),
    )
}
# SymPy's class of each function that is a node of its own.
NAMES = {f.sympy: f.name for f in FUNCTIONS.values() if isinstance(f.sympy, type)}


class Algebra(dict[str, Any]):
    """The functions of one library, `m.sin` or `m["sin"]`, each looked up at its first use."""

    def __init__(self, library: str, pi: Any = math.pi, e: Any = math.e, **operations: Any) -> None:
        super().__init__(operations)
        self.library, self.pi, self.e = library, pi, e

    def __missing__(self, name: str) -> Any:
        self[name] = FUNCTIONS[name].on(self.library)
        return self[name]

    def __getattr__(self, name: str) -> Any:
        if name not in FUNCTIONS:
            raise AttributeError(f"an algebra has no {name!r}; it has {', '.join(FUNCTIONS)}, pi, e")
        setattr(self, name, self[name])
        return self[name]


NUMPY, TORCH, SYMPY = Algebra("numpy"), Algebra("torch"), Algebra("sympy", sp.pi, sp.E)
# Names with another meaning in a tape, in the text of a formula or in an algebra.
TAKEN = {"add", "mul", "div", "neg", "pow", "power", "variable", "constant", "number", "E", *dir(NUMPY)}


def register_function(function: Function) -> Function:
    """Adds a function to the table, after checking that its spellings agree.

    ```python
    register_function(Function("erfc", sympy.erfc, numpy="scipy.special.erfc"))
    ```

    It can then be parsed, computed and exported, is in every algebra (`m.erfc`), and is a primitive.
    """
    if not isinstance(function, Function):
        raise WrongType(f"`function` must be a Function, got {function!r}")
    name = function.name
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z_][A-Za-z_0-9]*", name):
        raise InvalidArgument(f"a function's `name` must be an identifier, got {name!r}")
    if FUNCTIONS.get(name) is function:
        return function
    if name in FUNCTIONS or name in TAKEN:
        raise InvalidArgument(f"the name {name!r} is taken; choose another `name` for the function")
    if function.sympy in NAMES:
        raise InvalidArgument(f"function {name!r}: `sympy` is known already, as {NAMES[function.sympy]!r}")
    _check_spellings(function)
    FUNCTIONS[name] = function
    if isinstance(function.sympy, type):
        NAMES[function.sympy] = name
    return function


def _check_spellings(function: Function) -> None:
    """Refuses a function whose values differ between libraries, or that SymPy can't evaluate."""
    points = np.array(function.points())
    kinds = {"numpy": np.asarray, "torch": import_module("torch").as_tensor, "mpmath": lambda x: x}
    try:
        expected = [complex(function.sympy(sp.Float(x, 17)).evalf()) for x in points]
        for library, array in kinds.items():
            if getattr(function, library) is None:
                continue
            values = np.array([complex(function.on(library)(array(x))) for x in points])
            if not np.allclose(values, expected, rtol=1e-9, atol=1e-12):
                raise InvalidArgument(
                    f"function {function.name!r}: {library} and SymPy give different values, "
                    f"{values[0].real:.6g} and {expected[0].real:.6g} at {points[0]:.6g}"
                )
    except InvalidArgument:
        raise
    except Exception as error:  # whatever a user's spelling raises
        raise InvalidArgument(
            f"function {function.name!r} can't be computed on its `domain`: {type(error).__name__}: {error}"
        ) from error
