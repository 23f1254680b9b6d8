"""The short list: no disguises, no law twice, and what can't be told apart is said."""

import pytest
import torch

from eqlearn.latent.comparison.shortlist import is_disguised, shortlist, tells_apart
from made_latents import fitted_choice, uniform

ROWS = 300
K, X = uniform(ROWS, 0.5, 2, 0), uniform(ROWS, 0.3, 3, 1)
A, B = uniform(ROWS, 0.5, 2, 3), uniform(ROWS, 0.5, 2, 4)
NOISE = 0.01 * torch.randn(ROWS, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def choices(y, *trees, latents=None):
    return [fitted_choice(latents or {"k": torch.log(K)}, {"x": X}, y + NOISE, tree) for tree in trees]


SPRING, DECAY, SUM = ("mul", 0, 1), ("exp", ("mul", 0, 1)), ("add", 0, 1)


def test_a_function_that_acts_as_a_straight_line_is_a_disguise():
    plain, disguise = choices(3 * K * X, SPRING, DECAY)
    (honest,) = choices(torch.exp(-K * X), DECAY)

    assert disguise.error < 2 * plain.error + 1e-4  # exp(k*x/1000) does as well
    assert is_disguised(disguise)
    assert not is_disguised(plain)
    assert not is_disguised(honest)


def test_the_list_leaves_disguises_and_poor_laws_out():
    all_ = choices(3 * K * X, SPRING, DECAY, SUM)
    listed, equivalent = shortlist(all_, head_error=min(c.error for c in all_))

    assert [c.fit.trees[0] for c in listed] == [SPRING]
    assert DECAY not in [c.fit.trees[0] for c in equivalent]


def test_laws_that_differ_by_a_bend_can_not_be_told_apart():
    # k + log(x) behind an exponential is a product.
    product, logs = choices(2 * K * X, SPRING, ("exp", ("add", 0, ("log", 1))))

    assert not tells_apart(product, logs)
    assert not tells_apart(logs, product)


def test_laws_that_differ_are_told_apart():
    spring, sums = choices(3 * K * X, SPRING, SUM)

    assert tells_apart(spring, sums)
    assert tells_apart(sums, spring)


def test_what_no_data_can_tell_apart_is_listed_beside_the_shortest():
    all_ = choices(2 * K * X, ("exp", ("add", 0, ("log", 1))), SPRING)
    listed, equivalent = shortlist(all_, head_error=all_[1].error)

    assert [c.fit.trees[0] for c in listed] == [SPRING]
    assert [c.fit.trees[0] for c in equivalent] == [("exp", ("add", 0, ("log", 1)))]


def test_a_longer_law_that_leaves_less_is_on_the_list():
    wrong, right = choices(torch.exp(-0.3 * K * X), SPRING, DECAY)
    listed, _ = shortlist([wrong, right], head_error=wrong.error)

    assert right.error < 0.9 * wrong.error
    assert DECAY in [c.fit.trees[0] for c in listed]


def test_sums_stand_where_a_turned_latent_makes_them_of_differences():
    (difference,) = choices(K + X, ("sub", 0, 1))
    listed, _ = shortlist([difference], head_error=difference.error)

    assert [c.fit.trees[0] for c in listed] == [SUM]


@pytest.mark.parametrize("shared", [True, False])
def test_a_difference_of_one_encoders_latents_stays(shared):
    y = A - B + NOISE
    choice = fitted_choice({"a": A, "b": B}, {}, y, ("sub", 0, 1), shared=shared)
    listed, _ = shortlist([choice], head_error=choice.error)

    assert [c.fit.trees[0] for c in listed] == [("sub", 0, 1) if shared else ("add", 0, 1)]
