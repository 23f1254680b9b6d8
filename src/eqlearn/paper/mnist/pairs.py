"""Pairs of digits: what is computed of their labels, and batches of random pairs of augmented images."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count, islice

import numpy as np
import torch
from jaxtyping import Float, Int64, Shaped
from torch import Tensor, nn

from eqlearn import (
    Equation,
    Gathered,
    ImageArithmetic,
    InvalidArgument,
    InvalidExpression,
    Phase,
    step_generator,
)

LATENTS = ("z_1", "z_2")  # of the two images of a pair


@dataclass(frozen=True)
class Operation:
    """What is computed from two labels: a formula in `a` and `b`, such as "a+b", "a*b" or "(a+b)^2".

    It is read by the library's own parser.
    """

    formula: str = "a+b"
    labels: int = 10

    @property
    def equation(self) -> Equation:
        try:
            return Equation.parse(self.formula.replace("^", "**"), ["a", "b"])
        except InvalidExpression as error:
            raise InvalidExpression(f"`formula` {self.formula!r} can't be read: {error}") from error

    def table(self) -> Float[Tensor, "labels labels"]:
        """The result for every pair of labels."""
        a, b = np.meshgrid(np.arange(self.labels), np.arange(self.labels), indexing="ij")
        values = self.equation(np.column_stack([a.ravel(), b.ravel()]).astype(float))
        if not np.isfinite(values).all() or np.ptp(values) == 0:
            raise InvalidArgument(
                f"`formula` {self.formula!r} must vary with its labels, 0 to {self.labels - 1}, and be "
                "finite for all of them"
            )
        return torch.tensor(values, dtype=torch.float32).reshape(self.labels, self.labels)


@dataclass(frozen=True)
class Augmentation:
    """The most that an image is augmented: turned by `degrees` both ways, its axes stretched and slanted by a
    share `stretch`, moved by `shift` pixels."""

    degrees: float = 0.0
    stretch: float = 0.0
    shift: float = 0.0

    def __post_init__(self) -> None:
        if min(self.degrees, self.stretch, self.shift) < 0 or not self.stretch < 0.5:
            raise InvalidArgument(
                f"an augmentation's `degrees`, `stretch` (below 0.5) and `shift` must not be negative: {self}"
            )

    def __call__(
        self, images: Shaped[Tensor, "rows height width"], generator: torch.Generator
    ) -> Float[Tensor, "rows height width"]:
        """Each image augmented by amounts of its own, drawn evenly; black comes in."""

        def drawn(*shape: int) -> Tensor:
            return 2 * torch.rand(len(images), *shape, generator=generator) - 1

        angle = math.radians(self.degrees) * drawn()
        turn = torch.stack([angle.cos(), -angle.sin(), angle.sin(), angle.cos()], dim=-1).view(-1, 2, 2)
        linear = turn @ (torch.eye(2) + self.stretch * drawn(2, 2))
        # The grid runs from -1 to 1 over the image.
        sides = torch.tensor([images.shape[2], images.shape[1]])
        moved = 2 * self.shift / sides * drawn(2)
        plane = images[:, None].float()
        amounts = torch.cat([linear, moved[:, :, None]], dim=2).to(plane.device)
        grid = nn.functional.affine_grid(amounts, list(plane.shape), align_corners=False)
        return nn.functional.grid_sample(plane, grid, align_corners=False)[:, 0]


class Pairs:
    """Batches of random pairs of images, endless, for `discover_latent(data=...)`; what a batch holds depends
    on the seed and its number.

    Each has `batch` images, encoded once, and `pairs` pairs among them, never of an image with itself, which
    would tell its label. Without `pairs`, each image is in one pair only, as in the paper. Pairs whose result
    is not `below` the bound are thrown away, so that training never sees them. With `augmentation`, each
    image is augmented anew whenever it is drawn.
    """

    def __init__(
        self,
        images: Shaped[Tensor, "rows height width"],
        labels: Int64[Tensor, " rows"],
        operation: Operation,
        *,
        seed: int = 0,
        batch: int = 200,
        pairs: int | None = None,
        augmentation: Augmentation | None = None,
        below: float | None = None,
    ) -> None:
        if len(images) != len(labels) or len(labels) == 0 or batch < 2 or (pairs is not None and pairs < 1):
            raise InvalidArgument(
                f"needs images with a label each, `batch` >= 2 and `pairs` >= 1; got {len(images)} images, "
                f"{len(labels)} labels, `batch`={batch}, `pairs`={pairs}"
            )
        self.images, self.labels, self.table = images, labels, operation.table()
        self.seed, self.batch, self.pairs = seed, batch, pairs
        self.augmentation, self.below = augmentation, below
        self._numbers = count()

    def __iter__(self) -> Iterator[dict[str, Gathered | Tensor]]:
        """Batches by name, from the first that no one has had yet."""
        for number in self._numbers:
            images, first, second, result = self.drawn(number)
            a, b = LATENTS
            yield {a: Gathered(images, first), b: Gathered(images, second), "y": result}

    def skip_(self, batches: int) -> None:
        """Leaves out that many batches, without making them: a search that was killed has had them."""
        deque(islice(self._numbers, batches), maxlen=0)

    def drawn(self, number: int | Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """The images of a batch, the places of each pair's first and second one, and the pairs' results."""
        generator = step_generator(self.seed, number)
        rows = torch.randint(len(self.labels), (self.batch,), generator=generator)
        images, labels = self.images[rows], self.labels[rows]
        if self.augmentation is not None:
            images = self.augmentation(images, generator)
        if self.pairs is None:
            first, second = torch.arange(self.batch // 2 * 2).view(2, -1)
        else:
            first, second = torch.randint(self.batch, (2, self.pairs), generator=generator)
        result = self.table[labels[first], labels[second]]
        kept = rows[first] != rows[second]
        if self.below is not None:
            kept &= result < self.below
        return images, first[kept], second[kept], result[kept]


class PairLoss(nn.Module):
    """The mean squared error of a system over one batch of pairs after the other."""

    step: Tensor

    def __init__(self, pairs: Pairs) -> None:
        super().__init__()
        self.pairs = pairs
        self.register_buffer("step", torch.zeros((), dtype=torch.int64))

    def forward(self, model: ImageArithmetic, phase: Phase) -> Float[Tensor, "*members"]:
        images, first, second, result = self.pairs.drawn(self.step)
        self.step += 1
        latents = model.encoder(images)
        error = model.combine(latents[first], latents[second]) - result
        # A low bound may leave none of a step's pairs: such a step has nothing to teach, and is no failure.
        return error.square().sum(dim=-1) / max(len(result), 1)


def random_pairs(
    labels: Int64[Tensor, " rows"], count: int, seed: int
) -> tuple[Int64[Tensor, " pairs"], Int64[Tensor, " pairs"]]:
    """Indices of `count` pairs drawn at random."""
    generator = torch.Generator().manual_seed(seed)
    first, second = torch.randint(len(labels), (2, count), generator=generator)
    return first, second
