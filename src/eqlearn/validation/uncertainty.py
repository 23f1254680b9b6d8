"""Errors of measurement from users: standard deviations of targets and inputs, in any of the usual forms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from eqlearn.errors import InvalidArgument
from eqlearn.validation.options import did_you_mean
from eqlearn.validation.table import Table, Uncertainty, numbers_of


def read_uncertainty(y_error: Any, x_error: Any, table: Table, names: Sequence[str]) -> Uncertainty | None:
    """The standard deviations of the values of a table, or none.

    `y_error` is a number, one per row, or one per row and target. `x_error` is a dictionary by column, of
    numbers or of one number per row; or numbers, one per column; or one per row and column.
    """
    if y_error is None and x_error is None:
        return None
    if y_error is None:
        raise InvalidArgument("`x_error` needs `y_error` beside it; give 0 if the target is exact")
    if table.weight is not None:
        raise InvalidArgument("`y_error` says how much each row weighs; leave `sample_weight` out")
    y = _shaped("y_error", y_error, table.y.shape)
    x = np.zeros(table.X.shape)
    if isinstance(x_error, Mapping):
        for name, values in x_error.items():
            if name not in names:
                raise InvalidArgument(
                    f"`x_error` names no column of `X`: {name!r}; {did_you_mean(name, names)}"
                )
            x[:, list(names).index(name)] = _shaped(f"x_error[{name!r}]", values, (table.rows, 1))[:, 0]
    elif x_error is not None:
        if np.ndim(x_error) == 0 and table.X.shape[1] > 1:
            raise InvalidArgument("`x_error` must say which column it is of: give a dictionary by name")
        x = _shaped("x_error", x_error, table.X.shape)
    for name, values in (("y_error", y), ("x_error", x)):
        if not np.isfinite(values).all() or (values < 0).any():
            raise InvalidArgument(f"`{name}` must hold standard deviations: finite, none negative")
    if not ((y > 0) | (x > 0).any(axis=1, keepdims=True)).all():
        raise InvalidArgument("`y_error` must be positive in every row where no input has an error")
    return Uncertainty(y, x)


def _shaped(name: str, values: Any, shape: tuple[int, ...]) -> np.ndarray:
    """One number per row and column, from one for all, one per row, or one per column."""
    array = numbers_of(values, f"`{name}`")
    rows, columns = shape
    if array.shape == (rows,) and (columns == 1 or rows != columns):
        array = array[:, None]
    if array.shape not in ((), (columns,), (rows, 1), shape):
        raise InvalidArgument(
            f"`{name}` must hold one number, one for each of the {rows} rows, or {shape}; got {array.shape}"
        )
    full: np.ndarray = np.broadcast_to(array, shape).astype(np.float64)
    return full
