"""Images of handwritten digits with their labels: MNIST, or the small set that ships with scikit-learn."""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Int64, UInt8
from torch import Tensor

from eqlearn.core.names import did_you_mean
from eqlearn.data.idx import read_idx
from eqlearn.data.mnist import mnist_contents
from eqlearn.errors import InvalidFile, UnknownName

_EVERY = 5  # of the 1,797 embedded digits, each fifth is a test image, so that all writers are in both sets


@dataclass(frozen=True, eq=False)
class LabelledImages:
    """Grey images, as bytes to keep memory small, and the digit that each shows."""

    images: UInt8[Tensor, "rows height width"]
    labels: Int64[Tensor, " rows"]

    def __len__(self) -> int:
        return len(self.labels)

    def where(self, kept: Bool[Tensor, " rows"]) -> LabelledImages:
        """Those that are kept."""
        return LabelledImages(self.images[kept], self.labels[kept])


@dataclass(frozen=True, eq=False)
class Digits:
    """A training and a test set of handwritten digits."""

    name: str
    train: LabelledImages
    test: LabelledImages

    @property
    def side(self) -> int:
        """Height and width of an image, in pixels."""
        return int(self.train.images.shape[-1])


def load_mnist(folder: str | os.PathLike[str] | None = None) -> Digits:
    """60,000 training and 10,000 test images of 28 x 28 pixels; see `mnist_contents` for where from."""
    contents = mnist_contents(folder)
    arrays = {name: read_idx(content, name) for name, content in contents.items()}
    return Digits(
        "mnist",
        _labelled(arrays["train-images-idx3-ubyte"], arrays["train-labels-idx1-ubyte"]),
        _labelled(arrays["t10k-images-idx3-ubyte"], arrays["t10k-labels-idx1-ubyte"]),
    )


def load_embedded(folder: str | os.PathLike[str] | None = None) -> Digits:
    """1,437 training and 360 test images of 8 x 8 pixels, on every machine with scikit-learn.

    `folder` is not looked at; it is there so that both sets load alike.
    """
    from sklearn.datasets import load_digits

    pixels, labels = load_digits(return_X_y=True)
    images = np.round(pixels.reshape(-1, 8, 8) * (255 / 16)).astype(np.uint8)
    whole = _labelled(images, labels.astype(np.uint8))
    test = torch.arange(len(whole)) % _EVERY == 0
    return Digits("digits", whole.where(~test), whole.where(test))


DATASETS = {"mnist": load_mnist, "digits": load_embedded}


def load_digits(name: str = "mnist", folder: str | os.PathLike[str] | None = None) -> Digits:
    """The set of that name: "mnist", or "digits", which needs no download."""
    if name not in DATASETS:
        raise UnknownName(f"no set of digits named {name!r}; {did_you_mean(name, DATASETS)}")
    return DATASETS[name](folder)


def _labelled(images: np.ndarray, labels: np.ndarray) -> LabelledImages:
    if images.ndim != 3 or labels.ndim != 1 or len(images) != len(labels):
        raise InvalidFile(
            f"images of shape {images.shape} and labels of shape {labels.shape} do not belong together"
        )
    return LabelledImages(torch.from_numpy(images), torch.from_numpy(labels.astype(np.int64)))
