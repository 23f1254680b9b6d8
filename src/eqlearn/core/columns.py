"""Rows of data as one float64 column per variable, from arrays, tensors, dictionaries and data frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from eqlearn.core.names import did_you_mean
from eqlearn.errors import InvalidArgument, WrongType

Columns = list[NDArray[np.float64]]


def columns_of(X: Any, variables: Sequence[str]) -> tuple[Columns, int]:
    """The columns of the variables and the number of rows.

    Data frames and dictionaries are asked by name, whatever their order; arrays and tensors
    `(rows, variables)` by place.
    """
    if isinstance(X, Mapping) or hasattr(X, "columns"):
        return _by_name(X, variables)
    table = numbers_of(X, "`X`")
    if table.ndim == 1 and len(variables) == 1:
        table = table[:, None]
    if table.ndim != 2 or table.shape[1] != len(variables):
        raise InvalidArgument(
            f"`X` must have shape (rows, {len(variables)}) for the variables {', '.join(variables)}; "
            f"got {table.shape}"
        )
    return [table[:, i] for i in range(len(variables))], len(table)


def _by_name(frame: Any, variables: Sequence[str]) -> tuple[Columns, int]:
    names = {str(c): c for c in (frame if isinstance(frame, Mapping) else frame.columns)}
    for name in variables:
        if name not in names:
            raise InvalidArgument(f"`X` has no column {name!r}; {did_you_mean(name, names)}")
    columns = [numbers_of(frame[names[name]], f"column {name!r} of `X`") for name in variables]
    # Without variables any column tells how many rows there are.
    first = next(iter(columns if columns else frame.values() if isinstance(frame, Mapping) else [frame]), ())
    rows = len(first) if np.ndim(first) else len(frame)
    for name, column in zip(variables, columns, strict=True):
        if column.shape != (rows,):
            raise InvalidArgument(f"column {name!r} of `X` must hold one number per row, got {column.shape}")
    return columns, rows


def target_of(y: ArrayLike | torch.Tensor, rows: int) -> NDArray[np.float64]:
    """The target as one number per row."""
    target = numbers_of(y, "`y`")
    if target.shape not in ((rows,), (rows, 1)):
        raise InvalidArgument(
            f"`y` must hold one number for each of the {rows} rows, got shape {target.shape}"
        )
    return target.reshape(rows)


def numbers_of(values: Any, what: str) -> NDArray[np.float64]:
    """Real numbers as float64, whatever holds them; `what` names them in messages."""
    if isinstance(values, torch.Tensor):
        values = values.detach().cpu()
    try:
        array = np.asarray(values)
        real = None if np.iscomplexobj(array) else array.astype(np.float64, copy=False)
    except (TypeError, ValueError) as error:
        raise InvalidArgument(f"{what} must hold numbers only: {error}") from error
    if array.dtype.kind in "mM":
        raise WrongType(f"{what} holds dates or times; give numbers, such as days since the first")
    if real is None:
        raise WrongType(f"{what} must hold real numbers, got complex ones")
    return real
