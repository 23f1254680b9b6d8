"""Tables from users: checked, in float64, with names; splitting, sampling and sorting their rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from eqlearn.errors import InvalidArgument, NotFinite, WrongType, counted
from eqlearn.validation.options import LARGEST, checked_names, did_you_mean

Columns = list[NDArray[np.float64]]
# Whole numbers as weights are counts; their rows are repeated, up to this multiple of the rows given.
_MOST_COPIES = 10


@dataclass(frozen=True)
class Uncertainty:
    """The standard deviations of measured values: targets `(rows, out)` and inputs `(rows, in)`."""

    y: np.ndarray
    x: np.ndarray

    def take(self, index: np.ndarray) -> Uncertainty:
        return Uncertainty(self.y[index], self.x[index])

    def join(self, other: Uncertainty) -> Uncertainty:
        return Uncertainty(np.concatenate([self.y, other.y]), np.concatenate([self.x, other.x]))


@dataclass(frozen=True)
class Table:
    """Rows in the user's units: inputs `(rows, in)`, targets `(rows, out)`, weights or none, and the standard
    deviations of the values where they are known."""

    X: np.ndarray
    y: np.ndarray
    weight: np.ndarray | None = None
    errors: Uncertainty | None = None

    @property
    def rows(self) -> int:
        return len(self.X)

    def take(self, index: np.ndarray) -> Table:
        weight = None if self.weight is None else self.weight[index]
        errors = None if self.errors is None else self.errors.take(index)
        return Table(self.X[index], self.y[index], weight, errors)

    def join(self, other: Table) -> Table:
        """The rows of both tables, which have the same columns and both have weights or not."""
        weight = None
        if self.weight is not None and other.weight is not None:
            weight = np.concatenate([self.weight, other.weight])
        errors = None
        if self.errors is not None and other.errors is not None:
            errors = self.errors.join(other.errors)
        return Table(np.concatenate([self.X, other.X]), np.concatenate([self.y, other.y]), weight, errors)


def read_table(
    X: Any, y: Any, sample_weight: Any = None, variables: Sequence[str] | None = None
) -> tuple[Table, tuple[str, ...]]:
    """The table and the names of its columns: given, a data frame's own, or x1, x2, ..."""
    columns = getattr(X, "columns", None)
    inputs = _matrix("X", X)
    targets = _matrix("y", y)
    if variables is not None:
        names = checked_names(variables)
    elif columns is not None:
        names = tuple(str(c) for c in columns)
    else:
        names = ("x",) if inputs.shape[1] == 1 else tuple(f"x{i + 1}" for i in range(inputs.shape[1]))
    if len(names) != inputs.shape[1]:
        raise InvalidArgument(f"`variables` holds {len(names)} names for {inputs.shape[1]} columns of `X`")
    check_unique(names)
    if len(inputs) != len(targets):
        raise InvalidArgument(f"`X` holds {len(inputs)} rows and `y` {len(targets)}; they must be as many")
    weight = None
    if sample_weight is not None:
        weights = _matrix("sample_weight", sample_weight)
        if weights.shape != (len(inputs), 1) or (weights < 0).any() or not weights.any():
            raise InvalidArgument("`sample_weight` must hold one number per row, none negative, not all zero")
        weight = weights[:, 0]
    for name, values in (("X", inputs), ("y", targets), ("sample_weight", weight)):
        bad = 0 if values is None else int((~np.isfinite(values)).sum())
        if bad:
            where = _culprits(names, values) if name == "X" and values is not None else ""
            raise NotFinite(
                f"`{name}` holds {counted(bad, 'NaN or infinite value')}{where}; remove or fill those rows"
            )
    for name, values in (("X", inputs), ("y", targets)):
        largest = float(np.abs(values).max(initial=0.0))
        if largest > LARGEST or 0 < largest < 1 / LARGEST:
            raise InvalidArgument(
                f"`{name}` holds values of about {largest:.0e}, whose squares float64 can't hold; "
                "give them in another unit"
            )
    if inputs.shape[1] == 0 or len(inputs) == 0:
        raise InvalidArgument(f"`X` has shape {inputs.shape}; there must be at least one row and one column")
    return Table(inputs, targets, weight), names


def check_unique(columns: Iterable[Any]) -> None:
    """Refuses columns of `X` with the same name."""
    for name, count in Counter(columns).items():
        if count > 1:
            raise InvalidArgument(f"`X` has several columns named {name!r}; rename them")


def column_names(y: Any) -> list[str]:
    """The column names of a data frame, or the name of a series; none otherwise."""
    if hasattr(y, "columns"):
        return [str(name) for name in y.columns]
    name = getattr(y, "name", None)
    return [str(name)] if name is not None and np.ndim(y) == 1 else []


def read_outside(
    extrapolation: tuple[Any, Any] | None, X: Any, targets: int, names: Sequence[str] | None = None
) -> Table | None:
    """Data `(X, y)` outside the training range, checked to have the columns of `X` and all targets."""
    if extrapolation is None:
        return None
    far = extrapolation[0]
    if hasattr(far, "columns") and hasattr(X, "columns") and list(far.columns) != list(X.columns):
        raise InvalidArgument(
            f"`extrapolation` has the columns {list(far.columns)}, `X` has {list(X.columns)}; give the same"
        )
    table, _ = read_table(*extrapolation, None, names)
    if table.y.shape[1] != targets:
        raise InvalidArgument(
            f"`extrapolation` has {counted(table.y.shape[1], 'target')}, `y` has {targets}; give as many"
        )
    return table


def _matrix(name: str, values: Any) -> np.ndarray:
    matrix = numbers_of(values, f"`{name}`")
    if matrix.ndim == 1:
        matrix = matrix[:, None]
    if matrix.ndim != 2:
        raise InvalidArgument(f"`{name}` must have one or two axes, got shape {matrix.shape}")
    return matrix


def _culprits(names: Sequence[str], values: np.ndarray) -> str:
    bad = [names[int(i)] for i in np.flatnonzero((~np.isfinite(values)).any(axis=0))]
    return f" in {'column' if len(bad) == 1 else 'columns'} {', '.join(repr(n) for n in bad[:5])}"


def split_rows(table: Table, fraction: float, enough: int, seed: int) -> tuple[Table, Table | None]:
    """The table without a random `fraction` of its rows, and those rows; not split below `enough` rows."""
    count = int(fraction * table.rows)
    if count < 1 or table.rows < enough:
        return table, None
    order = np.random.default_rng([seed, 1]).permutation(table.rows)
    return table.take(np.sort(order[count:])), table.take(np.sort(order[:count]))


def some_rows(rows: int, most: int) -> np.ndarray:
    """The indices of at most `most` rows, drawn at random but reproducibly."""
    if rows <= most:
        return np.arange(rows)
    return np.sort(np.random.default_rng(0).choice(rows, most, replace=False))


def arrange(
    X: np.ndarray, y: np.ndarray, weight: np.ndarray | None, errors: Uncertainty | None = None
) -> Table:
    """The table sorted by its numbers; rows of weight 0 are left out, counted rows are repeated.

    So a table, the same table shuffled, and the same rows given once with how often they occur, all lead to
    the same search, digit for digit. Other weights say how much a row matters, not how many rows there are.
    """
    y = y.reshape(len(y), -1)
    if weight is not None:
        kept = weight > 0
        X, y, weight = X[kept], y[kept], weight[kept]
        counts = bool((weight == np.floor(weight)).all())
        if counts and weight.sum() <= _MOST_COPIES * len(weight):
            copies = weight.astype(np.int64)
            X, y, weight = X.repeat(copies, axis=0), y.repeat(copies, axis=0), None
    keys = [*y.T, *X.T] if weight is None else [weight, *y.T, *X.T]
    if errors is not None:
        keys = [*errors.y.T, *errors.x.T, *keys]
    return Table(X, y, weight, errors).take(np.lexsort(keys))


def rows_of(data: Table, places: set[int], X: np.ndarray, y: np.ndarray) -> list[int]:
    """The rows of `X` and `y` as they were given that are at these places of the sorted table."""
    wanted = {(*data.X[i], *data.y[i]) for i in places}
    rows = zip(X, y.reshape(len(y), -1), strict=True)
    return [place for place, (x, target) in enumerate(rows) if (*x, *target) in wanted] if wanted else []


def columns_of(X: Any, variables: Sequence[str]) -> tuple[Columns, int]:
    """The columns of the variables and the number of rows.

    Columns are found by name in data frames and dictionaries, by position in arrays `(rows, variables)`.
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
    # Without variables, any column has the number of rows.
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
    """Real numbers in any container as float64; `what` names them in messages."""
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
