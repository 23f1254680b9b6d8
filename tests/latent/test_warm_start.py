"""Warm starts: encoders of any kind trained with a smooth head, and nothing of the user's touched."""

from dataclasses import replace
from itertools import count

import pytest
import torch
from torch import nn

from eqlearn.latent.settings import LatentSettings
from eqlearn.latent.warm_start import Encoders, Units, warm_start
from eqlearn.validation.latents import Batch, Gathered, LatentData
from made_latents import uniform

ROWS = 300
SMALL = LatentSettings(warm_steps=50, batch=64)


class Counts(nn.Module):
    """A linear encoder that counts the rows it reads."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 1)
        self.rows = 0

    def forward(self, x):
        self.rows += len(x)
        return self.layer(x)


def encoder(seed=0, outputs=1):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, outputs))


def pictures(seed):
    return torch.randn(ROWS, 3, generator=torch.Generator().manual_seed(seed))


def data(columns=1, names=("a",)):
    inputs = {name: pictures(i) for i, name in enumerate(names)}
    x = torch.stack([uniform(ROWS, 0.5, 2, 9 + j) for j in range(columns)], dim=1) if columns else None
    x = torch.zeros(ROWS, 0, dtype=torch.float64) if x is None else x
    y = sum(v[:, 0].double() for v in inputs.values()) * (x.sum(dim=1) if columns else 1)
    batch = Batch(inputs, x, y[:, None])
    return LatentData(batch[slice(60, None)], batch[slice(0, 60)], tuple(f"x{j}" for j in range(columns)))


@pytest.mark.parametrize("kind", ["plain", "interactions"])
@pytest.mark.parametrize("columns", [0, 1])
def test_a_start_learns_what_the_rows_tell(kind, columns):
    start = warm_start(
        {"a": encoder()}, {"a": 1}, data(columns), kind=kind, settings=replace(SMALL, warm_steps=250)
    )

    assert start.error < 0.2
    assert start.held_error < 0.3
    assert not start.model.training
    assert [len(rises) for rises in start.importance] == [columns]
    assert all(rise > 0.1 for rise in start.importance[0])


@pytest.mark.parametrize("kind", ["plain", "interactions"])
def test_the_same_seed_gives_the_same_start(kind):
    def weights(seed):
        start = warm_start({"a": encoder()}, {"a": 1}, data(), kind=kind, seed=seed, settings=SMALL)
        return torch.cat([p.flatten() for p in start.model.parameters()])

    assert torch.equal(weights(1), weights(1))
    assert not torch.equal(weights(1), weights(2))


@pytest.mark.parametrize("kind", ["plain", "interactions"])
def test_the_users_encoder_and_random_state_are_left_as_they_were(kind):
    mine = encoder().train()
    before = {name: value.clone() for name, value in mine.state_dict().items()}
    state = torch.get_rng_state()

    warm_start({"a": mine}, {"a": 1}, data(), kind=kind, settings=SMALL)

    assert all(torch.equal(before[name], value) for name, value in mine.state_dict().items())
    assert all(p.grad is None for p in mine.parameters())
    assert mine.training
    assert torch.equal(state, torch.get_rng_state())


def test_a_pretrained_encoder_starts_from_its_own_weights_and_a_fresh_one_does_not():
    mine = encoder(7)

    def first_weights(fresh):
        settings = replace(SMALL, warm_steps=1, rate=1e-9)
        start = warm_start({"a": mine}, {"a": 1}, data(), fresh=fresh, settings=settings)
        return start.model.encoders.encoders[0][0].weight.detach()

    torch.testing.assert_close(first_weights(False), mine[0].weight.detach(), rtol=0, atol=1e-6)
    assert float((first_weights(True) - mine[0].weight.detach()).abs().max()) > 0.01


def test_weights_that_are_frozen_are_not_drawn_anew():
    mine = encoder()
    mine[0].requires_grad_(False)

    start = warm_start({"a": mine}, {"a": 1}, data(), fresh=True, settings=SMALL)

    trained = start.model.encoders.encoders[0]
    assert torch.equal(trained[0].weight, mine[0].weight)
    assert not torch.equal(trained[2].weight, mine[2].weight)


def test_a_fresh_start_draws_attention_anew_too():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        reading = Encoders({"a": nn.Sequential(layer)}, {"a": 1})
        before = {name: p.clone() for name, p in reading.named_parameters() if p.dim() > 1}
        reading.reset_()

    assert before
    assert all(not torch.equal(before[name], p) for name, p in reading.named_parameters() if p.dim() > 1)


def test_one_object_for_two_inputs_shares_its_weights():
    one = encoder()
    shared, apart = (
        Encoders({"a": one, "b": one}, {"a": 1, "b": 1}),
        Encoders({"a": one, "b": encoder(1)}, {"a": 1, "b": 1}),
    )

    assert shared.groups == (0, 0)
    assert apart.groups == (0, 1)
    start = warm_start({"a": one, "b": one}, {"a": 1, "b": 1}, data(names=("a", "b")), settings=SMALL)
    assert len(start.model.encoders.encoders) == 1
    a, b = start.model.encoders(Batch({"a": pictures(0), "b": pictures(0)}, torch.zeros(0), torch.zeros(0)))
    assert torch.equal(a, b)


def test_a_value_that_repeats_is_encoded_once():
    counting = Counts()
    reading = Encoders({"a": counting, "b": counting}, {"a": 1, "b": 1}).eval()
    values = pictures(0)
    index = torch.randint(20, (200,), generator=torch.Generator().manual_seed(0))
    rows = {"a": Gathered(values, index), "b": Gathered(values, index.flip(0))}

    a, b = reading(Batch(rows, torch.zeros(0), torch.zeros(0)))

    assert counting.rows <= 20
    plain = {"a": values[index], "b": values[index.flip(0)]}
    expected = reading(Batch(plain, torch.zeros(0), torch.zeros(0)))
    torch.testing.assert_close(a, expected[0])
    torch.testing.assert_close(b, expected[1])


@pytest.mark.parametrize("training", [True, False])
def test_latents_have_mean_zero_and_spread_one_in_training_and_keep_their_scale_when_held(training):
    reading = Encoders({"a": encoder(outputs=2)}, {"a": 2}).train(training)
    (z,) = reading(Batch({"a": pictures(0)}, torch.zeros(0), torch.zeros(0)))
    held = reading.hold_().train()
    before = held.norms[0].running_mean.clone()

    (after,) = held(Batch({"a": pictures(0) + 3}, torch.zeros(0), torch.zeros(0)))

    if training:
        torch.testing.assert_close(z.detach().mean(dim=0), torch.zeros(2), rtol=0, atol=1e-5)
    assert torch.equal(before, held.norms[0].running_mean)
    assert float(after.detach().mean(dim=0).abs().max()) > 0.1


def test_a_column_that_does_not_vary_and_none_at_all_have_units():
    y = torch.arange(5.0, dtype=torch.float64)[:, None]
    constant = Units.of(Batch({}, torch.ones(5, 1, dtype=torch.float64), y))
    none = Units.of(Batch({}, torch.zeros(5, 0, dtype=torch.float64), y))

    assert constant.column_spreads.tolist() == [1.0]
    assert none.column_spreads.shape == (0,)


def test_a_start_that_diverges_is_none():
    rows = data()
    rows.training.inputs["a"][:] = float("inf")

    assert warm_start({"a": encoder()}, {"a": 1}, rows, settings=SMALL) is None


def test_a_stop_ends_a_start_where_it_stands():
    records = []

    start = warm_start(
        {"a": encoder()}, {"a": 1}, data(), settings=replace(SMALL, warm_steps=10_000),
        stop=lambda: len(records) >= 2, on_record=lambda record: records.append(record),
    )  # fmt: skip

    assert start is not None
    assert len(records) == 2


def test_a_training_that_was_stopped_goes_on_from_its_journal(tmp_path):
    def start(stop):
        return warm_start(
            {"a": encoder()}, {"a": 1}, data(), settings=SMALL, journal=tmp_path, stop=stop
        ).held_error

    whole = warm_start({"a": encoder()}, {"a": 1}, data(), settings=SMALL).held_error
    seen = []
    start(lambda: len(seen) > 0 or seen.append(1))

    assert start(lambda: False) == pytest.approx(whole, rel=1e-6)


def test_a_training_that_has_time_for_fewer_steps_after_a_kill_is_done(tmp_path):
    def start(steps):
        settings = replace(SMALL, warm_steps=steps)
        return warm_start({"a": encoder()}, {"a": 1}, data(), settings=settings, journal=tmp_path)

    assert start(50).held_error == start(30).held_error


class Stream:
    """Batches of a few rows, endless, each known by its number."""

    def __init__(self, skips):
        self.rows, self.numbers, self.seen = data().training, count(), []
        if skips:
            self.skip_ = lambda batches: [next(self.numbers) for _ in range(batches)]

    def __iter__(self):
        for number in self.numbers:
            self.seen.append(number)
            batch = self.rows[torch.arange(7 * number, 7 * number + 30) % len(self.rows)]
            yield {"a": batch.inputs["a"], "x0": batch.columns[:, 0], "y": batch.y}


@pytest.mark.parametrize("skips", [True, False])
@pytest.mark.parametrize("stopped_in", [0, 1])
def test_a_stream_goes_on_after_a_kill_with_the_batches_that_would_have_come(tmp_path, skips, stopped_in):
    def starts(journal, steps=1_000):
        """Two starts after each other, until so many steps were told; what they leave, the batches drawn."""
        stream, told = Stream(skips), []
        rows = LatentData(data().training, data().held, ("x0",), stream)
        left = []
        for seed in (0, 1):
            start = warm_start(
                {"a": encoder()}, {"a": 1}, rows, seed=seed, settings=SMALL, journal=journal,
                on_record=lambda record: told.append(record.step), stop=lambda: 25 * len(told) >= steps,
            )  # fmt: skip
            left.append(start.held_error)
            if 25 * len(told) >= steps:
                break
        return left, stream.seen

    whole, drawn = starts(tmp_path / "whole")
    starts(tmp_path / "part", steps=25 + 50 * stopped_in)
    again, new = starts(tmp_path / "part")

    assert again == whole
    assert drawn == list(range(100))
    assert new[-50:] == drawn[-50:]
