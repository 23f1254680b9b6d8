"""A formula compiled with its float constants as parameters, for arrays and for high precision."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import mpmath
import numpy as np
import sympy as sp


@dataclass(frozen=True, eq=False)
class Formula:
    """A SymPy expression of which every float, in the order of appearance, can be given another value."""

    template: sp.Expr
    arguments: tuple[sp.Symbol, ...]
    parameters: tuple[sp.Symbol, ...]
    constants: np.ndarray

    @staticmethod
    def of(expr: sp.Expr, variables: Sequence[str]) -> Formula:
        """Variables are known by name alone; whatever else their symbols assume is forgotten."""
        arguments = {name: sp.Dummy(name) for name in variables}
        parameters: list[sp.Symbol] = []
        constants: list[float] = []

        def rebuilt(node: Any) -> Any:
            if isinstance(node, sp.Float):
                parameters.append(sp.Dummy("c"))
                constants.append(float(node))
                return parameters[-1]
            if isinstance(node, sp.Symbol):
                return arguments[node.name]
            return node.func(*(rebuilt(a) for a in node.args)) if node.args else node

        template = rebuilt(expr)
        return Formula(template, tuple(arguments.values()), tuple(parameters), np.array(constants, float))

    def __call__(self, points: np.ndarray, constants: np.ndarray | None = None) -> np.ndarray:
        """Values at points `(variables, ...)`, NaN where they are not real; the shapes broadcast."""
        constants = self.constants if constants is None else constants
        with np.errstate(all="ignore"):
            values = np.asarray(self._on_arrays(*points, *constants))
        if np.iscomplexobj(values):
            values = np.where(values.imag == 0, values.real, np.nan)
        return np.broadcast_to(
            values.astype(float), np.broadcast_shapes(points.shape[1:], constants.shape[1:])
        )

    def precisely(self, point: Sequence[float], constants: Sequence[float]) -> Any:
        """The value at one point as an mpmath number of the precision now set, complex where it is so."""
        return self._in_mpmath(*(mpmath.mpf(float(v)) for v in (*point, *constants)))

    def with_constants(self, constants: Sequence[float]) -> sp.Expr:
        """The expression again, with these constants in their places."""
        values = {p: sp.Float(float(c), 17) for p, c in zip(self.parameters, constants, strict=True)}
        return self.template.xreplace(values)

    @cached_property
    def _on_arrays(self) -> Callable[..., Any]:
        return sp.lambdify([*self.arguments, *self.parameters], self.template, ["scipy", "numpy"])  # type: ignore[no-any-return]

    @cached_property
    def _in_mpmath(self) -> Callable[..., Any]:
        return sp.lambdify([*self.arguments, *self.parameters], self.template, [GROWING, "mpmath"])  # type: ignore[no-any-return]


def _bounded(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def bounded(g: Any) -> Any:
        if abs(g) > 1e15:  # the exponential of an exponential would fill the memory before it ends
            raise OverflowError
        return function(g)

    return bounded


GROWING = {"exp": _bounded(mpmath.exp), "sinh": _bounded(mpmath.sinh), "cosh": _bounded(mpmath.cosh)}
