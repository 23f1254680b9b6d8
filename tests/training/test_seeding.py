import pytest
import torch

from eqlearn.training.seeding import seeded


def test_the_same_seed_draws_the_same_numbers():
    with seeded(3):
        first = torch.rand(4)
    with seeded(3):
        second = torch.rand(4)

    assert torch.equal(first, second)


def test_other_seeds_draw_other_numbers():
    with seeded(3):
        first = torch.rand(4)
    with seeded(4):
        second = torch.rand(4)

    assert not torch.equal(first, second)


def test_the_callers_random_state_is_given_back():
    before = torch.get_rng_state()
    with seeded(3):
        torch.rand(4)

    assert torch.equal(torch.get_rng_state(), before)


def test_the_callers_random_state_is_given_back_after_an_error():
    before = torch.get_rng_state()
    with pytest.raises(KeyError), seeded(3):
        raise KeyError

    assert torch.equal(torch.get_rng_state(), before)
