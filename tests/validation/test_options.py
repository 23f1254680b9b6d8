"""Options of every kind: what will do, and what is refused, in which words."""

import math

import numpy as np
import pytest

from eqlearn.errors import InvalidArgument, UnknownName, WrongType
from eqlearn.search.settings import Settings
from eqlearn.search.subexpressions.bank_settings import BankSettings
from eqlearn.validation import options


@pytest.mark.parametrize("seed", [0, 7, np.int64(7)])
def test_a_seed_is_a_whole_number(seed):
    assert options.checked_seed(seed) == int(seed)


def test_a_seed_may_come_from_a_generator_and_then_moves_on():
    rng = np.random.default_rng(3)

    assert options.seed_of(rng) != options.seed_of(rng)
    assert options.seed_of(np.random.RandomState(3)) == options.seed_of(np.random.RandomState(3))
    assert options.seed_of(None) >= 0


def test_what_will_do_passes():
    options.check_budget(None, None)
    options.check_budget(0.5, 3)
    options.check_jobs(-1)
    options.check_least("digits", 1)
    options.check_whole("in_features", np.int32(2))
    options.check_number("seconds", None, float)
    options.check_together(None, None)
    options.check_single("graph", None)
    options.check_place("member", -3, 3)

    assert options.checked_choice("`form`", "map", ("ode", "map")) == "map"
    assert options.checked_range((0, 1), "x") == (0.0, 1.0)


@pytest.mark.parametrize(
    ("check", "error", "words"),
    [
        (lambda: options.checked_seed(1.5), WrongType, "`seed` must be a whole number, got 1.5"),
        (lambda: options.checked_seed(-1), InvalidArgument, "`seed` must not be negative, got -1"),
        (lambda: options.seed_of(-1), InvalidArgument, "`random_state` must not be negative, got -1"),
        (lambda: options.seed_of("a"), WrongType, "`random_state` must be None, a number or a numpy"),
        (lambda: options.check_budget(0.0, None), InvalidArgument, "`seconds` must be positive, got 0.0"),
        (lambda: options.check_budget(math.nan, None), InvalidArgument, "`seconds` must be positive"),
        (lambda: options.check_budget(1.0, -2), InvalidArgument, "`restarts` must be positive, got -2"),
        (lambda: options.check_jobs(0), InvalidArgument, "`n_jobs` must be a number of workers, or -1"),
        (lambda: options.check_least("a", math.nan), InvalidArgument, "`a` must be at least 1, got nan"),
        (lambda: options.check_least("a", -1, 0), InvalidArgument, "`a` must be at least 0, got -1"),
        (lambda: options.check_whole("a", 1.0), InvalidArgument, "`a` must be a whole number of at least 1"),
        (lambda: options.check_whole("a", 0), InvalidArgument, "`a` must be a whole number of at least 1"),
        (lambda: options.check_number("a", "60", float), WrongType, "`a` must be a number or None, got '60'"),
        (lambda: options.check_single("graph", 3), InvalidArgument, "a population has no single graph"),
        (lambda: options.check_place("member", 3, 3), InvalidArgument, "there is no member 3 among 3"),
        (lambda: options.check_place("member", -4, 3), InvalidArgument, "there is no member -4 among 3"),
        (lambda: options.check_together(1, None), InvalidArgument, "`X` and `y` must be given together"),
        (lambda: options.checked_range((1, 0), "x"), InvalidArgument, "low < high, both finite"),
        (lambda: options.checked_range((0, math.inf), "x"), InvalidArgument, "low < high, both finite"),
        (lambda: options.checked_range(3, "x"), InvalidArgument, "or such a pair by name; got 3"),
        (
            lambda: options.checked_choice("plan", "maps", ("ode", "map")),
            UnknownName,
            r"no plan named 'maps'; did you mean 'map'\? The known ones are ode, map$",
        ),
        (
            lambda: options.checked_choice("plan", ["ode"], ("ode", "map")),
            UnknownName,
            r"no plan named \['ode'\]",
        ),
        (
            lambda: options.checked_choice("plan", "pde2", ("map",)),
            UnknownName,
            "no plan named 'pde2'; the known ones are map",
        ),
        (
            lambda: options.checked_choice("plan", "n77", [f"n{i}" for i in range(40)]),
            UnknownName,
            r"no plan named 'n77'; did you mean 'n7'\?$",
        ),
    ],
)
def test_what_will_not_do_is_explained(check, error, words):
    with pytest.raises(error, match=words):
        check()


def test_settings_are_printed_as_what_differs_from_their_defaults():
    assert repr(Settings()) == "Settings()"
    assert repr(Settings(rows=99, bank=BankSettings(entries=10))) == (
        "Settings(rows=99, bank=BankSettings(entries=10))"
    )
