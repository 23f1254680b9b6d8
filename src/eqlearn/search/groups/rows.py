"""The rows of a table in the order of their groups, and what they are weighted by."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from eqlearn.numerics.criteria import FLATTEST
from eqlearn.validation.groups import Groups
from eqlearn.validation.table import Table


@dataclass(frozen=True, eq=False)
class GroupedRows:
    """Columns `(in, rows)` and a target `(rows,)`, with the group of each row, sorted by it; residuals are
    multiplied by `root`."""

    columns: Tensor
    y: Tensor
    codes: Tensor
    root: Tensor
    count: int

    @classmethod
    def of(cls, table: Table, groups: Groups) -> GroupedRows:
        """The rows of a table of one target."""
        order = np.argsort(groups.codes, kind="stable")
        weight = np.ones(table.rows) if table.weight is None else table.weight / table.weight.mean()
        return cls(
            torch.tensor(np.ascontiguousarray(table.X[order].T)), torch.tensor(table.y[order, 0]),
            torch.tensor(groups.codes[order]), torch.tensor(np.sqrt(weight[order])), groups.count,
        )  # fmt: skip

    @property
    def rows(self) -> int:
        return len(self.y)

    @cached_property
    def sizes(self) -> Tensor:
        """How many rows each group has."""
        return torch.bincount(self.codes, minlength=self.count)

    @cached_property
    def spread(self) -> float:
        """What errors are divided by: the target's spread, or next to nothing of its largest value."""
        smallest = FLATTEST * float(self.y.abs().max())
        return max(float(self.y.std(correction=0)), smallest) or 1.0

    @cached_property
    def spreads(self) -> Tensor:
        """The target's spread in each group, at least a little of the whole one."""
        mean = self.summed(self.y) / self.sizes.clamp(min=1)
        square = self.summed((self.y - mean[self.codes]).square()) / self.sizes.clamp(min=1)
        return square.sqrt().clamp(min=FLATTEST * self.spread)

    def summed(self, values: Tensor) -> Tensor:
        """Sums `(groups, ...)` over the rows of each group, of values `(rows, ...)`."""
        return values.new_zeros((self.count, *values.shape[1:])).index_add_(0, self.codes, values)

    def of_groups(self, groups: Tensor) -> GroupedRows:
        """The rows of these groups alone, numbered anew in this order."""
        place = torch.full((self.count,), -1)
        place[groups] = torch.arange(len(groups))
        codes = place[self.codes]
        kept = codes >= 0
        kept = torch.nonzero(kept)[:, 0][torch.argsort(codes[kept], stable=True)]
        return GroupedRows(self.columns[:, kept], self.y[kept], codes[kept], self.root[kept], len(groups))

    def repeated(self, times: int) -> GroupedRows:
        """All groups `times` over, each time as other groups."""
        shift = torch.arange(times).repeat_interleave(self.rows) * self.count
        return GroupedRows(
            self.columns.repeat(1, times), self.y.repeat(times), self.codes.repeat(times) + shift,
            self.root.repeat(times), self.count * times,
        )  # fmt: skip

    def with_noise(self, noise: Tensor) -> GroupedRows:
        """The rows with residuals relative to the `noise` of each group; so scaled that the likelihood of the
        whole needs no other term than that of the mean squared residual."""
        share = self.sizes / self.rows
        factor = torch.exp((share * noise.log()).sum()) / noise
        return replace(self, root=self.root * factor[self.codes])
