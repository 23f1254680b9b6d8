"""The estimator keeps scikit-learn's contract: every check of `check_estimator` passes, none excepted."""

import functools

import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator

from eqlearn.estimator import EQLRegressor
from eqlearn.search.settings import Settings

# A small search: the checks fit dozens of tables of noise, and ask about the contract, not the equation.
QUICK = EQLRegressor(
    primitives="id mul", hidden_layers=1, restarts=4, settings=Settings(members=4, finalists=2)
)


def name_of(value):
    """The check's function and options; nothing for the estimator, which is always the same."""
    if not isinstance(value, functools.partial):
        return "regressor"
    options = [f"{key}={option}" for key, option in value.keywords.items()]
    return "-".join([value.func.__name__, *options])


# scikit-learn sets parameters to nonsense on purpose: a constructor stores, and `fit` complains.
@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(("estimator", "check"), list(estimator_checks_generator(QUICK)), ids=name_of)
def test_the_estimator_passes_every_check_of_scikit_learn(estimator, check):
    check(estimator)
