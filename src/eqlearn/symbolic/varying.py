"""Constants of an equation that have a value in each group, as a table."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from eqlearn.errors import InvalidArgument, InvalidFile
from eqlearn.symbolic.equation import Equation
from eqlearn.validation.groups import find_codes
from eqlearn.validation.options import checked_names
from eqlearn.validation.table import columns_of


def varying_name(place: int, group: str) -> str:
    """What the varying constant at a place, counted from 0, is called: `c1[sample]`."""
    return f"c{place + 1}[{group}]"


@dataclass(frozen=True, eq=False)
class Varying:
    """The constants `names` of an equation that vary over groups: `values` and `standard_errors` `(groups,
    constants)`, a row for each of `labels`. They are the last variables of their equation.

    `population` holds the mean and the spread `(2, constants)` of the values, for groups of few rows; `noise`
    is the standard deviation of a residual. Where the constants vary over a column, `parameter`, `at` says
    where each group is on it; between them values are interpolated (by monotone cubic splines, Fritsch &
    Carlson 1980), beyond them they are not known (NaN).
    """

    group: str
    labels: tuple[Any, ...]
    names: tuple[str, ...]
    values: np.ndarray
    standard_errors: np.ndarray
    population: np.ndarray
    noise: float
    parameter: str | None = None
    at: np.ndarray | None = None

    def inputs(self, X: Any, equation: Equation, groups: Any) -> np.ndarray:
        """What the equation is evaluated at: the columns of `X`, and the constants of each row's group.

        **Raises:** `UnknownName` for a group that was not fitted.
        """
        variables = equation.variables[: -len(self.names)]
        columns, rows = columns_of(X, variables)
        if groups is None and self.parameter is not None:
            return np.column_stack([*columns, self.interpolated(columns[variables.index(self.parameter)])])
        if groups is None:
            raise InvalidArgument(
                f"the constants {', '.join(self.names)} have a value in each {self.group}; "
                "give `groups`, one label a row"
            )
        return np.column_stack([*columns, self.values[find_codes(groups, self.labels, rows)]])

    def interpolated(self, parameter: np.ndarray) -> np.ndarray:
        """The constants `(rows, constants)` where the parameter has these values."""
        from scipy.interpolate import PchipInterpolator

        at = np.asarray(self.at, dtype=np.float64)
        order = np.argsort(at)
        spline = PchipInterpolator(at[order], self.values[order], extrapolate=False)
        values: np.ndarray = spline(parameter)
        return values

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

    def to_json(self) -> dict[str, Any]:
        """Plain data for a JSON file, all digits kept; what is not finite is None."""
        arrays = ("values", "standard_errors", "population")
        return {
            "group": self.group, "labels": list(self.labels), "names": list(self.names), "noise": self.noise,
            "parameter": self.parameter, "at": None if self.at is None else self.at.tolist(),
            **{name: _plain(getattr(self, name)) for name in arrays},
        }  # fmt: skip

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Varying:
        """The table that `to_json` wrote.

        **Raises:** `InvalidFile` for one that is damaged.
        """
        try:
            labels, names = tuple(data["labels"]), checked_names(data["names"])
            values, errors, population = (
                np.array(data[name], dtype=np.float64) for name in ("values", "standard_errors", "population")
            )
            at = None if data["at"] is None else np.array(data["at"], dtype=np.float64)
            shapes = (
                values.shape,
                errors.shape,
                population.shape,
                (len(labels),) if at is None else at.shape,
            )
            expected = ((len(labels), len(names)),) * 2 + ((2, len(names)), (len(labels),))
            if shapes != expected or not all(isinstance(label, str | int | float) for label in labels):
                raise InvalidFile(
                    f"a table of varying constants has shapes {shapes} for {len(labels)} groups"
                )
            parameter = None if data["parameter"] is None else str(data["parameter"])
            group, noise = str(data["group"]), float(data["noise"])
        except (LookupError, TypeError, ValueError) as error:
            raise InvalidFile(f"a table of varying constants is damaged: {error}") from error
        return cls(group, labels, names, values, errors, population, noise, parameter, at)


def _plain(values: np.ndarray) -> list[list[float | None]]:
    return [[v if math.isfinite(v) else None for v in row] for row in values.tolist()]
