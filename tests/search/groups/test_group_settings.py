"""Settings of the search for groups."""

import pytest

from eqlearn.errors import InvalidArgument
from eqlearn.search.groups.group_settings import GroupSettings
from eqlearn.search.settings import Settings, for_parts


@pytest.mark.parametrize("name", ["max_searches", "patience", "max_groups", "finalists", "steps"])
def test_numbers_below_one_are_refused(name):
    with pytest.raises(InvalidArgument, match=name):
        GroupSettings(**{name: 0})


def test_parts_are_searched_by_strategies_that_take_less_time():
    parts = for_parts(Settings(), 1)

    assert not parts.networks
    assert not {"wide-pairs", "deep", "symmetry"} & set(parts.strategies)
    assert "symmetry" in for_parts(Settings(), 3).strategies
    assert for_parts(Settings(strategies=()), 1).networks


def test_laws_of_constants_are_searched_by_fewer():
    settings = Settings()

    laws = for_parts(settings, 1, settings.groups.left_out_of_laws)

    assert set(for_parts(settings, 1).strategies) - set(laws.strategies) == {"span", "sums"}
