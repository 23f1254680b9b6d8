"""What a search asks of its equations beside a good fit: which may be kept, what their operators cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import sympy as sp

from eqlearn.errors import InvalidArgument
from eqlearn.functions import FUNCTIONS, NAMES
from eqlearn.symbolic.equation import Equation
from eqlearn.validation.options import did_you_mean

# Operators that are no functions; every other power is a `pow`.
OPERATORS = ("add", "mul", "div", "square", "sqrt", "pow")


@dataclass(frozen=True)
class Demands:
    """Which equations a search keeps, and how many nodes each use of an operator counts for."""

    admits: Callable[[Equation], bool] | None = None
    prices: Mapping[str, float] = field(default_factory=dict)

    def met_by(self, equations: tuple[Equation, ...]) -> bool:
        return self.admits is None or all(self.admits(equation) for equation in equations)


NO_DEMANDS = Demands()


def check_prices(prices: Mapping[str, float]) -> None:
    """Refuses operators that there are not, and prices that are no prices."""
    known = [*OPERATORS, *(name for name in FUNCTIONS if name not in OPERATORS)]
    for name, price in prices.items():
        if name not in known:
            raise InvalidArgument(f"`prefer` names no operator: {name!r}; {did_you_mean(str(name), known)}")
        if not 0 <= price <= 1000:
            raise InvalidArgument(
                f"`prefer` gives {name!r} the price {price}; prices are from 0 (free) over 1 (usual) to 1000"
            )


def operator_name(node: sp.Expr) -> str:
    """The operator at the root of an expression, by its name in `prefer`; empty for a leaf."""
    if isinstance(node, sp.Pow):
        if node.exp.could_extract_minus_sign():
            return "div"
        return {sp.Integer(2): "square", sp.Rational(1, 2): "sqrt"}.get(node.exp, "pow")
    if isinstance(node, (sp.Add, sp.Mul)):
        return "add" if isinstance(node, sp.Add) else "mul"
    return str(NAMES.get(node.func, ""))


def extra_nodes(expr: Any, prices: Mapping[str, float]) -> float:
    """How many nodes an expression counts for beyond those it has; negative where it is cheap."""
    if not prices:
        return 0.0
    return sum(prices.get(operator_name(node), 1.0) - 1.0 for node in sp.preorder_traversal(expr))
