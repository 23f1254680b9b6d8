"""The encoder of images: shapes, a latent of fixed spread, statistics that are settled."""

import pytest
import torch

from eqlearn.errors import InvalidArgument
from eqlearn.latent.images import ImageEncoder, encode, take_statistics_
from eqlearn.training.state import seeded


def small_encoder(**options):
    with seeded(0):
        encoder = ImageEncoder(8, channels=(4, 8), kernel=3, padding="same", **options)
    with torch.no_grad():
        encoder.readout.weight *= 100  # else noise is so much like noise that torch's epsilon shows
    return encoder


def some_images(rows=300):
    return torch.randint(256, (rows, 8, 8), generator=torch.Generator().manual_seed(0), dtype=torch.uint8)


@pytest.mark.parametrize("padding", ["valid", "same"])
def test_the_papers_encoder_gives_one_number_an_image(padding):
    images = torch.zeros(3, 28, 28, dtype=torch.uint8)

    assert ImageEncoder(padding=padding)(images).shape == (3, 1)


def test_the_papers_layers_are_those_of_its_appendix():
    shapes = [tuple(p.shape) for p in ImageEncoder(padding="same").parameters() if p.dim() > 1]

    assert shapes == [(32, 1, 5, 5), (64, 32, 5, 5), (128, 64 * 7 * 7), (16, 128), (1, 16)]


def test_the_latent_of_a_batch_has_mean_zero_and_spread_one_half():
    latents = small_encoder()(some_images()).detach()

    assert abs(float(latents.mean())) < 1e-5
    assert float(latents.std(correction=0)) == pytest.approx(0.5, rel=1e-2)


def test_the_scale_can_be_left_to_training():
    assert small_encoder(affine=True).normalise.weight.requires_grad
    assert small_encoder().normalise.weight is None


def test_bytes_and_floats_are_the_same_image():
    encoder, images = small_encoder().eval(), some_images()

    torch.testing.assert_close(encoder(images), encoder(images.float()))


def test_images_too_small_for_the_convolutions_are_refused():
    with pytest.raises(InvalidArgument, match="`side` 8 is too small"):
        ImageEncoder(8)


def test_settled_statistics_are_those_of_all_images():
    encoder, images = small_encoder(), some_images(1000)

    take_statistics_(encoder, images, batch=250)

    latents = encode(encoder, images)
    assert abs(float(latents.mean())) < 1e-3
    assert float(latents.std()) == pytest.approx(0.5, rel=1e-2)


def test_looking_at_latents_leaves_the_encoder_as_it_was():
    encoder = small_encoder().train()
    before = {name: t.clone() for name, t in encoder.state_dict().items()}

    encode(encoder, some_images())

    assert encoder.training
    assert all(torch.equal(t, before[name]) for name, t in encoder.state_dict().items())


@pytest.mark.parametrize("count", [251, 437])
def test_every_image_counts_once_when_statistics_are_settled(count):
    encoder, images = small_encoder(), some_images(count)

    take_statistics_(encoder, images, batch=250)

    assert abs(float(encode(encoder, images).mean())) < 1e-2
