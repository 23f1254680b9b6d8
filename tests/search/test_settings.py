"""Settings: refused where nothing could be done with them; their former names still understood."""

import pytest

from eqlearn import Settings, errors
from eqlearn.search.settings import STRATEGY_ORDER
from eqlearn.search.strategies import STRATEGIES


def test_the_default_order_names_every_strategy_of_the_package():
    assert sorted(STRATEGY_ORDER) == sorted(STRATEGIES)


def test_former_names_mean_the_same():
    settings = Settings(sketches=("banks", "scanned", "reduced", "modulated", "linear"))

    assert settings == Settings(
        strategies=("elimination", "profiled", "symmetry", "product-library", "linear")
    )


@pytest.mark.parametrize(
    "bad",
    [
        {"members": 0},
        {"rows": 0},
        {"patience": 0},
        {"validation": 1.0},
        {"validation": -0.1},
        {"strategies": (), "networks": False},
    ],
)
def test_settings_with_which_nothing_can_be_done_are_refused(bad):
    with pytest.raises(errors.InvalidArgument):
        Settings(**bad)
