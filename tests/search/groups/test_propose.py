"""Which tables are searched for structures."""

import numpy as np
from made import grouped

from eqlearn.search.groups.group_settings import GroupSettings
from eqlearn.search.groups.propose import proposals


def test_single_groups_and_all_rows_take_turns():
    _, table, groups = grouped(lambda x, c: c[0] * x[0], [1.0, 2.0, 3.0])

    found = list(proposals(table, groups, GroupSettings()))

    assert [p.name for p in found] == ["2", "all", "1", "all, relative", "0"]
    assert found[0].table.rows == 15
    assert found[1].table.rows == 45


def test_targets_are_relative_to_their_group():
    _, table, groups = grouped(lambda x, c: c[0] * x[0], [1.0, 100.0])

    relative = next(p for p in proposals(table, groups, GroupSettings()) if p.name == "all, relative").table

    np.testing.assert_allclose([(relative.y[:15] ** 2).mean(), (relative.y[15:] ** 2).mean()], 1)


def test_small_groups_are_not_searched_alone():
    _, table, groups = grouped(lambda x, c: c[0] * x[0], [1.0, 2.0, 3.0], rows=4)

    assert [p.name for p in proposals(table, groups, GroupSettings())] == ["all", "all, relative"]
