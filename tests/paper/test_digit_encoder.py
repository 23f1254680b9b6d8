"""The encoder of digits: a latent for images of either size, weights that can be drawn anew."""

import pytest
import torch

from eqlearn.errors import InvalidArgument
from eqlearn.latent.encoder import check_encoder
from eqlearn.latent.warm_start import Encoders
from eqlearn.paper.mnist.encoder import DigitEncoder


def images(side, count=30):
    return torch.randint(256, (count, side, side), generator=torch.Generator().manual_seed(0)).byte()


@pytest.mark.parametrize("side", [8, 28])
def test_an_image_of_either_size_has_a_latent_that_can_be_trained(side):
    assert check_encoder("z", DigitEncoder(side), images(side)) == 1


def test_bytes_and_floats_are_read_alike():
    encoder = DigitEncoder(8).eval()

    torch.testing.assert_close(encoder(images(8)), encoder(images(8).float()))


def test_latents_lie_between_the_levels():
    encoder = DigitEncoder(8).eval()
    levels = encoder.readout.levels.detach()
    with torch.no_grad():
        encoder.readout.logits.weight.mul_(1e4)
        z = encoder(images(8))

    assert float(z.abs().max()) <= float(levels.abs().max())
    assert float((z - levels).abs().min(dim=1).values.median()) < 1e-3


def test_every_weight_is_drawn_anew():
    encoder = DigitEncoder(8)
    with torch.no_grad():
        for weight in encoder.parameters():
            weight.fill_(7.0)

    Encoders({"z": encoder}, {"z": 1}).reset_()

    assert not any(bool((weight == 7.0).any()) for weight in encoder.parameters())


def test_a_picture_that_is_too_small_is_refused():
    with pytest.raises(InvalidArgument, match="`side` 3 is too small"):
        DigitEncoder(3)
