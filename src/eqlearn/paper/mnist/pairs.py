"""Pairs of digits: what is computed of their labels, and the loss over random pairs of augmented images."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int64, Shaped
from torch import Tensor, nn

from eqlearn import Equation, ImageArithmetic, InvalidArgument, InvalidExpression, Phase, step_generator


@dataclass(frozen=True)
class Operation:
    """What is computed from two labels: a formula in `a` and `b`, such as "a+b", "a*b" or "(a+b)^2".

    It is read by the library's own parser. An `EQL` gives values near [-1, 1], so its output is multiplied by
    half the range of the results and moved to the range's middle: 9 and 9 for the sum of two digits, 40.5 and
    40.5 for their product, 9 and 0 for their difference.
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

    @property
    def scale(self) -> float:
        """Half the range of the results."""
        return float(np.ptp(self.table().numpy())) / 2

    @property
    def offset(self) -> float:
        """The middle of the range of the results."""
        table = self.table()
        return float(table.max() + table.min()) / 2


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


class PairLoss(nn.Module):
    """The mean squared error over random pairs of training images; what is drawn depends on seed and step.

    With `huber`, errors larger than that count by their size, not their square, so that a few digits nobody
    can read do not pull at all the others.

    Each step encodes `batch` images once and makes `pairs` pairs among them, which costs no more than one
    pair per image would; with `disjoint`, each image is in one pair only, as in the paper. Pairs whose result
    is not `below` the bound are thrown away, so that training never sees them. With `augmentation`, each
    image is augmented anew whenever it is drawn. Errors are in units of a ninth of the half range, those of
    the sum, so that one weight of the penalty serves all operations.
    """

    step: Tensor
    table: Tensor
    images: Tensor
    labels: Tensor

    def __init__(
        self,
        images: Shaped[Tensor, "rows height width"],
        labels: Int64[Tensor, " rows"],
        operation: Operation,
        *,
        seed: int = 0,
        batch: int = 200,
        pairs: int = 2_000,
        disjoint: bool = False,
        augmentation: Augmentation | None = None,
        below: float | None = None,
        huber: float | None = None,
    ) -> None:
        super().__init__()
        if huber is not None and not huber > 0:
            raise InvalidArgument(f"`huber` must be positive, or None for squares alone; got {huber}")
        if len(images) != len(labels) or len(labels) == 0 or batch < 2 or pairs < 1:
            raise InvalidArgument(
                f"needs images with a label each, `batch` >= 2 and `pairs` >= 1; got {len(images)} images, "
                f"{len(labels)} labels, `batch`={batch}, `pairs`={pairs}"
            )
        for name, values in (("table", operation.table()), ("images", images), ("labels", labels)):
            self.register_buffer(
                name, values, persistent=False
            )  # moves with the loss, is no part of its state
        self.seed, self.batch, self.pairs = seed, batch, pairs
        self.disjoint, self.augmentation, self.below, self.huber = disjoint, augmentation, below, huber
        self.unit = operation.scale / 9
        self.register_buffer("step", torch.zeros((), dtype=torch.int64))

    def forward(self, model: ImageArithmetic, phase: Phase) -> Float[Tensor, "*members"]:
        generator = step_generator(self.seed, self.step)
        self.step += 1
        rows = torch.randint(len(self.labels), (self.batch,), generator=generator)
        labels = self.labels[rows]
        images = (
            self.images[rows]
            if self.augmentation is None
            else self.augmentation(self.images[rows], generator)
        )
        latents = model.encoder(images)
        first, second = self._pairs(generator)
        target = self.table[labels[first], labels[second]]
        if self.below is not None:
            kept = target < self.below
            first, second, target = first[kept], second[kept], target[kept]
        residual = (model.combine(latents[first], latents[second]) - target) / self.unit
        # A low bound may leave none of a step's pairs: such a step has nothing to teach, and is no failure.
        return self._cost(residual).sum(dim=-1) / max(len(target), 1)

    def _cost(self, residual: Tensor) -> Tensor:
        if self.huber is None:
            return residual.square()
        # Twice torch's, so that small errors count by their square in both cases.
        return 2 * F.huber_loss(residual, torch.zeros_like(residual), reduction="none", delta=self.huber)

    def _pairs(self, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        if self.disjoint:
            first, second = torch.arange(self.batch // 2 * 2).view(2, -1)
        else:
            first, second = torch.randint(self.batch, (2, self.pairs), generator=generator)
        return first, second


def random_pairs(
    labels: Int64[Tensor, " rows"],
    count: int,
    seed: int,
    allowed: Bool[Tensor, "labels labels"] | None = None,
) -> tuple[Int64[Tensor, " pairs"], Int64[Tensor, " pairs"]]:
    """Indices of `count` pairs drawn at random, without those whose labels are not `allowed`."""
    generator = torch.Generator().manual_seed(seed)
    first, second = torch.randint(len(labels), (2, count), generator=generator)
    if allowed is None:
        return first, second
    kept = allowed[labels[first], labels[second]]
    return first[kept], second[kept]
