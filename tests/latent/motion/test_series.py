"""The series encoder: shapes, members, scaling, normalisation."""

import pytest
import torch

from eqlearn.errors import InvalidArgument, UnknownName
from eqlearn.latent.motion.series import EncoderShape, SeriesEncoder

X = torch.randn(12, 20, 2, generator=torch.Generator().manual_seed(0))


def encoder(**changes) -> SeriesEncoder:
    shape = EncoderShape(filters=4, hidden=(8,), **changes.pop("shape", {}))
    return SeriesEncoder(2, 20, changes.pop("latents", 1), shape=shape, **changes)


@pytest.mark.parametrize("options", [{}, {"stride": 3}, {"own_scale": True}, {"activation": "tanh"}])
def test_a_series_becomes_latents(options):
    assert encoder(shape=options, latents=2)(X).shape == (12, 2)


def test_latents_have_standard_deviation_one_half():
    z = encoder()(X).detach()

    assert float(z.std(correction=0)) == pytest.approx(0.5, rel=1e-4)
    assert float(z.mean()) == pytest.approx(0, abs=1e-5)


def test_settled_normalisation_says_the_same_at_rest_as_in_training():
    one = encoder()
    trained = one.train()(X)
    one.take_statistics_(X)

    torch.testing.assert_close(one.eval()(X), trained, atol=1e-5, rtol=1e-4)


def test_members_read_as_they_would_alone():
    many = encoder(members=3, seed=5, shape={"own_scale": True}).eval()

    together = many(X)

    for i in range(3):
        torch.testing.assert_close(together[i], many.member(i)(X), atol=1e-5, rtol=1e-4)


def test_a_member_starts_as_it_would_alone():
    many, alone = encoder(members=3, seed=5).eval(), encoder(seed=7).eval()

    torch.testing.assert_close(many(X)[2], alone(X))


def test_same_padding_keeps_all_times_and_needs_a_stride_of_one():
    assert EncoderShape(padding="same", convolutions=4).times(9) == 9
    assert encoder(shape={"padding": "same"})(X).shape == (len(X), 1)
    with pytest.raises(InvalidArgument, match="'same' needs a `stride` of 1, got 2"):
        EncoderShape(padding="same", stride=2)


def test_the_normalisation_adds_its_epsilon_to_the_variance():
    z = encoder(shape={"epsilon": 1e3}).train()(X)

    assert bool(z.abs().max() < encoder().train()(X).abs().max())


def test_scales_divide_what_is_observed():
    scales = torch.tensor([5.0, 0.1])

    torch.testing.assert_close(encoder(scales=scales).eval()(X * scales), encoder().eval()(X))


def test_a_gradient_of_one_member_stays_with_it():
    many = encoder(members=2)
    many(X)[0].square().sum().backward()

    assert all(float(p.grad[1].abs().max()) == 0 for p in many.parameters())


def test_the_read_out_is_solved_by_least_squares():
    one = encoder().double().eval()
    x = X.double()
    target = 0.3 * one.features(x)[0][:, :1].detach() + 2

    one.solve_readout_(x, target)

    torch.testing.assert_close(one(x), target, atol=1e-4, rtol=1e-4)


def test_the_read_out_of_a_population_is_not_solved():
    with pytest.raises(InvalidArgument, match="member"):
        encoder(members=2).solve_readout_(X, torch.zeros(12, 1))


def test_series_of_another_length_are_refused():
    with pytest.raises(InvalidArgument, match="20 times, got 10"):
        encoder()(X[:, :10])


def test_series_too_short_for_the_convolutions_are_refused():
    with pytest.raises(InvalidArgument, match="too short"):
        SeriesEncoder(2, 6)


def test_unknown_activations_are_refused():
    with pytest.raises(UnknownName, match="relu"):
        EncoderShape(activation="rely")


def test_there_is_no_member_of_a_single_encoder():
    with pytest.raises(InvalidArgument, match="no member"):
        encoder().member(0)


def test_calibration_takes_out_shift_and_stretch():
    one = encoder().double().eval()
    x = X.double()
    target = -3.0 * one(x).detach() + 2

    one.calibrate_(x, target)

    torch.testing.assert_close(one(x), target)


def test_calibrated_latents_err_by_nothing_that_grows_with_them():
    one = encoder().double().eval()
    x = X.double()
    target = one(x).detach() + torch.randn(12, 1, generator=torch.Generator().manual_seed(1)).double()

    one.calibrate_(x, target)

    z = one(x).detach()
    assert float((target - z).mean()) == pytest.approx(0, abs=1e-9)
    assert float(((target - z) * z).mean()) == pytest.approx(0, abs=1e-9)


def test_a_population_is_not_calibrated():
    with pytest.raises(InvalidArgument, match="member"):
        encoder(members=2).calibrate_(X, torch.zeros(12, 1))
