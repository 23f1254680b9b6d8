"""Elementary functions: each formula is written once and evaluated on tensors and on SymPy symbols."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, TypeAlias

import sympy as sp
import torch
from torch import Tensor

from eqlearn.errors import InvalidArgument, WrongType, counted
from eqlearn.functions import FUNCTIONS, SYMPY, TAKEN, TORCH, Algebra, Function, register_function
from eqlearn.validation.options import check_least, checked_choice

Guard: TypeAlias = Callable[..., tuple[Tensor, ...]]


@dataclass(frozen=True, eq=False)
class Primitive:
    """An elementary function such as `sin(2πg)` or `g₁·g₂`.

    `formula(m, *args)` is written against an algebra `m` (`m.sin`, `m.exp`, `m.pi`, ...). Calling the
    primitive evaluates it on tensors; `symbolic` evaluates the same formula on SymPy expressions, so the
    network and the printed equation cannot disagree.

    `guard(*args)` moves tensor arguments to where values and slopes are finite. It acts only while a network
    trains (`guarded=True`), not in `eval()` nor in the exported formula. `even` lists the arguments of which
    the guard sees only the magnitude, so that a search may flip their sign.

    `pullback(m, dh, h, *args)`, if written, gives the gradient of each argument of the guarded value `h` from
    that of `h`, on tensors and on NumPy's arrays, faster than autograd.
    """

    name: str
    arity: int
    formula: Callable[..., Any]
    guard: Guard | None = None
    even: tuple[int, ...] = ()
    pullback: Guard | None = None

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[A-Za-z_][A-Za-z_0-9]*", self.name):
            raise InvalidArgument(f"a primitive's `name` must be an identifier, got {self.name!r}")
        if self.arity < 0:
            raise InvalidArgument(f"primitive {self.name!r}: `arity` must be at least 0, got {self.arity}")
        if not callable(self.formula):
            raise WrongType(f"primitive {self.name!r}: `formula` must be a function, got {self.formula!r}")
        if not set(self.even) <= set(range(self.arity)):
            raise InvalidArgument(f"primitive {self.name!r}: `even` names arguments it has not, {self.even}")

    def __call__(self, *args: Tensor, guarded: bool = False) -> Any:
        """The value on tensors; of no arguments, a plain number."""
        return self.trained(TORCH, *args) if guarded else self.formula(TORCH, *args)

    def trained(self, m: Algebra, *args: Any) -> Any:
        """The guarded value on tensors, or on arrays where the derivative is written for them too."""
        if self.guard is not None:
            args = self.guard(*args)
        return self.formula(m, *args)

    def symbolic(self, *args: Any) -> Any:
        """The same formula on SymPy expressions."""
        return sp.S(self.formula(SYMPY, *args))

    def __reduce__(self) -> tuple[Callable[[str], Primitive], tuple[str]]:
        if PRIMITIVES.get(self.name) is not self:
            raise InvalidArgument(
                f"primitive {self.name!r} is not registered, so it can't be pickled or saved by name; "
                "call `register` on it first"
            )
        return lookup, (self.name,)

    def __deepcopy__(self, memo: dict[int, Any]) -> Primitive:
        return self

    def __repr__(self) -> str:
        return f"<{self.name}: {self.symbolic(*sp.symbols(f'g1:{self.arity + 1}'))}>"


@dataclass(frozen=True)
class Plain:
    """The formula of a primitive that is a function of the table and nothing else."""

    function: Function

    def __call__(self, m: Algebra, g: Any) -> Any:
        return m[self.function.name](g)


def _plain(function: Function) -> Primitive:
    name = _OTHER_NAMES.get(function.name, function.name)
    even = (0,) if function.domain == _HALF_LINE else ()
    return Primitive(name, 1, Plain(function), _guard(function), even)


def _guard(function: Function) -> Guard | None:
    """Keeps arguments below overflow, or a little inside the domain; a half-line sees magnitudes."""
    low, high = function.domain
    if function.grows:
        least = -_LARGEST if function.parity else None
        return lambda g: (g.clip(min=least, max=_LARGEST),)
    if function.domain == _HALF_LINE:
        return lambda g: (g.abs().clip(min=_EDGE),)
    if math.isfinite(low) or math.isfinite(high):
        return lambda g: (g.clip(min=low + _EDGE, max=high - _EDGE),)
    return None


_HALF_LINE = (0.0, math.inf)
# exp(80) is the largest round power whose square root, product with 1e4 and slope are finite in float32.
_EDGE, _LARGEST = 1e-6, 80.0
# The paper's own sine and sigmoid have the plain names.
_OTHER_NAMES = {"sin": "sin1", "sigmoid": "logistic"}


# Those of what trains most; of the others, autograd finds them.
_PULLBACKS: dict[str, Guard] = {
    "id": lambda m, d, h, g: (d,),
    "square": lambda m, d, h, g: (2 * d * g,),
    "mul": lambda m, d, h, a, b: (d * b, d * a),
    "mul10": lambda m, d, h, a, b: (10 * d * b, 10 * d * a),
    "sin": lambda m, d, h, g: (d * (2 * math.pi * m.cos(2 * math.pi * g)),),
    "sin4": lambda m, d, h, g: (d * (4 * math.pi * m.cos(4 * math.pi * g)),),
    "sin1": lambda m, d, h, g: (d * m.cos(g),),
    "cos": lambda m, d, h, g: (-d * m.sin(g),),
    "tanh": lambda m, d, h, g: (d * (1 - h * h),),
    "sigmoid": lambda m, d, h, g: (d * (20 * h * (1 - h)),),
    "logistic": lambda m, d, h, g: (d * (h * (1 - h)),),
    "exp": lambda m, d, h, g: (d * h * (g <= _LARGEST),),
    "expm1e": lambda m, d, h, g: (d * (h + 1 / math.e) * (g <= _LARGEST),),
}


def _away_from_zero(g: Tensor) -> Tensor:
    return torch.where(g < 0, g.clip(max=-1e-3), g.clip(min=1e-3))


def _power_domain(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    return a.abs().clip(min=1e-4), b.clip(min=-6.0, max=6.0)


# Where the mathematics is undefined or overflows, training sees instead: the exponential and the hyperbolic
# functions of at most 80, log and sqrt of |g| (at least 1e-6), other functions 1e-6 inside their domain, a
# divisor at least 1e-3 away from zero, |a| (at least 1e-4) to a power between -6 and 6. Outside training the
# formula holds as it stands: log(-1) is NaN, 1/0 is infinite.
PRIMITIVES: dict[str, Primitive] = {
    p.name: replace(p, pullback=_PULLBACKS.get(p.name))
    for p in (
        # The paper's set (appendix "EQL Network Details"). The constant takes no argument: a weight in
        # front of it could change nothing.
        Primitive("one", 0, lambda m: 1),
        Primitive("id", 1, lambda m, g: g),
        Primitive("square", 1, lambda m, g: g**2),
        Primitive("sin", 1, lambda m, g: m.sin(2 * m.pi * g)),
        Primitive("sigmoid", 1, lambda m, g: m.sigmoid(20 * g)),
        Primitive("mul", 2, lambda m, a, b: a * b),
        # The released code's variants.
        Primitive("sin4", 1, lambda m, g: m.sin(4 * m.pi * g)),
        Primitive("expm1e", 1, lambda m, g: (m.exp(g) - 1) / m.e, _guard(FUNCTIONS["exp"])),
        Primitive("mul10", 2, lambda m, a, b: 10 * a * b),
        # What a scientist expects beside them: every function of the table, and these.
        *map(_plain, FUNCTIONS.values()),
        Primitive("inv", 1, lambda m, g: 1 / g, lambda g: (_away_from_zero(g),)),
        Primitive("div", 2, lambda m, a, b: a / b, lambda a, b: (a, _away_from_zero(b))),
        Primitive("pow", 2, lambda m, a, b: a**b, _power_domain, (0,)),
        Primitive("cube", 1, lambda m, g: g**3),
        Primitive("gaussian", 1, lambda m, g: m.exp(-(g**2))),
        # Zero-point-consistent forms, f(0) = 0: a silent path stays silent.
        Primitive("exp0", 1, lambda m, g: m.exp(g) - 1, _guard(FUNCTIONS["exp"])),
        Primitive("cos0", 1, lambda m, g: m.cos(g) - 1),
        Primitive("sigmoid0", 1, lambda m, g: m.sigmoid(20 * g) - m.sigmoid(0 * g)),
    )
}

_BUILT_IN, _TABLE = frozenset(PRIMITIVES), frozenset(FUNCTIONS)
TAKEN.update(_BUILT_IN - _TABLE)  # a function of that name would mean something else in a formula

PAPER = "one*2 id*4 square*4 sin*2 exp*2 sigmoid*2 mul*2"
RELEASED = "one*2 id*4 square*4 sin4*2 expm1e*2 sigmoid*2 mul10*2"

PrimitivesLike: TypeAlias = "str | Sequence[Primitive] | Sequence[str | Sequence[Primitive]]"


def lookup(name: str) -> Primitive:
    """The registered primitive called `name`."""
    if name not in PRIMITIVES and name in FUNCTIONS:  # registered as a function since
        PRIMITIVES[name] = _plain(FUNCTIONS[name])
    return PRIMITIVES[checked_choice("primitive", name, PRIMITIVES)]


def register(primitive: Primitive) -> Primitive:
    """Makes a primitive known by its name, after checking that its two evaluations agree.

    ```python
    softplus = register(Primitive("softplus", 1, lambda m, g: m.log(1 + m.exp(g))))
    ```
    """
    known = PRIMITIVES.get(primitive.name)
    if known is not None and known is not primitive:
        raise InvalidArgument(f"a primitive named {primitive.name!r} exists already; choose another `name`")
    _check_twins(primitive)
    PRIMITIVES[primitive.name] = primitive
    TAKEN.add(primitive.name)
    return primitive


@dataclass(frozen=True)
class RegistrySnapshot:
    """The user's own functions and primitives, which are registered in the process that unpickles this.

    Primitives are pickled by name, so it has to be unpickled before anything that holds them.
    """

    functions: tuple[Function, ...]
    definitions: tuple[tuple[Any, ...], ...]

    @staticmethod
    def taken() -> RegistrySnapshot:
        own = [p for name, p in PRIMITIVES.items() if name not in _BUILT_IN]
        written = [p for p in own if not isinstance(p.formula, Plain)]
        return RegistrySnapshot(
            tuple(f for name, f in FUNCTIONS.items() if name not in _TABLE),
            tuple((p.name, p.arity, p.formula, p.guard, p.even, p.pullback) for p in written),
        )

    def __reduce__(self) -> tuple[Callable[..., RegistrySnapshot], tuple[Any, ...]]:
        return _restored, (self.functions, self.definitions)


def _restored(functions: tuple[Function, ...], definitions: tuple[tuple[Any, ...], ...]) -> RegistrySnapshot:
    for function in (f for f in functions if f.name not in FUNCTIONS):
        register_function(function)
    for definition in (d for d in definitions if d[0] not in PRIMITIVES):
        register(Primitive(*definition))
    return RegistrySnapshot(functions, definitions)


def _check_twins(primitive: Primitive) -> None:
    # No round numbers, because a formula's singular points are mostly round.
    points = [torch.linspace(0.23, 1.79, 5, dtype=torch.float64) + 0.127 * i for i in range(primitive.arity)]
    symbols = sp.symbols(f"g:{primitive.arity}")
    try:
        primitive(*points, guarded=True)
        value = torch.as_tensor(primitive(*points), dtype=torch.float64)
        expression = primitive.symbolic(*symbols)
        rows = zip(*(p.tolist() for p in points), strict=True) if points else ((),)
        on_symbols = [complex(expression.subs(dict(zip(symbols, r, strict=True))).evalf()) for r in rows]
    except Exception as error:  # whatever a user's formula raises
        raise InvalidArgument(
            f"primitive {primitive.name!r}: `formula` must take the algebra and "
            f"{counted(primitive.arity, 'argument')}, and use only its functions; "
            f"it raised {type(error).__name__}: {error}"
        ) from error
    if value.shape != (points[0].shape if points else ()):
        raise InvalidArgument(
            f"primitive {primitive.name!r}: `formula` must give one value per row, got shape "
            f"{tuple(value.shape)} for {tuple(points[0].shape) if points else 'no arguments'}; "
            "a constant is a primitive of arity 0"
        )
    # Where the real formula is undefined, SymPy goes on into the complex plane and tensors give NaN.
    real = [z.real if z.imag == 0 else math.nan for z in on_symbols]
    expected = torch.tensor(real, dtype=torch.float64).reshape(value.shape)
    if not torch.allclose(value, expected, rtol=1e-9, atol=1e-12, equal_nan=True):
        raise InvalidArgument(f"primitive {primitive.name!r}: tensors and symbols give different values")


def parse_set(primitives: str | Sequence[Primitive]) -> tuple[Primitive, ...]:
    """One layer's units, from text such as `"one*2 id*4 mul*2"` or from primitives."""
    if isinstance(primitives, str):
        units = tuple(p for p, count in parse_counts(primitives) for _ in range(count))
    elif isinstance(primitives, Iterable):
        units = tuple(primitives)
        if strangers := [p for p in units if not isinstance(p, Primitive)]:
            raise WrongType(f"`primitives` must hold text or Primitive objects, got {strangers[0]!r}")
    else:
        raise WrongType(f"`primitives` must be text or a sequence, got {primitives!r}")
    if not units:
        raise InvalidArgument("`primitives` is empty; give at least one, for example 'id mul'")
    return units


def parse_counts(text: str) -> list[tuple[Primitive, int]]:
    """The words of a set's text form: each a primitive and how many of it."""
    counts = []
    for word in text.split():
        match = re.fullmatch(r"([A-Za-z_][A-Za-z_0-9]*)(?:\*([1-9][0-9]{0,5}))?", word)
        if match is None:
            raise InvalidArgument(
                f"`primitives`: {word!r} must be a name, or a name and a count such as 'sin*2'"
            )
        counts.append((lookup(match[1]), int(match[2] or 1)))
    return counts


def parse_kinds(primitives: PrimitivesLike) -> tuple[Primitive, ...]:
    """One set for all layers; a list of texts is one set too."""
    if not isinstance(primitives, str) and isinstance(primitives, Iterable):
        items = list(primitives)
        texts = [item for item in items if isinstance(item, str)]
        return parse_set(" ".join(texts) if len(texts) == len(items) else items)  # type: ignore[arg-type]
    return parse_set(primitives)


def parse_layers(primitives: PrimitivesLike, hidden_layers: int) -> tuple[tuple[Primitive, ...], ...]:
    """The units of each hidden layer: one set for all, or a sequence with one set per layer."""
    check_least("hidden_layers", hidden_layers)
    if isinstance(primitives, str) or not isinstance(primitives, Iterable):
        return (parse_set(primitives),) * hidden_layers
    items = list(primitives)
    if all(isinstance(p, Primitive) for p in items):
        return (parse_set(items),) * hidden_layers  # type: ignore[arg-type]
    if len(items) != hidden_layers:
        raise InvalidArgument(
            f"`primitives` holds {len(items)} sets for `hidden_layers`={hidden_layers}; "
            "give one text for all layers, or one set per layer"
        )
    return tuple(parse_set(p) for p in items)  # type: ignore[arg-type]


def format_set(units: Sequence[Primitive]) -> str:
    """The short text form of a layer's units; `parse_set` reads it back."""
    runs = [(name, len(list(run))) for name, run in groupby(unit.name for unit in units)]
    return " ".join(name if count == 1 else f"{name}*{count}" for name, count in runs)
