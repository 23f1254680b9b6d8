"""Rows in the order of their groups."""

import numpy as np
import pytest
import torch
from made import grouped

from eqlearn.search.groups.rows import GroupedRows
from eqlearn.validation.groups import Groups
from eqlearn.validation.table import Table


def test_rows_are_sorted_by_group_and_summed():
    table = Table(np.arange(5.0)[:, None], np.arange(5.0)[:, None], None)

    rows = GroupedRows.of(table, Groups("g", ("a", "b"), np.array([1, 0, 1, 0, 1])))

    assert rows.y.tolist() == [1, 3, 0, 2, 4]
    assert rows.sizes.tolist() == [2, 3]
    assert rows.summed(rows.y).tolist() == [4, 6]


def test_some_groups_are_numbered_anew():
    rows, _, _ = grouped(lambda x, c: c[0] * x[0], [1.0, 2.0, 3.0])

    part = rows.of_groups(torch.tensor([2, 0]))

    assert part.count == 2
    assert torch.equal(part.y[:15], rows.y[30:])
    assert torch.equal(part.y[15:], rows.y[:15])


def test_repeated_rows_are_other_groups():
    rows, _, _ = grouped(lambda x, c: c[0] * x[0], [1.0, 2.0])

    twice = rows.repeated(2)

    assert twice.count == 4
    assert torch.equal(twice.summed(twice.y), rows.summed(rows.y).repeat(2))


def test_noise_changes_no_likelihood_that_is_the_same_for_all():
    rows, _, _ = grouped(lambda x, c: c[0] * x[0], [1.0, 2.0])

    weighted = rows.with_noise(torch.tensor([0.1, 0.4], dtype=torch.float64))

    assert abs(float(weighted.root.log().sum())) < 1e-12
    assert float(weighted.root[0] / weighted.root[-1]) == pytest.approx(4.0)
