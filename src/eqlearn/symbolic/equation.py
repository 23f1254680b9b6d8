"""The equation: a frozen formula with its variables; every use of it is a method."""

from __future__ import annotations

import html
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import sympy as sp
from numpy.typing import ArrayLike, NDArray
from torch import nn

from eqlearn.errors import InvalidArgument, InvalidFile, NotFinite, WrongType
from eqlearn.symbolic import export
from eqlearn.symbolic.expressions import (
    canonical,
    complexity,
    constant_holders,
    fill_constants,
    fitted,
    held_constant,
    magnitude,
    parts,
    real_symbol,
)
from eqlearn.symbolic.parse import parse
from eqlearn.symbolic.printing import float_text, latex_name, write
from eqlearn.symbolic.simplify import simplified
from eqlearn.symbolic.snap import candidates
from eqlearn.symbolic.tape import Tape, lower, number_value
from eqlearn.validation.options import check_least, check_place, check_together, checked_names, checked_range
from eqlearn.validation.table import columns_of, target_of

FORMAT, VERSION = "eqlearn-equation", 1
_LONG, _READABLE = 20_000, 300  # nodes beyond which a formula is not written, not typeset by itself
_BOX = (-2.0, 2.0)


@dataclass(frozen=True, init=False, repr=False)
class Equation:
    """A formula in named variables, with all its digits: `Equation.read(net, ["x", "y"])`.

    `expr` is a SymPy expression in real symbols of the variables' names; any text may be a name. Numbers
    with a point in them are fitted `constants`; whole numbers, fractions and pi are exact. Two equations
    are equal if they are written the same; `matches` asks whether they say the same.
    """

    expr: Any
    variables: tuple[str, ...]

    def __init__(self, expr: sp.Expr | float | int, variables: Sequence[str]) -> None:
        if isinstance(expr, str) or not isinstance(expr, (sp.Expr, int, float)):
            raise WrongType(
                f"`expr` must be a SymPy expression, got {type(expr).__name__}; `Equation.parse` reads text"
            )
        names = checked_names(variables)
        expr = fitted(expr) if isinstance(expr, float) else sp.S(expr)
        object.__setattr__(self, "variables", names)
        object.__setattr__(self, "expr", canonical(expr, names))
        self._program  # noqa: B018 (refuses numbers beyond float64 here and now)

    # --- where equations come from -------------------------------------------------------------------

    @classmethod
    def read(
        cls,
        net: nn.Module,
        variables: Sequence[str],
        *,
        output: int | None = None,
        member: int | None = None,
        simplify: bool = True,
    ) -> Equation:
        """The equation that a network computes in `eval()`: any module with `symbolic`, or a
        `torch.nn.Sequential` of such. Weights are read exactly as they are; nothing is dropped.

        Of several outputs, `output` says which; `read_all` gives them all.

        Where the module is finite, the equation has the same values. It may be defined beyond that where a
        root or logarithm cancels: a squared square root reads as its argument.
        """
        column = _symbolic_column(net, variables, member)
        if output is None and len(column) > 1:
            raise InvalidArgument(
                f"the network has {len(column)} outputs; say which with `output`, or use `Equation.read_all`"
            )
        output = output or 0
        check_place("`output`", output, len(column))
        equation = cls(column[output], variables)
        return equation.simplified() if simplify else equation

    @classmethod
    def read_all(
        cls, net: nn.Module, variables: Sequence[str], *, member: int | None = None, simplify: bool = True
    ) -> tuple[Equation, ...]:
        """One equation per output of a network."""
        equations = [cls(expr, variables) for expr in _symbolic_column(net, variables, member)]
        return tuple(e.simplified() if simplify else e for e in equations)

    @classmethod
    def parse(cls, text: str, variables: Sequence[str]) -> Equation:
        """The equation that a text says, such as "2.5*x**2 + sin(2*pi*y)"; nothing is evaluated as code."""
        if not isinstance(text, str):
            raise WrongType(f"`text` must be a formula such as '2.5*x + 1', got {text!r}")
        return cls(parse(text, checked_names(variables)), variables)

    @classmethod
    def from_json(cls, data: Mapping[str, Any] | str) -> Equation:
        """The equation that `to_json` wrote, from the object or from its text."""
        if isinstance(data, str):
            try:
                data = json.loads(data)
            except ValueError as error:
                raise InvalidFile(f"the equation is not valid JSON: {error}") from error
        if not isinstance(data, Mapping) or data.get("format") != FORMAT:
            raise InvalidFile(f"this is not an equation; its `format` must be {FORMAT!r}")
        if data.get("version") != VERSION:
            raise InvalidFile(f"the `version` is {data.get('version')!r}; this library reads {VERSION}")
        text, names = data.get("expression"), data.get("variables")
        if not isinstance(text, str) or not isinstance(names, list):
            raise InvalidFile("an equation needs an `expression` (a text) and `variables` (a list of names)")
        return cls.parse(text, names)

    def to_json(self) -> dict[str, Any]:
        """The equation as plain data for a JSON file, all digits kept."""
        text = write(self.expr, self.variables)
        return {"format": FORMAT, "version": VERSION, "variables": list(self.variables), "expression": text}

    def __reduce__(self) -> tuple[Callable[[str], Equation], tuple[str]]:
        return Equation.from_json, (json.dumps(self.to_json()),)

    def __copy__(self) -> Equation:
        return self

    def __deepcopy__(self, memo: Any) -> Equation:
        return self

    # --- what it says ------------------------------------------------------------------------------------

    @cached_property
    def complexity(self) -> int:
        """The number of nodes: variables, numbers, functions and operators; see `expressions.complexity`."""
        return complexity(self.expr)

    @cached_property
    def constants(self) -> tuple[float, ...]:
        """The fitted constants, in the order they are read."""
        return tuple(float(held_constant(h)) for h in self._holders)

    @cached_property
    def _holders(self) -> tuple[Any, ...]:
        return constant_holders(self.expr)

    @cached_property
    def _program(self) -> Tape:
        return lower(self.expr, [real_symbol(v) for v in self.variables])

    def __str__(self) -> str:
        if self.complexity > _LONG:
            return f"<a formula of {self.complexity} nodes>"
        return write(self.expr, self.variables, digits=6)

    def __repr__(self) -> str:
        return f"Equation({_clipped(str(self))!r}, {_clipped(str(list(self.variables)))})"

    def __call__(self, X: Any) -> NDArray[np.float64]:
        """The values in float64, one per row of an array or data frame (columns by name); outside the
        domain they are NaN or infinite. With one variable, `X` may be one-dimensional."""
        columns, rows = columns_of(X, self.variables)
        return np.array(np.broadcast_to(self._program.evaluate(columns), (rows,)), dtype=np.float64)

    def error(self, X: Any, y: ArrayLike) -> float:
        """The root mean square error on data; NaN if a row lies outside the domain."""
        values = self(X)
        return _root_mean_square(values - target_of(y, len(values)))

    def matches(
        self, other: Equation | str, box: Any = None, tolerance: float = 1e-8, *, points: int = 1000
    ) -> bool:
        """Whether two equations are the same function, however written: equal values, and the same domain,
        at fixed scattered points of a box.

        `box` is (low, high) for all variables, or a dictionary by name; [-2, 2] by default. `tolerance` is
        relative to the values.
        """
        if isinstance(other, str):
            other = Equation.parse(other, self.variables)
        names = dict.fromkeys((*self.variables, *other.variables))
        generator = np.random.default_rng(0)
        sample = {name: generator.uniform(*_edges(box, name), size=points) for name in names}
        mine, theirs = self(sample), other(sample)
        finite = np.isfinite(mine)
        if not finite.any() and not np.isfinite(theirs).any():
            raise InvalidArgument("neither equation has a value inside the box; give a `box` where they do")
        if not np.array_equal(finite, np.isfinite(theirs)):
            return False
        mine, theirs = mine[finite], theirs[finite]
        scale = np.maximum(np.abs(mine), np.median(np.abs(mine)))
        return bool(np.all(np.abs(mine - theirs) <= tolerance * scale))

    # --- the same with other numbers -------------------------------------------------------------------

    def simplified(self) -> Equation:
        """A shorter form with the same values, found in bounded time."""
        return Equation(simplified(self.expr), self.variables)

    def with_constants(self, values: Sequence[float] | NDArray[np.float64]) -> Equation:
        """The same formula with other fitted constants; a constant of 0 or 1 may make a part disappear."""
        if len(values) != len(self.constants):
            raise InvalidArgument(
                f"`values` must hold {len(self.constants)} numbers, one per constant; got {len(values)}"
            )
        if not np.all(np.isfinite(values)):
            raise NotFinite(f"`values` must be finite, got {list(values)}")
        return self._replaced([fitted(float(v)) for v in values])

    def _replaced(self, numbers: Sequence[Any]) -> Equation:
        expr = fill_constants(self.expr, self._holders, numbers)
        return Equation(expr, self.variables)

    def rounded(self, digits: int) -> Equation:
        """A new equation whose constants have `digits` significant digits; measure it with `error`."""
        check_least("digits", digits)
        return self._replaced([sp.Float(float_text(held_constant(h), digits), 17) for h in self._holders])

    def snapped(
        self,
        X: Any = None,
        y: ArrayLike | None = None,
        *,
        tolerance: float = 1e-6,
        errors: Sequence[float] | NDArray[np.float64] | None = None,
        rise: float = 1e-3,
    ) -> Equation:
        """A new equation in which constants near an integer, simple fraction, square root, or multiple of
        pi or e are exactly that number.

        Without data, "near" is the relative `tolerance`, or three standard `errors`, one per constant. With
        data, numbers up to 1 % away are tried too, and each is accepted only if the root mean square error
        stays below (1 + `rise`) times that of this equation (or 1e-12 of the data, for a perfect fit).
        """
        check_together(X, y)
        if errors is not None and len(errors) != len(self.constants):
            raise InvalidArgument(f"`errors` must hold {len(self.constants)} numbers, got {len(errors)}")
        values = list(self.constants)
        accepts = self._judge(X, y, rise) if y is not None else self._keeps_values
        numbers = [held_constant(h) for h in self._holders]
        for k, value in enumerate(self.constants):
            if abs(magnitude(numbers[k])) > 1000:
                continue
            error = None if errors is None else float(errors[k])
            for candidate in candidates(value, error, tolerance, with_data=y is not None):
                values[k] = number_value(candidate)
                if accepts(values):
                    numbers[k] = candidate
                    break
                values[k] = value
        return self._replaced(numbers)

    def _keeps_values(self, constants: list[float]) -> bool:
        """Whether the formula still has values with these constants: 1/(a*x) has none with a = 0."""
        sample = np.random.default_rng(0).uniform(0.1, 2.0, size=(len(self.variables), 100))
        before, after = (np.isfinite(self._program.evaluate(sample, c)).any() for c in (None, constants))
        return bool(after or not before)

    def _judge(self, X: Any, y: ArrayLike, rise: float) -> Callable[[list[float]], bool]:
        columns, rows = columns_of(X, self.variables)
        target = target_of(y, rows)
        limit = (1 + rise) * self.error(X, y) + 1e-12 * _root_mean_square(target)
        return lambda values: _root_mean_square(self._program.evaluate(columns, values) - target) <= limit

    # --- for use elsewhere -------------------------------------------------------------------------------

    def latex(self, digits: int | None = 6) -> str:
        """The formula in LaTeX; a name that is LaTeX already is used as it is."""
        expr = self.expr if digits is None else self.rounded(digits).expr
        if digits is not None:
            shown = {c: sp.Float(c, digits) for c in parts(expr) if isinstance(c, sp.Float)}
            expr = expr.xreplace(shown)
        return str(sp.latex(expr, symbol_names={real_symbol(v): latex_name(v) for v in self.variables}))

    def python(self, name: str = "equation") -> str:
        """Source code of a numpy function `name`, one argument per variable; `erf` needs SciPy too."""
        return export.python_source(self._program, self.variables, _clipped(str(self)), name)

    def c(self, name: str = "equation") -> str:
        """Source code of a C function `double name(double x, ...)`."""
        return export.c_source(self._program, self.variables, _clipped(str(self)), name)

    def torch(self) -> export.TrainableEquation:
        """A module whose constants are trainable; `Equation.read` takes the formula out again."""
        return export.TrainableEquation(self.expr, self.variables)

    def jax(self) -> Callable[..., Any]:
        """A JAX function `equation(X, constants=...)`; needs `eqlearn[jax]`."""
        return export.jax_function(self._program, self.variables)

    def _repr_latex_(self) -> str | None:
        return None if self.complexity > _READABLE else f"$\\displaystyle {self.latex()}$"

    def _repr_html_(self) -> str:
        formula = self._repr_latex_()
        if formula is None:
            return f"<code>{html.escape(repr(self))}</code>"
        return f"<div>{html.escape(formula)}</div>"


def _clipped(text: str) -> str:
    return text if len(text) <= 500 else text[:500] + "..."


def _root_mean_square(residual: NDArray[np.float64]) -> float:
    with np.errstate(all="ignore"):
        return float(np.sqrt(np.mean(np.square(residual))))


def _edges(box: Any, name: str) -> tuple[float, float]:
    edges = box.get(name, _BOX) if isinstance(box, Mapping) else _BOX if box is None else box
    return checked_range(edges, name)


def _symbolic_column(net: nn.Module, variables: Sequence[str], member: int | None) -> list[Any]:
    symbols = [real_symbol(v) for v in checked_names(variables)]
    population = any(getattr(m, "members", None) is not None for m in net.modules())
    if population and member is None:
        raise InvalidArgument("the network has `members`; say which one to read with `member=`")
    if member is not None and not population:
        raise InvalidArgument(f"the network has no `members`, so there is no `member` {member}")
    return _chain(net, symbols, member)


def _chain(module: Any, column: list[Any], member: int | None) -> list[Any]:
    if isinstance(module, nn.Sequential):
        for child in module:
            column = _chain(child, column, member)
        return column
    if getattr(module, "members", None) is not None and hasattr(module, "member"):
        module = module.member(member)
    if not hasattr(module, "symbolic"):
        raise WrongType(f"{type(module).__name__} has no `symbolic`, so it can't be read as an equation")
    return list(module.symbolic(column))
