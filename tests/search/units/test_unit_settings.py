from eqlearn import Settings
from eqlearn.search.units.unit_settings import Dimensional


def test_a_search_has_the_settings_for_units():
    assert Settings().dimensional == Dimensional()
    assert Dimensional().searched * Dimensional().share < 1  # what is left is for the columns themselves
