import pytest
import torch

from eqlearn.errors import Diverged
from eqlearn.training.state import restart_seed, restarted, seeded, step_generator


def diverging(until):
    def run(restart):
        if restart < until:
            raise Diverged("only", 3)
        return restart

    return run


def test_a_trial_begins_again_until_it_stays_finite_and_is_counted():
    assert restarted(diverging(until=3)) == (3, 3)


def test_after_the_last_restart_the_error_stands():
    with pytest.raises(Diverged):
        restarted(diverging(until=3), most=2)


def test_restarts_of_neighbouring_seeds_have_seeds_of_their_own():
    seeds = {restart_seed(seed, restart) for seed in range(100) for restart in range(20)}

    assert len(seeds) == 2000
    assert restart_seed(7, 0) == 7


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


def test_each_step_of_each_seed_draws_its_own_numbers():
    drawn = {
        (seed, step): torch.rand(4, generator=step_generator(seed, step))
        for seed in (0, 1)
        for step in (0, 1)
    }

    assert torch.equal(drawn[1, 1], torch.rand(4, generator=step_generator(1, torch.tensor(1))))
    assert len({tuple(numbers.tolist()) for numbers in drawn.values()}) == 4
