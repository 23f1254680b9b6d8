"""Encoders of one's own: what can stand before an equation, what can't and why, and members."""

import pytest
import torch
from torch import nn

from eqlearn.errors import EqlearnError, InvalidArgument, WrongType
from eqlearn.latent.encoder import check_encoder, member_of
from eqlearn.latent.motion.series import EncoderShape, SeriesEncoder

X = torch.randn(12, 10, 2, generator=torch.Generator().manual_seed(0))


class Gives(nn.Module):
    """An encoder with a weight, which gives what it is told to."""

    def __init__(self, give):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(20, 1))
        self.give = give

    def forward(self, x):
        return self.give(x.flatten(1) @ self.weight)


def flat(*layers) -> nn.Module:
    return nn.Sequential(nn.Flatten(), *layers)


@pytest.mark.parametrize(
    ("encoder", "latents"),
    [
        (flat(nn.Linear(20, 1)), 1),
        (flat(nn.Linear(20, 8), nn.BatchNorm1d(8), nn.Dropout(), nn.Linear(8, 3)), 3),
        (flat(nn.Linear(20, 2), nn.BatchNorm1d(2, affine=False)), 2),
        (flat(nn.Linear(20, 1)).double(), 1),
        (Gives(lambda z: torch.cat([z, 0 * z], dim=1)), 2),  # one may be needed later
        (SeriesEncoder(2, 10, 2, shape=EncoderShape(filters=3)), 2),
        (SeriesEncoder(2, 10, 1, shape=EncoderShape(filters=3), members=3), 1),
    ],
)
def test_any_encoder_that_can_be_trained_is_counted(encoder, latents):
    before = {name: value.clone() for name, value in encoder.state_dict().items()}

    assert check_encoder("encoder", encoder, X) == latents

    assert all(torch.equal(before[name], value) for name, value in encoder.state_dict().items())
    assert all(part.training for part in encoder.modules())
    assert all(p.grad is None for p in encoder.parameters())


def test_parts_that_rest_go_on_resting_after_the_check():
    encoder = flat(nn.Linear(20, 8), nn.BatchNorm1d(8), nn.Linear(8, 1))
    encoder[2].eval()

    check_encoder("encoder", encoder, X)

    assert [part.training for part in encoder] == [True, True, False, True]


def frozen() -> nn.Module:
    return flat(nn.Linear(20, 1)).requires_grad_(False)


@pytest.mark.parametrize(
    ("encoder", "words"),
    [
        (Gives(lambda z: [1.0]), "gives a list; it must give a tensor"),
        (Gives(lambda z: z[:, 0]), r"gives shape \(12,\) for 12 rows; it must give \(rows, latents\)"),
        (Gives(lambda z: z[:5]), r"gives shape \(5, 1\) for 12 rows"),
        (Gives(lambda z: z[:, :0]), r"gives shape \(12, 0\) for 12 rows"),
        (Gives(lambda z: z.expand(12, 12, 1)), r"gives shape \(12, 12, 1\) for 12 rows"),
        (Gives(lambda z: z.argmax(dim=1, keepdim=True)), "gives torch.int64; .* floating-point"),
        (Gives(lambda z: z * torch.nan), "gives NaN or infinity"),
        (Gives(lambda z: z * torch.inf), "gives NaN or infinity"),
        (Gives(lambda z: 0 * z + 3.1), "the same latent for all 12 rows"),
        (Gives(lambda z: 0 * torch.cat([z, z], dim=1)), "the same latent for all 12 rows"),
        (Gives(lambda z: z.detach()), "without a gradient"),
        (Gives(torch.round), "without a gradient"),
        (frozen(), "without a gradient"),
        (flat(), "without a gradient"),
        (flat(nn.Linear(19, 1)), r"can't read a torch.float32 input of shape \(12, 10, 2\): mat1"),
        (lambda x: x, "must be an nn.Module"),
    ],
)
@pytest.mark.usefixtures("unchecked_types")
def test_an_encoder_that_can_not_be_trained_is_refused_in_a_sentence(encoder, words):
    with pytest.raises((InvalidArgument, WrongType), match=words) as caught:
        check_encoder("a", encoder, X)

    assert isinstance(caught.value, EqlearnError)
    assert str(caught.value).startswith("encoder 'a' ")
    assert "\n" not in str(caught.value)


def test_a_part_with_members_inside_a_module_without_is_explained():
    series = SeriesEncoder(2, 10, 1, shape=EncoderShape(filters=3), members=3)

    with pytest.raises(InvalidArgument, match="Sequential holds parts with `members`"):
        member_of(nn.Sequential(series, nn.Tanh()), 1)


def test_members_without_a_way_to_take_one_out_are_explained():
    broken = Gives(lambda z: z)
    broken.members = 3

    with pytest.raises(WrongType, match=r"no method `member\(index\)`"):
        member_of(broken, 0)
