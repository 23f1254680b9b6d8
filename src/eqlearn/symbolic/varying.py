"""Constants of an equation that have a value in each group, as a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from eqlearn.errors import InvalidArgument
from eqlearn.symbolic.equation import Equation
from eqlearn.validation.groups import find_codes
from eqlearn.validation.table import columns_of


def varying_name(place: int, group: str) -> str:
    """What the varying constant at a place, counted from 0, is called: `c1[sample]`."""
    return f"c{place + 1}[{group}]"


@dataclass(frozen=True, eq=False)
class Varying:
    """The constants `names` of an equation that vary over groups: `values` and `standard_errors` `(groups,
    constants)`, a row for each of `labels`. They are the last variables of their equation.

    `population` holds the mean and the spread `(2, constants)` of the values, for groups of few rows; `noise`
    is the standard deviation of a residual.
    """

    group: str
    labels: tuple[Any, ...]
    names: tuple[str, ...]
    values: np.ndarray
    standard_errors: np.ndarray
    population: np.ndarray
    noise: float

    def columns(self, groups: Any, rows: int) -> np.ndarray:
        """The constants of each row `(rows, constants)`, found by its group.

        **Raises:** `UnknownName` for a group that was not fitted.
        """
        found: np.ndarray = self.values[find_codes(groups, self.labels, rows)]
        return found

    def inputs(self, X: Any, equation: Equation, groups: Any) -> np.ndarray:
        """What the equation is evaluated at: the columns of `X`, and the constants of each row's group."""
        if groups is None:
            raise InvalidArgument(
                f"the constants {', '.join(self.names)} have a value in each {self.group}; "
                "give `groups`, one label a row"
            )
        columns, rows = columns_of(X, equation.variables[: -len(self.names)])
        return np.column_stack([*columns, self.columns(groups, rows)])

    def equation_of(self, equation: Equation, label: Any) -> Equation:
        """The equation of one group, its constants put in."""
        from eqlearn.symbolic.expressions import fitted, real_symbol

        row = self.values[find_codes([label], self.labels, 1)[0]]
        numbers = {real_symbol(n): fitted(float(v)) for n, v in zip(self.names, row, strict=True)}
        return Equation(equation.expr.xreplace(numbers), equation.variables[: -len(self.names)])

    def frame(self) -> Any:
        """A data frame, one row a group: each constant and its standard error."""
        import pandas as pd

        columns: dict[str, Any] = {self.group: list(self.labels)}
        for k, name in enumerate(self.names):
            columns[name] = self.values[:, k]
            columns[f"{name} standard error"] = self.standard_errors[:, k]
        return pd.DataFrame(columns)
