"""What stands before and beside an equation with latents, from users: inputs, columns, targets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from eqlearn.errors import InvalidArgument, NotFinite, WrongType, listed
from eqlearn.validation.options import did_you_mean

FEWEST_ROWS = 30
# Of how many batches at least the rows to measure on are taken, if there are as many.
BATCHES_MEASURED = 40


@dataclass(frozen=True, eq=False)
class Gathered:
    """Rows that repeat: row i is `values[index[i]]`. Each value is encoded once, however often it stands.

    Pairs of pictures from a collection are two of these with the same `values`.
    """

    values: Tensor
    index: Tensor

    def __post_init__(self) -> None:
        if not isinstance(self.values, Tensor) or not isinstance(self.index, Tensor):
            raise WrongType("`Gathered` needs tensors, `values` (n, ...) and `index` (rows,)")
        if self.index.dim() != 1 or self.index.is_floating_point():
            raise InvalidArgument("`index` of `Gathered` must hold one whole number for each row")
        if len(self.index) and not 0 <= int(self.index.min()) <= int(self.index.max()) < len(self.values):
            raise InvalidArgument(f"`index` of `Gathered` must lie within its {len(self.values)} `values`")

    def __len__(self) -> int:
        return len(self.index)

    def __getitem__(self, rows: Any) -> Gathered:
        return Gathered(self.values, self.index[rows])


Input: TypeAlias = "Tensor | Gathered"


@dataclass(frozen=True, eq=False)
class Batch:
    """Some rows: what each encoder reads, the columns `(rows, columns)` and the targets `(rows, outputs)`."""

    inputs: Mapping[str, Input]
    columns: Tensor
    y: Tensor

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, rows: Any) -> Batch:
        taken = {name: x[rows] for name, x in self.inputs.items()}
        return Batch(taken, self.columns[rows], self.y[rows])

    def pieces(self, rows: int = 1_000) -> list[Batch]:
        """The same, at most that many rows at a time."""
        return [self[slice(begin, begin + rows)] for begin in range(0, len(self), rows)]


class LatentData:
    """Rows to train on, and fixed ones to measure on: `training` are seen in training, `held` are not.

    From tensors, a share of the rows is held. From an iterable of batches, the first batches of one pass are
    set aside to measure on; whether training sees them again is the iterable's choice.
    """

    def __init__(
        self, training: Batch, held: Batch, columns: tuple[str, ...], stream: Iterable[Any] | None = None
    ) -> None:
        self.training, self.held, self.columns = training, held, columns
        self._stream, self._running = stream, None if stream is None else iter(stream)
        self.drawn = 0  # batches of the stream, if there is one

    def sample(self, most: int) -> Batch:
        """At most that many of the training rows, spread evenly."""
        if len(self.training) <= most:
            return self.training
        return self.training[_spread_rows(len(self.training), most)]

    def draw(self, size: int, generator: torch.Generator) -> Batch:
        """A batch to train on."""
        if self._running is None:
            rows = torch.randint(len(self.training), (min(size, len(self.training)),), generator=generator)
            return self.training[rows]
        return read_batch(self._next(), tuple(self.training.inputs), self.columns)

    def skip_to(self, drawn: int) -> None:
        """Leaves out batches of a stream until that many are drawn: those that a search had before it was
        killed. A stream with a method `skip_(count)` does that itself; of others they are thrown away."""
        count = 0 if self._running is None else drawn - self.drawn
        if count > 0 and callable(skip := getattr(self._stream, "skip_", None)):
            skip(count)
            self.drawn = drawn
        while self._running is not None and self.drawn < drawn:
            self._next()

    def _next(self) -> Any:
        """The next batch of the stream, which begins anew when it ends."""
        assert self._stream is not None
        assert self._running is not None
        self.drawn += 1
        item = next(self._running, None)
        if item is None:
            self._running = iter(self._stream)
            item = next(self._running, None)
        if item is None:
            raise InvalidArgument(
                "`data` gave no more batches; give something that can be iterated over again, such as a "
                "DataLoader or a list"
            )
        return item


def _spread_rows(rows: int, most: int) -> Tensor:
    """The places of at most that many rows, spread evenly."""
    return torch.linspace(0, rows - 1, min(rows, most)).round().long()


def read_latent_data(
    names: tuple[str, ...],
    inputs: Mapping[str, Any] | None,
    columns: Any,
    y: Any,
    data: Iterable[Any] | None,
    *,
    held: float,
    measured: int,
    seed: int,
) -> LatentData:
    """The rows that users hand over, checked: tensors, or an iterable of batches by name."""
    if data is not None:
        if inputs is not None or columns is not None or y is not None:
            raise InvalidArgument("give either `inputs`, `columns` and `y`, or `data`, not both")
        return _from_batches(names, data, held, measured)
    if inputs is None or y is None:
        raise InvalidArgument("`discover_latent` needs `inputs` and `y`, or `data`")
    if not isinstance(inputs, Mapping):
        raise WrongType(f"`inputs` must be a dictionary of tensors by name, got {type(inputs).__name__}")
    table = dict(_columns(columns))
    if "y" in table or "y" in inputs:
        raise InvalidArgument("an input or a column can't be named 'y', which is the target's name")
    if twice := [name for name in table if name in inputs or name in names]:
        raise InvalidArgument(f"{listed(twice)} names an encoder and a column; rename one of them")
    whole = read_batch({**inputs, **table, "y": y}, names, tuple(table))
    if len(whole) < FEWEST_ROWS:
        raise InvalidArgument(
            f"{len(whole)} rows are too few to train an encoder and an equation; give {FEWEST_ROWS} or more"
        )
    _check_varies(whole)
    order = torch.randperm(len(whole), generator=torch.Generator().manual_seed(seed))
    count = min(measured, max(1, int(held * len(whole))))
    return LatentData(whole[order[count:]], whole[order[:count]], tuple(table))


def read_columns(columns: Any, names: tuple[str, ...], rows: int) -> Tensor:
    """The columns of those names, `(rows, columns)`, in float64."""
    table = dict(_columns(columns))
    if missing := [name for name in names if name not in table]:
        raise InvalidArgument(f"`columns` lacks {listed(missing)}")
    values = [_column(name, table[name]) for name in names]
    for name, value in zip(names, values, strict=True):
        if len(value) != rows:
            raise InvalidArgument(f"column {name!r} holds {len(value)} rows, the inputs hold {rows}")
    return torch.stack(values, dim=1) if values else torch.zeros(rows, 0, dtype=torch.float64)


def read_batch(item: Any, names: tuple[str, ...], columns: tuple[str, ...]) -> Batch:
    """One batch by name, checked."""
    if not isinstance(item, Mapping):
        raise WrongType(f"a batch must be a dictionary of tensors by name, got {type(item).__name__}")
    known = {*names, *columns, "y"}
    for name in item:
        if name not in known:
            hint = did_you_mean(str(name), sorted(known))
            raise InvalidArgument(f"no encoder is named {name!r}; {hint}; name one, or leave the input out")
    if missing := [name for name in (*names, *columns, "y") if name not in item]:
        raise InvalidArgument(f"there is no {listed([repr(m) for m in missing])} among the inputs")
    inputs = {name: _input(name, item[name]) for name in names}
    target = _target(item["y"])
    values = [_column(name, item[name]) for name in columns]
    sizes = {**{n: len(x) for n, x in inputs.items()}, **dict(zip(columns, map(len, values), strict=True))}
    for name, rows in sizes.items():
        if rows != len(target):
            raise InvalidArgument(f"{name!r} holds {rows} rows and `y` {len(target)}; they must be as many")
    table = torch.stack(values, dim=1) if values else torch.zeros(len(target), 0, dtype=torch.float64)
    return Batch(inputs, table, target)


def _from_batches(names: tuple[str, ...], data: Iterable[Any], held: float, measured: int) -> LatentData:
    if not isinstance(data, Iterable):
        raise WrongType(f"`data` must be an iterable of batches, got {type(data).__name__}")
    running = iter(data)
    first = next(running, None)
    if first is None:
        raise InvalidArgument("`data` holds no batch")
    if not isinstance(first, Mapping):
        raise WrongType(f"a batch must be a dictionary of tensors by name, got {type(first).__name__}")
    columns = tuple(str(name) for name in first if name not in names and name != "y")
    # Rows of one batch may be made of few inputs, as all pairs of a hundred pictures are: so some of each.
    aside: list[Batch] = []
    for item in chain([first], running):
        aside.append(read_batch(item, names, columns))
        if len(aside) >= BATCHES_MEASURED and sum(map(len, aside)) >= measured:
            break
    each = -(-measured // len(aside))
    aside = [batch[_spread_rows(len(batch), each)] for batch in aside]
    whole = _joined(aside)
    if len(whole) < FEWEST_ROWS:
        raise InvalidArgument(f"`data` holds {len(whole)} rows; give {FEWEST_ROWS} or more")
    _check_varies(whole)
    count = max(1, int(held * len(whole)))
    return LatentData(whole[slice(count, None)], whole[slice(0, count)], columns, data)


def _check_varies(batch: Batch) -> None:
    """Refuses a target that is the same in all rows."""
    still = (batch.y == batch.y[0]).all(dim=0).nonzero().flatten().tolist()
    if still:
        which = "`y`" if batch.y.shape[1] == 1 else f"output {still[0] + 1} of `y`"
        raise InvalidArgument(f"{which} is the same in all rows, so there is nothing to find")


def _joined(batches: list[Batch]) -> Batch:
    inputs: dict[str, Input] = {}
    for name in batches[0].inputs:
        parts = [batch.inputs[name] for batch in batches]
        inputs[name] = torch.cat([p.values[p.index] if isinstance(p, Gathered) else p for p in parts])
    return Batch(inputs, torch.cat([b.columns for b in batches]), torch.cat([b.y for b in batches]))


def _input(name: str, x: Any) -> Input:
    if isinstance(x, Gathered):
        return x
    if isinstance(x, np.ndarray):
        x = torch.as_tensor(x if x.flags.writeable else x.copy())
    if not isinstance(x, Tensor):
        raise WrongType(f"input {name!r} must be a tensor (rows, ...), got {type(x).__name__}")
    if x.dim() < 1:
        raise InvalidArgument(f"input {name!r} must have rows, got a single number")
    if x.is_floating_point() and not bool(torch.isfinite(x).all()):
        raise NotFinite(f"input {name!r} holds NaN or infinity")
    return x


def _target(y: Any) -> Tensor:
    array = y if isinstance(y, Tensor) else np.asarray(y)
    kind = array.dtype.kind if isinstance(array, np.ndarray) else "b" if array.dtype == torch.bool else "f"
    if kind not in "fiu" or (isinstance(array, Tensor) and array.is_complex()):
        raise InvalidArgument(
            "`y` holds truth values, text or other things than real numbers; classes are out of scope, give "
            "the numbers that the law gives"
        )
    values = (array if isinstance(array, Tensor) else torch.tensor(array)).double()
    values = values[:, None] if values.dim() == 1 else values
    if values.dim() != 2:
        raise InvalidArgument(f"`y` must be (rows,) or (rows, outputs), got shape {tuple(values.shape)}")
    if not bool(torch.isfinite(values).all()):
        raise NotFinite("`y` holds NaN or infinity; remove those rows")
    return values.detach()


def _columns(columns: Any) -> Iterator[tuple[str, Any]]:
    if columns is None:
        return
    if hasattr(columns, "columns"):  # a data frame
        for name in columns.columns:
            yield str(name), columns[name].to_numpy()
    elif isinstance(columns, Mapping):
        yield from ((str(name), values) for name, values in columns.items())
    else:
        raise WrongType(
            f"`columns` must be a dictionary or a data frame, got {type(columns).__name__}; name each column"
        )


def _column(name: str, values: Any) -> Tensor:
    if not isinstance(values, Tensor):
        array = np.asarray(values)
        if array.dtype.kind not in "fiub":
            raise InvalidArgument(f"column {name!r} must hold numbers, got {array.dtype}")
        values = torch.tensor(array)
    column: Tensor = values.detach().double()
    column = column.squeeze(-1) if column.dim() == 2 else column
    if column.dim() != 1:
        raise InvalidArgument(f"column {name!r} must hold one number per row, got {tuple(values.shape)}")
    if not bool(torch.isfinite(column).all()):
        raise NotFinite(f"column {name!r} holds NaN or infinity; remove those rows")
    return column
