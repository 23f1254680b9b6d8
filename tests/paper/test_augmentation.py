import pytest
import torch

from eqlearn.errors import InvalidArgument
from eqlearn.paper.mnist.pairs import Augmentation


def dots(count=50, side=9):
    """Images with one bright pixel, two to the right of the middle."""
    images = torch.zeros(count, side, side, dtype=torch.uint8)
    images[:, side // 2, side // 2 + 2] = 200
    return images


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def centres(images):
    """Where the ink of each image is on average, from the middle: right and down."""
    ink, side = images.double(), images.shape[1]
    place = torch.arange(side, dtype=torch.float64) - side // 2
    total = ink.sum(dim=(1, 2))
    return torch.stack([(ink.sum(dim=1) @ place) / total, (ink.sum(dim=2) @ place) / total], dim=1)


def test_no_warp_gives_the_images_themselves():
    torch.testing.assert_close(Augmentation()(dots(), generator()), dots().float())


def test_a_shift_moves_ink_both_ways_and_loses_none():
    augmented = Augmentation(shift=2.0)(dots(), generator())

    torch.testing.assert_close(augmented.sum(dim=(1, 2)), dots().float().sum(dim=(1, 2)))
    moved = centres(augmented) - centres(dots())
    assert float(moved.min()) < -1 < 1 < float(moved.max())
    assert float(moved.abs().max()) <= 2.0 + 1e-6


def test_a_turn_keeps_the_distance_from_the_middle():
    moved = centres(Augmentation(degrees=30.0)(dots(), generator()))

    torch.testing.assert_close(
        moved.norm(dim=1), torch.full((50,), 2.0, dtype=torch.float64), rtol=0.1, atol=0
    )
    angles = torch.atan2(moved[:, 1], moved[:, 0]).rad2deg()
    assert -33 < float(angles.min()) < -20
    assert 20 < float(angles.max()) < 33


def test_a_stretch_changes_the_distance_by_its_share():
    moved = centres(Augmentation(stretch=0.2)(dots(), generator()))[:, 0]

    assert 1.5 < float(moved.min()) < 1.8
    assert 2.2 < float(moved.max()) < 2.6


def test_each_image_and_each_seed_is_warped_in_its_own_way():
    augmentation = Augmentation(degrees=10.0, stretch=0.1, shift=1.0)
    first = augmentation(dots(), generator(0))

    assert torch.equal(first, augmentation(dots(), generator(0)))
    assert not torch.equal(first, augmentation(dots(), generator(1)))
    assert not torch.equal(first[0], first[1])


@pytest.mark.parametrize("wrong", [{"degrees": -1.0}, {"stretch": 0.5}, {"shift": -0.5}])
def test_amounts_that_make_no_sense_are_refused(wrong):
    with pytest.raises(InvalidArgument, match="must not be negative"):
        Augmentation(**wrong)
