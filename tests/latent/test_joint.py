"""Encoders and a law in one model: it starts where the served fit stands, and exact numbers stay."""

import numpy as np
import pytest
import torch

from eqlearn.latent.comparison.compare import carried
from eqlearn.latent.joint import JointModel, train_law
from eqlearn.latent.settings import LatentSettings
from eqlearn.latent.warm_start import Units, left_over
from made_latents import fitted_choice, idle_encoders, made_batch, made_data, uniform

ROWS = 400
K, X, Q = uniform(ROWS, 0.5, 2, 0), uniform(ROWS, 0.3, 3, 1), uniform(ROWS, 0.5, 1.5, 2)
LATENTS, COLUMNS = {"k": torch.log(K)}, {"x": X, "q": Q}
SMALL = LatentSettings(batch=64, measured=400)
LAWS = {
    "decay": (Q * torch.exp(-K * X) + 1, (("mul", 2, ("exp", ("mul", 0, 1))),)),
    "shifted": (K * (X + 2.37) / Q, (("div", ("mul", 0, ("shift", 1)), 2),)),
    "two outputs": (torch.stack([K * X, K + Q], dim=1), (("mul", 0, 1), ("add", 0, 2))),
}


def joint(law, fixed=None):
    y, trees = LAWS[law]
    choice = fitted_choice(LATENTS, COLUMNS, y, *trees)
    batch = made_batch(LATENTS, COLUMNS, y)
    model = JointModel(
        idle_encoders(LATENTS), choice.bases, choice.data.slots, choice.fit, Units.of(batch), fixed
    )
    return choice, batch, model


@pytest.mark.parametrize("law", LAWS)
def test_a_model_begins_with_the_values_of_the_fit(law):
    choice, batch, model = joint(law)

    values = model.eval()(batch) * model.units.y_spreads + model.units.y

    torch.testing.assert_close(values.detach().double(), choice.values().mT, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(model.numbers().detach(), choice.fit.numbers, rtol=1e-6, atol=1e-6)
    # Both are in units of the targets' variance.
    assert left_over(model, batch, model.units) == pytest.approx(choice.error, rel=0.05, abs=1e-8)


def test_numbers_that_are_fixed_stay_in_training_and_others_move():
    choice, _, model = joint("shifted")
    fixed = np.zeros(len(choice.fit.numbers), dtype=bool)
    fixed[[0, -1]] = True
    data = made_data(LATENTS, COLUMNS, 1.1 * LAWS["shifted"][0])
    encoders = model.encoders

    trained, *_ = train_law(
        encoders, choice.bases, choice.data.slots, choice.fit, data, steps=20, fixed=fixed, settings=SMALL
    )

    after = trained.numbers().detach().numpy()
    np.testing.assert_allclose(after[fixed], choice.fit.numbers[fixed], rtol=1e-6)
    assert (np.abs(after - choice.fit.numbers)[~fixed] > 1e-6).any()


def test_training_lowers_the_error_and_leaves_what_it_was_given():
    choice, _, model = joint("decay")
    data = made_data(LATENTS, COLUMNS, 1.3 * LAWS["decay"][0])
    before = [b.clone() for b in choice.fit.bends]
    units = Units.of(data.training)
    begun = JointModel(model.encoders, choice.bases, choice.data.slots, choice.fit, units)
    start = left_over(begun, data.held, units)

    trained, error, held = train_law(
        model.encoders, choice.bases, choice.data.slots, choice.fit, data, steps=150, settings=SMALL
    )

    assert max(error, held) < 0.9 * start
    assert not trained.training
    assert all(torch.equal(a, b) for a, b in zip(before, choice.fit.bends, strict=True))


def test_the_same_seed_trains_the_same_law():
    choice, _, model = joint("decay")
    data = made_data(LATENTS, COLUMNS, 1.3 * LAWS["decay"][0])
    state = torch.get_rng_state()

    def numbers(seed):
        trained, *_ = train_law(
            model.encoders, choice.bases, choice.data.slots, choice.fit, data, steps=10, seed=seed,
            settings=SMALL,
        )  # fmt: skip
        return trained.numbers()

    first = numbers(3)
    assert torch.equal(first, numbers(3))
    assert not torch.equal(first, numbers(4))
    assert torch.equal(state, torch.get_rng_state())


@pytest.mark.parametrize("law", LAWS)
def test_a_law_carried_to_its_trained_encoders_has_the_same_values(law):
    choice, _, model = joint(law)
    data = made_data(LATENTS, COLUMNS, LAWS[law][0])

    moved = carried(choice, model.eval(), data, SMALL)

    expected = model(data.sample(400)) * model.units.y_spreads + model.units.y
    torch.testing.assert_close(moved.values().mT, expected.detach().double(), rtol=1e-3, atol=1e-3)


def test_a_training_that_diverges_leaves_infinitely_much():
    choice, _, model = joint("decay")
    data = made_data(LATENTS, COLUMNS, LAWS["decay"][0])
    data.training.inputs["k"][:] = float("nan")

    *_, error, held = train_law(
        model.encoders, choice.bases, choice.data.slots, choice.fit, data, steps=10, settings=SMALL
    )

    assert error == held == float("inf")
