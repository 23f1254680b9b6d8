"""Which tables are searched for structures."""

import numpy as np
from made import grouped

from eqlearn.search.groups.group_settings import GroupSettings
from eqlearn.search.groups.propose import proposals


def test_single_groups_and_all_rows_take_turns():
    _, table, groups = grouped(lambda x, c: c[0] * x[0], [1.0, 2.0, 3.0])

    found = list(proposals(table, groups, GroupSettings()))

    assert [part.rows for part in found] == [15, 45, 15, 45, 15]
    for part, group in zip(found[::2], (2, 1, 0), strict=True):
        np.testing.assert_array_equal(part.y, table.y[groups.codes == group])
    np.testing.assert_array_equal(found[1].y, table.y)
    assert (found[3].y != table.y).any()


def test_targets_are_relative_to_their_group():
    _, table, groups = grouped(lambda x, c: c[0] * x[0], [1.0, 100.0])

    relative = list(proposals(table, groups, GroupSettings()))[3]

    np.testing.assert_allclose([(relative.y[:15] ** 2).mean(), (relative.y[15:] ** 2).mean()], 1)


def test_small_groups_are_not_searched_alone():
    _, table, groups = grouped(lambda x, c: c[0] * x[0], [1.0, 2.0, 3.0], rows=4)

    assert [part.rows for part in proposals(table, groups, GroupSettings())] == [12, 12]
